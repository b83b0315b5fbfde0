"""Reconciliation under races: workers on connections of their own, gates decide who is first."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest
from django.utils import timezone

from memories import conf
from memories.curation.facts.adding import FactDraft, add_fact
from memories.extraction import consolidation
from memories.facts.writer import FactWriter
from memories.models import EndUser, ExtractionRun, Fact, FactEvidence, ReviewItem, Session
from tests import factories
from tests.conftest import Start
from tests.database import PATIENCE, blocked, elsewhere
from tests.database import held as in_hand
from tests.factories import NOW
from tests.model import HeldAnswer, Model, candidate
from tests.reconcile.reconciling import CITY, SAID, facts, items, only, state

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 16


def consolidate(session: Session) -> ExtractionRun | None:
    return consolidation.consolidate(session_id=session.pk, now=NOW)


def held(model: Model, start: Start, person: EndUser, **answer: Any) -> tuple[HeldAnswer, "Future[ExtractionRun]"]:
    """A worker whose model is about to answer."""
    gate = HeldAnswer(**answer)
    model.answers.append(gate)
    worker = start(consolidate, factories.session(person, SAID, flush=True))
    assert gate.reached.wait(PATIENCE)
    return gate, worker


def ended(gate: HeldAnswer, worker: "Future[ExtractionRun]") -> ExtractionRun:
    gate.opened.set()
    return worker.result(PATIENCE)


def test_many_times_the_same_fact(model: Model, person: EndUser, start: Start) -> None:
    sessions = [factories.session(person, SAID, flush=True) for _ in range(MANY)]
    model.answers = [{"new_facts": [candidate("Drinks tea", quote="drink tea")]} for _ in sessions]
    runs = [worker.result(60) for worker in [start(consolidate, session) for session in sessions]]
    assert {run.status for run in runs} == {"committed"}
    assert sum(run.outcome.get("stored", 0) for run in runs) == 1
    assert sum(run.outcome.get("reinforced", 0) for run in runs) == MANY - 1
    fact = only(person)
    assert (fact.mentions, fact.version, fact.revisions.count(), fact.confidence) == (MANY, MANY, MANY, 1.0)
    assert FactEvidence.objects.filter(fact=fact).count() == MANY


def test_a_key_states_the_same_first(model: Model, person: EndUser) -> None:
    """The worker waits for the key's transaction, and reinforces what that leaves."""
    draft = FactDraft("drinks TEA", "preference")
    model.say(candidate("Drinks tea"))
    session = factories.session(person, SAID, flush=True)
    with in_hand(lambda: add_fact(end_user=person, draft=draft, actor=factories.COMMAND, now=NOW)):
        worker = blocked(lambda: consolidate(session))
    run = worker.result(PATIENCE)
    assert run
    assert run.outcome == {"reinforced": 1}
    assert (only(person).content, only(person).mentions) == ("drinks TEA", 2)


