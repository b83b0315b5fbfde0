"""Whose a row is must be true of every copy of it, and nothing hangs on a name of somebody: part of `invariants`."""

OWNERS = """
    SELECT x.id FROM (
        SELECT id, tenant_id, end_user_id FROM memories_session
        UNION ALL SELECT id, tenant_id, end_user_id FROM memories_turn
        UNION ALL SELECT id, tenant_id, end_user_id FROM memories_fact
        UNION ALL SELECT id, tenant_id, end_user_id FROM memories_profilesection
        UNION ALL SELECT id, tenant_id, end_user_id FROM memories_extractionrun
    ) x JOIN memories_enduser p ON p.id = x.end_user_id
    WHERE x.tenant_id <> p.tenant_id
    UNION ALL
    SELECT x.id FROM (
        SELECT id, session_id, end_user_id FROM memories_turn
        UNION ALL SELECT id, session_id, end_user_id FROM memories_extractionrun
        UNION ALL SELECT id, session_id, end_user_id FROM memories_episode
        UNION ALL SELECT turn_id, session_id, end_user_id FROM memories_turnvector
    ) x JOIN memories_session s ON s.id = x.session_id
    WHERE x.end_user_id <> s.end_user_id
"""
# Two people who were merged, or an id that was changed: memories are the person's, the name only leads there. What it
# keeps is what the undo of a merge brings back: sections of a profile and refusals that both had.
NAMES = """
    SELECT n.id FROM memories_enduser n JOIN memories_enduser p ON p.id = n.merged_into_id
    WHERE p.merged_into_id IS NOT NULL OR p.tenant_id <> n.tenant_id
        OR EXISTS (SELECT 1 FROM memories_session s WHERE s.end_user_id = n.id)
        OR EXISTS (SELECT 1 FROM memories_fact f WHERE f.end_user_id = n.id)
        OR EXISTS (SELECT 1 FROM memories_reviewitem i WHERE i.end_user_id = n.id AND i.state = 'open')
"""
