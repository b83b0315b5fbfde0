"""Change sets and one undo, redacted turns, memory documents, models of tenants, merges of people, agents.

Made of sixteen migrations, with what they filled in of databases that had rows.
"""

from typing import Any

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.comparison
import django.db.models.lookups

from django.db import migrations, models

import memories.models.ids
from memories.db.together import Together

REPLACED = (
    "0010_labels",
    "0011_turn_said",
    "0012_change_sets",
    "0013_who_refused",
    "0014_redacted_turns",
    "0015_memory_documents",
    "0016_language_of_contexts",
    "0017_language_models",
    "0018_memory_of",
    "0019_roll_backs",
    "0020_merges_of_people",
    "0021_failing_since",
    "0022_memory_of_keys",
    "0023_profile_of_agents",
    "0024_fact_of_agent",
    "0025_agents",
)

# The records that decisions, batches and merges of facts had each for themselves become change sets. A section that was
# written before has none, for nothing could take it back.
CHANGE_SETS = """
-- A decision is undone by any of the items that it closed; the last of them noted all that it did.
INSERT INTO memories_changeset
    (id, tenant_id, item_id, batch_id, verb, actor_kind, actor_id, reason, counts, created_at)
SELECT DISTINCT ON (i.change_set) i.change_set, i.tenant_id, i.id,
    (SELECT e.batch_id FROM memories_batchentry e WHERE e.item_id = i.id AND e.change_set = i.change_set LIMIT 1),
    CASE i.state WHEN 'approved' THEN 'approve' WHEN 'rejected' THEN 'reject' WHEN 'merged' THEN 'merge'
        ELSE 'keep_both' END,
    'operator', i.decided_by, i.note,
    jsonb_build_object('facts', (SELECT count(*) FROM jsonb_object_keys(i.traces->'versions'))), i.decided_at
FROM memories_reviewitem i
WHERE i.change_set IS NOT NULL AND i.state IN ('approved', 'rejected', 'merged', 'kept_both')
ORDER BY i.change_set, i.id DESC;

-- The other steps of batches. An item that was opened again by itself is no step any more.
INSERT INTO memories_changeset
    (id, tenant_id, item_id, fact_id, batch_id, verb, actor_kind, actor_id, reason, counts, created_at, undone_at)
SELECT e.change_set, COALESCE(f.tenant_id, i.tenant_id), e.item_id, e.fact_id, e.batch_id, b.verb, 'operator',
    COALESCE(b.operator_id::text, ''), COALESCE(r.reason, ''), '{"facts": 1}', b.created_at,
    CASE WHEN e.undone THEN b.undone_at END
FROM memories_batchentry e
JOIN memories_batch b ON b.id = e.batch_id
LEFT JOIN memories_fact f ON f.id = e.fact_id
LEFT JOIN memories_reviewitem i ON i.id = e.item_id
LEFT JOIN memories_factrevision r ON r.fact_id = e.fact_id AND r.change_set = e.change_set
WHERE e.change_set IS NOT NULL AND (e.undone OR e.fact_id IS NOT NULL)
ON CONFLICT DO NOTHING;

INSERT INTO memories_change (change_set_id, "table", action, uuid, version, before)
SELECT c.id, 'fact', 'left', e.fact_id, e.version, '{}'
FROM memories_batchentry e JOIN memories_changeset c ON c.id = e.change_set AND c.fact_id = e.fact_id
WHERE NOT e.undone;

INSERT INTO memories_change (change_set_id, "table", action, number, before)
SELECT c.id, 'refusal', 'made', f.id, '{}'
FROM memories_batchentry e
JOIN memories_changeset c ON c.id = e.change_set AND c.fact_id = e.fact_id
JOIN memories_factrevision r ON r.fact_id = e.fact_id AND r.change_set = e.change_set
JOIN memories_factrefusal f ON f.fact_id = e.fact_id AND f.created_at = r.created_at
WHERE NOT e.undone;

INSERT INTO memories_changeset
    (id, tenant_id, fact_id, verb, actor_kind, actor_id, reason, counts, created_at, undone_at)
SELECT m.change_set, f.tenant_id, f.id, 'merge', COALESCE(r.actor_kind, 'operator'), COALESCE(r.actor_id, ''),
    COALESCE(r.reason, ''),
    jsonb_build_object('facts', (SELECT count(*) FROM jsonb_object_keys(m.traces->'versions'))),
    m.created_at, m.undone_at
FROM memories_factmerge m
JOIN memories_fact f ON f.id = m.survivor_id
LEFT JOIN memories_factrevision r ON r.fact_id = f.id AND r.change_set = m.change_set;

CREATE TEMPORARY VIEW memories_traces AS
SELECT c.id, i.traces, i.episode_id
FROM memories_changeset c JOIN memories_reviewitem i ON i.id = c.item_id AND i.change_set = c.id
UNION ALL
SELECT m.change_set, m.traces, NULL FROM memories_factmerge m WHERE m.undone_at IS NULL;

INSERT INTO memories_change (change_set_id, "table", action, uuid, version, before)
SELECT t.id, 'fact', 'left', v.key::uuid, v.value::int, '{}'
FROM memories_traces t, jsonb_each_text(t.traces->'versions') v;

INSERT INTO memories_change (change_set_id, "table", action, number, before)
SELECT t.id, 'refusal', 'made', v::bigint, '{}'::jsonb
FROM memories_traces t, jsonb_array_elements_text(t.traces->'refused') v
UNION ALL
SELECT t.id, 'evidence', 'made', v::bigint, '{}'::jsonb
FROM memories_traces t, jsonb_array_elements_text(t.traces->'evidence') v
UNION ALL
SELECT t.id, 'relation', 'made', v::bigint, '{}'::jsonb
FROM memories_traces t, jsonb_array_elements_text(t.traces->'relations') v;

INSERT INTO memories_change (change_set_id, "table", action, before)
SELECT t.id, 'refusal', 'deleted', v FROM memories_traces t, jsonb_array_elements(t.traces->'lifted') v;

INSERT INTO memories_change (change_set_id, "table", action, uuid, version, before)
SELECT t.id, 'episode', 'changed', t.episode_id, (t.traces->'episode'->>'version')::int, t.traces->'episode'->'before'
FROM memories_traces t WHERE t.episode_id IS NOT NULL AND t.traces->'episode' ? 'version';

DROP VIEW memories_traces;

-- A section is still as a decision left it when all that came later was undone.
INSERT INTO memories_change (change_set_id, "table", action, uuid, version, before)
SELECT c.id, 'section', 'left', s.id, s.version, '{}'
FROM memories_changeset c
JOIN memories_profilerevision r ON r.change_set = c.id AND r.version IS NOT NULL
JOIN memories_profilesection s ON s.end_user_id = r.end_user_id AND s.section = r.section AND s.version > r.version
JOIN memories_profilerevision last
    ON last.end_user_id = r.end_user_id AND last.section = r.section AND last.version = s.version AND last.verb = 'undo'
JOIN memories_profilerevision next
    ON next.end_user_id = r.end_user_id AND next.section = r.section AND next.version = r.version + 1
WHERE s.summary = r.after AND s.binding = next.binding_before;
"""

