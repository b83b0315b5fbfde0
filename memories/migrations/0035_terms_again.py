"""The words of texts that are there are counted as today: version 2 of what scoring.terms packs."""

from django.db import migrations

from memories.scoring import terms

# Each table's text, as its model has it.
TEXTS = {
    "memories_turn": "content",
    "memories_fact": "content",
    "memories_diaryentry": "CASE WHEN topic = '' THEN content ELSE topic || E'\\n' || content END",
    "memories_episode": "array_to_string(ARRAY[summary] || key_topics || actions_taken || outcomes, E'\\n')",
}
STEP = 1_000
# Begins where a run before it ended. What changes meanwhile has its new terms already.
READ = """
    SELECT tenant_id, id, terms, {text} FROM {table}
    WHERE id > %s AND length(terms) > 0 AND get_byte(terms, 0) < %s ORDER BY id LIMIT %s
"""
WRITE = """
    UPDATE {table} one SET terms = counted.new
    FROM unnest(%s::uuid[], %s::uuid[], %s::bytea[], %s::bytea[]) AS counted (tenant_id, id, old, new)
    WHERE one.tenant_id = counted.tenant_id AND one.id = counted.id AND one.terms = counted.old
"""
FIRST = "00000000-0000-0000-0000-000000000000"


def count_again(_apps, schema_editor):
    """Pack the terms of each text again, so many at a time; each step is a transaction."""
    with schema_editor.connection.cursor() as cursor:
        for table, text in TEXTS.items():
            last = FIRST
            while rows := _read(cursor, table, text, last):
                tenants, ids, old, texts = (list(column) for column in zip(*rows, strict=True))
                new = [terms.pack(one) for one in texts]
                cursor.execute(WRITE.format(table=table), [tenants, ids, old, new])
                last = ids[-1]


def _read(cursor, table, text, last):
    cursor.execute(READ.format(table=table, text=text), [last, terms.VERSION, STEP])
    return cursor.fetchall()


def as_before(_apps, schema_editor):
    """The hub before this reads version 1 alone; most words are the same."""
    with schema_editor.connection.cursor() as cursor:
        for table in TEXTS:
            cursor.execute(f"UPDATE {table} SET terms = set_byte(terms, 0, 1) WHERE length(terms) > 0")


class Migration(migrations.Migration):

    # A million texts take minutes; nobody waits for a lock of all of them.
    atomic = False

    dependencies = [
        ('memories', '0034_whose_words'),
    ]

    operations = [
        migrations.RunPython(count_again, as_before),
    ]
