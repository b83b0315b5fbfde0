"""Upkeep while others change the same person, and workers that die: the others are on connections of their own."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from memories import conf, invariants
from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.facts.editing import edit_fact
from memories.curation.facts.forgetting import forget_fact
from memories.exceptions import LeaseLost
from memories.facts import review_items
from memories.facts.writer import FactWriter
from memories.forgetting import upkeep, upkeep_rows
from memories.models import ActorKind, DecayPass, EndUser, Fact, FactRevision
from memories.queue import background_calls, nightly
from tests import factories
from tests.database import PATIENCE, at_once, blocked, elsewhere, held
from tests.factories import NOW
from tests.forgetting.upkeeping import DAY, counts, many, merged, night, old, passed, stale, switch
from tests.model import Model

pytestmark = pytest.mark.django_db(transaction=True)
Act = Callable[[Fact], Any]


@pytest.fixture(autouse=True)
def rules(monkeypatch: pytest.MonkeyPatch) -> conf.Rules:
    return switch(monkeypatch)


class Killed(BaseException):
    """As by kill -9: nothing that the code does about errors."""


def operator() -> Actor:
    return Actor(kind=ActorKind.OPERATOR, id="1")


def edit(fact: Fact) -> Fact:
    said = {"content": "Was set right"}
    return edit_fact(fact_id=fact.pk, tenant=None, changes=said, actor=operator(), now=NOW + DAY)


def pin(fact: Fact) -> None:
    with transaction.atomic():
        row = Fact.objects.select_for_update().get(pk=fact.pk)
        changes = Changes(actor=operator(), now=NOW)
        with changes.changing(row, "pin"):
            row.pinned = True


def forget(fact: Fact) -> None:
    forget_fact(fact_id=fact.pk, tenant=None, actor=operator(), now=NOW)


def recall(fact: Fact) -> None:
    Fact.objects.filter(pk=fact.pk).update(last_recalled_at=NOW)


def restrict(fact: Fact) -> None:
    EndUser.objects.filter(pk=fact.end_user_id).update(restricted_at=NOW)


def erase(fact: Fact) -> None:
    EndUser.objects.filter(pk=fact.end_user_id).update(generation=2)


def delete_all(fact: Fact) -> None:
    EndUser.objects.filter(pk=fact.end_user_id).delete()


def meanwhile(model: Model, act: Act, fact: Fact, answer: dict[str, Any]) -> None:
    """While the model is asked somebody else acts, and commits."""

    def answered() -> dict[str, Any]:
        assert not connection.in_atomic_block
        elsewhere(lambda: act(fact))
        return answer

    model.answers.append(answered)


def status(fact: Fact) -> str:
    return Fact.objects.get(pk=fact.pk).status


@pytest.mark.parametrize("act", [edit, pin, recall, forget])
def test_a_stale_fact_that_changed_meanwhile_is_left_alone(person: EndUser, model: Model, act: Act) -> None:
    changed, other, _ = old(person)
    meanwhile(model, act, changed, stale(1, 2))
    row = night(person)
    assert counts(row) == {"reviewed": 1, "stale": 1, "upkeep_refused": 1}
    assert not FactRevision.objects.filter(fact=changed, actor_kind="decay").exists()
    assert status(changed) == ("trashed" if act is forget else "active")
    assert status(other) == "archived"
    assert not invariants.check()


@pytest.mark.parametrize("act", [edit, pin, forget])
def test_a_text_that_was_made_of_it_is_not_used(person: EndUser, model: Model, act: Act) -> None:
    facts = many(person, 8)
    answer = merged(1, 2)
    other = merged(3, 4, content="Likes tea a lot")
    meanwhile(model, act, facts[0], {"stale": [], "merged": answer["merged"] + other["merged"]})
    assert counts(night(person)) == {"reviewed": 1, "merged": 1, "upkeep_refused": 1}
    assert [status(fact) for fact in facts[1:4]] == ["active", "superseded", "superseded"]
    assert not Fact.objects.filter(content="Likes many kinds of tea").exists()
    assert not invariants.check()


def test_a_recall_is_no_reason_against_a_merge(person: EndUser, model: Model) -> None:
    facts = many(person, 8)
    meanwhile(model, recall, facts[0], merged(1, 2))
    assert counts(night(person)) == {"reviewed": 1, "merged": 1}
    assert Fact.objects.get(content="Likes many kinds of tea").last_recalled_at == NOW


@pytest.mark.parametrize("act", [restrict, erase, delete_all])
def test_of_who_was_erased_or_restricted_meanwhile_nothing_is_written(person: EndUser, model: Model, act: Act) -> None:
    facts = old(person)
    meanwhile(model, act, facts[0], stale(1, 2))
    assert counts(night(person)) == {"reviewed": 1}
    assert not FactRevision.objects.filter(actor_kind="decay").exists()
    assert not Fact.objects.exclude(status="active").exists()
    assert not EndUser.objects.exclude(upkept_at=None).exists()


def test_of_who_was_restricted_before_the_call_nothing_is_sent(
    person: EndUser, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = old(person)

    def admitted(*_: Any, **__: Any) -> bool:
        restrict(facts[0])
        return True

    monkeypatch.setattr(background_calls, "may_ask", admitted)
    assert counts(night(person)) == {"reviewed": 1}
    assert model.prompts == []


def test_the_commit_waits_for_an_operator_and_heeds_the_outcome(person: EndUser, model: Model) -> None:
    changed, other, _ = old(person)
    model.answers.append(stale(1, 2))
    with held(lambda: edit(changed)):
        worker = blocked(lambda: counts(night(person)))
    assert worker.result(PATIENCE) == {"reviewed": 1, "stale": 1, "upkeep_refused": 1}
    assert [status(fact) for fact in (changed, other)] == ["active", "archived"]


def test_an_operator_waits_for_the_commit(person: EndUser, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, *_ = old(person)
    model.answers.append(stale(1))
    begun, enough = threading.Event(), threading.Event()
    settle = review_items.close_answered_items

    def late(*args: Any, **named: Any) -> Any:
        begun.set()
        assert enough.wait(PATIENCE)
        return settle(*args, **named)

    monkeypatch.setattr(review_items, "close_answered_items", late)
    outcomes: list[Any] = []
    worker = threading.Thread(target=lambda: outcomes.extend(at_once(1, lambda _: counts(night(person)))))
    worker.start()
    assert begun.wait(PATIENCE)
    monkeypatch.setattr(review_items, "close_answered_items", settle)
    waiting = blocked(lambda: forget(gone))
    enough.set()
    worker.join(PATIENCE)
    waiting.result(PATIENCE)
    assert outcomes == [{"reviewed": 1, "stale": 1}]
    assert list(gone.revisions.values_list("verb", flat=True)) == ["forget", "remove", "extract"]


def test_who_lost_the_lease_writes_nothing(person: EndUser, model: Model) -> None:
    facts = old(person)
    meanwhile(model, lambda _: upkeep.begin(passed(person, NOW + DAY)), facts[0], stale(1))
    with pytest.raises(LeaseLost):
        night(person)
    assert {status(fact) for fact in facts} == {"active"}
    person.refresh_from_db()
    assert person.upkept_at is None


class TestKilled:
    def test_while_the_model_is_asked(self, person: EndUser, model: Model) -> None:
        """The night goes on with the others; the next one asks again."""
        other = factories.end_user(person.tenant)
        for one in (person, other):
            old(one)

        def die() -> dict[str, Any]:
            raise Killed

        model.answers += [die, stale(1), stale(1)]
        row = _killed(person, model)
        assert [upkeep.run_slice(now=NOW, seconds=60), counts(row)] == [False, {"reviewed": 2, "stale": 1}]
        assert len(model.prompts) == 2
        assert Fact.objects.filter(end_user=person, status="active").count() == 3
        assert counts(night(person, NOW + DAY)) == {"reviewed": 1, "stale": 1}
        assert Fact.objects.filter(end_user=person, status="active").count() == 2

    @pytest.mark.parametrize(
        ("where", "before"),
        [(upkeep_rows.UpkeepWriter, "_remove"), (upkeep_rows.UpkeepWriter, "_merge"), (FactWriter, "cite")],
    )
    def test_in_the_commit(
        self, person: EndUser, model: Model, monkeypatch: pytest.MonkeyPatch, where: type, before: str
    ) -> None:
        old(person)
        many(person, 8)
        answer = {**merged(4, 5), "stale": stale(1)["stale"]}
        facts = list(Fact.objects.order_by("pk").values())
        model.answers += [answer, answer]

        def die(*args: Any, **named: Any) -> None:
            raise Killed

        with monkeypatch.context() as dying:
            dying.setattr(where, before, die)
            row = _killed(person, model)
        assert list(Fact.objects.order_by("pk").values()) == facts
        assert upkeep.run_slice(now=NOW + timedelta(hours=1), seconds=60) is False
        assert counts(row) == {"reviewed": 1}
        assert counts(night(person, NOW + DAY)) == {"reviewed": 1, "stale": 1, "merged": 1}
        assert not invariants.check()


def test_two_workers_ask_once(person: EndUser, model: Model) -> None:
    old(person)
    model.answers += [stale(1), stale(1)]
    upkeep.begin(passed(person))
    assert at_once(4, lambda _: upkeep.run_slice(now=NOW, seconds=60)) == [False] * 4
    assert len(model.prompts) == 1
    assert Fact.objects.filter(status="archived").count() == 1


def _killed(person: EndUser, model: Model) -> DecayPass:
    """A night whose worker died; its lease is over."""
    row = passed(person)
    with pytest.raises(Killed):
        upkeep.run(row=row, now=NOW)
    assert nightly.unfinished(DecayPass.objects.in_upkeep()) == []
    DecayPass.objects.filter(pk=row.pk).update(lease_until=NOW - DAY)
    assert nightly.unfinished(DecayPass.objects.in_upkeep()) == [row]
    return row
