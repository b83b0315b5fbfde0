"""Webhooks of tenants, and the outbox of their deliveries."""

import django.contrib.postgres.fields
import django.db.models.deletion
import memories.models.ids
from django.db import migrations, models

from memories.db.together import Together
from memories.models.access.roles import grant


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0021_shared_keys'),
    ]

    operations = [
        Together([
            migrations.AddField(
                model_name='tenant',
                name='webhook_events',
                field=models.JSONField(default=list, editable=False, help_text='What its webhooks are told: without any, events cost no statement.'),
            ),
            migrations.CreateModel(
                name='WebhookEndpoint',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(max_length=100, verbose_name='name')),
                    ('url', models.CharField(max_length=500, verbose_name='address')),
                    ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), size=None, verbose_name='events')),
                    ('content', models.BooleanField(default=False, verbose_name='with content')),
                    ('secret', models.TextField(editable=False, help_text='Encrypted under MEMORYHUB_MFA_KEY.')),
                    ('former_secret', models.TextField(blank=True, editable=False, help_text='The one before; likewise.')),
                    ('former_until', models.DateTimeField(editable=False, help_text='So long both secrets sign.', null=True)),
                    ('disabled_at', models.DateTimeField(editable=False, null=True)),
                    ('disabled_for', models.CharField(blank=True, choices=[('operator', 'An operator disabled it'), ('failing', 'It failed for three days'), ('gone', 'It answered 410: it is gone'), ('off_boarded', 'The tenant is off-boarded')], editable=False, max_length=11)),
                    ('failures', models.PositiveIntegerField(default=0, editable=False, help_text='In a row.')),
                    ('failing_since', models.DateTimeField(editable=False, null=True)),
                    ('paused_until', models.DateTimeField(editable=False, help_text='Nothing is sent before, after a failure.', null=True)),
                    ('version', models.PositiveIntegerField(default=1, editable=False, help_text='Rises with each change by a person.')),
                    ('created_at', models.DateTimeField(editable=False, verbose_name='created')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
                ],
                options={
                    'verbose_name': 'webhook',
                    'verbose_name_plural': 'webhooks',
                    'ordering': ['-created_at', '-id'],
                    'default_permissions': ('view', 'change'),
                    'constraints': [models.UniqueConstraint(fields=('tenant', 'url'), name='webhook_url_once')],
                },
            ),
            migrations.CreateModel(
                name='WebhookDelivery',
                fields=[
                    ('lease_token', models.UUIDField(editable=False, null=True)),
                    ('lease_until', models.DateTimeField(editable=False, help_text='Nobody else claims it before; without a token it is a pause.', null=True)),
                    ('attempts', models.PositiveIntegerField(default=0, editable=False, help_text='Claims since it last got on.')),
                    ('failure', models.CharField(blank=True, editable=False, help_text='Code of the last failure.', max_length=40)),
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('event', models.CharField(choices=[('fact.created', 'A fact is in use'), ('fact.superseded', 'A fact is replaced by another'), ('fact.forgotten', 'A fact is not used any more'), ('episode.created', 'An episode is made'), ('session.extracted', 'New turns of a session are read'), ('review.opened', 'Something waits for review'), ('case.opened', 'A privacy case is opened'), ('case.due', 'A privacy case is due soon, or overdue'), ('person.erased', 'An end user is erased'), ('budget.reached', 'A daily cap of the language model is reached'), ('test', 'A test')], editable=False, max_length=20, verbose_name='event')),
                    ('data', models.JSONField(default=dict, editable=False, help_text='Ids, codes and times, never content.')),
                    ('once', models.CharField(blank=True, editable=False, help_text='An endpoint is told once what has this; empty: each time.', max_length=80)),
                    ('state', models.CharField(choices=[('waiting', 'Waiting'), ('delivered', 'Delivered'), ('failed', 'Failed')], default='waiting', editable=False, max_length=9, verbose_name='state')),
                    ('status', models.PositiveSmallIntegerField(editable=False, help_text='Of the last answer, if one came.', null=True)),
                    ('occurred_at', models.DateTimeField(editable=False, verbose_name='occurred')),
                    ('tried_at', models.DateTimeField(editable=False, help_text='First attempt.', null=True)),
                    ('ended_at', models.DateTimeField(editable=False, help_text='When it was delivered, or given up.', null=True)),
                    ('end_user', models.ForeignKey(db_index=False, help_text="Whose memory it is about; of an erasure and of a case nobody's.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.enduser')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
                    ('endpoint', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='memories.webhookendpoint')),
                ],
                options={
                    'verbose_name': 'delivery',
                    'verbose_name_plural': 'deliveries',
                    'ordering': ['-occurred_at', '-id'],
                    'default_permissions': (),
                    'indexes': [models.Index(condition=models.Q(('state', 'waiting')), fields=['endpoint', 'lease_until', 'occurred_at'], name='webhook_due_idx'), models.Index(fields=['endpoint', '-occurred_at', '-id'], name='webhook_log_idx'), models.Index(condition=models.Q(('ended_at__isnull', False)), fields=['ended_at'], name='webhook_ended_idx'), models.Index(condition=models.Q(('end_user__isnull', False)), fields=['end_user'], name='webhook_person_idx')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('once', ''), _negated=True), fields=('tenant', 'endpoint', 'once'), name='webhook_event_once')],
                },
            ),
        ]),
        migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop),
    ]
