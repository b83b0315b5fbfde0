"""An index of the newest runs of all tenants, for the page that lists them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0012_diary")]
    operations = [
        migrations.AddIndex(
            model_name="extractionrun",
            index=models.Index(fields=["-started_at", "-id"], name="run_newest_of_all_idx"),
        ),
    ]
