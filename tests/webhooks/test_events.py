"""What endpoints are told: each event is written with its change, and costs nothing where nobody listens."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memories import conf
from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.editing import edit_fact
from memories.curation.facts.forgetting import delete_fact, forget_fact
from memories.curation.facts.restoring import restore_fact
from memories.curation.sessions import delete_session
from memories.curation.tenants import webhooks
from memories.extraction import consolidation
from memories.forgetting import decay
from memories.models import (
    ActorKind,
    DecayPass,
    EndUser,
    Event,
    LanguageModel,
    PrivacyCase,
    SessionQueue,
    Status,
    WebhookDelivery,
    WebhookEndpoint,
)
from memories.privacy import cases, reminders, running
from memories.queue import session_queue, spending
from memories.webhooks import delivering
from tests import factories
from tests.database import at_once
from tests.factories import COMMAND, NOW
from tests.webhooks.receiver import ALL

pytestmark = pytest.mark.django_db


def listen(person: EndUser, events: list[str] | None = None) -> WebhookEndpoint:
    made = factories.webhook(person.tenant, events=events or ALL)
    WebhookDelivery.objects.all().delete()
    delivering.note_wanted(person.tenant_id)
    person.tenant.refresh_from_db()
    return made


def told(*names: str) -> list[tuple[Any, ...]]:
    """What was written since the last look: the events, each with these parts of its data."""
    rows = list(WebhookDelivery.objects.order_by("occurred_at", "event", "pk"))
    WebhookDelivery.objects.all().delete()
    return [(row.event, *(row.data[name] for name in names)) for row in rows]


def state(person: EndUser, text: str = "Likes tea", **over: Any) -> Any:
    return add_fact(end_user=person, draft=FactDraft(text, "preference", **over), actor=COMMAND, now=NOW).row


@contextmanager
def costs_nothing() -> Iterator[None]:
    with CaptureQueriesContext(connection) as queries:
        yield
    assert not [one["sql"] for one in queries if "memories_webhook" in one["sql"]]


def test_facts_that_come_into_use_are_replaced_or_go(person: EndUser) -> None:
    listen(person)
    fact = state(person, key="drink", value="tea")
    assert told("fact_id", "person_id") == [("fact.created", str(fact.pk), str(person.pk))]
    newer = state(person, "Likes coffee", key="drink", value="coffee")
    happened = dict(told("fact_id"))
    assert happened == {"fact.created": str(newer.pk), "fact.superseded": str(fact.pk)}
    forget_fact(fact_id=newer.pk, tenant=None, actor=COMMAND, now=NOW)
    assert told("fact_id") == [("fact.forgotten", str(newer.pk))]
    restore_fact(fact_id=newer.pk, tenant=None, actor=COMMAND, now=NOW)
    assert told("fact_id") == [("fact.created", str(newer.pk))]
    edit_fact(fact_id=newer.pk, tenant=None, changes={"importance": 0.9}, actor=COMMAND, now=NOW)
    assert told() == []
    edit_fact(fact_id=newer.pk, tenant=None, changes={"content": "Likes espresso"}, actor=COMMAND, now=NOW)
    assert told("fact_id", "person_id") == [("fact.updated", str(newer.pk), str(person.pk))]
    # What is not in use is told of to nobody.
    archived = factories.fact(person, "Liked cocoa", status="pending")
    edit_fact(fact_id=archived.pk, tenant=None, changes={"content": "Liked milk"}, actor=COMMAND, now=NOW)
    assert told() == []
    delete_fact(fact_id=newer.pk, tenant=None, actor=COMMAND, now=NOW)
    assert told("fact_id") == [("fact.forgotten", str(newer.pk))]


def test_what_fades_is_told_of_if_it_was_in_use(person: EndUser) -> None:
    listen(person)
    long_ago = NOW - timedelta(days=1_000)
    used, waits = (factories.fact(person, text, now=long_ago) for text in ("Was tired", "Was ill"))
    type(waits).objects.filter(pk=waits.pk).update(status=Status.PENDING, expires_at=NOW - timedelta(days=1))
    decay.forget(tenant=person.tenant, now=NOW, trigger=DecayPass.Trigger.SCHEDULE, confirm=True)
    assert told("fact_id") == [("fact.forgotten", str(used.pk))]


def test_an_extraction_tells_of_its_facts_and_its_session(person: EndUser, settings: LazySettings) -> None:
    settings.MEMORYHUB_LLM = conf.LLM_RULES
    said = [("user", "Please remember that my dog weighs 7 kg."), ("user", "I want to learn to sail.")]
    session = factories.session(person, said, flush=True)
    with costs_nothing(), transaction.atomic():
        assert consolidation.consolidate(session_id=session.pk, now=NOW)
        transaction.set_rollback(True)
    listen(person)
    assert consolidation.consolidate(session_id=session.pk, now=NOW)
    events = told("person_id")
    assert {event for event, _ in events} >= {"fact.created", "session.extracted"}
    assert {of for _, of in events} == {str(person.pk)}
    delete_session(session_id=session.pk, tenant=None, actor=COMMAND, now=NOW)
    assert [event for (event,) in told()] == ["fact.forgotten"] * [event for event, _ in events].count("fact.created")


def test_nobody_listens_and_nothing_is_asked(person: EndUser) -> None:
    with costs_nothing():
        fact = state(person)
        state(person, "Likes coffee")
        forget_fact(fact_id=fact.pk, tenant=None, actor=COMMAND, now=NOW)
        cases.open_case(tenant=person.tenant, user_id=person.external_id, type="access", actor=COMMAND, now=NOW)
        decay.forget(tenant=person.tenant, now=NOW, trigger=DecayPass.Trigger.SCHEDULE)


def test_an_endpoint_is_told_what_it_wants_and_nothing_of_other_tenants(person: EndUser) -> None:
    endpoint = listen(person, [Event.FACT_FORGOTTEN])
    other = factories.end_user()
    factories.webhook(other.tenant)
    told()
    fact = state(person)
    assert told() == []
    forget_fact(fact_id=fact.pk, tenant=None, actor=COMMAND, now=NOW)
    assert list(WebhookDelivery.objects.values_list("endpoint", flat=True)) == [endpoint.pk]


def test_what_is_undone_is_not_told(person: EndUser) -> None:
    listen(person)
    with transaction.atomic():
        state(person)
        assert WebhookDelivery.objects.exists()
        transaction.set_rollback(True)
    assert told() == []


def test_a_case_is_told_of_without_its_person(person: EndUser) -> None:
    listen(person)
    case = cases.open_case(tenant=person.tenant, user_id=person.external_id, type="access", actor=COMMAND, now=NOW)
    [row] = WebhookDelivery.objects.all()
    assert (row.event, row.end_user) == (Event.CASE_OPENED, None)
    assert row.data == {"case_id": str(case.pk), "type": "access", "due_at": case.due_at.isoformat()}


def test_a_case_near_its_day_is_told_of_once_for_each_level(person: EndUser) -> None:
    listen(person)
    case = factories.privacy_case(person)
    for left, level in ((8, ""), (6, "soon"), (5, ""), (1, "urgent"), (-1, "overdue"), (-2, "")):
        reminders.publish_due_cases(now=case.due_at - timedelta(days=left))
        [*found] = WebhookDelivery.objects.order_by("occurred_at").values_list("data__level", flat=True)
        assert not level or found[-1] == level
    assert found == ["soon", "urgent", "overdue"]


def test_a_daily_cap_is_told_of_once_a_day(person: EndUser, settings: LazySettings) -> None:
    settings.MEMORYHUB_LLM, settings.OPENAI_API_KEY = conf.LLM_OPENAI, "sk-hub"
    listen(person)
    LanguageModel.objects.create(
        tenant=person.tenant, model="small", daily_tokens=10, prompt_price=1, completion_price=1, updated_at=NOW
    )
    spending.count(
        person.tenant, prompt_tokens=20, completion_tokens=0, prices=conf.Prices(Decimal(1), Decimal(1)),
        now=timezone.now(),
    )  # fmt: skip
    for text in ("Hello", "Good day"):
        session = factories.session(person, [("user", text)], session_id=text, flush=True)
        assert session_queue.claim(session.pk) is None
    waiting = SessionQueue.objects.filter(failure=spending.CAPPED)
    assert waiting.count() == 2
    [(event, until)] = told("until")
    ends = waiting[0].due_at
    assert ends
    assert (event, until) == (Event.BUDGET_REACHED, ends.isoformat())


@pytest.mark.django_db(transaction=True)
def test_an_erasure_is_told_of_and_leaves_nothing_else(person: EndUser) -> None:
    listen(person)
    state(person)
    case = factories.privacy_case(person)
    done = running.carry_out(case_id=_approved(case).pk, now=timezone.now(), wait_seconds=30)
    assert (done.state, done.findings.get("hits", {})) == ("completed", {})
    assert told("person_id", "case_id") == [("person.erased", str(person.pk), str(case.pk))]


@pytest.mark.django_db(transaction=True)
def test_an_endpoint_that_is_deleted_at_once_with_a_change_stops_neither(person: EndUser) -> None:
    endpoint = listen(person)
    acts: list[Callable[[], Any]] = [
        lambda: state(person),
        lambda: webhooks.delete_webhook(webhook_id=endpoint.pk, actor=COMMAND, now=NOW),
    ]
    done = at_once(2, lambda index: acts[index]())
    assert not [one for one in done if isinstance(one, Exception)]
    assert not WebhookDelivery.objects.exists()
    assert person.facts.count() == 1


def _approved(case: PrivacyCase) -> PrivacyCase:
    staff = [Actor(kind=ActorKind.COMMAND, id=str(number)) for number in range(2)]
    step: dict[str, Any] = {"case_id": case.pk, "expected_version": None, "now": NOW}
    cases.verify_identity(how="shell", actor=staff[0], **step)
    cases.scope_case(policy="flag", actor=staff[0], **step)
    return cases.approve_case(typed_id="", actor=staff[1], **step)
