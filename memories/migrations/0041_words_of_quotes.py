"""Facts that are there are found by the words of their quotes and structured data, too."""

import json

from django.db import migrations

from memories.scoring import terms

STEP = 500
# Begins where a run before it ended. What changes meanwhile has its new terms already.
READ = """
    SELECT tenant_id, id, terms, content, raw, structured::text FROM memories_fact
    WHERE id > %s AND length(terms) > 0 AND (raw <> '' OR structured IS NOT NULL) ORDER BY id LIMIT %s
"""
WRITE = """
    UPDATE memories_fact one SET terms = counted.new
    FROM unnest(%s::uuid[], %s::uuid[], %s::bytea[], %s::bytea[]) AS counted (tenant_id, id, old, new)
    WHERE one.tenant_id = counted.tenant_id AND one.id = counted.id AND one.terms = counted.old
"""
FIRST = "00000000-0000-0000-0000-000000000000"


def count_again(_apps, schema_editor):
    """Pack the terms of each of them again, so many at a time; each step is a transaction."""
    with schema_editor.connection.cursor() as cursor:
        last = FIRST
        while rows := _read(cursor, last):
            tenants, ids, old, texts, quotes, parts = (list(column) for column in zip(*rows, strict=True))
            beside = [terms.quoted(quote, json.loads(one) if one else None) for quote, one in zip(quotes, parts)]
            new = [terms.pack(text, beside=more) for text, more in zip(texts, beside)]
            cursor.execute(WRITE, [tenants, ids, old, new])
            last = ids[-1]


def _read(cursor, last):
    cursor.execute(READ, [last, STEP])
    return cursor.fetchall()


class Migration(migrations.Migration):

    # Many facts take a while; nobody waits for a lock of all of them.
    atomic = False

    dependencies = [
        ('memories', '0040_relations_and_own_ids'),
    ]

    operations = [
        # A hub before this reads them as they are.
        migrations.RunPython(count_again, migrations.RunPython.noop),
    ]
