import django.db.models.deletion
import memories.models.ids
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Operators' own filters of the lists, keys that were rotated, tenants that were off-boarded."""

    dependencies = [
        ("memories", "0026_fact_merges"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='tenant',
            options={'ordering': ['slug'], 'permissions': [('export_tenant', 'Can export lists as CSV files')]},
        ),
        migrations.AddField(
            model_name='apikey',
            name='successor',
            field=models.OneToOneField(blank=True, editable=False, help_text='The key that it was rotated to.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='predecessor', to='memories.apikey'),
        ),
        migrations.AddField(
            model_name='tenant',
            name='before_offboarding',
            field=models.JSONField(default=dict, editable=False, help_text='Capture and serve as they were, for the way back.'),
        ),
        migrations.AddField(
            model_name='tenant',
            name='offboarded_at',
            field=models.DateTimeField(editable=False, help_text='Since when it is off-boarded.', null=True),
        ),
        migrations.CreateModel(
            name='SavedFilter',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('model', models.CharField(editable=False, max_length=40)),
                ('name', models.CharField(max_length=60, verbose_name='name')),
                ('choices', models.JSONField(default=dict, editable=False)),
                ('created_at', models.DateTimeField(editable=False)),
                ('operator', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='saved_filters', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'saved filter',
                'verbose_name_plural': 'saved filters',
                'ordering': ['name'],
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('operator', 'model', 'name'), name='saved_filter_once')],
            },
        ),
        migrations.AddIndex(
            model_name='fact',
            index=models.Index(fields=['-created_at', '-id'], name='fact_newest_idx'),
        ),
        migrations.AddIndex(
            model_name='fact',
            index=models.Index(condition=models.Q(('pinned', True), ('locked', True), ('binding', True), ('status', 'pending'), _connector='OR'), fields=['-created_at', '-id'], name='fact_marked_idx'),
        ),
    ]
