from django.db import migrations

# What the sections say already is their first known version: a restore can go back to it.
FORWARD = """
INSERT INTO memories_profilerevision
    (id, end_user_id, section, version, verb, actor_kind, actor_id, before, after, binding_before, extraction_id,
    reason, created_at)
SELECT gen_random_uuid(), s.end_user_id, s.section, s.version,
    CASE WHEN s.actor_kind = 'run' THEN 'extract' ELSE 'write' END, s.actor_kind,
    CASE WHEN s.actor_kind = 'run' THEN coalesce(s.extraction_id::text, '') ELSE '' END,
    '', s.summary, false, s.extraction_id, '', s.updated_at
FROM memories_profilesection s
WHERE NOT EXISTS (
    SELECT 1 FROM memories_profilerevision r WHERE r.end_user_id = s.end_user_id AND r.section = s.section
);
"""


class Migration(migrations.Migration):
    """A first revision for every section of a profile."""

    dependencies = [("memories", "0011_review")]
    operations = [migrations.RunSQL(FORWARD, migrations.RunSQL.noop)]
