"""Change sets keep whose words a turn held before an operator corrected it."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0037_served_kinds'),
    ]

    operations = [
        migrations.AlterField(
            model_name='change',
            name='table',
            field=models.CharField(choices=[('fact', 'Fact'), ('episode', 'Episode'), ('section', 'Section'), ('evidence', 'Evidence'), ('relation', 'Relation'), ('refusal', 'Refusal'), ('person', 'Person'), ('key', 'Key'), ('session', 'Session'), ('file', 'File'), ('diary', 'Diary'), ('triple', 'Triple'), ('entity', 'Entity'), ('member', 'Member'), ('said', 'Said'), ('shared', 'Shared'), ('revision', 'Revision'), ('summary', 'Summary'), ('turn', 'Turn')], editable=False, max_length=8),
        ),
    ]
