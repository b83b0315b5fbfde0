"""Merges of people are change sets, which the one undo takes back: those of before, too, with the ids that they noted."""

import django.db.models.deletion
from django.db import migrations, models

FILL = """
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
UNFILL = """
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


class Migration(migrations.Migration):
    dependencies = [("memories", "0019_roll_backs")]

    operations = [
        migrations.AddField(
            model_name="changeset",
            name="merged",
            field=models.ForeignKey(db_index=False, editable=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="memories.enduser"),
        ),
        migrations.AddIndex(
            model_name="changeset",
            index=models.Index(condition=models.Q(("merged__isnull", False)), fields=["merged"], name="change_set_merged_idx"),
        ),
        migrations.AddConstraint(
            model_name="changeset",
            constraint=models.UniqueConstraint(condition=models.Q(("merged__isnull", False), ("undone_at", None)), fields=("merged",), name="change_set_merged_once"),
        ),
        migrations.AlterField(
            model_name="change",
            name="action",
            field=models.CharField(choices=[("made", "Made"), ("deleted", "Deleted"), ("changed", "Changed"), ("moved", "Moved"), ("left", "Left")], editable=False, max_length=7),
        ),
        migrations.AlterField(
            model_name="change",
            name="table",
            field=models.CharField(choices=[("fact", "Fact"), ("episode", "Episode"), ("section", "Section"), ("evidence", "Evidence"), ("relation", "Relation"), ("refusal", "Refusal"), ("person", "Person"), ("key", "Key"), ("session", "Session"), ("revision", "Revision")], editable=False, max_length=8),
        ),
        migrations.RunSQL(FILL, UNFILL),
        migrations.DeleteModel("MergeEntry"),
        migrations.DeleteModel("PersonMerge"),
    ]
