from django.db import migrations, models


class Migration(migrations.Migration):
    """What a decision made and lifted besides revisions, so that it can be undone."""

    dependencies = [("memories", "0012_profile_history")]
    operations = [
        migrations.AddField(
            model_name="reviewitem",
            name="traces",
            field=models.JSONField(
                default=dict, editable=False, help_text="What an undo takes back besides revisions."
            ),
        ),
    ]
