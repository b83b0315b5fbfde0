"""Of an agent it is kept who set what: a key cannot undo what an operator set."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0030_left_turns'),
    ]

    operations = [
        migrations.AddField(
            model_name='agent',
            name='extraction_off_by',
            field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], editable=False, help_text='Who switched extraction off.', max_length=8),
        ),
        migrations.AddField(
            model_name='agent',
            name='guidance_by',
            field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], editable=False, help_text='Who wrote the guidance last.', max_length=8),
        ),
        migrations.AddField(
            model_name='agent',
            name='recall_off_by',
            field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], editable=False, help_text='Who switched recall off.', max_length=8),
        ),
    ]
