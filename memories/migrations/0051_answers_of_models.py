"""What a model is asked for: answers to questions, too."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0050_what_was_chosen'),
    ]

    operations = [
        migrations.AlterField(
            model_name='modeluse',
            name='purpose',
            field=models.CharField(choices=[('summaries', 'Summaries'), ('upkeep', 'Upkeep'), ('dreams', 'Dreams'), ('answers', 'Answers')], max_length=16),
        ),
    ]
