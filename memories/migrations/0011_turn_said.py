"""Contexts tell what was said last by when it was said, not by when it arrived."""

from django.db import migrations, models
from django.db.models.functions import Least

SAID = Least("timestamp", "created_at")


class Migration(migrations.Migration):
    dependencies = [("memories", "0010_labels")]
    operations = [
        migrations.AddIndex("turn", models.Index(models.F("end_user"), SAID.desc(), name="turn_said_idx")),
        migrations.RemoveIndex("turn", "turn_of_end_user_idx"),
    ]
