import django.db.models.deletion
import memories.models.ids
from django.db import migrations, models

from memories.models import roles


def grant(apps, schema_editor):
    roles.grant(apps)


class Migration(migrations.Migration):
    """Privacy cases, tombstones of erased people, exports; the dpo's permissions for them."""

    dependencies = [
        ('memories', '0029_model_use'),
    ]

    operations = [
        migrations.CreateModel(
            name='PrivacyCase',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('subject', models.BinaryField(max_length=32)),
                ('type', models.CharField(choices=[('erasure', 'Erasure'), ('access', 'Access'), ('portability', 'Portability'), ('rectification', 'Rectification'), ('restriction', 'Restriction')], max_length=13, verbose_name='type')),
                ('state', models.CharField(choices=[('received', 'Received'), ('verified', 'Verified'), ('scoped', 'Scoped'), ('approved', 'Approved'), ('running', 'Running'), ('verifying', 'Verifying'), ('completed', 'Completed'), ('refused', 'Refused'), ('on_hold', 'On hold'), ('failed', 'Failed')], default='received', max_length=9, verbose_name='state')),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
                ('asked_by', models.CharField(choices=[('subject', 'The person'), ('representative', 'A representative'), ('guardian', 'A parent or guardian'), ('authority', 'An authority'), ('controller', 'Ourselves')], default='subject', max_length=14, verbose_name='asked by')),
                ('channel', models.CharField(blank=True, help_text='email, phone, letter, api, …', max_length=40, verbose_name='channel')),
                ('reference', models.CharField(blank=True, help_text="A ticket's number.", max_length=255, verbose_name='reference')),
                ('received_at', models.DateTimeField(verbose_name='received')),
                ('due_at', models.DateTimeField(verbose_name='due')),
                ('opened_kind', models.CharField(choices=[('run', 'Run'), ('operator', 'Operator'), ('key', 'Key'), ('command', 'Command'), ('decay', 'Decay')], max_length=8)),
                ('opened_by', models.CharField(blank=True, max_length=36)),
                ('verified_at', models.DateTimeField(null=True)),
                ('verified_how', models.CharField(blank=True, choices=[('signed_in', 'Signed in to the application'), ('call_back', 'Called or wrote back to a known address'), ('in_person', 'Met in person'), ('document', 'Saw a document; no copy is kept'), ('mandate', 'Saw the mandate of who acts for them'), ('shell', 'By who has access to the server')], max_length=9)),
                ('verified_kind', models.CharField(blank=True, choices=[('run', 'Run'), ('operator', 'Operator'), ('key', 'Key'), ('command', 'Command'), ('decay', 'Decay')], max_length=8)),
                ('verified_by', models.CharField(blank=True, max_length=36)),
                ('scoped_at', models.DateTimeField(null=True)),
                ('preview', models.JSONField(default=dict, help_text="Store → rows when it was scoped; mentions: of others' rows.")),
                ('policy', models.CharField(choices=[('refuse', 'Refuse'), ('flag', 'Take as a new person, and say so'), ('allow_new', 'Take as a new person')], default='flag', max_length=9)),
                ('approved_at', models.DateTimeField(null=True)),
                ('approved_kind', models.CharField(blank=True, choices=[('run', 'Run'), ('operator', 'Operator'), ('key', 'Key'), ('command', 'Command'), ('decay', 'Decay')], max_length=8)),
                ('approved_by', models.CharField(blank=True, max_length=36)),
                ('extended_at', models.DateTimeField(null=True)),
                ('extension_reason', models.TextField(blank=True, max_length=2000)),
                ('extension_notice_on', models.DateField(help_text='When who asked was told of it.', null=True)),
                ('refusal', models.CharField(blank=True, choices=[('identity', 'Who asks cannot be identified'), ('unfounded', 'Manifestly unfounded'), ('excessive', 'Excessive, as it repeats itself'), ('obligation', 'A legal obligation to keep the data'), ('claims', 'Needed for legal claims'), ('expression', 'Freedom of expression and information'), ('interest', 'Public interest or research'), ('withdrawn', 'Withdrawn by who asked')], max_length=11)),
                ('refusal_reason', models.TextField(blank=True, max_length=2000)),
                ('held_from', models.CharField(blank=True, choices=[('received', 'Received'), ('verified', 'Verified'), ('scoped', 'Scoped'), ('approved', 'Approved'), ('running', 'Running'), ('verifying', 'Verifying'), ('completed', 'Completed'), ('refused', 'Refused'), ('on_hold', 'On hold'), ('failed', 'Failed')], help_text='Its state before.', max_length=9)),
                ('held_at', models.DateTimeField(null=True)),
                ('hold_reason', models.TextField(blank=True, max_length=2000)),
                ('hold_review_on', models.DateField(null=True)),
                ('step', models.CharField(blank=True, max_length=20)),
                ('counts', models.JSONField(default=dict, help_text='Store → rows erased or exported so far.')),
                ('needles', models.BinaryField(default=bytes)),
                ('findings', models.JSONField(default=dict, help_text='What the verification read and found, in counts and places.')),
                ('failure', models.CharField(blank=True, help_text='A code of ours.', max_length=40)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('lease_token', models.UUIDField(editable=False, null=True)),
                ('lease_until', models.DateTimeField(editable=False, null=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('told', models.TextField(blank=True, help_text='Recipients who were told (Art. 19).', max_length=2000)),
                ('outcome', models.TextField(blank=True, help_text='What was corrected, of a rectification.', max_length=2000)),
                ('receipt', models.JSONField(default=dict)),
                ('signature', models.CharField(blank=True, max_length=128)),
                ('completed_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'privacy case',
                'verbose_name_plural': 'privacy cases',
                'ordering': ['-created_at', '-id'],
                'permissions': [('approve_privacycase', 'Can approve privacy cases')],
            },
        ),
        migrations.CreateModel(
            name='PrivacyExport',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('profile', models.CharField(choices=[('access', 'Access'), ('portability', 'Portability')], max_length=11)),
                ('state', models.CharField(choices=[('making', 'Being made'), ('ready', 'Ready'), ('taken', 'Downloaded'), ('expired', 'Expired')], default='making', max_length=7)),
                ('content', models.BinaryField(default=bytes)),
                ('size', models.PositiveBigIntegerField(default=0, help_text='Bytes.')),
                ('token_digest', models.BinaryField(max_length=32, null=True)),
                ('made_at', models.DateTimeField(null=True)),
                ('expires_at', models.DateTimeField(null=True)),
                ('taken_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'export',
                'verbose_name_plural': 'exports',
                'ordering': ['-created_at', '-id'],
            },
        ),
        migrations.CreateModel(
            name='Tombstone',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('digest', models.BinaryField(max_length=32)),
                ('policy', models.CharField(choices=[('refuse', 'Refuse'), ('flag', 'Take as a new person, and say so'), ('allow_new', 'Take as a new person')], max_length=9)),
                ('case_uuid', models.UUIDField()),
                ('created_at', models.DateTimeField()),
                ('met', models.PositiveIntegerField(default=0, help_text='How often somebody came under the id again.')),
                ('last_met_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name='auditevent',
            name='case_uuid',
            field=models.UUIDField(help_text='The privacy case that it belongs to.', null=True),
        ),
        migrations.AddField(
            model_name='enduser',
            name='erased_before',
            field=models.BooleanField(default=False, editable=False, help_text='Somebody of this id was erased before: this is a new person.'),
        ),
        migrations.AddIndex(
            model_name='auditevent',
            index=models.Index(condition=models.Q(('case_uuid__isnull', False)), fields=['case_uuid', '-id'], name='audit_of_case_idx'),
        ),
        migrations.AddField(
            model_name='privacycase',
            name='end_user',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='privacy_cases', to='memories.enduser', verbose_name='end user'),
        ),
        migrations.AddField(
            model_name='privacycase',
            name='tenant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='privacy_cases', to='memories.tenant', verbose_name='tenant'),
        ),
        migrations.AddField(
            model_name='privacyexport',
            name='case',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='exports', to='memories.privacycase'),
        ),
        migrations.AddField(
            model_name='tombstone',
            name='tenant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant'),
        ),
        migrations.AddIndex(
            model_name='privacycase',
            index=models.Index(fields=['tenant', 'state', 'due_at'], name='case_board_idx'),
        ),
        migrations.AddIndex(
            model_name='privacycase',
            index=models.Index(fields=['end_user'], name='case_person_idx'),
        ),
        migrations.AddIndex(
            model_name='privacycase',
            index=models.Index(condition=models.Q(('state__in', ['running', 'verifying'])), fields=['lease_until'], name='case_running_idx'),
        ),
        migrations.AddConstraint(
            model_name='privacycase',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['received', 'refused']), models.Q(('held_from', 'received'), ('state', 'on_hold')), ('verified_at__isnull', False), _connector='OR'), name='case_identity_checked'),
        ),
        migrations.AddConstraint(
            model_name='privacycase',
            constraint=models.CheckConstraint(condition=models.Q(('approved_at', None), ('verified_at__isnull', False), _connector='OR'), name='case_approved_once_verified'),
        ),
        migrations.AddConstraint(
            model_name='privacycase',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state__in', ['approved', 'running', 'verifying', 'completed', 'failed']), ('type', 'erasure'), _negated=True), ('approved_at__isnull', False), _connector='OR'), name='case_erased_once_approved'),
        ),
        migrations.AddConstraint(
            model_name='privacycase',
            constraint=models.CheckConstraint(condition=models.Q(('approved_at', None), ('approved_kind', 'command'), models.Q(('approved_kind', 'operator'), models.Q(('approved_by', models.F('opened_by')), _negated=True), models.Q(('opened_kind', 'operator'), models.Q(('approved_by', models.F('verified_by')), _negated=True), _connector='OR')), _connector='OR'), name='case_two_people'),
        ),
        migrations.AddConstraint(
            model_name='privacycase',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('held_at__isnull', False), ('hold_review_on__isnull', False), ('state', 'on_hold'), models.Q(('held_from', ''), _negated=True)), models.Q(models.Q(('state', 'on_hold'), _negated=True), ('held_from', '')), _connector='OR'), name='case_held_from_somewhere'),
        ),
        migrations.AddIndex(
            model_name='privacyexport',
            index=models.Index(condition=models.Q(('state', 'ready')), fields=['expires_at'], name='export_expiry_idx'),
        ),
        migrations.AddConstraint(
            model_name='privacyexport',
            constraint=models.UniqueConstraint(fields=('token_digest',), name='export_token_once'),
        ),
        migrations.AddConstraint(
            model_name='privacyexport',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['making', 'ready']), models.Q(('content', b''), ('token_digest', None)), _connector='OR'), name='export_gone_is_empty'),
        ),
        migrations.AddConstraint(
            model_name='tombstone',
            constraint=models.UniqueConstraint(fields=('tenant', 'digest'), name='tombstone_once'),
        ),
        # Going back leaves them: people may be in them.
        migrations.RunPython(grant, migrations.RunPython.noop),
    ]
