"""Operators choose what they want mail about; what they were reminded of."""

import django.db.models.deletion
import memories.models.ids
from django.conf import settings
from django.db import migrations, models

from memories.db.together import Together


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0022_webhooks'),
    ]

    operations = [
        Together([
            migrations.AddField(
                model_name='operator',
                name='mail_cases',
                field=models.BooleanField(default=False, verbose_name='mail about privacy cases'),
            ),
            migrations.AddField(
                model_name='operator',
                name='mail_queues',
                field=models.BooleanField(default=False, verbose_name='mail about long queues'),
            ),
            migrations.CreateModel(
                name='OperatorMail',
                fields=[
                    ('lease_token', models.UUIDField(editable=False, null=True)),
                    ('lease_until', models.DateTimeField(editable=False, help_text='Nobody else claims it before; without a token it is a pause.', null=True)),
                    ('attempts', models.PositiveIntegerField(default=0, editable=False, help_text='Claims since it last got on.')),
                    ('failure', models.CharField(blank=True, editable=False, help_text='Code of the last failure.', max_length=40)),
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('kind', models.CharField(choices=[('case_opened', 'a privacy case is opened'), ('case_due', 'a privacy case is near its day'), ('long_queue', 'extraction falls behind'), ('long_review', 'review falls behind')], editable=False, max_length=11)),
                    ('about', models.UUIDField(editable=False, help_text='The privacy case.', null=True)),
                    ('once', models.CharField(editable=False, help_text='An operator is reminded of it once.', max_length=80)),
                    ('created_at', models.DateTimeField(editable=False)),
                    ('sent_at', models.DateTimeField(editable=False, null=True)),
                    ('operator', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('tenant', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
                ],
                options={
                    'default_permissions': (),
                    'indexes': [models.Index(condition=models.Q(('sent_at', None)), fields=['created_at'], name='operator_mail_waiting_idx')],
                    'constraints': [models.UniqueConstraint(fields=('operator', 'tenant', 'once'), name='operator_mail_once', nulls_distinct=False)],
                },
            ),
        ]),
    ]
