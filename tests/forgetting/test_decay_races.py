"""Passes of forgetting beside edits, mentions, recalls and each other: on connections of their own."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from memories.curation.change_sets import Changes
from memories.curation.facts.editing import correct_fact, edit_fact
from memories.curation.facts.restoring import restore_fact
from memories.exceptions import Conflict, DecayRunning
from memories.forgetting import decay, decay_passes, trash
from memories.models import DecayPass, EndUser, Fact, FactRevision, Status, Tenant
from memories.retrieval import recalls
from tests import factories
from tests.database import PATIENCE, Gate, at_once, blocked, elsewhere, held
from tests.factories import COMMAND, NOW

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = NOW - timedelta(days=1_000)
Act = Callable[[Fact], Any]


@pytest.fixture
def fact(person: EndUser) -> Fact:
    return factories.fact(person, now=LONG_AGO)


def forget(tenant: Tenant) -> DecayPass:
    return decay.forget(tenant=tenant, now=NOW, trigger=DecayPass.Trigger.COMMAND)


def edit(fact: Fact, **changes: Any) -> None:
    edit_fact(fact_id=fact.pk, tenant=None, changes=changes, actor=COMMAND, now=NOW)


def recall(fact: Fact) -> None:
    recalls.note("fact", [fact.pk], now=NOW)
    assert recalls.flush(now=NOW) == 1


def confirm(fact: Fact) -> None:
    """As a mention does."""
    with transaction.atomic():
        row = Fact.objects.select_for_update(no_key=True).select_related("tenant").get(pk=fact.pk)
        changes = Changes(actor=COMMAND, now=NOW)
        with changes.changing(row, "reinforce"):
            row.last_confirmed_at = NOW


KEEPING: dict[str, Act] = {
    "recalled": recall,
    "pinned": lambda fact: edit(fact, pinned=True),
    "locked": lambda fact: edit(fact, locked=True),
    "said again": confirm,
    "corrected": lambda fact: correct_fact(
        fact_id=fact.pk, tenant=None, content="Lives in Delft", reason="moved", actor=COMMAND, now=NOW
    ),
}


Meanwhile = Callable[[Tenant, Callable[[], Any]], DecayPass]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """A pass, with something done after it has found what is due, and before it locks any of it."""
    gate, steps = Gate(), trash._steps

    def gated(*args: Any, **named: Any) -> Iterator[Any]:
        for step in steps(*args, **named):
            gate.stop()
            yield step

    monkeypatch.setattr(trash, "_steps", gated)
    return lambda tenant, act: gate.meanwhile(lambda: forget(tenant), act)


@pytest.mark.parametrize("act", KEEPING.values(), ids=KEEPING.keys())
def test_what_is_kept_between_finding_and_taking_stays(fact: Fact, meanwhile: Meanwhile, act: Act) -> None:
    other = factories.fact(fact.end_user, "Nobody cares", now=LONG_AGO)
    done = meanwhile(fact.tenant, lambda: act(fact))
    assert done.counts["facts"] == 1
    assert [Fact.objects.get(pk=one.pk).status for one in (fact, other)] == ["active", "trashed"]


def test_without_any_of_it_it_goes(fact: Fact, meanwhile: Meanwhile) -> None:
    done = meanwhile(fact.tenant, lambda: None)
    assert (done.counts["facts"], Fact.objects.get().status) == (1, "trashed")


def test_a_fact_that_was_restored_is_not_deleted(person: EndUser, meanwhile: Meanwhile) -> None:
    old, other = (
        factories.fact(person, text, status=Status.TRASHED, trashed_at=LONG_AGO) for text in ("Likes tea", "Likes jazz")
    )
    done = meanwhile(person.tenant, lambda: restore_fact(fact_id=old.pk, tenant=None, actor=COMMAND, now=NOW))
    assert done.counts["purged"] == 1
    assert list(Fact.objects.values_list("pk", "status")) == [(old.pk, "active")]
    assert not Fact.objects.filter(pk=other.pk).exists()


def test_a_person_restricted_meanwhile_is_left_alone(fact: Fact, meanwhile: Meanwhile) -> None:
    def restrict() -> None:
        EndUser.objects.update(restricted_at=NOW)

    done = meanwhile(fact.tenant, restrict)
    assert (done.counts["facts"], Fact.objects.get().status) == (0, "active")


def test_a_person_erased_meanwhile_is_no_trouble(fact: Fact, meanwhile: Meanwhile) -> None:
    done = meanwhile(fact.tenant, lambda: EndUser.objects.all().delete())
    assert (done.state, done.counts["facts"]) == ("done", 0)


@pytest.mark.parametrize("model", [EndUser, Fact])
def test_what_somebody_holds_is_left_to_the_next_pass(fact: Fact, model: Any) -> None:
    key = fact.end_user_id if model is EndUser else fact.pk
    free = factories.fact(factories.end_user(fact.tenant), "Likes jazz", now=LONG_AGO)
    with held(lambda: model.objects.select_for_update(no_key=True).get(pk=key)):
        assert elsewhere(lambda: forget(fact.tenant)).counts["facts"] == 1
        assert [Fact.objects.get(pk=one.pk).status for one in (fact, free)] == ["active", "trashed"]
    assert forget(fact.tenant).counts["facts"] == 1
    assert Fact.objects.get(pk=fact.pk).status == "trashed"


def test_an_edit_waits_for_the_step_and_then_finds_the_trash(fact: Fact) -> None:
    """Whoever comes second sees what the first has done."""
    row = decay_passes.begin(tenant=fact.tenant, trigger=DecayPass.Trigger.COMMAND, as_of=NOW, now=NOW)
    work = decay_passes.claim(row)
    assert work
    faded_facts = trash.FADED[0]
    with held(lambda: list(trash.trash(work, faded_facts, now=NOW))):
        waiting = blocked(lambda: edit(fact, pinned=True))
    with pytest.raises(Conflict):
        waiting.result(PATIENCE)
    fact.refresh_from_db()
    assert (fact.status, fact.pinned, fact.version) == ("trashed", False, 2)


def test_of_passes_at_once_one_runs_and_the_others_say_so(fact: Fact, meanwhile: Meanwhile) -> None:
    def second() -> None:
        with pytest.raises(DecayRunning):
            forget(fact.tenant)

    assert meanwhile(fact.tenant, second).counts["facts"] == 1
    assert (DecayPass.objects.count(), FactRevision.objects.count()) == (1, 1)


def test_eight_at_once_take_each_memory_once(person: EndUser) -> None:
    facts = [factories.fact(person, f"Number {number}", now=LONG_AGO) for number in range(30)]
    outcomes = at_once(8, lambda _: forget(person.tenant))
    assert {type(outcome) for outcome in outcomes} <= {DecayPass, DecayRunning}
    # Whoever is quicker carries out the pass that another began.
    assert sum(one.counts["facts"] for one in DecayPass.objects.all()) == 30
    assert FactRevision.objects.count() == len(facts)
    assert set(Fact.objects.values_list("version", "status")) == {(2, "trashed")}


def test_workers_begin_one_pass_a_night(person: EndUser) -> None:
    assert sorted(at_once(6, lambda _: decay.begin_due(now=NOW)), key=str) == [0, 0, 0, 0, 0, 1]
    assert DecayPass.objects.count() == 1


def test_workers_share_what_is_open(person: EndUser) -> None:
    for _ in range(4):
        factories.fact(factories.end_user(), now=LONG_AGO)
    decay.begin_due(now=NOW)
    at_once(4, lambda _: decay.run_slice(now=NOW, seconds=60))
    assert set(DecayPass.objects.values_list("state", flat=True)) == {"done"}
    assert FactRevision.objects.count() == 4


def test_passes_and_mentions_in_a_crowd(person: EndUser) -> None:
    """Whatever comes first, a fact is either active with its mention or in the trash, with a revision for each."""
    facts = [factories.fact(person, f"Number {number}", now=LONG_AGO) for number in range(12)]

    def act(index: int) -> None:
        if index % 2:
            confirm(facts[index])
        else:
            forget(person.tenant)

    at_once(12, act)
    for fact in facts:
        fact.refresh_from_db()
        assert fact.version == 1 + fact.revisions.count()
        assert (fact.status == "trashed") == (fact.trashed_at is not None)