# A fact that a key forgot has a revision of that very moment. Where none is left, an operator's refusal is assumed.
WHO_REFUSED = """
    UPDATE memories_factrefusal refusal SET actor_kind = 'key', actor_id = revision.actor_id
    FROM memories_factrevision revision
    WHERE revision.fact_id = refusal.fact_id AND revision.created_at = refusal.created_at
        AND revision.verb = 'forget' AND revision.actor_kind = 'key'
"""

# Roll backs are change sets: those of before, too, as far as their rows tell.
ROLL_BACKS = """
CREATE TEMPORARY TABLE rolled ON COMMIT DROP AS
SELECT r.change_set, r.verb, f.tenant_id, f.end_user_id, r.actor_kind, r.actor_id, r.reason, r.created_at
FROM memories_factrevision r JOIN memories_fact f ON f.id = r.fact_id
WHERE r.verb IN ('roll_back', 'undo_roll_back') AND r.change_set IS NOT NULL
UNION ALL
SELECT r.change_set, r.verb, p.tenant_id, p.id, r.actor_kind, r.actor_id, r.reason, r.created_at
FROM memories_profilerevision r JOIN memories_enduser p ON p.id = r.end_user_id
WHERE r.verb IN ('roll_back', 'undo_roll_back') AND r.change_set IS NOT NULL;

-- About the one person whose rows it changed, or about none; then nobody's erasure would find the reason.
INSERT INTO memories_changeset
    (id, tenant_id, end_user_id, verb, actor_kind, actor_id, reason, counts, created_at)
SELECT change_set, min(tenant_id::text)::uuid,
    CASE WHEN count(DISTINCT end_user_id) = 1 THEN min(end_user_id::text)::uuid END,
    min(verb), min(actor_kind), min(actor_id),
    CASE WHEN count(DISTINCT end_user_id) = 1 THEN min(reason) ELSE '' END, '{}', min(created_at)
FROM rolled GROUP BY change_set;

-- Of one that changed nothing, or whose people are gone, the audit trail alone tells.
INSERT INTO memories_changeset (id, tenant_id, verb, actor_kind, actor_id, reason, counts, created_at)
SELECT DISTINCT ON (e.object_id) e.object_id, t.id, e.verb, e.actor_kind, e.actor_id, '', '{}', e.created_at
FROM memories_auditevent e JOIN memories_tenant t ON t.id = e.tenant_uuid
WHERE e.object_type = 'RolledBack' AND e.verb = 'roll_back'
ORDER BY e.object_id, e.id
ON CONFLICT DO NOTHING;

UPDATE memories_changeset c SET counts = e.counts FROM memories_auditevent e
WHERE e.object_type = 'RolledBack' AND e.verb = 'roll_back' AND e.object_id = c.id;

UPDATE memories_changeset c SET undone_at = e.created_at FROM memories_auditevent e
WHERE e.object_type = 'RolledBack' AND e.verb = 'undo_roll_back' AND e.object_id = c.id;

-- An undo wrote the next version of each row; its audit event is about the roll back.
CREATE TEMPORARY TABLE undone ON COMMIT DROP AS
SELECT r.change_set AS done, u.change_set AS by, u.created_at
FROM memories_factrevision r
JOIN memories_factrevision u ON u.fact_id = r.fact_id AND u.version = r.version + 1 AND u.verb = 'undo_roll_back'
WHERE r.verb = 'roll_back'
UNION ALL
SELECT r.change_set, u.change_set, u.created_at
FROM memories_profilerevision r
JOIN memories_profilerevision u ON u.end_user_id = r.end_user_id AND u.section = r.section
    AND u.version = r.version + 1 AND u.verb = 'undo_roll_back'
WHERE r.verb = 'roll_back';

UPDATE memories_changeset c SET undone_at = u.created_at, reverted_by = u.by FROM undone u WHERE u.done = c.id;

UPDATE memories_changeset c SET counts = e.counts
FROM undone u JOIN memories_auditevent e
    ON e.object_type = 'RolledBack' AND e.verb = 'undo_roll_back' AND e.object_id = u.done
WHERE u.by = c.id;

-- What it settled is opened again by the revert.
UPDATE memories_reviewitem i SET change_set = r.change_set
FROM memories_factrevision r JOIN memories_changeset c ON c.id = r.change_set AND c.undone_at IS NULL
WHERE r.verb = 'roll_back' AND (i.fact_id = r.fact_id OR i.known_id = r.fact_id)
    AND i.state = 'settled' AND i.change_set IS NULL AND i.decided_at = r.created_at;
"""
NO_ROLL_BACKS = """
UPDATE memories_reviewitem SET change_set = NULL
WHERE change_set IN (SELECT id FROM memories_changeset WHERE verb = 'roll_back');
DELETE FROM memories_change WHERE change_set_id IN (
    SELECT id FROM memories_changeset WHERE verb IN ('roll_back', 'undo_roll_back', 'change_id')
);
DELETE FROM memories_changeset WHERE verb IN ('roll_back', 'undo_roll_back', 'change_id');
"""

