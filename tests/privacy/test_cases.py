"""The way of a privacy case: its steps, who may, what they leave behind."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django_q.models import OrmQ

from memories import conf
from memories.audit import Actor
from memories.exceptions import InvalidInput, NotFound, PreconditionFailed
from memories.models import ActorKind, AuditEvent, EndUser, PrivacyCase
from memories.privacy import cases, errors
from tests import factories
from tests.factories import COMMAND, NOW

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(days=1)
KEY = Actor(kind=ActorKind.KEY, id="4f1b", request_id="r-1")
FIRST = Actor(kind=ActorKind.OPERATOR, id="7", request_id="r-2")
SECOND = Actor(kind=ActorKind.OPERATOR, id="8", request_id="r-3")
SECRET = "Anna Secret"


@pytest.fixture
def person() -> EndUser:
    return factories.end_user(external_id="anna-1")


def opened(person: EndUser, kind: str = "erasure", *, actor: Actor = FIRST, now: datetime = NOW, **over: Any) -> Any:
    given = {"tenant": person.tenant, "user_id": person.external_id, "type": kind, **over}
    return cases.open_case(actor=actor, now=now, **given)


def seen(case: PrivacyCase, *, actor: Actor = FIRST, now: datetime = LATER) -> dict[str, Any]:
    """How somebody acts on the case as it is now."""
    return {"case_id": case.pk, "expected_version": case.version, "actor": actor, "now": now}


def verified(person: EndUser, kind: str = "erasure", **over: Any) -> PrivacyCase:
    return cases.verify_identity(how="signed_in", **seen(opened(person, kind, **over)))


def scoped(person: EndUser, kind: str = "erasure", **over: Any) -> PrivacyCase:
    return cases.scope_case(policy="refuse", **seen(verified(person, kind, **over)))


def approved(person: EndUser, **over: Any) -> PrivacyCase:
    return cases.approve_case(typed_id=person.external_id, **seen(scoped(person, **over), actor=SECOND))


def woken() -> list[tuple[str, tuple[Any, ...]]]:
    """What waits in the queue: function and arguments."""
    return [(row.task["func"], row.task["args"]) for row in OrmQ.objects.order_by("pk")]


def restricted(person: EndUser) -> bool:
    return EndUser.objects.filter(pk=person.pk, restricted_at__isnull=False).exists()


def test_an_erasure_from_receipt_to_its_run(person: EndUser) -> None:
    factories.session(person)
    case = approved(person)
    case.refresh_from_db()
    assert (case.state, case.version, case.policy) == ("approved", 4, "refuse")
    assert case.preview["memories.Turn"] == 1
    assert (case.opened_kind, case.opened_by) == ("operator", "7")
    assert (case.verified_kind, case.verified_by, case.verified_how) == ("operator", "7", "signed_in")
    assert (case.approved_kind, case.approved_by) == ("operator", "8")
    assert bytes(case.subject) == conf.digest_of_person(person.tenant_id, "anna-1")
    assert woken() == [("memories.tasks.run_case", (str(case.pk),))]


def test_every_step_is_in_the_trail_of_the_case_without_content(person: EndUser) -> None:
    case = opened(person, reference=SECRET, channel=SECRET)
    cases.verify_identity(how="signed_in", **seen(case))
    case.refresh_from_db()
    case = cases.extend_case(months=1, reason=SECRET, notice_on=LATER.date(), **seen(case))
    case = cases.hold_case(reason=SECRET, review_on=LATER.date(), **seen(case))
    case = cases.release_case(**seen(case))
    case = cases.tell_recipients(told=SECRET, **seen(case))
    cases.refuse_case(ground="claims", reason=SECRET, **seen(case))
    events = AuditEvent.objects.filter(case_uuid=case.pk).order_by("pk")
    assert [event.verb for event in events] == ["open", "verify", "extend", "hold", "release", "tell", "refuse"]
    assert {(event.object_type, event.object_id, event.tenant_uuid) for event in events} == {
        ("PrivacyCase", case.pk, person.tenant_id)
    }
    assert SECRET not in str([vars(event) for event in events])
    assert SECRET in str(vars(PrivacyCase.objects.get()))
