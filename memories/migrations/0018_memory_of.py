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
                    ("person", "The person: every agent of theirs is told"),
                    ("agent", "The agent that had it: no other agent is told"),
                ],
                default="person",
                help_text="With “the agent” the facts of a conversation are the agent's, and its turns and episodes are "
                "told to that agent alone. Facts from before stay whose they are.",
                max_length=6,
                verbose_name="memory belongs to",
            ),
        ),
    ]
