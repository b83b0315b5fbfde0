from django.db import migrations, models


class Migration(migrations.Migration):
    """When tables were rewritten after erasures."""

    dependencies = [
        ("memories", "0033_export_links"),
    ]

    operations = [
        migrations.CreateModel(
            name="TableRewrite",
            fields=[
                ("table", models.CharField(max_length=63, primary_key=True, serialize=False)),
                ("rewritten_at", models.DateTimeField()),
            ],
        ),
    ]
