"""A key chooses whose memory the sessions become that it opens; each session keeps what it was opened with."""

from django.db import migrations, models
from django.db.models import Q

CHOICES = [
    ("person", "The person: shared by all agents"),
    ("agent", "The agent: private to the agent of the conversation"),
]


class Migration(migrations.Migration):
    dependencies = [("memories", "0021_failing_since")]
    operations = [
        migrations.AddField(
            "apikey",
            "memory_of",
            models.CharField(
                blank=True,
                choices=CHOICES,
                default="",
                editable=False,
                help_text="Whose memory sessions become that it opens; empty: as the tenant says.",
                max_length=6,
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            "session",
            "memory_of",
            models.CharField(
                blank=True,
                choices=CHOICES,
                default="",
                editable=False,
                help_text="Whose memory it becomes, as the key chose that opened it; empty: as the tenant says.",
                max_length=6,
            ),
            preserve_default=False,
        ),
        migrations.AddIndex(
            "session",
            models.Index(fields=["end_user"], condition=Q(memory_of="agent"), name="session_of_agent_alone_idx"),
        ),
    ]