# Merges of people are change sets: those of before, too, with the ids that they noted.
MERGES = """
INSERT INTO memories_changeset
    (id, tenant_id, end_user_id, merged_id, verb, actor_kind, actor_id, reason, counts, created_at, undone_at)
SELECT m.id, m.tenant_id, m.survivor_id, m.merged_id, 'merge', COALESCE(e.actor_kind, 'operator'),
    COALESCE(e.actor_id, ''), COALESCE(r.reason, ''), m.counts, m.created_at, m.undone_at
FROM memories_personmerge m
LEFT JOIN LATERAL (
    SELECT actor_kind, actor_id FROM memories_auditevent WHERE object_id = m.id AND verb = 'merge' ORDER BY id LIMIT 1
) e ON true
LEFT JOIN LATERAL (
    SELECT reason FROM memories_factrevision WHERE change_set = m.id ORDER BY id LIMIT 1
) r ON true;

INSERT INTO memories_change (change_set_id, "table", action, uuid, number, before)
SELECT m.id, CASE e.kind WHEN 'name' THEN 'person' WHEN 'renamed' THEN 'session' ELSE e.kind END,
    CASE e.kind WHEN 'renamed' THEN 'changed' WHEN 'evidence' THEN 'made' ELSE 'moved' END, e.uuid, e.number,
    -- The id that it got is the one of before, "~" and 12 digits.
    CASE WHEN s.id IS NULL THEN '{}' ELSE jsonb_build_object('external_id', left(s.external_id, -13)) END
FROM memories_mergeentry e
JOIN memories_personmerge m ON m.id = e.merge_id AND m.undone_at IS NULL
LEFT JOIN memories_session s ON s.id = e.uuid AND e.kind = 'renamed'
WHERE e.kind <> 'renamed' OR s.id IS NOT NULL
ORDER BY e.id;

-- What the survivor took over, it had none of.
INSERT INTO memories_change (change_set_id, "table", action, uuid, before)
SELECT m.id, 'person', 'changed', m.survivor_id, COALESCE((
    SELECT jsonb_object_agg(name, CASE
        WHEN name = 'metadata' THEN '{}' WHEN name IN ('capture', 'serve') THEN 'true' ELSE '""' END::jsonb)
    FROM jsonb_array_elements_text(m.taken) name
), '{}')
FROM memories_personmerge m WHERE m.undone_at IS NULL;

-- An undo wrote the next version of a fact; its counts took the place of those of the merge.
UPDATE memories_changeset c SET reverted_by = u.change_set
FROM memories_factrevision r
JOIN memories_factrevision u ON u.fact_id = r.fact_id AND u.version = r.version + 1 AND u.verb = 'undo'
WHERE c.id = r.change_set AND c.merged_id IS NOT NULL AND c.undone_at IS NOT NULL
    AND u.created_at = c.undone_at;

-- Foreign keys are checked now: no table with checks that wait can be altered.
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
"""
NO_MERGES = """
INSERT INTO memories_personmerge (id, tenant_id, survivor_id, merged_id, counts, taken, created_at, undone_at)
SELECT c.id, c.tenant_id, c.end_user_id, c.merged_id, COALESCE(u.counts, c.counts), COALESCE((
    SELECT jsonb_agg(name) FROM memories_change x, jsonb_object_keys(x.before) name
    WHERE x.change_set_id = c.id AND x."table" = 'person' AND x.action = 'changed'
), '[]'), c.created_at, c.undone_at
FROM memories_changeset c LEFT JOIN memories_changeset u ON u.id = c.reverted_by
WHERE c.merged_id IS NOT NULL;

INSERT INTO memories_mergeentry (merge_id, kind, uuid, number)
SELECT c.id, CASE WHEN x."table" = 'person' THEN 'name' WHEN x.action = 'changed' THEN 'renamed' ELSE x."table" END,
    x.uuid, x.number
FROM memories_change x JOIN memories_changeset c ON c.id = x.change_set_id
WHERE c.merged_id IS NOT NULL
    AND (x.action = 'moved' OR (x."table", x.action) IN (('session', 'changed'), ('evidence', 'made')))
ORDER BY x.id;

CREATE TEMPORARY TABLE gone ON COMMIT DROP AS
SELECT id FROM memories_changeset
WHERE merged_id IS NOT NULL OR verb = 'undo_merge' AND end_user_id IS NOT NULL;
DELETE FROM memories_change WHERE change_set_id IN (SELECT id FROM gone);
DELETE FROM memories_changeset WHERE id IN (SELECT id FROM gone);
SET CONSTRAINTS ALL IMMEDIATE;
SET CONSTRAINTS ALL DEFERRED;
"""

