"""Rows of tenants refer to each other by (tenant, id): the database refuses what points into another tenant."""

from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import IntegrityError, connection, models, transaction

from memories.models import (
    EndUser,
    Fact,
    FactEvidence,
    FactRefusal,
    FactRelation,
    FactRevision,
    ProfileRevision,
    Session,
    SessionQueue,
    Turn,
    WorkingMemory,
)
from memories.models.people.tenants import OfParent
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


def test_rows_of_the_version_before_get_the_tenant_of_their_parent() -> None:
    person = factories.end_user()
    fact, target = factories.fact(person, "One"), factories.fact(person, "Two")
    row = FactRelation.objects.create(fact=fact, target=target, type="related_to", created_at=factories.NOW)
    refusal = FactRefusal.objects.create(end_user=person, kind="text", digest=b"x", created_at=factories.NOW)
    assert FactRelation.objects.get(pk=row.pk).tenant == FactRefusal.objects.get(pk=refusal.pk).tenant == person.tenant


def test_makers_do_not_leave_the_tenant_to_the_database(settings: Any) -> None:
    for model in OfParent.__subclasses__():
        for table in {one._meta.db_table for one in [model, *model.__subclasses__()] if not one._meta.abstract}:
            with connection.cursor() as cursor:
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER tenant_of_parent")
    call_command("seed_demo", stdout=StringIO())
    for model in (SessionQueue, WorkingMemory, FactRevision, FactEvidence, ProfileRevision):
        assert model._default_manager.exists(), model
    assert EndUser.objects.exists()
