from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0013_traces'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='fact',
            index=models.Index(condition=models.Q(('scope', 'public'), ('status', 'active')), fields=['tenant'], name='fact_public_idx'),
        ),
    ]
