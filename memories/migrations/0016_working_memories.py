from django.db import migrations

# Sessions from before get a row that nothing is due of: their next turn arms it.
FILL = """
INSERT INTO memories_workingmemory (session_id, summary, extractor, prompt_version, left_number, left_tokens,
    left_rounds, episode_number, attempts, failure)
    SELECT id, '', '', '', 0, 0, 0, 0, 0, '' FROM memories_session;
UPDATE memories_session s SET round_count = t.rounds
    FROM (SELECT session_id, count(*) AS rounds FROM memories_turn WHERE role = 'user' GROUP BY session_id) t
    WHERE t.session_id = s.id;
"""


class Migration(migrations.Migration):
    """Rows for the sessions that are there, apart from the tables: PostgreSQL alters none that has just been filled."""

    dependencies = [("memories", "0015_episodes")]
    operations = [migrations.RunSQL(FILL, migrations.RunSQL.noop)]
