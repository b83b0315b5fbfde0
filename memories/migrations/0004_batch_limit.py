from django.db import migrations, models


class Migration(migrations.Migration):
    """Batches that were too long are halved; a failing endpoint is asked by one batch at a time."""

    dependencies = [("memories", "0003_idempotency")]
    operations = [
        migrations.AddField(
            model_name="sessionqueue",
            name="batch_limit",
            field=models.PositiveIntegerField(
                help_text="How many fed turns the next batch may hold, after one that was too long.", null=True
            ),
        ),
        migrations.CreateModel(
            name="EndpointState",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "failures",
                    models.PositiveIntegerField(default=0, help_text="Of different sessions, since it last answered."),
                ),
                ("last_session", models.UUIDField(help_text="The session that failed last.", null=True)),
                (
                    "until",
                    models.DateTimeField(help_text="Nobody asks before; then one batch finds out.", null=True),
                ),
                (
                    "stated_until",
                    models.DateTimeField(help_text="What the endpoint itself asked for (Retry-After).", null=True),
                ),
            ],
        ),
    ]
