"""PostgreSQL deletes vectors with their text, does not log request counters, and indexes facts that name readers."""

from django.db import migrations

# PostgreSQL also deletes a vector that is written while its text is deleted. The models say DO_NOTHING.
VECTORS = """
ALTER TABLE memories_turnvector ADD CONSTRAINT turn_vector_of_turn
    FOREIGN KEY (turn_id) REFERENCES memories_turn (id) ON DELETE CASCADE;
ALTER TABLE memories_factvector ADD CONSTRAINT fact_vector_of_fact
    FOREIGN KEY (fact_id) REFERENCES memories_fact (id) ON DELETE CASCADE;
ALTER TABLE memories_episodevector ADD CONSTRAINT episode_vector_of_episode
    FOREIGN KEY (episode_id) REFERENCES memories_episode (id) ON DELETE CASCADE;
"""
NO_VECTORS = """
ALTER TABLE memories_episodevector DROP CONSTRAINT episode_vector_of_episode;
ALTER TABLE memories_factvector DROP CONSTRAINT fact_vector_of_fact;
ALTER TABLE memories_turnvector DROP CONSTRAINT turn_vector_of_turn;
"""
# Counting requests must not cost a write to the database's log. After a crash the counters start again from zero.
UNLOGGED = "ALTER TABLE memories_throttlecounter SET UNLOGGED"
LOGGED = "ALTER TABLE memories_throttlecounter SET LOGGED"
# An erasure uses it to find the history of facts that name the person as a reader. Few facts name any.
READERS = """
CREATE INDEX revision_readers_idx ON memories_factrevision (fact_id)
WHERE after->'allowed_users' <> '[]' OR before->'allowed_users' <> '[]'
"""
NO_READERS = "DROP INDEX revision_readers_idx"


class Migration(migrations.Migration):
    replaces = [("memories", "0005_throttle_counters"), ("memories", "0008_embeddings")]
    dependencies = [("memories", "0002_append_only_audit")]
    operations = [
        migrations.RunSQL(VECTORS, NO_VECTORS),
        migrations.RunSQL(UNLOGGED, LOGGED),
        migrations.RunSQL(READERS, NO_READERS),
    ]
