"""Two at one item, and what happens to its facts and its person meanwhile: on two connections, with gates."""

from typing import Any

import pytest
from django.db import transaction

from memories import audit, invariants
from memories.audit import Actor
from memories.curation.facts.editing import edit_fact
from memories.curation.facts.forgetting import delete_fact
from memories.curation.review.deciding import ExpectedVersions
from memories.curation.review.decisions import approve_item, reject_item
from memories.curation.review.undo import undo_decision
from memories.exceptions import Conflict, NotFound, PreconditionFailed
from memories.facts import review_items
from memories.models import ActorKind, AuditEvent, EndUser, Fact, ReviewItem
from tests import factories
from tests.curation.test_review_decisions import conflict, duplicate, fresh, statuses
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import LATER, NOW

pytestmark = pytest.mark.django_db(transaction=True)
ANA, BEN = (Actor(kind=ActorKind.OPERATOR, id=number) for number in ("7", "8"))


@pytest.fixture
def item(db: None) -> ReviewItem:
    return conflict()(factories.end_user())


def seen(item: ReviewItem) -> ExpectedVersions:
    """As the operators see it now."""
    shown = fresh(item)
    return ExpectedVersions(shown.version, {fact.pk: fact.version for fact in (shown.fact, shown.known) if fact})


def approve(item: ReviewItem, actor: Actor = ANA, **over: Any) -> ReviewItem:
    return approve_item(item_id=item.pk, actor=actor, now=LATER, **over)


def reject(item: ReviewItem, actor: Actor = BEN, **over: Any) -> ReviewItem:
    return reject_item(item_id=item.pk, actor=actor, now=LATER, reason="No", **over)


def extraction_changes(item: ReviewItem, which: str, **fields: Any) -> Fact:
    """As a commit of an extraction does: the person, the fact, then the items."""
    with transaction.atomic():
        EndUser.objects.select_for_update(no_key=True).get(pk=item.end_user_id)
        fact = Fact.objects.select_for_update(no_key=True).get(pk=getattr(item, f"{which}_id"))
        before = audit.snapshot(fact)
        for name, value in {"version": fact.version + 1, **fields}.items():
            setattr(fact, name, value)
        fact.save()
        audit.revise(fact=fact, verb="reinforce", actor=factories.COMMAND, before=before, reason="", now=NOW)
        review_items.close_answered_items([fact.pk], now=NOW)
    return fact


def test_the_second_of_two_operators_is_told_of_the_first(item: ReviewItem) -> None:
    with held(lambda: approve(item, expected=seen(item))):
        second = blocked(lambda: reject(item, expected=seen(item)))
    with pytest.raises(Conflict, match="decided this in the meantime: approved"):
        second.result(PATIENCE)
    assert (fresh(item).decided_by, statuses(item)) == ("7", ("active", "superseded"))
    assert AuditEvent.objects.count() == 1


def test_of_many_at_once_one_decides(item: ReviewItem) -> None:
    outcomes = at_once(6, lambda number: (approve, reject)[number % 2](item))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict"] * 5 + ["ReviewItem"]
    assert AuditEvent.objects.count() == 1
    assert invariants.check() == []


def test_a_decision_is_undone_once(item: ReviewItem) -> None:
    approve(item)
    outcomes = at_once(4, lambda _: undo_decision(item_id=item.pk, actor=ANA, now=LATER))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict"] * 3 + ["ReviewItem"]
    assert (fresh(item).state, statuses(item)) == ("open", ("pending", "active"))


@pytest.mark.parametrize("which", ["fact", "known"])
def test_what_an_extraction_reinforced_meanwhile_is_to_be_seen_first(item: ReviewItem, which: str) -> None:
    shown = seen(item)
    with held(lambda: extraction_changes(item, which, mentions=2)):
        waiting = blocked(lambda: approve(item, expected=shown))
    with pytest.raises(PreconditionFailed):
        waiting.result(PATIENCE)
    assert statuses(item) == ("pending", "active")
    approve(item, expected=seen(item))
    assert statuses(item) == ("active", "superseded")


def test_what_an_extraction_superseded_meanwhile_is_to_be_seen_first(item: ReviewItem) -> None:
    shown = seen(item)
    newer = factories.fact(item.end_user, "Lives in Utrecht", key="home_city", value="Utrecht")
    closed = {"status": "superseded", "valid_to": NOW, "superseded_by": newer}
    with held(lambda: extraction_changes(item, "known", **closed)):
        waiting = blocked(lambda: approve(item, expected=shown))
    with pytest.raises(PreconditionFailed):
        waiting.result(PATIENCE)
    approve(item, expected=seen(item))
    newer.refresh_from_db()
    assert (statuses(item)[0], newer.status) == ("active", "superseded")


def test_what_an_extraction_confirmed_meanwhile_is_settled(item: ReviewItem) -> None:
    with held(lambda: extraction_changes(item, "fact", status="active")):
        waiting = blocked(lambda: reject(item))
    with pytest.raises(Conflict, match="settled"):
        waiting.result(PATIENCE)
    assert (fresh(item).state, statuses(item)[0]) == ("settled", "active")


def test_an_extraction_that_comes_second_waits_for_the_decision(item: ReviewItem) -> None:
    with held(lambda: approve(item)):
        waiting = blocked(lambda: extraction_changes(item, "known", mentions=2))
    assert (waiting.result(PATIENCE).status, fresh(item).state) == ("superseded", "approved")


def test_a_fact_that_changes_while_a_decision_is_undone(item: ReviewItem) -> None:
    approve(item)
    with held(lambda: extraction_changes(item, "fact", mentions=2)):
        waiting = blocked(lambda: undo_decision(item_id=item.pk, actor=ANA, now=LATER))
    with pytest.raises(Conflict, match="changed since"):
        waiting.result(PATIENCE)
    assert (fresh(item).state, statuses(item)) == ("approved", ("active", "superseded"))


def test_a_person_deleted_meanwhile(item: ReviewItem) -> None:
    with held(lambda: EndUser.objects.filter(pk=item.end_user_id).delete()):
        waiting = blocked(lambda: approve(item))
    with pytest.raises(NotFound):
        waiting.result(PATIENCE)
    assert not Fact.objects.exists()


def test_a_fact_deleted_meanwhile(item: ReviewItem) -> None:
    given = {"fact_id": item.fact_id, "tenant": None, "actor": BEN, "now": LATER}
    with held(lambda: delete_fact(**given)):  # type: ignore[arg-type]
        waiting = blocked(lambda: approve(item))
    with pytest.raises(NotFound):
        waiting.result(PATIENCE)
    assert statuses_of_all() == ["active"]


def test_decisions_and_verbs_on_the_same_facts_never_wait_for_each_other_in_a_circle(db: None) -> None:
    item = duplicate(factories.end_user())
    edits = [item.fact_id, item.known_id]

    def work(number: int) -> Any:
        if number % 3 == 0:
            return approve(item)
        changes = {"importance": 0.9}
        given = {"fact_id": edits[number % 2], "tenant": None, "actor": BEN, "now": LATER}
        return edit_fact(**given, changes=changes)  # type: ignore[arg-type]

    outcomes = at_once(9, work)
    assert {type(outcome).__name__ for outcome in outcomes} <= {"ReviewItem", "Fact", "Conflict"}
    assert fresh(item).state == "approved"


def statuses_of_all() -> list[str]:
    return sorted(Fact.objects.values_list("status", flat=True))
