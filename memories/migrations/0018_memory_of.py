"""A tenant chooses whose memory a conversation becomes: the person's, or that of the agent that had it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0017_language_models")]
    operations = [
        migrations.AddField(
            "tenant",
            "memory_of",
            models.CharField(
                choices=[
                    ("person", "The person: shared by all agents"),
                    ("agent", "The agent: private to the agent of the conversation"),
                ],
                default="person",
                help_text="With “The agent”, the facts, turns and episodes of a conversation are visible only to its agent. Existing facts keep their owner.",
                max_length=6,
                verbose_name="memory belongs to",
            ),
        ),
    ]
