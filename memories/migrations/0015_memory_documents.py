"""What a memory document says of facts and sections comes back as it went in: their ids, categories and times."""

from django.db import migrations, models

# Personal data: an erased person is not to remain in the planner's samples.
UNSAMPLED = """
ALTER TABLE memories_fact ALTER COLUMN external_id SET STATISTICS 0, ALTER COLUMN document SET STATISTICS 0;
ALTER TABLE memories_profilesection ALTER COLUMN document SET STATISTICS 0;
"""


class Migration(migrations.Migration):
    dependencies = [("memories", "0014_redacted_turns")]
    operations = [
        migrations.AddField(
            "fact",
            "external_id",
            models.CharField(
                "external id",
                blank=True,
                default="",
                help_text="Its id in the memory document that it came with.",
                max_length=255,
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            "fact",
            "document",
            models.JSONField(
                editable=False,
                help_text="What that document says besides, as it is told to who asks for it again.",
                null=True,
            ),
        ),
        migrations.AddField(
            "profilesection",
            "document",
            models.JSONField(
                editable=False,
                help_text="What the memory document that it came with says of its times.",
                null=True,
            ),
        ),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
    ]