# Of an endpoint that fails now, nobody knows since when: it counts from here.
FAILING = "UPDATE memories_endpointstate SET failing_since = now() WHERE failures > 0"

# Personal data: an erased person is not to remain in the planner's samples. As in 0004_unsampled_columns.
UNSAMPLED = """
ALTER TABLE memories_changeset ALTER COLUMN reason SET STATISTICS 0;
ALTER TABLE memories_change ALTER COLUMN before SET STATISTICS 0;
ALTER TABLE memories_turn ALTER COLUMN digest SET STATISTICS 0;
ALTER TABLE memories_fact ALTER COLUMN external_id SET STATISTICS 0, ALTER COLUMN document SET STATISTICS 0;
ALTER TABLE memories_profilesection ALTER COLUMN document SET STATISTICS 0;
ALTER TABLE memories_profilesection ALTER COLUMN agent_id SET STATISTICS 0;
ALTER TABLE memories_profilerevision ALTER COLUMN agent_id SET STATISTICS 0;
ALTER TABLE memories_agent ALTER COLUMN agent_id SET STATISTICS 0;
"""


def list_agents(apps: Any, schema_editor: Any) -> None:
    agents = apps.get_model("memories", "Agent").objects.using(schema_editor.connection.alias)
    sessions = apps.get_model("memories", "Session").objects.using(schema_editor.connection.alias)
    held = sessions.exclude(agent_id="").order_by().values("tenant", "agent_id")
    agents.bulk_create(
        [
            agents.model(
                id=memories.models.ids.new_id(),
                tenant_id=row["tenant"],
                agent_id=row["agent_id"],
                created_at=row["first"],
            )
            for row in held.annotate(first=models.Min("created_at")).order_by("first")
        ],
        batch_size=1_000,
    )


