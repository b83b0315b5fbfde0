"""The log of contexts, notes of reviewers, days served, turns that were left, invitations, memory files, the store.

Made of sixteen migrations.
"""

from typing import Any

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import memories.models.ids
import memories.models.people.tenants
import pgvector.django.halfvec
from django.db import migrations, models

from memories.db.together import Together
from memories.models.access.roles import grant

REPLACED = (
    "0026_rewritten_summaries",
    "0027_logged_contexts",
    "0028_review_desks",
    "0029_served_days",
    "0030_left_turns",
    "0031_who_set_agents",
    "0032_turn_follows",
    "0033_mcp",
    "0034_invitations",
    "0035_memory_files",
    "0036_store_items",
    "0037_proposals",
    "0038_memory_files_in_roles",
    "0039_logged_texts_of_files",
    "0040_roll_backs_wait",
    "0041_old_file_versions",
)

# Memories are deleted for good in many places: trash, retention, sessions, redactions. Each locks the person first, and
# so does the writer of the log.
FORGET = """
CREATE FUNCTION memories_forget_logged_texts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ids uuid[] := array(SELECT id FROM gone);
BEGIN
    IF ids <> '{}' THEN
        UPDATE memories_loggedcontext SET query = '', memory = ''
        WHERE rests_on && ids AND rests_on <> '{}' AND (query <> '' OR memory <> '');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER logged_texts_of_facts AFTER DELETE ON memories_fact
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_logged_texts();
CREATE TRIGGER logged_texts_of_episodes AFTER DELETE ON memories_episode
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_logged_texts();
CREATE TRIGGER logged_texts_of_turns AFTER DELETE ON memories_turn
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_logged_texts();
CREATE TRIGGER logged_texts_of_files AFTER DELETE ON memories_memoryfile
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_logged_texts();
"""
KEEP = """
DROP TRIGGER logged_texts_of_files ON memories_memoryfile;
DROP TRIGGER logged_texts_of_turns ON memories_turn;
DROP TRIGGER logged_texts_of_episodes ON memories_episode;
DROP TRIGGER logged_texts_of_facts ON memories_fact;
DROP FUNCTION memories_forget_logged_texts();
"""

# As in 0003_cascades_and_storage.
CASCADE = """
ALTER TABLE memories_storeitemvector ADD CONSTRAINT store_item_vector_of_item
    FOREIGN KEY (item_id) REFERENCES memories_storeitem (id) ON DELETE CASCADE;
"""
NO_CASCADE = "ALTER TABLE memories_storeitemvector DROP CONSTRAINT store_item_vector_of_item"

# As in 0004_unsampled_columns.
UNSAMPLED_LOG = "ALTER TABLE memories_loggedcontext " + ", ".join(
    f"ALTER COLUMN {column} SET STATISTICS 0"
    for column in ("agent_id", "query", "memory", "items", "rests_on", "revision")
)
UNSAMPLED = """
ALTER TABLE memories_reviewnote ALTER COLUMN text SET STATISTICS 0;
ALTER TABLE memories_memoryfile ALTER COLUMN agent_id SET STATISTICS 0, ALTER COLUMN path SET STATISTICS 0,
    ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE memories_fileversion ALTER COLUMN content SET STATISTICS 0, ALTER COLUMN reason SET STATISTICS 0;
ALTER TABLE memories_storeitem ALTER COLUMN namespace SET STATISTICS 0, ALTER COLUMN key SET STATISTICS 0,
    ALTER COLUMN value SET STATISTICS 0, ALTER COLUMN index_paths SET STATISTICS 0,
    ALTER COLUMN content_hash SET STATISTICS 0, ALTER COLUMN embedded_hash SET STATISTICS 0;
ALTER TABLE memories_storeitemvector ALTER COLUMN text_digest SET STATISTICS 0, ALTER COLUMN vector SET STATISTICS 0;
"""


def of_agents(apps: Any, _: Any) -> None:
    """A key for an agent writes as the user only where somebody said so."""
    keys = apps.get_model("memories", "APIKey").objects.filter(writes_as="user")
    keys.exclude(agent_id="").update(speaks_for_user=True)


