"""The audit trail only grows: the database refuses everything else, whoever asks."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from memories import audit
from memories.audit import Actor
from memories.models import ActorKind, AuditEvent, Tenant
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def event() -> AuditEvent:
    owner = factories.tenant()
    actor = Actor(kind=ActorKind.OPERATOR, id="7", request_id="r-1")
    return audit.record(
        actor=actor, verb="forget", target=Tenant, object_id=owner.pk, tenant=owner, now=NOW, counts={"facts": 2}
    )


def by_sql(statement: str) -> Callable[[AuditEvent], Any]:
    def run(event: AuditEvent) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement, [event.pk])

    return run


@pytest.mark.parametrize(
    "change",
    [
        lambda event: AuditEvent.objects.filter(pk=event.pk).update(verb="nothing"),
        lambda event: event.save(),
        lambda event: event.delete(),
        lambda event: AuditEvent.objects.all().delete(),
        by_sql("UPDATE memories_auditevent SET verb = 'nothing' WHERE id = %s"),
        by_sql("DELETE FROM memories_auditevent WHERE id = %s"),
        by_sql("INSERT INTO memories_auditevent SELECT * FROM memories_auditevent WHERE id = %s "
               "ON CONFLICT (id) DO UPDATE SET verb = 'nothing'"),
    ],
)  # fmt: skip
def test_what_was_recorded_is_neither_changed_nor_deleted(
    event: AuditEvent, change: Callable[[AuditEvent], Any]
) -> None:
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        change(event)
    assert AuditEvent.objects.get().verb == "forget"


def test_more_can_be_recorded(event: AuditEvent) -> None:
    audit.record(actor=factories.COMMAND, verb="add", target=event, object_id=event.object_id, tenant=None, now=NOW)
    assert list(AuditEvent.objects.values_list("verb", flat=True)) == ["add", "forget"]


def test_an_event_says_who_did_what_to_which_object(event: AuditEvent) -> None:
    event.refresh_from_db()
    assert (event.actor_kind, event.actor_id, event.request_id) == ("operator", "7", "r-1")
    assert (event.verb, event.object_type, event.object_id) == ("forget", "Tenant", event.tenant_uuid)
    assert (event.counts, event.created_at) == ({"facts": 2}, NOW)


def test_the_trail_outlives_what_it_speaks_of(event: AuditEvent) -> None:
    Tenant.objects.all().delete()
    assert AuditEvent.objects.get().tenant_uuid == event.tenant_uuid
