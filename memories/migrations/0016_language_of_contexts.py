"""A tenant chooses the language of its contexts' headings."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0015_memory_documents")]
    operations = [
        migrations.AddField(
            "tenant",
            "language",
            models.CharField(
                choices=[("en", "English"), ("zh-hans", "简体中文")],
                default="en",
                help_text="Language of the first line and the headings. Memories stay in their own language.",
                max_length=10,
                verbose_name="language of contexts",
            ),
        ),
    ]
