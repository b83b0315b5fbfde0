"""Indexes for the review queue: what waits in its order, and an operator's last decisions."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0023_roles")]

    operations = [
        migrations.AddIndex(
            model_name="reviewitem",
            index=models.Index(
                condition=models.Q(("state", "open")), fields=["created_at", "id"], name="review_queue_idx"
            ),
        ),
        migrations.AddIndex(
            model_name="reviewitem",
            index=models.Index(
                condition=models.Q(("decided_by", ""), _negated=True),
                fields=["decided_by", "-decided_at"],
                name="review_of_decider_idx",
            ),
        ),
    ]
