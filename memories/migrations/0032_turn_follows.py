"""A turn on a branch says which turn it follows."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0031_who_set_agents")]
    operations = [
        migrations.AddField(
            model_name="turn",
            name="follows",
            field=models.PositiveIntegerField(
                editable=False,
                help_text="The number of the turn that it follows, on a branch; empty: the one before it.",
                null=True,
            ),
        ),
    ]
