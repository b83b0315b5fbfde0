from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0017_window"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(
                condition=models.Q(("role", "system")), fields=["session", "-number"], name="turn_of_system_idx"
            ),
        ),
    ]
