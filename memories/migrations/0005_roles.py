"""The groups reviewer, operator, dpo, auditor and administrator, with their permissions."""

from django.db import migrations

from memories.models.access import roles


def grant(apps, schema_editor):
    roles.grant(apps)


class Migration(migrations.Migration):
    replaces = [("memories", "0023_roles"), ("memories", "0030_privacy_cases")]
    dependencies = [
        ("memories", "0004_unsampled_columns"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]
    # The groups stay when the migration is reversed: people may be in them.
    operations = [migrations.RunPython(grant, migrations.RunPython.noop)]
