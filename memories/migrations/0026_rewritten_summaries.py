"""The running summary of a session can be rewritten, and the rewriting undone."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("memories", "0025_agents")]
    operations = [
        migrations.AlterField(
            model_name="change",
            name="table",
            field=models.CharField(
                choices=[
                    ("fact", "Fact"),
                    ("episode", "Episode"),
                    ("section", "Section"),
                    ("evidence", "Evidence"),
                    ("relation", "Relation"),
                    ("refusal", "Refusal"),
                    ("person", "Person"),
                    ("key", "Key"),
                    ("session", "Session"),
                    ("revision", "Revision"),
                    ("summary", "Summary"),
                ],
                editable=False,
                max_length=8,
            ),
        ),
        migrations.AddIndex(
            model_name="change",
            index=models.Index(condition=Q(("table", "summary")), fields=["uuid"], name="change_of_summary_idx"),
        ),
    ]
