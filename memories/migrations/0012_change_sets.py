"""One undo: each change by a person is a change set. What could be undone before can be undone still.

The records that decisions, batches and merges of facts had each for themselves become change sets. A section that was
written before has none, for nothing could take it back.
"""

import django.db.models.deletion
import django.db.models.lookups
import memories.models.ids
from django.db import migrations, models

FILL = """
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
# As in 0004_unsampled_columns.
UNSAMPLED = """
ALTER TABLE memories_changeset ALTER COLUMN reason SET STATISTICS 0;
ALTER TABLE memories_change ALTER COLUMN before SET STATISTICS 0;
"""


class Migration(migrations.Migration):
    dependencies = [("memories", "0011_turn_said")]

    operations = [
        migrations.CreateModel(
            name="ChangeSet",
            fields=[
                ("id", models.UUIDField(default=memories.models.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("verb", models.CharField(editable=False, max_length=20)),
                ("actor_kind", models.CharField(choices=[("run", "Extraction"), ("operator", "Operator"), ("key", "Application"), ("command", "Command"), ("decay", "Decay pass"), ("link", "One-time link")], editable=False, max_length=8)),
                ("actor_id", models.CharField(blank=True, editable=False, max_length=36)),
                ("reason", models.TextField(blank=True, editable=False, max_length=2000)),
                ("counts", models.JSONField(default=dict, editable=False)),
                ("created_at", models.DateTimeField(editable=False)),
                ("undone_at", models.DateTimeField(editable=False, null=True)),
                ("reverted_by", models.UUIDField(editable=False, help_text="Id of the change set that took it back.", null=True)),
                ("batch", models.ForeignKey(db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="steps", to="memories.batch")),
                ("end_user", models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="memories.enduser")),
                ("episode", models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="memories.episode")),
                ("fact", models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name="change_sets", to="memories.fact")),
                ("item", models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="memories.reviewitem")),
                ("tenant", models.ForeignKey(editable=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="memories.tenant")),
            ],
            options={
                "ordering": ["-created_at", "-id"],
                "verbose_name": "change set",
                "verbose_name_plural": "change sets",
            },
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("table", models.CharField(choices=[("fact", "Fact"), ("episode", "Episode"), ("section", "Section"), ("evidence", "Evidence"), ("relation", "Relation"), ("refusal", "Refusal")], editable=False, max_length=8)),
                ("action", models.CharField(choices=[("made", "Made"), ("deleted", "Deleted"), ("changed", "Changed"), ("left", "Left")], editable=False, max_length=7)),
                ("uuid", models.UUIDField(editable=False, null=True)),
                ("number", models.BigIntegerField(editable=False, null=True)),
                ("version", models.PositiveIntegerField(editable=False, null=True)),
                ("before", models.JSONField(default=dict, editable=False)),
                ("change_set", models.ForeignKey(editable=False, on_delete=django.db.models.deletion.CASCADE, related_name="changes", to="memories.changeset")),
            ],
            options={
                "ordering": ["id"],
                "verbose_name": "change",
                "verbose_name_plural": "changes",
            },
        ),
        migrations.AddConstraint(
            model_name="changeset",
            constraint=models.CheckConstraint(condition=django.db.models.lookups.LessThanOrEqual(models.Func("item", "fact", "episode", "end_user", function="num_nonnulls", output_field=models.IntegerField()), 1), name="change_set_of_one"),
        ),
        migrations.AddConstraint(
            model_name="changeset",
            constraint=models.UniqueConstraint(fields=("reverted_by", "tenant"), name="change_set_reverts_one"),
        ),
        migrations.AddConstraint(
            model_name="changeset",
            constraint=models.UniqueConstraint(fields=("batch", "item", "tenant"), name="change_set_item_once"),
        ),
        migrations.AddConstraint(
            model_name="changeset",
            constraint=models.UniqueConstraint(fields=("batch", "fact", "tenant"), name="change_set_fact_once"),
        ),
        migrations.AddIndex(
            model_name="change",
            index=models.Index(condition=models.Q(("table", "episode")), fields=["uuid"], name="change_of_episode_idx"),
        ),
        migrations.AddConstraint(
            model_name="change",
            constraint=models.CheckConstraint(condition=django.db.models.lookups.LessThanOrEqual(models.Func("uuid", "number", function="num_nonnulls", output_field=models.IntegerField()), 1), name="change_of_one"),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.RunSQL(UNSAMPLED, migrations.RunSQL.noop),
        migrations.RemoveField("reviewitem", "traces"),
        migrations.DeleteModel("BatchEntry"),
        migrations.DeleteModel("FactMerge"),
    ]
