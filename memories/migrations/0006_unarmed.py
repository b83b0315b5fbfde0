from django.db import migrations, models


class Migration(migrations.Migration):
    """What came while extraction was switched off is found and armed."""

    dependencies = [("memories", "0005_throttle_counters")]
    operations = [
        migrations.AddIndex(
            model_name="sessionqueue",
            index=models.Index(
                condition=models.Q(("due_at", None), ("parked_at", None), ("pending_user", True)),
                fields=["first_pending_at"],
                name="session_queue_unarmed_idx",
            ),
        ),
    ]
