from django.db import migrations

from memories.models import roles


def grant(apps, schema_editor):
    roles.grant(apps)


class Migration(migrations.Migration):
    """The groups reviewer, operator, dpo, auditor and administrator."""

    dependencies = [
        ("memories", "0022_operators_reach"),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
    ]

    operations = [
        # Going back leaves them: people may be in them.
        migrations.RunPython(grant, migrations.RunPython.noop),
    ]
