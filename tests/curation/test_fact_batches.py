"""Many facts at once: each as it was seen, all taken back by one undo but for what somebody changed since."""

import uuid
from datetime import timedelta
from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.batches import undo_batch
from memories.curation.facts import batches
from memories.curation.facts.forgetting import forget_fact
from memories.curation.facts.keeping import lock_fact
from memories.models import AuditEvent, Batch, Fact, FactRefusal, ReviewItem
from memories.models.ids import new_id
from tests import factories
from tests.factories import LATER, NOW

pytestmark = pytest.mark.django_db
END = NOW + timedelta(days=9)
MORE: dict[str, dict[str, Any]] = {"expire": {"expires_at": END}, "forget": {"reason": "Asked"}}


@pytest.fixture
def staff() -> Actor:
    return Actor.operator(factories.operator())


@pytest.fixture
def facts() -> list[Fact]:
    """Of two people."""
    tenant = factories.tenant()
    people = [factories.end_user(tenant), factories.end_user(tenant)]
    return [factories.fact(person, text, key=text) for person in people for text in ("Lives in Leiden", "Likes tea")]


def seen(facts: list[Fact]) -> dict[uuid.UUID, int]:
    return {fact.pk: fact.version for fact in facts}


def do(verb: str, facts: list[Fact], staff: Actor, **over: Any) -> Batch:
    more: dict[str, Any] = MORE.get(verb, {})
    act: Any = getattr(batches, f"{verb}_facts")
    given = {"batch_id": new_id(), "expected": seen(facts), "actor": staff, "now": LATER, **more, **over}
    batch: Batch = act(**given)
    return batch


def state() -> list[Any]:
    names = ("pk", "content", "status", "trashed_at", "pinned", "binding", "expires_at", "forget_at", "decay_score")
    facts = list(Fact.objects.order_by("pk").values_list(*names))
    items = list(ReviewItem.objects.order_by("pk").values_list("pk", "state"))
    return [facts, items, sorted(bytes(one) for one in FactRefusal.objects.values_list("digest", flat=True))]


DONE: dict[str, dict[str, Any]] = {
    "forget": {"status": "trashed"},
    "pin": {"pinned": True, "binding": True},
    "expire": {"expires_at": END},
}


@pytest.mark.parametrize("verb", DONE)
class TestEach:
    def test_does_it_to_all_and_one_undo_takes_it_back(self, facts: list[Fact], staff: Actor, verb: str) -> None:
        factories.review_item(facts[1], known=facts[0], kind="possible_duplicate", reason="not_judged")
        before = state()
        batch = do(verb, facts, staff)
        assert batch.counts == {"asked": 4, "done": 4, "refused": 0}
        assert Fact.objects.filter(**DONE[verb]).count() == 4
        assert AuditEvent.objects.filter(object_type="Fact", verb=verb).count() == 4
        undone = undo_batch(batch_id=batch.pk, actor=staff, now=LATER)
        assert (undone.counts["undone"], undone.counts["kept"]) == (4, 0)
        assert state() == before

    def test_leaves_what_somebody_changed_meanwhile(self, facts: list[Fact], staff: Actor, verb: str) -> None:
        looked_at = seen(facts)
        lock_fact(fact_id=facts[0].pk, actor=staff, now=LATER)
        batch = do(verb, facts, staff, expected=looked_at)
        assert (batch.counts["done"], batch.counts["refused"]) == (3, 1)
        assert not Fact.objects.filter(pk=facts[0].pk, **DONE[verb]).exists()


def test_what_is_in_the_trash_already_is_not_part_of_it(facts: list[Fact], staff: Actor) -> None:
    forget_fact(fact_id=facts[0].pk, tenant=None, actor=staff, now=NOW)
    batch = do("forget", [Fact.objects.get(pk=fact.pk) for fact in facts], staff)
    undo_batch(batch_id=batch.pk, actor=staff, now=LATER)
    assert list(Fact.objects.filter(status="trashed")) == [facts[0]]
    assert FactRefusal.objects.filter(fact=facts[0]).count() == 2


def test_undo_does_not_bring_back_a_second_value_of_a_key(facts: list[Fact], staff: Actor) -> None:
    Fact.objects.filter(pk=facts[0].pk).update(key="home_city", value="Leiden")
    batch = do("forget", facts, staff)
    factories.fact(facts[0].end_user, "Lives in Delft", key="home_city", value="Delft")
    undone = undo_batch(batch_id=batch.pk, actor=staff, now=LATER)
    assert (undone.counts["undone"], undone.counts["kept"]) == (3, 1)
    assert Fact.objects.get(pk=facts[0].pk).status == "trashed"
