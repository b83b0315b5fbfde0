"""Attachments of turns: files that wait to be read, their passages, and vectors of these."""

import django.db.models.deletion
import memories.models.ids
import pgvector.django.halfvec
from django.db import migrations, models

from memories.db.together import Together
from memories.models.access.roles import grant

# As in 0003_cascades_and_storage: PostgreSQL deletes them with what they belong to, also what is written meanwhile.
CASCADES = """
ALTER TABLE memories_attachment ADD CONSTRAINT attachment_of_turn
    FOREIGN KEY (turn_id) REFERENCES memories_turn (id) ON DELETE CASCADE;
ALTER TABLE memories_passage ADD CONSTRAINT passage_of_attachment
    FOREIGN KEY (attachment_id) REFERENCES memories_attachment (id) ON DELETE CASCADE;
ALTER TABLE memories_passagevector ADD CONSTRAINT passage_vector_of_passage
    FOREIGN KEY (passage_id) REFERENCES memories_passage (id) ON DELETE CASCADE;
"""
NO_CASCADES = """
ALTER TABLE memories_passagevector DROP CONSTRAINT passage_vector_of_passage;
ALTER TABLE memories_passage DROP CONSTRAINT passage_of_attachment;
ALTER TABLE memories_attachment DROP CONSTRAINT attachment_of_turn;
"""
# As 0029 does for every reference between rows of tenants.
OF_TENANT = """
ALTER TABLE memories_attachment ADD CONSTRAINT attachment_end_user_of_tenant
    FOREIGN KEY (tenant_id, end_user_id) REFERENCES memories_enduser (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE memories_attachment ADD CONSTRAINT attachment_session_of_tenant
    FOREIGN KEY (tenant_id, session_id) REFERENCES memories_session (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE memories_passage ADD CONSTRAINT passage_end_user_of_tenant
    FOREIGN KEY (tenant_id, end_user_id) REFERENCES memories_enduser (tenant_id, id) DEFERRABLE INITIALLY DEFERRED;
"""
NOT_OF_TENANT = """
ALTER TABLE memories_passage DROP CONSTRAINT passage_end_user_of_tenant;
ALTER TABLE memories_attachment DROP CONSTRAINT attachment_session_of_tenant;
ALTER TABLE memories_attachment DROP CONSTRAINT attachment_end_user_of_tenant;
"""
# Samples of values would outlive an erasure. Most files are compressed already.
UNSAMPLED = """
ALTER TABLE memories_attachment ALTER COLUMN content SET STATISTICS 0, ALTER COLUMN content SET STORAGE EXTERNAL,
    ALTER COLUMN name SET STATISTICS 0, ALTER COLUMN media_type SET STATISTICS 0, ALTER COLUMN sha256 SET STATISTICS 0;
ALTER TABLE memories_passage ALTER COLUMN content SET STATISTICS 0, ALTER COLUMN place SET STATISTICS 0,
    ALTER COLUMN content_hash SET STATISTICS 0, ALTER COLUMN terms SET STATISTICS 0,
    ALTER COLUMN embedded_hash SET STATISTICS 0;
ALTER TABLE memories_passagevector ALTER COLUMN language SET STATISTICS 0, ALTER COLUMN vector SET STATISTICS 0,
    ALTER COLUMN text_digest SET STATISTICS 0;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0055_skills'),
    ]

    operations = [
        Together([
            migrations.AddField(
                model_name='languagemodel',
                name='sees_pictures',
                field=models.BooleanField(db_default=False, default=False, help_text="The model in force, its own or the hub's, is asked to describe pictures."),
            ),
            migrations.AlterField(
                model_name='modeluse',
                name='purpose',
                field=models.CharField(choices=[('summaries', 'Summaries'), ('upkeep', 'Upkeep'), ('dreams', 'Dreams'), ('answers', 'Answers'), ('skills', 'Skills'), ('pictures', 'Pictures')], max_length=16),
            ),
            migrations.CreateModel(
                name='Attachment',
                fields=[
                    ('lease_token', models.UUIDField(editable=False, null=True)),
                    ('lease_until', models.DateTimeField(editable=False, help_text='Nobody else claims it before; without a token it is a pause.', null=True)),
                    ('attempts', models.PositiveIntegerField(default=0, editable=False, help_text='Claims since it last got on.')),
                    ('failure', models.CharField(blank=True, editable=False, help_text='Code of the last failure.', max_length=40)),
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('name', models.CharField(blank=True, editable=False, max_length=255, verbose_name='name')),
                    ('media_type', models.CharField(editable=False, help_text='As it was posted.', max_length=127, verbose_name='type')),
                    ('size', models.PositiveBigIntegerField(editable=False, help_text='Bytes of the file.', verbose_name='size')),
                    ('sha256', models.BinaryField(help_text='Of the file.', max_length=32)),
                    ('content', models.BinaryField(help_text='The file, until it was read.', null=True)),
                    ('state', models.CharField(choices=[('pending', 'Waiting'), ('read', 'Read'), ('failed', 'Failed'), ('refused', 'Refused')], default='pending', editable=False, max_length=7, verbose_name='status')),
                    ('reason', models.CharField(blank=True, choices=[('unsupported', 'The hub does not read files of this type.'), ('too_large', 'The file is larger than the tenant allows.'), ('off', 'The tenant takes no attachments.'), ('no_vision_model', 'No vision model: the language model is not marked as one that sees.'), ('encrypted', 'The file is encrypted.'), ('damaged', 'The file is damaged, or of another type than it says.'), ('no_text', 'The file has no text: it may be a scan.'), ('too_slow', 'Reading took too long, so it was stopped.'), ('too_costly', 'Reading took more memory than it may have, so it was stopped.'), ('too_many_secrets', 'The text mentions passwords and keys too often to be checked.'), ('worker_lost', 'The worker ended in each attempt.'), ('model_failed', 'The language model did not describe the picture.'), ('cut', 'The file is long: only its beginning was read.')], editable=False, max_length=20, verbose_name='reason')),
                    ('pages', models.PositiveIntegerField(editable=False, help_text='Where the file has pages.', null=True, verbose_name='pages')),
                    ('key_id', models.UUIDField(editable=False, help_text='Of the API key that posted it.', null=True)),
                    ('created_at', models.DateTimeField(editable=False, verbose_name='time')),
                    ('read_at', models.DateTimeField(editable=False, help_text='When a worker was done with it.', null=True)),
                    ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='memories.enduser', verbose_name='end user')),
                    ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='attachments', to='memories.session')),
                    ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
                    ('turn', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='attachments', to='memories.turn')),
                ],
                options={
                    'verbose_name': 'attachment',
                    'verbose_name_plural': 'attachments',
                    'ordering': ['-created_at', '-id'],
                    'default_permissions': ('view', 'change'),
                    'constraints': [
                        models.CheckConstraint(condition=models.Q(('content', None), ('state', 'pending'), _connector='OR'), name='attachment_file_goes_once_read'),
                    ],
                    'indexes': [
                        models.Index(fields=['turn'], name='attachment_turn_idx'),
                        models.Index(fields=['session'], name='attachment_session_idx'),
                        models.Index(fields=['end_user', '-created_at', '-id'], name='attachment_newest_idx'),
                        models.Index(fields=['tenant', '-created_at', '-id'], name='attachment_tenant_idx'),
                        models.Index(condition=models.Q(('state', 'pending')), fields=['created_at'], name='attachment_pending_idx'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='Passage',
                fields=[
                    ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                    ('number', models.PositiveIntegerField(editable=False, help_text='From 1, in the order of the text.')),
                    ('page', models.PositiveIntegerField(editable=False, help_text='From 1, where the file has pages.', null=True)),
                    ('place', models.CharField(blank=True, editable=False, help_text='The headings above it, outermost first.', max_length=300)),
                    ('start', models.PositiveIntegerField(editable=False, help_text='Where it begins in the text, in characters.')),
                    ('content', models.TextField(editable=False, verbose_name='text')),
                    ('author', models.CharField(choices=[('person', 'Person'), ('application', 'Application'), ('model', 'Model'), ('other', 'Somebody else')], editable=False, help_text='A document’s or a model’s; never a person’s.', max_length=11)),
                    ('flagged', models.BooleanField(default=False, editable=False, help_text='It speaks to a model.')),
                    ('content_hash', models.BinaryField(help_text='Of place and text.', max_length=32)),
                    ('terms', models.BinaryField(help_text='Stems of its words, for search.')),
                    ('embedded_hash', models.BinaryField(help_text='content_hash of the text that was embedded.', max_length=32, null=True)),
                    ('created_at', models.DateTimeField(editable=False, help_text='Of its file.')),
                    ('attachment', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='passages', to='memories.attachment')),
                    ('end_user', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='passages', to='memories.enduser')),
                    ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant')),
                ],
                options={
                    'verbose_name': 'passage',
                    'verbose_name_plural': 'passages',
                    'ordering': ['attachment', 'number'],
                    'default_permissions': (),
                    'constraints': [
                        models.UniqueConstraint(fields=('attachment', 'number', 'tenant'), name='passage_once'),
                        models.CheckConstraint(condition=models.Q(('author__in', ['application', 'model'])), name='passage_is_nobodys_word'),
                    ],
                    'indexes': [
                        models.Index(fields=['end_user', '-created_at', '-id'], name='passage_newest_idx'),
                        models.Index(condition=models.Q(('embedded_hash', None), models.Q(('embedded_hash', models.F('content_hash')), _negated=True), _connector='OR'), fields=['-created_at'], name='passage_unembedded_idx'),
                    ],
                },
            ),
            migrations.CreateModel(
                name='PassageVector',
                fields=[
                    ('id', models.BigAutoField(primary_key=True, serialize=False)),
                    ('language', models.CharField(help_text='zh, or en for everything else.', max_length=2)),
                    ('vector', pgvector.django.halfvec.HalfVectorField()),
                    ('text_digest', models.BinaryField(help_text="The passage's content_hash when it was made.", max_length=32)),
                    ('end_user', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.enduser')),
                    ('passage', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='vectors', to='memories.passage')),
                    ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='memories.embeddingspace')),
                    ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant')),
                ],
                options={
                    'verbose_name': 'passage vector',
                    'verbose_name_plural': 'passage vectors',
                    'constraints': [
                        models.UniqueConstraint(fields=('passage', 'space', 'tenant'), name='passage_vector_once'),
                    ],
                    'indexes': [
                        models.Index(fields=['end_user', 'space'], name='passage_vector_person_idx'),
                    ],
                },
            ),
        ]),
        migrations.RunSQL(CASCADES, NO_CASCADES),
        migrations.RunSQL(OF_TENANT, NOT_OF_TENANT),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
        migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop),
    ]
