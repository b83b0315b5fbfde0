from django.db import migrations, models


class Migration(migrations.Migration):
    """What came while extraction was switched off is found and armed; people under restriction are passed over."""

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
        migrations.AddIndex(
            model_name="enduser",
            index=models.Index(
                condition=models.Q(("restricted_at__isnull", False)), fields=["id"], name="end_user_restricted_idx"
            ),
        ),
    ]
