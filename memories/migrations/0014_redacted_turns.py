"""What a turn says can be deleted: the row keeps its number and a keyed hash."""

from django.db import migrations, models

# Personal data: an erased person is not to remain in the planner's samples.
UNSAMPLED = "ALTER TABLE memories_turn ALTER COLUMN digest SET STATISTICS 0"


class Migration(migrations.Migration):
    dependencies = [("memories", "0013_who_refused")]
    operations = [
        migrations.AddField(
            "session",
            "redactions",
            models.PositiveIntegerField(
                default=0, editable=False, help_text="How often what a turn says was deleted."
            ),
        ),
        migrations.AddField(
            "turn",
            "redacted_at",
            models.DateTimeField(
                null=True, editable=False, help_text="When what it said, or a part of it, was deleted."
            ),
        ),
        migrations.AddField(
            "turn",
            "digest",
            models.BinaryField(
                max_length=32,
                null=True,
                editable=False,
                help_text="Keyed hash of what a redacted one said: the same message is not stored again.",
            ),
        ),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
    ]
