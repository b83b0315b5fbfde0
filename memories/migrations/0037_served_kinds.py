"""Every kind of memory that a context can serve is known to the log of contexts.

Contexts with facts of groups name them among what they rest on: an erasure of a person whom such a fact is about finds
them. A section of the profile that is deleted takes the texts along that repeat it, as other memories do.
"""

import json

import django.contrib.postgres.fields
from django.db import migrations, models

FORGET = """
CREATE TRIGGER logged_texts_of_sections AFTER DELETE ON memories_profilesection
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_forget_logged_texts();
"""
KEEP = "DROP TRIGGER logged_texts_of_sections ON memories_profilesection"
# What was logged before; the log is kept for days. A row at a time, as a cluster takes no query in what is set.
STEP = 500
READ = """
    SELECT tenant_id, id, rests_on, items FROM memories_loggedcontext
    WHERE id > %s AND items @> '[{"kind": "group_fact"}]' ORDER BY id LIMIT %s
"""
WRITE = "UPDATE memories_loggedcontext SET rests_on = %s::uuid[] WHERE tenant_id = %s AND id = %s"
FIRST = "00000000-0000-0000-0000-000000000000"


def name_facts(_apps, schema_editor):
    """Facts of groups are among what a logged context rests on."""
    with schema_editor.connection.cursor() as cursor:
        last = FIRST
        while rows := _read(cursor, last):
            for tenant, row, rests_on, items in rows:
                told = json.loads(items) if isinstance(items, str) else items
                named = {str(one) for one in rests_on} | {one["id"] for one in told if one["kind"] == "group_fact"}
                cursor.execute(WRITE, [sorted(named), tenant, row])
            last = rows[-1][1]


def _read(cursor, last):
    cursor.execute(READ, [last, STEP])
    return cursor.fetchall()


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0036_not_as_said'),
    ]

    operations = [
        migrations.AlterField(
            model_name='loggedcontext',
            name='rests_on',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, editable=False, help_text='Memories that go with other people, too; where texts are kept, all memories.', size=None),
        ),
        migrations.RunSQL(FORGET, KEEP),
        migrations.RunPython(name_facts, migrations.RunPython.noop),
    ]
