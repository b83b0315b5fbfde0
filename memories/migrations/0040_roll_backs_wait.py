"""A roll back keeps which revisions it takes back, also those that it can take back only with a later one."""

from django.db import migrations, models

ACTIONS = ["made", "deleted", "changed", "moved", "left", "taken"]


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0039_logged_texts_of_files"),
    ]

    operations = [
        migrations.AlterField(
            model_name="change",
            name="action",
            field=models.CharField(
                choices=[(action, action.title()) for action in ACTIONS], editable=False, max_length=7
            ),
        ),
        *(
            migrations.AddIndex(
                model_name="change",
                index=models.Index(condition=models.Q(action="taken"), fields=[field], name=name),
            )
            for field, name in (("number", "change_taken_fact_idx"), ("uuid", "change_taken_section_idx"))
        ),
    ]
