"""Operators are invited by a one-time link: of its secret a digest is kept, and until when it works."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0033_mcp'),
    ]

    operations = [
        migrations.AddField(
            model_name='operator',
            name='invitation',
            field=models.BinaryField(editable=False, max_length=32, null=True, unique=True),
        ),
        migrations.AddField(
            model_name='operator',
            name='invited_until',
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
