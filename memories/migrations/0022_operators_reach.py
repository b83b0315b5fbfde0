import django.db.models.deletion
import memories.models.ids
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Which tenants an operator may see, in which language, and what was done to many memories at once."""

    dependencies = [
        ('memories', '0021_upkeep'),
    ]

    operations = [
        migrations.AddField(
            model_name='operator',
            name='all_tenants',
            field=models.BooleanField(default=True, help_text='Sees the memories of every tenant.', verbose_name='all tenants'),
        ),
        migrations.AddField(
            model_name='operator',
            name='language',
            field=models.CharField(blank=True, choices=[('en', 'English'), ('zh-hans', '简体中文')], default='', max_length=16, verbose_name='language'),
        ),
        migrations.AddField(
            model_name='operator',
            name='tenants',
            field=models.ManyToManyField(blank=True, help_text='Sees the memories of these alone, unless of all tenants.', related_name='operators', to='memories.tenant', verbose_name='tenants'),
        ),
        migrations.AlterField(
            model_name='operator',
            name='time_zone',
            field=models.CharField(default='UTC', max_length=64, verbose_name='time zone'),
        ),
        migrations.CreateModel(
            name='Batch',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('verb', models.CharField(editable=False, max_length=32)),
                ('counts', models.JSONField(default=dict, editable=False)),
                ('created_at', models.DateTimeField(editable=False)),
                ('undone_at', models.DateTimeField(editable=False, null=True)),
                ('operator', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='BatchEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField(editable=False)),
                ('change_set', models.UUIDField(editable=False, null=True)),
                ('undone', models.BooleanField(default=False, editable=False)),
                ('batch', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='memories.batch')),
                ('fact', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.fact')),
                ('item', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.reviewitem')),
            ],
            options={
                'ordering': ['id'],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('fact__isnull', False), ('item', None)), models.Q(('fact', None), ('item__isnull', False)), _connector='OR'), name='batch_entry_of_one')],
            },
        ),
    ]