def test_a_text_that_somebody_stored_after_the_look_is_reinforced(
    model: Model, person: EndUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes without the person's lock fails no batch: the constraint says that the text is there."""
    make = FactWriter._make

    def make_late(writer: FactWriter, *what: Any) -> Any:
        monkeypatch.setattr(FactWriter, "_make", make)
        elsewhere(lambda: factories.fact(person, "drinks TEA", category="preference"))
        return make(writer, *what)

    monkeypatch.setattr(FactWriter, "_make", make_late)
    model.say(candidate("Drinks tea"))
    run = consolidate(factories.session(person, SAID, flush=True))
    assert run
    assert (run.outcome, only(person).mentions) == ({"reinforced": 1}, 2)


@pytest.mark.parametrize(("sure", "at_once"), [((0.9, 0.8), True), ((0.9, 0.9), False), ((0.9, 0.8), False)])
def test_two_batches_contradict_each_other(
    model: Model, person: EndUser, start: Start, sure: tuple[float, float], at_once: bool
) -> None:
    said = [("Leiden", "live in Leiden", sure[0]), ("Delft", "or Delft", sure[1])]
    workers = [
        held(
            model, start, person,
            new_facts=[candidate(f"Lives in {city}", **CITY, value=city, quote=quote, confidence=confidence)],
        )
        for city, quote, confidence in said
    ]  # fmt: skip
    for gate, _ in workers if at_once else []:
        gate.opened.set()
    assert [ended(*worker).status for worker in workers] == ["committed", "committed"]
    served = only(person, status="active")
    (other,) = [fact for fact in facts(person) if fact != served]
    assert other.status in ("superseded", "pending")
    if other.status == "superseded":
        assert (other.superseded_by, items(person)) == (served, [])
    else:
        assert items(person) == [("conflict", "less_sure", other, served)]
    if not at_once:
        assert (served.value, other.status) == ("Delft", "superseded") if sure[1] >= sure[0] else ("Leiden", "pending")


def test_both_stay_without_the_rule(model: Model, person: EndUser, start: Start) -> None:
    """The control: without a key the two are just two facts."""
    workers = [held(model, start, person, new_facts=[candidate(f"Lives in {city}")]) for city in ("Leiden", "Delft")]
    for worker in workers:
        ended(*worker)
    assert len(facts(person, status="active")) == 2


def restrict(person: EndUser) -> None:
    EndUser.objects.filter(pk=person.pk).update(restricted_at=timezone.now())


def erase(person: EndUser) -> None:
    EndUser.objects.filter(pk=person.pk).update(generation=2)


def nothing(_: EndUser) -> None:
    pass


@pytest.mark.parametrize(
    ("meanwhile", "status"), [(restrict, "discarded"), (erase, "discarded"), (nothing, "committed")]
)
def test_the_person_is_restricted_or_erased_meanwhile(
    model: Model, person: EndUser, start: Start, meanwhile: Callable[[EndUser], None], status: str
) -> None:
    rows = [factories.fact(person, "Lives in Paris", **CITY, value="Paris"), factories.fact(person, "Drinks coffee")]
    before = [state(row) for row in rows]
    worker = held(
        model, start, person,
        new_facts=[candidate("Lives in Leiden", **CITY, value="Leiden"), candidate("Drinks cocoa", evidence=[2])],
        removed=[{"fact": number, "reason": "said so", "evidence": [1]} for number in (1, 2)],
    )  # fmt: skip
    meanwhile(person)
    assert ended(*worker).status == status
    is_untouched = [state(row) for row in rows] == before
    assert (is_untouched, Fact.objects.count() == 2, ReviewItem.objects.exists()) == (
        (True, True, False) if status == "discarded" else (True, False, True)
    )


def test_an_operators_open_change_is_waited_for(model: Model, person: EndUser) -> None:
    """The worker asks for the lock while the operator's transaction has it, and sees what that leaves."""
    fact = factories.fact(person, "Lives in Paris", **CITY, value="Paris")
    newcomer = candidate("Lives in Leiden", **CITY, value="Leiden", quote="live in Leiden")
    model.say(newcomer, removed=[{"fact": 1, "reason": "moved", "evidence": [1]}])
    session = factories.session(person, SAID, flush=True)
    with in_hand(lambda: Fact.objects.filter(pk=fact.pk).update(pinned=True)):
        worker = blocked(lambda: consolidate(session))
    run = worker.result(PATIENCE)
    assert run
    assert run.outcome == {"conflicts": 1, "removal_conflicts": 1}
    fact.refresh_from_db()
    assert (fact.status, fact.version) == ("active", 1)
    waiting = only(person, status="pending")
    asked = {(reason, about, against) for _, reason, about, against in items(person)}
    assert asked == {("operators_word", waiting, fact), ("operators_word", None, fact)}


def test_capacity_waits_for_nobody(model: Model, person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an operator has in hand is passed over; the next batch archives it."""
    hub_rules = conf.hub_rules
    monkeypatch.setattr(conf, "hub_rules", lambda: replace(hub_rules(), capacity=1))
    weak = factories.fact(person, "weak", confidence=0.1)
    with in_hand(lambda: Fact.objects.select_for_update().get(pk=weak.pk)):
        model.say(candidate("Drinks tea"))
        assert consolidate(factories.session(person, SAID, flush=True))
    assert len(facts(person, status="active")) == 2
    model.say(candidate("Drinks tea daily", confidence=1.0, quote="drink tea"))
    assert consolidate(factories.session(person, SAID, flush=True))
    assert [fact.content for fact in facts(person, status="active")] == ["Drinks tea daily"]
