"""An index of the facts that were changed: contexts and searches ask whether a person has any."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0044_export_pieces")]

    operations = [
        migrations.AddIndex(
            model_name="fact",
            index=models.Index(
                condition=models.Q(("status", "active"), ("version__gt", 1)),
                fields=["end_user"],
                name="fact_changed_idx",
            ),
        ),
    ]
