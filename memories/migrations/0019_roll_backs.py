"""Roll backs are change sets, which the one undo takes back: those of before, too, as far as their rows tell.

Changed ids are change sets from now on; those of before are changed back by hand.
"""

from django.db import migrations, models

FILL = """
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
UNFILL = """
UPDATE memories_reviewitem SET change_set = NULL
WHERE change_set IN (SELECT id FROM memories_changeset WHERE verb = 'roll_back');
DELETE FROM memories_change WHERE change_set_id IN (
    SELECT id FROM memories_changeset WHERE verb IN ('roll_back', 'undo_roll_back', 'change_id')
);
DELETE FROM memories_changeset WHERE verb IN ('roll_back', 'undo_roll_back', 'change_id');
"""


class Migration(migrations.Migration):
    dependencies = [("memories", "0018_memory_of")]

    operations = [
        migrations.AlterField(
            model_name="change",
            name="table",
            field=models.CharField(choices=[("fact", "Fact"), ("episode", "Episode"), ("section", "Section"), ("evidence", "Evidence"), ("relation", "Relation"), ("refusal", "Refusal"), ("person", "Person"), ("key", "Key")], editable=False, max_length=8),
        ),
        migrations.RunSQL(FILL, UNFILL),
    ]
