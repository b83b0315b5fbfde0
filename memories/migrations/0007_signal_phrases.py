from django.db import migrations, models


class Migration(migrations.Migration):
    """A tenant's own signs."""

    dependencies = [("memories", "0006_unarmed")]
    operations = [
        migrations.AddField(
            model_name="tenant",
            name="signal_phrases",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="Kind of sign → phrases that stand for it, in place of the hub's patterns.",
            ),
        ),
    ]
