"""Versions of memory files know their change set, and the nightly pass finds the old ones."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0040_roll_backs_wait"),
    ]

    operations = [
        migrations.AddField(
            model_name="fileversion",
            name="change_set",
            field=models.UUIDField(
                editable=False, help_text="Of many memories at once, such as a roll back.", null=True
            ),
        ),
        migrations.AddIndex(
            model_name="fileversion",
            index=models.Index(fields=["tenant", "created_at", "id"], name="file_version_old_idx"),
        ),
        migrations.AddIndex(
            model_name="fileversion",
            index=models.Index(
                condition=models.Q(("change_set__isnull", False)),
                fields=["change_set"],
                name="file_version_change_set_idx",
            ),
        ),
    ]