class Migration(migrations.Migration):
    replaces = [("memories", name) for name in REPLACED]
    dependencies = [("memories", "0009_one_lease")]

    operations = [
        Together([
        migrations.CreateModel(
            name='ChangeSet',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('verb', models.CharField(editable=False, max_length=20)),
                ('actor_kind', models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], editable=False, max_length=8)),
                ('actor_id', models.CharField(blank=True, editable=False, max_length=36)),
                ('reason', models.TextField(blank=True, editable=False, max_length=2000)),
                ('counts', models.JSONField(default=dict, editable=False)),
                ('created_at', models.DateTimeField(editable=False)),
                ('undone_at', models.DateTimeField(editable=False, null=True)),
                ('reverted_by', models.UUIDField(editable=False, help_text='Id of the change set that took it back.', null=True)),
                ('batch', models.ForeignKey(db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='steps', to='memories.batch')),
                ('end_user', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.enduser')),
                ('episode', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.episode')),
                ('fact', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='change_sets', to='memories.fact')),
                ('item', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.reviewitem')),
                ('tenant', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
                ('merged', models.ForeignKey(db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.enduser')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'verbose_name': 'change set',
                'verbose_name_plural': 'change sets',
                'indexes': [models.Index(condition=models.Q(('merged__isnull', False)), fields=['merged'], name='change_set_merged_idx')],
                'constraints': [models.CheckConstraint(condition=django.db.models.lookups.LessThanOrEqual(models.Func('item', 'fact', 'episode', 'end_user', function='num_nonnulls', output_field=models.IntegerField()), 1), name='change_set_of_one'), models.UniqueConstraint(fields=('reverted_by', 'tenant'), name='change_set_reverts_one'), models.UniqueConstraint(fields=('batch', 'item', 'tenant'), name='change_set_item_once'), models.UniqueConstraint(fields=('batch', 'fact', 'tenant'), name='change_set_fact_once'), models.UniqueConstraint(condition=models.Q(('merged__isnull', False), ('undone_at', None)), fields=('merged',), name='change_set_merged_once')],
            },
        ),
        migrations.CreateModel(
            name='Change',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('table', models.CharField(choices=[('fact', 'Fact'), ('episode', 'Episode'), ('section', 'Section'), ('evidence', 'Evidence'), ('relation', 'Relation'), ('refusal', 'Refusal'), ('person', 'Person'), ('key', 'Key'), ('session', 'Session'), ('revision', 'Revision')], editable=False, max_length=8)),
                ('action', models.CharField(choices=[('made', 'Made'), ('deleted', 'Deleted'), ('changed', 'Changed'), ('moved', 'Moved'), ('left', 'Left')], editable=False, max_length=7)),
                ('uuid', models.UUIDField(editable=False, null=True)),
                ('number', models.BigIntegerField(editable=False, null=True)),
                ('version', models.PositiveIntegerField(editable=False, null=True)),
                ('before', models.JSONField(default=dict, editable=False)),
                ('change_set', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='changes', to='memories.changeset')),
            ],
            options={
                'ordering': ['id'],
                'verbose_name': 'change',
                'verbose_name_plural': 'changes',
                'indexes': [models.Index(condition=models.Q(('table', 'episode')), fields=['uuid'], name='change_of_episode_idx')],
                'constraints': [models.CheckConstraint(condition=django.db.models.lookups.LessThanOrEqual(models.Func('uuid', 'number', function='num_nonnulls', output_field=models.IntegerField()), 1), name='change_of_one')],
            },
        ),
        migrations.CreateModel(
            name='DailySpending',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('day', models.DateField(help_text="In the tenant's time zone.")),
                ('tokens', models.PositiveBigIntegerField(default=0, help_text='Read and written.')),
                ('cost', models.DecimalField(decimal_places=6, default=0, help_text='US dollars, where prices are set.', max_digits=14)),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant')),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('tenant', 'day'), name='daily_spending_once_a_day')],
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
                'constraints': [models.CheckConstraint(condition=models.Q(('api_key', ''), models.Q(('base_url', ''), _negated=True), _connector='OR'), name='model_key_with_its_address')],
            },
        ),
        migrations.CreateModel(
            name='Agent',
            fields=[
                ('id', models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ('agent_id', models.CharField(editable=False, help_text='As the API calls it, lower-cased.', max_length=255, verbose_name='agent')),
                ('extraction', models.BooleanField(default=True, help_text='Off: turns of its sessions are stored and wait. They are extracted once it is on again.', verbose_name='extraction')),
                ('recall', models.BooleanField(default=True, help_text='Off: its contexts and searches are empty.', verbose_name='recall')),
                ('guidance', models.TextField(blank=True, help_text="Instructions to the model for this agent's sessions. They follow those of the tenant.", max_length=4000, verbose_name='extraction guidance')),
                ('created_at', models.DateTimeField(editable=False)),
                ('tenant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='agents', to='memories.tenant', verbose_name='tenant')),
            ],
            options={
                'verbose_name': 'agent',
                'verbose_name_plural': 'agents',
                'ordering': ['tenant', 'agent_id'],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'agent_id'), name='agent_once')],
            },
        ),
        migrations.AddField(
            model_name='tenant',
            name='language',
            field=models.CharField(choices=[('en', 'English'), ('zh-hans', '简体中文')], default='en', help_text='Language of the first line and the headings. Memories stay in their own language.', max_length=10, verbose_name='language of contexts'),
        ),
        migrations.AddField(
            model_name='tenant',
            name='memory_of',
            field=models.CharField(choices=[('person', 'The person: shared by all agents'), ('agent', 'The agent: private to the agent of the conversation')], default='person', help_text='With “The agent”, the facts, turns and episodes of a conversation are visible only to its agent. Existing facts keep their owner.', max_length=6, verbose_name='memory belongs to'),
        ),
        migrations.AddField(
            model_name='apikey',
            name='memory_of',
            field=models.CharField(blank=True, choices=[('person', 'The person: shared by all agents'), ('agent', 'The agent: private to the agent of the conversation')], editable=False, help_text='Whose memory sessions become that it opens; empty: as the tenant says.', max_length=6),
        ),
        migrations.AddField(
            model_name='session',
            name='redactions',
            field=models.PositiveIntegerField(default=0, editable=False, help_text='How often what a turn says was deleted.'),
        ),
        migrations.AddField(
            model_name='session',
            name='memory_of',
            field=models.CharField(blank=True, choices=[('person', 'The person: shared by all agents'), ('agent', 'The agent: private to the agent of the conversation')], editable=False, help_text='Whose memory it becomes, as the key chose that opened it; empty: as the tenant says.', max_length=6),
        ),
        migrations.AddField(
            model_name='turn',
            name='redacted_at',
            field=models.DateTimeField(editable=False, help_text='When what it said, or a part of it, was deleted.', null=True),
        ),
        migrations.AddField(
            model_name='turn',
            name='digest',
            field=models.BinaryField(help_text='Keyed hash of what a redacted one said: the same message is not stored again.', max_length=32, null=True),
        ),
        migrations.AddField(
            model_name='fact',
            name='external_id',
            field=models.CharField(blank=True, help_text='Its id in the memory document that it came with.', max_length=255, verbose_name='external id'),
        ),
        migrations.AddField(
            model_name='fact',
            name='document',
            field=models.JSONField(editable=False, help_text='What that document says besides, as it is told to who asks for it again.', null=True),
        ),
        migrations.AddField(
            model_name='factrefusal',
            name='actor_kind',
            field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], default='operator', max_length=8),
        ),
        migrations.AddField(
            model_name='factrefusal',
            name='actor_id',
            field=models.CharField(blank=True, max_length=36),
        ),
        migrations.AddField(
            model_name='profilesection',
            name='document',
            field=models.JSONField(editable=False, help_text='What the memory document that it came with says of its times.', null=True),
        ),
        migrations.AddField(
            model_name='profilesection',
            name='agent_id',
            field=models.CharField(blank=True, help_text="Whose it is alone; empty: the person's own.", max_length=255),
        ),
        migrations.AddField(
            model_name='profilerevision',
            name='agent_id',
            field=models.CharField(blank=True, help_text='As of a section.', max_length=255),
        ),
        migrations.AddField(
            model_name='endpointstate',
            name='tenant',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memories.tenant'),
        ),
        migrations.AddField(
            model_name='endpointstate',
            name='failing_since',
            field=models.DateTimeField(help_text='The first of these failures.', null=True),
        ),
        migrations.AlterModelOptions(
            name='batch',
            options={'ordering': ['-created_at', '-id'], 'verbose_name': 'batch', 'verbose_name_plural': 'batches'},
        ),
        migrations.AlterModelOptions(
            name='episodevector',
            options={'verbose_name': 'episode vector', 'verbose_name_plural': 'episode vectors'},
        ),
        migrations.AlterModelOptions(
            name='factevidence',
            options={'ordering': ['created_at', 'turn_number'], 'verbose_name': 'fact evidence', 'verbose_name_plural': 'fact evidence'},
        ),
        migrations.AlterModelOptions(
            name='factrefusal',
            options={'verbose_name': 'fact refusal', 'verbose_name_plural': 'fact refusals'},
        ),
        migrations.AlterModelOptions(
            name='factrelation',
            options={'ordering': ['id'], 'verbose_name': 'fact relation', 'verbose_name_plural': 'fact relations'},
        ),
        migrations.AlterModelOptions(
            name='factrevision',
            options={'ordering': ['-version'], 'verbose_name': 'fact revision', 'verbose_name_plural': 'fact revisions'},
        ),
        migrations.AlterModelOptions(
            name='factvector',
            options={'verbose_name': 'fact vector', 'verbose_name_plural': 'fact vectors'},
        ),
        migrations.AlterModelOptions(
            name='idempotencyrecord',
            options={'verbose_name': 'idempotency record', 'verbose_name_plural': 'idempotency records'},
        ),
        migrations.AlterModelOptions(
            name='profilerevision',
            options={'ordering': ['-created_at', '-id'], 'verbose_name': 'profile revision', 'verbose_name_plural': 'profile revisions'},
        ),
        migrations.AlterModelOptions(
            name='profilesection',
            options={'ordering': ['end_user', 'agent_id', 'section'], 'verbose_name': 'profile section', 'verbose_name_plural': 'profile sections'},
        ),
        migrations.AlterModelOptions(
            name='sessionqueue',
            options={'verbose_name': 'session queue', 'verbose_name_plural': 'session queues'},
        ),
        migrations.AlterModelOptions(
            name='tombstone',
            options={'verbose_name': 'tombstone', 'verbose_name_plural': 'tombstones'},
        ),
        migrations.AlterModelOptions(
            name='turn',
            options={'ordering': ['session', 'number'], 'verbose_name': 'turn', 'verbose_name_plural': 'turns'},
        ),
        migrations.AlterModelOptions(
            name='turnvector',
            options={'verbose_name': 'turn vector', 'verbose_name_plural': 'turn vectors'},
        ),
        migrations.AlterModelOptions(
            name='workingmemory',
            options={'verbose_name': 'working memory', 'verbose_name_plural': 'working memories'},
        ),
        migrations.RemoveConstraint(
            model_name='profilesection',
            name='profile_section_once',
        ),
        migrations.RemoveIndex(
            model_name='turn',
            name='turn_of_end_user_idx',
        ),
        migrations.AlterField(
            model_name='apikey',
            name='scopes',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('ingest', 'Ingest: turns and sessions'), ('read', 'Read: context, search, lists'), ('write', 'Write: facts and profile'), ('privacy', 'Privacy: requests and exports'), ('read_all', 'Read all: also facts restricted to certain roles, readers or agents')], max_length=16), size=None),
        ),
        migrations.AlterField(
            model_name='auditevent',
            name='actor_kind',
            field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], max_length=8, verbose_name='by'),
        ),
        migrations.AlterField(
            model_name='decaypass',
            name='trigger',
            field=models.CharField(choices=[('schedule', 'Schedule'), ('command', 'Command'), ('operator', 'Operator')], max_length=8, verbose_name='started by'),
        ),
        migrations.AlterField(
            model_name='enduser',
            name='capture_off_by',
            field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], editable=False, help_text='Who switched capture off.', max_length=8),
        ),
        migrations.AlterField(
            model_name='enduser',
            name='serve_off_by',
            field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], editable=False, help_text='Who switched serve off.', max_length=8),
        ),
        migrations.AlterField(
            model_name='episode',
            name='status',
            field=models.CharField(choices=[('active', 'Active'), ('pending', 'Pending'), ('trashed', 'In the trash')], default='active', max_length=7, verbose_name='status'),
        ),
        migrations.AlterField(
            model_name='extractionrun',
            name='status',
            field=models.CharField(choices=[('running', 'Running'), ('committed', 'Done'), ('failed', 'Failed'), ('parked', 'Parked'), ('discarded', 'Discarded')], default='running', max_length=9, verbose_name='outcome'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='agent_id',
            field=models.CharField(blank=True, help_text="Empty: the person's own.", max_length=255, verbose_name='agent'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='allowed_roles',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100), blank=True, default=list, size=None, verbose_name='roles'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='allowed_users',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=255), blank=True, default=list, size=None, verbose_name='users'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='binding',
            field=models.BooleanField(default=False, help_text="An operator's word: no job and no key changes or removes it.", verbose_name='confirmed by operator'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='confidence',
            field=models.FloatField(validators=[django.core.validators.MinValueValidator(0.0), django.core.validators.MaxValueValidator(1.0)], verbose_name='confidence'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='expires_at',
            field=models.DateTimeField(blank=True, null=True, verbose_name='expires'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='flags',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), blank=True, default=list, help_text='Why it is held.', size=None, verbose_name='flags'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='importance',
            field=models.FloatField(default=0.5, validators=[django.core.validators.MinValueValidator(0.0), django.core.validators.MaxValueValidator(1.0)], verbose_name='importance'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='key',
            field=models.CharField(blank=True, help_text='What it is about, e.g. home_city.', max_length=100, verbose_name='key'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='locked',
            field=models.BooleanField(default=False, verbose_name='locked'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='mentions',
            field=models.PositiveIntegerField(default=1, verbose_name='mentions'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='pinned',
            field=models.BooleanField(default=False, verbose_name='pinned'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='raw',
            field=models.TextField(blank=True, help_text='The quote it rests on.', verbose_name='quote'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='scope',
            field=models.CharField(choices=[('private', 'Private'), ('share', 'Share'), ('public', 'Public')], default='private', max_length=7, verbose_name='scope'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='source',
            field=models.CharField(choices=[('explicit_user_input', 'Explicit'), ('implicit_inference', 'Implicit'), ('system_generated', 'System'), ('external_data', 'External'), ('corrected_memory', 'Corrected')], max_length=20, verbose_name='source'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='source_error',
            field=models.TextField(blank=True, help_text='Of a correction: what was wrong.', max_length=2000, verbose_name='what was wrong'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='status',
            field=models.CharField(choices=[('active', 'Active'), ('pending', 'Pending'), ('superseded', 'Superseded'), ('rejected', 'Rejected'), ('archived', 'Archived'), ('trashed', 'In the trash')], default='active', max_length=10, verbose_name='status'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='structured',
            field=models.JSONField(blank=True, null=True, verbose_name='structured data'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='tags',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100), blank=True, default=list, size=None, verbose_name='tags'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='valid_to',
            field=models.DateTimeField(blank=True, null=True, verbose_name='valid until'),
        ),
        migrations.AlterField(
            model_name='fact',
            name='value',
            field=models.CharField(blank=True, max_length=500, verbose_name='value'),
        ),
        migrations.AlterField(
            model_name='factrelation',
            name='type',
            field=models.CharField(choices=[('related_to', 'Related to'), ('supersedes', 'Supersedes'), ('contradicts', 'Contradicts'), ('derived_from', 'Derived from')], max_length=12),
        ),
        migrations.AlterField(
            model_name='factrevision',
            name='actor_kind',
            field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], max_length=8),
        ),
        migrations.AlterField(
            model_name='operator',
            name='all_tenants',
            field=models.BooleanField(default=True, help_text='Can see the memories of every tenant.', verbose_name='all tenants'),
        ),
        migrations.AlterField(
            model_name='operator',
            name='tenants',
            field=models.ManyToManyField(blank=True, help_text='Can see only the memories of these tenants, unless “all tenants” is on.', related_name='operators', to='memories.tenant', verbose_name='tenants'),
        ),
        migrations.AlterField(
            model_name='privacycase',
            name='approved_kind',
            field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], max_length=8),
        ),
        migrations.AlterField(
            model_name='privacycase',
            name='asked_by',
            field=models.CharField(choices=[('subject', 'The person'), ('representative', 'A representative'), ('guardian', 'A parent or guardian'), ('authority', 'An authority'), ('controller', 'Our own organization')], default='subject', max_length=14, verbose_name='asked by'),
        ),
        migrations.AlterField(
            model_name='privacycase',
            name='opened_kind',
            field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], max_length=8),
        ),
        migrations.AlterField(
            model_name='privacycase',
            name='policy',
            field=models.CharField(choices=[('refuse', 'Refuse'), ('flag', 'Allow as a new person and flag to staff'), ('allow_new', 'Allow as a new person')], default='flag', max_length=9),
        ),
        migrations.AlterField(
            model_name='privacycase',
            name='refusal',
            field=models.CharField(blank=True, choices=[('identity', 'The requester cannot be identified'), ('unfounded', 'Manifestly unfounded'), ('excessive', 'Excessive because it is repetitive'), ('obligation', 'A legal obligation to keep the data'), ('claims', 'Needed for legal claims'), ('expression', 'Freedom of expression and information'), ('interest', 'Public interest or research'), ('withdrawn', 'Withdrawn by the requester')], max_length=11),
        ),
        migrations.AlterField(
            model_name='privacycase',
            name='verified_how',
            field=models.CharField(blank=True, choices=[('signed_in', 'Signed in to the application'), ('call_back', 'Called or wrote back to a known address'), ('in_person', 'Met in person'), ('document', 'Saw a document; no copy is kept'), ('mandate', "Saw the representative's mandate"), ('shell', 'By someone with access to the server')], max_length=9),
        ),
        migrations.AlterField(
            model_name='privacycase',
            name='verified_kind',
            field=models.CharField(blank=True, choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], max_length=8),
        ),
        migrations.AlterField(
            model_name='privacyexport',
            name='state',
            field=models.CharField(choices=[('making', 'In progress'), ('ready', 'Ready'), ('taken', 'Downloaded'), ('expired', 'Expired')], default='making', max_length=7),
        ),
        migrations.AlterField(
            model_name='profilerevision',
            name='actor_kind',
            field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], max_length=8),
        ),
        migrations.AlterField(
            model_name='profilesection',
            name='actor_kind',
            field=models.CharField(choices=[('run', 'Extraction'), ('operator', 'Operator'), ('key', 'Application'), ('command', 'Command'), ('decay', 'Decay pass'), ('link', 'One-time link')], max_length=8),
        ),
        migrations.AlterField(
            model_name='reviewitem',
            name='kind',
            field=models.CharField(choices=[('quarantined', 'Unconfirmed'), ('conflict', 'Conflict'), ('possible_duplicate', 'Possible duplicate'), ('flagged', 'Flagged'), ('held', 'Held'), ('poor_episode', 'Poor episode')], max_length=18, verbose_name='kind'),
        ),
        migrations.AlterField(
            model_name='reviewitem',
            name='reason',
            field=models.CharField(choices=[('assistant_trust', 'Only the assistant stated it'), ('tool_trust', 'Only a tool stated it'), ('suggested', 'Found by simple rules'), ('less_sure', 'Less certain than the existing fact'), ('outranked', 'Contradicts a more trusted source'), ('operators_word', 'Contradicts what an operator confirmed'), ('refused_before', 'Repeated after it was rejected'), ('near_refused', 'Similar to a rejected fact'), ('removal', 'A less trusted source says it is no longer true'), ('other_person', 'Differs between the merged end users'), ('imported', 'Imported; contradicts an existing fact'), ('not_judged', 'Similar to an existing fact'), ('instructions', 'Looks like an instruction to a model'), ('possible_secret', 'May contain a secret'), ('poor_quality', 'Says too little about the conversation')], max_length=20),
        ),
        migrations.AlterField(
            model_name='reviewitem',
            name='state',
            field=models.CharField(choices=[('open', 'Pending'), ('approved', 'Approved'), ('rejected', 'Rejected'), ('kept_both', 'Kept both'), ('merged', 'Merged'), ('settled', 'Settled')], default='open', max_length=9),
        ),
        migrations.AlterField(
            model_name='tenant',
            name='extraction_guidance',
            field=models.TextField(blank=True, help_text='Instructions to the model on what to remember. They are sent with every call.', max_length=4000, verbose_name='extraction guidance'),
        ),
        migrations.AlterField(
            model_name='tenant',
            name='signal_phrases',
            field=models.JSONField(blank=True, default=dict, help_text="Kind of signal → phrases that replace the hub's own patterns.", verbose_name='signal phrases'),
        ),
        migrations.AlterField(
            model_name='tenant',
            name='time_zone',
            field=models.CharField(default='UTC', help_text='For end users without a time zone of their own.', max_length=64, verbose_name='time zone'),
        ),
        migrations.AlterField(
            model_name='tenant',
            name='trust_assistant',
            field=models.BooleanField(default=False, help_text='On: facts that only the assistant stated are served without review. What users say still takes precedence.', verbose_name='trust assistant'),
        ),
        migrations.AlterField(
            model_name='throttlecounter',
            name='scope',
            field=models.CharField(choices=[('ingest', 'Ingest: turns and sessions'), ('read', 'Read: context, search, lists'), ('write', 'Write: facts and profile'), ('privacy', 'Privacy: requests and exports'), ('read_all', 'Read all: also facts restricted to certain roles, readers or agents')], max_length=16),
        ),
        migrations.AlterField(
            model_name='tombstone',
            name='policy',
            field=models.CharField(choices=[('refuse', 'Refuse'), ('flag', 'Allow as a new person and flag to staff'), ('allow_new', 'Allow as a new person')], max_length=9),
        ),
        migrations.AddIndex(
            model_name='fact',
            index=models.Index(condition=models.Q(('status', 'active'), models.Q(('agent_id', ''), _negated=True), models.Q(('key', ''), _negated=True)), fields=['end_user', 'agent_id', 'category', 'key'], name='fact_of_agent_idx'),
        ),
        migrations.AddIndex(
            model_name='session',
            index=models.Index(condition=models.Q(('memory_of', 'agent')), fields=['end_user'], name='session_of_agent_alone_idx'),
        ),
        migrations.AddIndex(
            model_name='turn',
            index=models.Index(models.F('end_user'), models.OrderBy(django.db.models.functions.comparison.Least('timestamp', 'created_at'), descending=True), name='turn_said_idx'),
        ),
        migrations.AddConstraint(
            model_name='endpointstate',
            constraint=models.UniqueConstraint(fields=('tenant',), name='endpoint_state_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='profilesection',
            constraint=models.UniqueConstraint(fields=('end_user', 'tenant', 'agent_id', 'section'), name='profile_section_once'),
        ),
        ]),
        migrations.RunSQL([CHANGE_SETS, WHO_REFUSED], migrations.RunSQL.noop),
        migrations.RunSQL(ROLL_BACKS, NO_ROLL_BACKS),
        migrations.RunSQL(MERGES, NO_MERGES),
        migrations.RunSQL(FAILING, migrations.RunSQL.noop),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
        migrations.RunPython(list_agents, migrations.RunPython.noop),
        # What the rows above were made of.
        Together([
            migrations.RemoveField("reviewitem", "traces"),
            *(migrations.DeleteModel(name) for name in ("BatchEntry", "FactMerge", "MergeEntry", "PersonMerge")),
        ]),
    ]
