"""Unique keys of turns, vectors, episodes and others name the tenant, and the triggers for the version before 0027 go.

The tenant comes last, so what looked rows up by a key without it still does. Decision 0023 says which have none. Each key is built beside the one that it
replaces, without locks, and takes its name and place in a short transaction: web and worker go on, of this version and
of the one before. What is done is left out, so a run that died is simply started again.

The version before names the columns of three keys when it writes vectors: those stay beside the new ones, under another
name, until the next version.
"""

from functools import partial
from importlib import import_module

from django.db import migrations, models
from django.db.migrations.operations.base import Operation
from django.db.models import Q

from memories.db.lock_timeouts import retry_while_locked
from memories.db.together import Together

# As long as a post waits at most, and for how long it is tried again while somebody reads the table.
LOCK_TIMEOUT, PAUSES = '2s', (0.5, 1, 2, 4, 8, 15, 30, 60)
BUILT, BEFORE = '_built', '_before_0032'
# Name → the index's columns in order, whether it is whole, and whether it is a constraint's.
FOUND = """
    SELECT i.relname, x.indisvalid, array(
        SELECT attname::text FROM unnest(x.indkey::int2[]) WITH ORDINALITY k (number, place)
        JOIN pg_attribute ON attrelid = x.indrelid AND attnum = k.number ORDER BY k.place
    )
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
    WHERE x.indrelid = %s::regclass AND i.relname = ANY (%s)
"""


class UniqueAnew(Operation):
    """A unique constraint gets other columns under its name, while others read and write the table."""

    def __init__(self, model_name, constraint, *, keep=False):
        self.model_name, self.constraint, self.keep = model_name, constraint, keep

    def state_forwards(self, app_label, state):
        state.remove_constraint(app_label, self.model_name, self.constraint.name)
        state.add_constraint(app_label, self.model_name, self.constraint)

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        model = to_state.apps.get_model(app_label, self.model_name)
        constraint = to_state.models[app_label, self.model_name].get_constraint_by_name(self.constraint.name)
        if not schema_editor.collect_sql:
            _replace(schema_editor, model, constraint, keep=self.keep and constraint == self.constraint)

    database_backwards = database_forwards

    def describe(self):
        return f"Name the tenant in {self.constraint.name}"


def _replace(editor, model, constraint, *, keep):
    table, name, columns = model._meta.db_table, constraint.name, [model._meta.get_field(f).column for f in constraint.fields]
    built, before = name + BUILT, name + BEFORE
    with editor.connection.cursor() as cursor:
        cursor.execute(FOUND, [table, [name, built]])
        found = {index: (is_valid, names) for index, is_valid, names in cursor.fetchall()}
    # Also on a cluster, where `distribute` made it so.
    if found.get(name) == (True, columns):
        return
    # One that a process left which died is not whole.
    if built in found and found[built] != (True, columns):
        _run(editor, f"DROP INDEX CONCURRENTLY {built}")
    if found.get(built) != (True, columns):
        condition = constraint._get_condition_sql(model, editor)
        made = f"CREATE UNIQUE INDEX CONCURRENTLY {built} ON {table} ({', '.join(columns)})"
        made += " NULLS NOT DISTINCT" if constraint.nulls_distinct is False else ""
        _run(editor, made + (f" WHERE {condition}" if condition else ""))
    if constraint.condition:
        steps = [f"DROP INDEX {name}", f"ALTER INDEX {built} RENAME TO {name}"]
    elif keep:
        steps = [f"ALTER TABLE {table} RENAME CONSTRAINT {name} TO {before}"]
    else:
        steps = [f"ALTER TABLE {table} DROP CONSTRAINT {name}", f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {before}"]
    if not constraint.condition:
        steps.append(f"ALTER TABLE {table} ADD CONSTRAINT {name} UNIQUE USING INDEX {built}")
    _run_briefly(editor, *steps)


def _run(editor, *statements):
    with editor.connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _run_briefly(editor, *statements):
    """In one transaction, whose locks nobody waits for long."""
    act, alias = partial(_run, editor, *statements), editor.connection.alias
    retry_while_locked(act, lock_timeout=LOCK_TIMEOUT, pauses=PAUSES, using=alias)


OUTDATED = import_module("memories.migrations.0027_tenant_of_children")


def drop_triggers(apps, schema_editor):
    for table in OUTDATED.PARENTS:
        _run_briefly(schema_editor, f"DROP TRIGGER IF EXISTS tenant_of_parent ON memories_{table}")
    _run(schema_editor, "DROP FUNCTION IF EXISTS memories_tenant_of_parent()")


def make_triggers(apps, schema_editor):
    drop_triggers(apps, schema_editor)
    _run(schema_editor, OUTDATED.FUNCTION)
    for table, (parent, column) in OUTDATED.PARENTS.items():
        _run_briefly(schema_editor, OUTDATED.TRIGGER.format(table=table, parent=parent, column=column))


def unique(name, *fields, **more):
    return models.UniqueConstraint(fields=[*fields, 'tenant'], name=name, **more)


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ('memories', '0031_management_keys'),
    ]

    operations = [
        Together([
            UniqueAnew('turn', unique('turn_number_once', 'session', 'number')),
            UniqueAnew('turn', unique('turn_external_id_once', 'session', 'external_id', condition=Q(external_id__isnull=False))),
            UniqueAnew('episode', unique('episode_range_once', 'session', 'first_number')),
            UniqueAnew('reviewitem', unique(
                'review_open_once', 'fact', 'known', 'kind',
                condition=Q(state='open', proposed_section=None, episode=None), nulls_distinct=False,
            )),
            UniqueAnew('reviewitem', unique('review_episode_once', 'episode', condition=Q(state='open', episode__isnull=False))),
            UniqueAnew('changeset', unique('change_set_merged_once', 'merged', condition=Q(undone_at=None, merged__isnull=False))),
            UniqueAnew('privacyexport', unique('export_token_once', 'token_digest')),
            UniqueAnew('turnvector', unique('turn_vector_once', 'turn', 'space')),
            UniqueAnew('storeitemvector', unique('store_item_vector_once', 'item', 'space', 'place')),
            UniqueAnew('factvector', unique('fact_vector_once', 'fact', 'space'), keep=True),
            UniqueAnew('episodevector', unique('episode_vector_once', 'episode', 'space'), keep=True),
            UniqueAnew('diaryvector', unique('diary_vector_once', 'entry', 'space'), keep=True),
        ]),
        migrations.RunPython(drop_triggers, make_triggers),
    ]
