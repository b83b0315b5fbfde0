"""Rows that were there get the tenant of the row that they belong to: a batch after the other, each committed."""

from importlib import import_module

from django.db import migrations

BATCH = 10_000
# In the order of their keys, so that no batch reads what those before it have done.
FILL = """
    WITH batch AS (
        SELECT {key} FROM memories_{table} WHERE {behind} ORDER BY {key} LIMIT {batch}
    ), filled AS (
        UPDATE memories_{table} child SET tenant_id = parent.tenant_id FROM batch, memories_{parent} parent
        WHERE child.{key} = batch.{key} AND parent.id = child.{column} AND child.tenant_id IS NULL
    )
    SELECT {key} FROM batch ORDER BY {key} DESC LIMIT 1
"""
PARENTS = import_module("memories.migrations.0027_tenant_of_children").PARENTS


def fill(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        for table, (parent, column) in PARENTS.items():
            key = apps.get_model("memories", table)._meta.pk.column
            named = {"table": table, "parent": parent, "column": column, "key": key, "batch": BATCH}
            cursor.execute(FILL.format(behind="true", **named))
            while last := cursor.fetchone():
                cursor.execute(FILL.format(behind=f"{key} > %s", **named), last)


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ('memories', '0027_tenant_of_children'),
    ]

    operations = [
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
