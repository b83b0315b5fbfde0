"""Facts are dated by when what they rest on was said, however late it arrives; through whole attempts."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories import conf
from memories.capture import ingest
from memories.capture.ingest import PostedMessage
from memories.extraction import consolidation
from memories.forgetting import decay
from memories.models import DecayPass, EndUser, ExtractionRun, Session, Turn
from memories.models.memories.visibility import Viewer
from memories.retrieval import visible_facts
from memories.retrieval.search import FACT, SearchFilters, SearchRequest, search
from tests import factories
from tests.model import Model, candidate
from tests.reconcile.reconciling import CITY, only

THEN = datetime(2023, 3, 8, 22, 30, tzinfo=UTC)
DAY = timedelta(days=1)


def told(person: EndUser, name: str, *said: tuple[datetime | None, str]) -> Session:
    """A conversation in which the person said this, imported now."""
    messages = [PostedMessage(role="user", content=text, timestamp=at) for at, text in said]
    receipt = ingest.store_turns(
        tenant=person.tenant,
        user_id=person.external_id,
        session_id=name,
        agent_id="",
        messages=messages,
        flush=True,
    )
    assert receipt.session
    return receipt.session


def extract(model: Model, session: Session, *new_facts: Any, **rest: Any) -> ExtractionRun:
    model.say(*new_facts, **rest)
    run = consolidation.consolidate(session_id=session.pk, now=timezone.now())
    assert run
    assert run.status == "committed", run.failure
    return run


def leiden(*evidence: int, **over: Any) -> dict[str, Any]:
    given = {"quote": "live in Leiden", "evidence": list(evidence) or [1], "value": "Leiden", **CITY, **over}
    return candidate("Lives in Leiden", **given)


def test_a_fact_has_the_times_of_its_turns_and_of_its_arrival(model: Model, person: EndUser) -> None:
    before = timezone.now()
    session = told(person, "s1", (THEN, "I live in Leiden"), (THEN + DAY, "Yes, I live in Leiden"), (None, "Hello"))
    extract(model, session, leiden(1, 2, category="context"))
    fact = only(person)
    assert (fact.first_observed_at, fact.valid_from, fact.last_confirmed_at) == (THEN, THEN, THEN + DAY)
    assert before < fact.created_at == fact.updated_at
    assert fact.decay_score < fact.importance / 2
    assert "Today: 2023-03-08" not in model.prompts[0]


def test_a_turn_without_a_time_or_with_one_of_tomorrow_was_said_when_it_arrived(model: Model, person: EndUser) -> None:
    for number, at in enumerate([None, timezone.now() + DAY]):
        session = told(person, f"s{number}", (at, "I live in Leiden"))
        extract(model, session, leiden())
        turn, fact = session.turns.get(), only(person)
        assert fact.last_confirmed_at == turn.created_at == turn.sent_at
    assert (fact.first_observed_at, fact.mentions) == (Turn.objects.earliest("created_at").created_at, 2)


@pytest.mark.parametrize(("zone", "day"), [("", "2023-03-08 (Wednesday), UTC"), ("Asia/Shanghai", "2023-03-09")])
def test_the_model_is_told_the_day_of_the_conversation(model: Model, person: EndUser, zone: str, day: str) -> None:
    person.time_zone = zone
    person.save()
    extract(model, told(person, "s1", (THEN - DAY, "Hello"), (THEN, "I live in Leiden")), leiden(2))
    assert f"Today: {day}" in model.prompts[0]


def test_a_later_import_of_an_earlier_mention_dates_it_back_only(model: Model, person: EndUser) -> None:
    extract(model, told(person, "s1", (THEN, "I live in Leiden")), leiden())
    extract(model, told(person, "s2", (THEN - 90 * DAY, "I live in Leiden")), leiden())
    fact = only(person)
    assert (fact.first_observed_at, fact.valid_from) == (THEN - 90 * DAY, THEN - 90 * DAY)
    assert (fact.last_confirmed_at, fact.mentions) == (THEN, 2)
    revision = fact.revisions.get(version=2)
    assert revision.before["valid_from"] == THEN.isoformat()


def test_what_is_temporary_lives_from_when_it_was_said(model: Model, person: EndUser) -> None:
    temporary = leiden(durability="temporary", expires_in_days=14)
    extract(model, told(person, "s1", (THEN, "I live in Leiden for two weeks")), temporary)
    assert only(person).expires_at == THEN + 14 * DAY
    # An older mention says nothing of how long it lives now.
    extract(model, told(person, "s2", (THEN - 90 * DAY, "I live in Leiden")), leiden())
    assert only(person).expires_at == THEN + 14 * DAY
    extract(model, told(person, "s3", (THEN + DAY, "I live in Leiden for good")), leiden())
    assert only(person).expires_at is None


def test_nothing_imported_is_forgotten_within_thirty_days(model: Model, person: EndUser) -> None:
    fading = leiden(category="context", key=None, value=None, importance=0.3)
    extract(model, told(person, "s1", (THEN, "I live in Leiden")), fading)
    arrived = only(person).created_at
    command = DecayPass.Trigger.COMMAND
    decay.forget(tenant=person.tenant, now=arrived + 29 * DAY, trigger=command)
    assert only(person).status == "active"
    decay.forget(tenant=person.tenant, now=arrived + 31 * DAY, trigger=command)
    assert only(person).status == "trashed"


def test_an_imported_history_is_found_by_until(model: Model, person: EndUser) -> None:
    extract(model, told(person, "s1", (THEN, "I live in Leiden")), leiden())
    extract(model, told(person, "s2", (None, "I drink tea")), candidate("Drinks tea", quote="drink tea", evidence=[1]))

    def found(kind: str, **by: Any) -> list[str]:
        wanted = SearchRequest(person.external_id, "Leiden or tea", kinds=[kind], filters=SearchFilters(**by))
        return sorted(one.text for one in search(tenant=person.tenant, search=wanted, now=timezone.now()).results)

    for kind, old, new in ((FACT, "Lives in Leiden", "Drinks tea"), ("turn", "I live in Leiden", "I drink tea")):
        assert found(kind) == [new, old]
        assert found(kind, until=THEN + DAY) == [old]
        assert found(kind, since=THEN + DAY) == [new]
        assert found(kind, until=THEN) == []


def test_a_context_without_a_query_shows_what_was_said_last(person: EndUser) -> None:
    early = factories.fact(person, "Said early, imported late", now=THEN + DAY, first_observed_at=THEN)
    late = factories.fact(person, "Said late", now=THEN, first_observed_at=THEN + DAY)
    served = visible_facts.served(person, Viewer(), rules=conf.rules(person.tenant), now=timezone.now())
    assert [one.id for one in served] == [late.pk, early.pk]
