"""Rows of tenants refer to each other by (tenant, id): the database refuses what points into another tenant."""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, connection, models, transaction

from memories.models import (
    Fact,
    FactEvidence,
    Session,
    SessionQueue,
    Turn,
    WorkingMemory,
)
from tests import factories
from tests.database import undone

pytestmark = pytest.mark.django_db

_REFERENCES = """
    SELECT c.conrelid::regclass::text, a.attname, c.confrelid::regclass::text
    FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[2]
    WHERE c.contype = 'f' AND c.convalidated AND cardinality(c.conkey) = 2 AND c.connamespace = 'public'::regnamespace
        AND (SELECT attname FROM pg_attribute WHERE attrelid = c.conrelid AND attnum = c.conkey[1]) = 'tenant_id'
        AND (SELECT array_agg(attname ORDER BY attname) FROM pg_attribute
             WHERE attrelid = c.confrelid AND attnum = ANY(c.confkey)) = '{id,tenant_id}'
"""

_UNIQUE = """
    SELECT x.indrelid::regclass::text, i.relname, array(
        SELECT attname::text FROM unnest(x.indkey::int2[]) WITH ORDINALITY k (number, place)
        JOIN pg_attribute ON attrelid = x.indrelid AND attnum = k.number ORDER BY k.place
    )
    FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
    WHERE x.indisunique AND x.indisvalid AND NOT x.indisprimary AND i.relnamespace = 'public'::regnamespace
"""
TENANTS = {"tenant_id", "tenant_uuid"}
# As PostgreSQL takes (person, tenant) for rarer than the person, these would be read where an index of a list is meant.
_WIDER = "begins with the person, as the indexes of lists, which statements that name the tenant would no longer use"
_BEFORE = "the version before names its columns when it writes vectors; goes with the next version"
# Unique keys of tables of tenants that do not name the tenant → why. Primary keys are an id alone, as Django wants.
UNNAMED = {
    "memories_apikey_prefix_key": "says which tenant a request is of: looked up before that is known",
    "memories_apikey_successor_id_key": "a key has one successor; keys are few, and a table that all nodes have",
    "memories_managementkey_prefix_key": "as of API keys; some are of all tenants",
    "session_once_per_agent": _WIDER,
    "fact_text_once": _WIDER,
    "audit_seal_once_of_none": "of the chain that is no tenant's",
    "fact_vector_once_before_0032": _BEFORE,
    "episode_vector_once_before_0032": _BEFORE,
    "diary_vector_once_before_0032": _BEFORE,
}


def of_tenant(model: type[models.Model]) -> bool:
    return any(field.name == "tenant" for field in model._meta.concrete_fields)


def wanted() -> Iterator[tuple[str, str, str]]:
    """Each reference that the database checks, between tables of tenants; migration 0029 says why not to turns."""
    for model in apps.get_app_config("memories").get_models():
        fields: list[Any] = [field for field in model._meta.concrete_fields if field.is_relation]
        for field in fields if of_tenant(model) else ():
            target = field.related_model
            if field.name != "tenant" and field.db_constraint and target is not Turn and of_tenant(target):
                yield model._meta.db_table, field.column, target._meta.db_table


def test_every_reference_between_rows_of_tenants_is_a_pair() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_REFERENCES)
        there = set(cursor.fetchall())
    assert there == set(wanted()), "A new table's migration makes its pairs, as 0029 does."


def changed(rows: models.QuerySet[Any], **columns: Any) -> None:
    """Change one row, as far as it could be committed."""
    with transaction.atomic(), connection.cursor() as cursor:
        assert rows.update(**columns) == 1
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def test_a_row_that_points_into_another_tenant_is_refused() -> None:
    ours, theirs = factories.end_user(), factories.end_user()
    here, there = factories.session(ours), factories.session(theirs)
    mine, other = factories.fact(ours), factories.fact(theirs, "Lives in Delft")
    factories.evidence(mine, here.turns.get())
    plants: dict[str, models.QuerySet[Any]] = {
        "turn_session": Turn.objects.filter(session=here),
        "session_end_user": Session.objects.filter(pk=here.pk),
        "fact_end_user": Fact.objects.filter(pk=mine.pk),
        "factevidence_fact": FactEvidence.objects.filter(fact=mine),
        "sessionqueue_session": SessionQueue.objects.filter(session=here),
        "workingmemory_session": WorkingMemory.objects.filter(session=here),
    }
    columns: dict[str, dict[str, Any]] = {
        "turn_session": {"session": there, "number": 7},
        "session_end_user": {"end_user": theirs},
        "fact_end_user": {"end_user": theirs},
        "factevidence_fact": {"fact": other},
        "sessionqueue_session": {"tenant": theirs.tenant},
        "workingmemory_session": {"tenant": theirs.tenant},
    }
    for name, rows in plants.items():
        with pytest.raises(IntegrityError, match=f'"{name}_of_tenant"'):
            changed(rows, **columns[name])
    # Within the tenant the same changes are kept.
    beside = factories.end_user(ours.tenant)
    with undone():
        changed(plants["fact_end_user"], end_user=beside)


def test_every_unique_key_of_a_tenants_table_names_the_tenant() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_UNIQUE)
        found = {name: (table, columns) for table, name, columns in cursor.fetchall()}
    tables = {
        model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        if TENANTS & {field.column for field in model._meta.concrete_fields}
    }
    of_tenants = {name: columns for name, (table, columns) in found.items() if table in tables}
    assert len(of_tenants) > 30
    unnamed = {name for name, columns in of_tenants.items() if not TENANTS & set(columns)}
    assert unnamed == UNNAMED.keys(), "A new key names the tenant, or says in UNNAMED why not."


def columns_of(model: type[models.Model], fields: Iterable[str]) -> list[str]:
    columns = {field.name: str(field.column) for field in model._meta.concrete_fields}
    return [columns[name] for name in fields]


def test_unique_keys_are_those_of_the_models() -> None:
    """Some of them were replaced by SQL of ours."""
    with connection.cursor() as cursor:
        cursor.execute(_UNIQUE)
        found = {name: (table, columns) for table, name, columns in cursor.fetchall()}
    models_keys = {
        one.name: (model._meta.db_table, columns_of(model, one.fields))
        for model in apps.get_app_config("memories").get_models()
        for one in model._meta.constraints
        if isinstance(one, models.UniqueConstraint) and one.fields
    }
    assert len(models_keys) > 30
    assert {name: found.get(name) for name in models_keys} == models_keys
