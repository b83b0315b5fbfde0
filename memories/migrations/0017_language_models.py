"""A tenant's own language model, what its day used, a circuit breaker for each endpoint; who may change the model."""

import django.db.models.deletion
from django.db import migrations, models

from memories.models.access import roles


def grant(apps, schema_editor):
    roles.grant(apps)


class Migration(migrations.Migration):
    dependencies = [
        ('memories', '0016_language_of_contexts'),
    ]
    operations = [
        migrations.CreateModel(
            name='DailySpending',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('day', models.DateField(help_text="In the tenant's time zone.")),
                ('tokens', models.PositiveBigIntegerField(default=0, help_text='Read and written.')),
                ('cost', models.DecimalField(decimal_places=6, default=0, help_text='US dollars, where prices are set.', max_digits=14)),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='LanguageModel',
            fields=[
                ('tenant', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='+', serialize=False, to='memories.tenant', verbose_name='tenant')),
                ('model', models.CharField(blank=True, help_text="The model's name at the endpoint.", max_length=100)),
                ('base_url', models.CharField(blank=True, help_text='Endpoint address.', max_length=500)),
                ('api_key', models.TextField(blank=True, help_text='Encrypted under MEMORYHUB_MFA_KEY; shown to nobody.')),
                ('prompt_price', models.DecimalField(blank=True, decimal_places=6, help_text='US dollars for a million tokens read.', max_digits=11, null=True)),
                ('completion_price', models.DecimalField(blank=True, decimal_places=6, help_text='US dollars for a million tokens written.', max_digits=11, null=True)),
                ('daily_tokens', models.PositiveBigIntegerField(blank=True, help_text='Cap: read and written in a day.', null=True)),
                ('daily_cost', models.DecimalField(blank=True, decimal_places=2, help_text='Cap: US dollars in a day.', max_digits=11, null=True)),
                ('version', models.PositiveIntegerField(default=1, help_text='Rises with each change.')),
                ('updated_at', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'language model',
                'verbose_name_plural': 'language models',
                'default_permissions': ('change',),
            },
        ),
        migrations.AddField(
            model_name='endpointstate',
            name='tenant',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant'),
        ),
        migrations.AddConstraint(
            model_name='endpointstate',
            constraint=models.UniqueConstraint(fields=('tenant',), name='endpoint_state_once', nulls_distinct=False),
        ),
        migrations.AddField(
            model_name='dailyspending',
            name='tenant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant'),
        ),
        migrations.AddConstraint(
            model_name='languagemodel',
            constraint=models.CheckConstraint(condition=models.Q(('api_key', ''), models.Q(('base_url', ''), _negated=True), _connector='OR'), name='model_key_with_its_address'),
        ),
        migrations.AddConstraint(
            model_name='dailyspending',
            constraint=models.UniqueConstraint(fields=('tenant', 'day'), name='daily_spending_once_a_day'),
        ),
        migrations.RunPython(grant, migrations.RunPython.noop),
    ]
