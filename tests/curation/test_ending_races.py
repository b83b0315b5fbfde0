"""Two endings of one fact on two connections, and an erasure of its person while an ending waits for review."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from memories import invariants
from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.forgetting import delete_fact, forget_fact
from memories.curation.facts.proposing import ask_to_forget
from memories.curation.review.decisions import approve_item
from memories.exceptions import NotFound
from memories.models import (
    ActorKind,
    AuditEvent,
    CaseState,
    EndUser,
    Fact,
    FactRefusal,
    FactRevision,
    ReviewItem,
    Status,
)
from memories.privacy import running
from tests import factories
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import NOW, STAFF
from tests.privacy.erased_world import erasure, stand_in

pytestmark = pytest.mark.django_db(transaction=True)
KEY, AGENT = Actor(kind=ActorKind.KEY, id="k-1"), Actor(kind=ActorKind.KEY, id="k-2")
Ending = Callable[[], Any]


@pytest.fixture
def fact(transactional_db: None) -> Fact:
    person = factories.end_user()
    draft = FactDraft(content="Lives in Leiden", category="identity", key="city", value="Leiden")
    return add_fact(end_user=person, draft=draft, actor=KEY, now=NOW).row


@pytest.fixture(autouse=True)
def ended_sound(transactional_db: None) -> Any:
    yield
    assert invariants.check() == []


def forgets(fact: Fact) -> Ending:
    return lambda: forget_fact(fact_id=fact.pk, tenant=fact.tenant, actor=KEY, now=NOW)


def deletes(fact: Fact) -> Ending:
    return lambda: delete_fact(fact_id=fact.pk, tenant=fact.tenant, actor=KEY, now=NOW)


def test_of_many_that_forget_it_at_once_one_does(fact: Fact) -> None:
    outcomes = at_once(4, lambda _: forgets(fact)())
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Fact", "NoneType", "NoneType", "NoneType"]
    assert FactRevision.objects.filter(fact=fact, verb="forget").count() == 1
    assert AuditEvent.objects.filter(verb="forget").count() == 1
    # Its text and its key.
    assert FactRefusal.objects.count() == 2


def test_of_two_that_delete_it_one_finds_it(fact: Fact) -> None:
    with held(deletes(fact)):
        second = blocked(deletes(fact))
    with pytest.raises(NotFound):
        second.result(PATIENCE)
    assert not Fact.objects.exists()
    assert AuditEvent.objects.filter(verb="delete").count() == 1
    assert FactRefusal.objects.count() == 2


@pytest.mark.parametrize("first", ["forget", "delete"])
def test_forgotten_and_deleted_at_once_no_text_stays(fact: Fact, first: str) -> None:
    endings = [forgets(fact), deletes(fact)]
    begun, waits = endings if first == "forget" else reversed(endings)
    with held(begun):
        second = blocked(waits)
    if first == "forget":
        assert second.result(PATIENCE) is None
    else:
        with pytest.raises(NotFound):
            second.result(PATIENCE)
    assert not Fact.objects.exists()
    assert not FactRevision.objects.exists()
    assert FactRefusal.objects.count() == 2


def test_an_ending_that_is_asked_for_while_another_ends_it_asks_nothing(fact: Fact) -> None:
    with held(forgets(fact)):
        asked = blocked(lambda: asks(fact))
    assert type(asked.exception(PATIENCE)).__name__ == "Conflict"
    assert not ReviewItem.objects.exists()


def asks(fact: Fact) -> bool:
    return ask_to_forget(fact_id=fact.pk, tenant=fact.tenant, actor=AGENT, now=NOW)


class TestErasure:
    """An agent asked that the fact be forgotten; nobody has decided."""

    @pytest.fixture
    def item(self, fact: Fact, monkeypatch: pytest.MonkeyPatch) -> ReviewItem:
        stand_in(monkeypatch)
        assert asks(fact) is False
        assert Fact.objects.get().status == Status.ACTIVE
        return ReviewItem.objects.get()

    def erase(self, person: EndUser) -> None:
        case = running.carry_out(case_id=erasure(person).pk, now=timezone.now(), wait_seconds=PATIENCE)
        assert case.state == CaseState.COMPLETED, (case.failure, case.findings)

    def decide(self, item: ReviewItem) -> Any:
        return approve_item(item_id=item.pk, actor=STAFF, now=NOW)

    def nothing_is_left(self) -> bool:
        return not any(model.objects.exists() for model in (EndUser, Fact, FactRevision, ReviewItem, FactRefusal))

    def test_takes_what_waits_along(self, item: ReviewItem, fact: Fact) -> None:
        self.erase(fact.end_user)
        assert self.nothing_is_left()
        with pytest.raises(NotFound):
            self.decide(item)
        with pytest.raises(NotFound):
            asks(fact)

    def test_waits_for_a_decision_that_is_under_way(self, item: ReviewItem, fact: Fact) -> None:
        with held(lambda: self.decide(item)):
            erased = blocked(lambda: self.erase(fact.end_user))
        erased.result(PATIENCE)
        assert self.nothing_is_left()

    def test_a_request_that_waited_for_it_asks_nothing(self, item: ReviewItem, fact: Fact) -> None:
        with held(lambda: EndUser.objects.filter(pk=fact.end_user_id).delete()):
            late = [blocked(lambda: self.decide(item)), blocked(lambda: asks(fact))]
        for one in late:
            with pytest.raises(NotFound):
                one.result(PATIENCE)
        assert self.nothing_is_left()
