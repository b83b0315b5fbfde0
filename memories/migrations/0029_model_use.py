import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """What models were asked besides extraction, in sums per day."""

    dependencies = [
        ("memories", "0028_look"),
    ]

    operations = [
        migrations.CreateModel(
            name='ModelUse',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('day', models.DateField()),
                ('purpose', models.CharField(choices=[('summaries', 'Summaries'), ('upkeep', 'Upkeep')], max_length=16)),
                ('calls', models.PositiveIntegerField(default=0)),
                ('prompt_tokens', models.PositiveBigIntegerField(default=0)),
                ('completion_tokens', models.PositiveBigIntegerField(default=0)),
                ('cost', models.DecimalField(decimal_places=6, help_text='US dollars.', max_digits=14, null=True)),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('tenant', 'day', 'purpose'), name='model_use_once_a_day')],
            },
        ),
    ]
