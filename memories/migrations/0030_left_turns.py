"""Turns of a branch of a conversation that the client left stay stored, marked."""

from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("memories", "0029_served_days")]
    operations = [
        migrations.AddField(
            model_name="turn",
            name="left_at",
            field=models.DateTimeField(
                editable=False,
                help_text="When the client went on from an earlier message without it; empty: part of the conversation.",
                null=True,
            ),
        ),
        migrations.AlterField(
            model_name="session",
            name="redactions",
            field=models.PositiveIntegerField(
                default=0,
                editable=False,
                help_text="How often what a turn says was deleted, or turns were left or came back.",
            ),
        ),
        migrations.AlterField(
            model_name="workingmemory",
            name="left_tokens",
            field=models.PositiveBigIntegerField(
                default=0, help_text="Tokens of these turns, and of turns of branches that the client left."
            ),
        ),
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(condition=Q(("left_at__isnull", False)), fields=["session", "number"], name="turn_left_idx"),
        ),
    ]