class Migration(migrations.Migration):
    replaces = [("memories", name) for name in REPLACED]
    dependencies = [("memories", "0010_change_sets_and_agents")]

    operations = [
        Together([
        migrations.CreateModel(
            name='LoggedContext',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('agent_id', models.CharField(blank=True, editable=False, max_length=255, verbose_name='agent')),
                ('session_id', models.UUIDField(editable=False, help_text='The conversation, if it was named and known.', null=True)),
                ('key_id', models.UUIDField(editable=False, help_text='Of the API key that asked.', null=True)),
                ('asked', models.BooleanField(default=False, editable=False, help_text='Whether there was a query.')),
                ('query', models.TextField(blank=True, editable=False, help_text='Empty unless the tenant keeps texts.')),
                ('memory', models.TextField(blank=True, editable=False, help_text='The block as served, if the tenant keeps texts.')),
                ('items', models.JSONField(default=list, editable=False, help_text='kind, id and score of each memory in it.')),
                ('left_out', models.PositiveIntegerField(default=0, editable=False, help_text='Memories beyond budget and limits.')),
                ('rests_on', django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, editable=False, help_text='Facts of other people; where texts are kept, all facts, episodes and turns.', size=None)),
                ('token_count', models.PositiveIntegerField(default=0, editable=False)),
                ('max_tokens', models.PositiveIntegerField(default=0, editable=False)),
                ('as_of', models.DateTimeField(editable=False, help_text='The moment in the past that was asked for.', null=True)),
                ('revision', models.CharField(blank=True, editable=False, help_text='As the answer had it.', max_length=32)),
                ('took_ms', models.PositiveIntegerField(default=0, editable=False)),
                ('created_at', models.DateTimeField(editable=False, verbose_name='time')),
                ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='logged_contexts', to='memories.enduser', verbose_name='end user')),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
            ],
            options={
                'verbose_name': 'logged context',
                'verbose_name_plural': 'logged contexts',
                'ordering': ['-created_at', '-id'],
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['end_user', '-created_at', '-id'], name='logged_context_newest_idx'), models.Index(fields=['-created_at', '-id'], name='logged_context_time_idx'), django.contrib.postgres.indexes.GinIndex(condition=models.Q(('rests_on', []), _negated=True), fields=['rests_on'], name='logged_context_rests_on_idx')],
            },
        ),
        migrations.CreateModel(
            name='ReviewNote',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('text', models.TextField(max_length=2000)),
                ('actor_kind', models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], editable=False, max_length=8)),
                ('actor_id', models.CharField(blank=True, editable=False, max_length=36)),
                ('created_at', models.DateTimeField(editable=False)),
                ('item', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='notes', to='memories.reviewitem')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
            ],
            options={
                'verbose_name': 'review note',
                'verbose_name_plural': 'review notes',
                'ordering': ['created_at', 'id'],
            },
        ),
        migrations.CreateModel(
            name='ServedDay',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('day', models.DateField()),
                ('context_times', django.contrib.postgres.fields.ArrayField(base_field=models.PositiveBigIntegerField(), help_text='Contexts by the time that they took, in the order of CONTEXT_MS.', size=None)),
                ('recalls', models.PositiveBigIntegerField(default=0, help_text='Memories that a search or a context ranked.')),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('tenant', 'day'), name='served_day_once')],
            },
        ),
        migrations.CreateModel(
            name='MemoryFile',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('agent_id', models.CharField(blank=True, help_text='Whose it is alone; empty: of requests that name no agent.', max_length=255, verbose_name='agent')),
                ('path', models.CharField(db_collation='C', max_length=1000, verbose_name='path')),
                ('content', models.TextField(blank=True, help_text='The text, or base64.')),
                ('encoding', models.CharField(choices=[('utf-8', 'Text'), ('base64', 'Binary')], default='utf-8', max_length=6)),
                ('size', models.PositiveIntegerField(default=0, help_text='Bytes, in UTF-8.', verbose_name='size')),
                ('version', models.PositiveIntegerField(default=1, verbose_name='version')),
                ('locked', models.BooleanField(default=False, help_text='By an operator: no key changes it.', verbose_name='locked')),
                ('actor_kind', models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], max_length=8, verbose_name='written by')),
                ('trust', models.CharField(choices=[('operator', 'Operator'), ('user', 'User'), ('assistant', 'Assistant'), ('tool', 'Tool')], help_text='Of whoever wrote it last.', max_length=9, verbose_name='trust')),
                ('created_at', models.DateTimeField(verbose_name='created')),
                ('updated_at', models.DateTimeField(verbose_name='changed')),
                ('expires_at', models.DateTimeField(blank=True, help_text='Of scratch files.', null=True)),
                ('trashed_at', models.DateTimeField(blank=True, help_text='Since when it is deleted.', null=True)),
                ('end_user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='files', to='memories.enduser', verbose_name='end user')),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
            ],
            options={
                'default_permissions': ('view', 'change'),
                'verbose_name': 'memory file',
                'verbose_name_plural': 'memory files',
                'ordering': ['path'],
                'indexes': [models.Index(condition=models.Q(('trashed_at__isnull', False)), fields=['tenant', 'trashed_at', 'id'], name='memory_file_trash_idx'), models.Index(condition=models.Q(('expires_at__isnull', False)), fields=['tenant', 'expires_at', 'id'], name='memory_file_expires_idx')],
                'constraints': [models.UniqueConstraint(fields=('end_user', 'tenant', 'agent_id', 'path'), name='memory_file_once'), models.CheckConstraint(condition=models.Q(('path__startswith', '/')), name='memory_file_path_is_absolute'), models.CheckConstraint(condition=models.Q(('version__gte', 1)), name='memory_file_version_from_1')],
            },
        ),
        migrations.CreateModel(
            name='FileVersion',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('version', models.PositiveIntegerField(verbose_name='version')),
                ('verb', models.CharField(choices=[('write', 'Written'), ('edit', 'Edited'), ('upload', 'Uploaded'), ('restore', 'Restored'), ('delete', 'Deleted')], max_length=7, verbose_name='change')),
                ('content', models.TextField(blank=True, help_text='As of a file; of a deletion empty.')),
                ('encoding', models.CharField(choices=[('utf-8', 'Text'), ('base64', 'Binary')], default='utf-8', max_length=6)),
                ('size', models.PositiveIntegerField(default=0)),
                ('actor_kind', models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], max_length=8)),
                ('actor_id', models.CharField(blank=True, max_length=36)),
                ('trust', models.CharField(choices=[('operator', 'Operator'), ('user', 'User'), ('assistant', 'Assistant'), ('tool', 'Tool')], max_length=9)),
                ('reason', models.TextField(blank=True, max_length=2000)),
                ('restored', models.PositiveIntegerField(blank=True, help_text='The version whose text it has again.', null=True)),
                ('created_at', models.DateTimeField(verbose_name='time')),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
                ('file', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='memories.memoryfile')),
                ('change_set', models.UUIDField(editable=False, help_text='Of many memories at once, such as a roll back.', null=True)),
            ],
            options={
                'default_permissions': (),
                'verbose_name': 'version of a memory file',
                'verbose_name_plural': 'versions of memory files',
                'ordering': ['-version'],
                'indexes': [models.Index(fields=['actor_id'], name='file_version_actor_idx'), models.Index(fields=['tenant', 'created_at', 'id'], name='file_version_old_idx'), models.Index(condition=models.Q(('change_set__isnull', False)), fields=['change_set'], name='file_version_change_set_idx')],
                'constraints': [models.UniqueConstraint(fields=('file', 'tenant', 'version'), name='file_version_once'), models.CheckConstraint(condition=models.Q(('restored__isnull', True), ('restored__lt', models.F('version')), _connector='OR'), name='file_version_restores_older')],
            },
        ),
        migrations.CreateModel(
            name='StoreItem',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('namespace', models.TextField(db_collation='C', editable=False, help_text='The labels, joined by periods; none contains one.', verbose_name='namespace')),
                ('key', models.TextField(db_collation='C', editable=False, verbose_name='key')),
                ('value', models.JSONField(editable=False, verbose_name='value')),
                ('index_paths', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), editable=False, help_text='What of the value is embedded; null: all of it, empty: nothing.', null=True, size=None)),
                ('content_hash', models.BinaryField(help_text='SHA-256 of the texts to embed; null: there are none.', max_length=32, null=True)),
                ('embedded_hash', models.BinaryField(help_text='The content_hash that the embedder has last handled.', max_length=32, null=True)),
                ('ttl_minutes', models.FloatField(editable=False, help_text='It expires so long after it was last read.', null=True)),
                ('expires_at', models.DateTimeField(editable=False, null=True, verbose_name='expires')),
                ('key_id', models.UUIDField(editable=False, help_text='Of the API key that wrote it last.', null=True)),
                ('created_at', models.DateTimeField(editable=False, verbose_name='created')),
                ('updated_at', models.DateTimeField(editable=False, verbose_name='updated')),
                ('end_user', models.ForeignKey(db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='store_items', to='memories.enduser', verbose_name='end user')),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant', verbose_name='tenant')),
            ],
            options={
                'verbose_name': 'store item',
                'verbose_name_plural': 'store items',
                'ordering': ['-updated_at', '-id'],
                'default_permissions': ('view', 'change', 'delete'),
                'indexes': [models.Index(fields=['tenant', '-updated_at', '-id'], name='store_item_newest_idx'), models.Index(fields=['end_user'], name='store_item_person_idx'), models.Index(condition=models.Q(('expires_at__isnull', False)), fields=['expires_at'], name='store_item_expires_idx'), models.Index(condition=models.Q(('content_hash__isnull', False), models.Q(('embedded_hash', None), models.Q(('embedded_hash', models.F('content_hash')), _negated=True), _connector='OR')), fields=['tenant', '-updated_at'], name='store_item_unembedded_idx')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'namespace', 'key'), name='store_item_once')],
            },
        ),
        migrations.CreateModel(
            name='StoreItemVector',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('place', models.PositiveSmallIntegerField()),
                ('text_digest', models.BinaryField(help_text="The item's content_hash when it was made.", max_length=32)),
                ('vector', pgvector.django.halfvec.HalfVectorField()),
                ('item', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='vectors', to='memories.storeitem')),
                ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='memories.embeddingspace')),
                ('tenant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='memories.tenant')),
            ],
            options={
                'verbose_name': 'store item vector',
                'verbose_name_plural': 'store item vectors',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('item', 'space', 'place'), name='store_item_vector_once')],
            },
        ),
        migrations.AddField(
            model_name='tenant',
            name='context_log',
            field=models.CharField(choices=[('off', 'Nothing'), ('ids', 'Which memories it had, and their scores'), ('texts', 'The question and the context, too')], default='ids', help_text='What is kept of each context served, for as many days as set under “Retention”.', max_length=5, verbose_name='log of contexts'),
        ),
        migrations.AddField(
            model_name='tenant',
            name='file_seed',
            field=models.TextField(blank=True, help_text='What agents read in /memories/AGENTS.md until it is written. Empty: the hub’s own text.', max_length=4000, verbose_name='first text of memory files'),
        ),
        migrations.AddField(
            model_name='tenant',
            name='person_namespaces',
            field=models.JSONField(blank=True, default=memories.models.people.tenants.person_namespaces, help_text='Which label of a namespace of the store is an end user’s id, one pattern per line: memories.{user_id}. The first pattern that a namespace begins with decides. What names nobody belongs to the tenant.', verbose_name='namespaces of people'),
        ),
        migrations.AddField(
            model_name='apikey',
            name='speaks_for_user',
            field=models.BooleanField(default=False, editable=False, help_text="Made to write as the user in so many words: what agents write by MCP counts as the user's, too."),
        ),
        migrations.AddField(
            model_name='operator',
            name='invitation',
            field=models.BinaryField(max_length=32, null=True, unique=True),
        ),
        migrations.AddField(
            model_name='operator',
            name='invited_until',
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name='turn',
            name='left_at',
            field=models.DateTimeField(editable=False, help_text='When the client went on from an earlier message without it; empty: part of the conversation.', null=True),
        ),
        migrations.AddField(
            model_name='turn',
            name='follows',
            field=models.PositiveIntegerField(editable=False, help_text='The number of the turn that it follows, on a branch; empty: the one before it.', null=True),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='taken_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='reviewitem',
            name='taken_by',
            field=models.CharField(blank=True, help_text='Id of the operator who has it on their desk.', max_length=36),
        ),
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
        migrations.AlterField(
            model_name='change',
            name='action',
            field=models.CharField(choices=[('made', 'Made'), ('deleted', 'Deleted'), ('changed', 'Changed'), ('moved', 'Moved'), ('left', 'Left'), ('taken', 'Taken')], editable=False, max_length=7),
        ),
        migrations.AlterField(
            model_name='change',
            name='table',
            field=models.CharField(choices=[('fact', 'Fact'), ('episode', 'Episode'), ('section', 'Section'), ('evidence', 'Evidence'), ('relation', 'Relation'), ('refusal', 'Refusal'), ('person', 'Person'), ('key', 'Key'), ('session', 'Session'), ('file', 'File'), ('revision', 'Revision'), ('summary', 'Summary')], editable=False, max_length=8),
        ),
        migrations.AlterField(
            model_name='retentionpass',
            name='counts',
            field=models.JSONField(blank=True, default=dict, help_text='turns, sessions, episodes, runs, audit, exports, contexts, store.'),
        ),
        migrations.AlterField(
            model_name='retentionpass',
            name='stage',
            field=models.CharField(choices=[('turns', 'Turns'), ('episodes', 'Episodes'), ('runs', 'Runs'), ('audit', 'Audit events'), ('exports', 'Exports'), ('contexts', 'Log of contexts'), ('store', 'Items of the store')], default='turns', max_length=8),
        ),
        migrations.AlterField(
            model_name='reviewitem',
            name='reason',
            field=models.CharField(choices=[('assistant_trust', 'Only the assistant stated it'), ('tool_trust', 'Only a tool stated it'), ('suggested', 'Found by simple rules'), ('less_sure', 'Less certain than the existing fact'), ('outranked', 'Contradicts a more trusted source'), ('operators_word', 'Contradicts what an operator confirmed'), ('refused_before', 'Repeated after it was rejected'), ('near_refused', 'Similar to a rejected fact'), ('removal', 'A less trusted source says it is no longer true'), ('proposed', 'An agent proposes other words'), ('forget_asked', 'An agent asks to forget it'), ('other_person', 'Differs between the merged end users'), ('imported', 'Imported; contradicts an existing fact'), ('not_judged', 'Similar to an existing fact'), ('instructions', 'Looks like an instruction to a model'), ('possible_secret', 'May contain a secret'), ('poor_quality', 'Says too little about the conversation')], max_length=20),
        ),
        migrations.AlterField(
            model_name='session',
            name='redactions',
            field=models.PositiveIntegerField(default=0, editable=False, help_text='How often what a turn says was deleted, or turns were left or came back.'),
        ),
        migrations.AlterField(
            model_name='workingmemory',
            name='left_tokens',
            field=models.PositiveBigIntegerField(default=0, help_text='Tokens of these turns, and of turns of branches that the client left.'),
        ),
        migrations.AddIndex(
            model_name='change',
            index=models.Index(condition=models.Q(('table', 'summary')), fields=['uuid'], name='change_of_summary_idx'),
        ),
        migrations.AddIndex(
            model_name='change',
            index=models.Index(condition=models.Q(('action', 'taken')), fields=['number'], name='change_taken_fact_idx'),
        ),
        migrations.AddIndex(
            model_name='change',
            index=models.Index(condition=models.Q(('action', 'taken')), fields=['uuid'], name='change_taken_section_idx'),
        ),
        migrations.AddIndex(
            model_name='reviewitem',
            index=models.Index(condition=models.Q(('decided_by', ''), _negated=True), fields=['decided_at'], name='review_decided_idx'),
        ),
        migrations.AddIndex(
            model_name='turn',
            index=models.Index(condition=models.Q(('left_at__isnull', False)), fields=['session', 'number'], name='turn_left_idx'),
        ),
        ]),
        migrations.RunSQL(FORGET, KEEP),
        migrations.RunSQL(CASCADE, NO_CASCADE),
        migrations.RunSQL([UNSAMPLED_LOG, UNSAMPLED], migrations.RunSQL.noop),
        migrations.RunPython(of_agents, migrations.RunPython.noop),
        migrations.RunPython(lambda apps, _: grant(apps), migrations.RunPython.noop),
    ]
