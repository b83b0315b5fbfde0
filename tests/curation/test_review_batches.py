"""Approving and rejecting many items at once: mixed kinds, what hangs together among them, and the one undo."""

import uuid

import pytest

from memories import invariants
from memories.audit import Actor
from memories.curation.batches import undo_batch
from memories.curation.review.batches import approve_items, reject_items
from memories.curation.review.deciding import ExpectedVersions
from memories.models import Batch, EndUser, ReviewItem
from tests import factories
from tests.curation.test_review_decisions import ENDS, KINDS, fresh, statuses, stored, world
from tests.factories import LATER

pytestmark = pytest.mark.django_db


@pytest.fixture
def actor() -> Actor:
    return Actor.operator(factories.operator())


def seen(items: list[ReviewItem]) -> dict[uuid.UUID, ExpectedVersions]:
    shown = [fresh(item) for item in items]
    return {
        item.pk: ExpectedVersions(
            item.version, {about.pk: about.version for about in (item.fact, item.known, item.episode) if about}
        )
        for item in shown
    }


def mixed() -> dict[str, ReviewItem]:
    """One of each kind, each of a person of its own."""
    return {kind: make(factories.end_user()) for kind, make in KINDS.items()}


def decide(verb: str, items: list[ReviewItem], actor: Actor) -> Batch:
    given = {"batch_id": uuid.uuid4(), "expected": seen(items), "actor": actor, "now": LATER, "reason": "By phone"}
    return {"approve": approve_items, "reject": reject_items}[verb](**given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("verb", "end"), [("approve", 0), ("reject", 1)])
def test_each_kind_ends_as_alone_and_all_are_undone(actor: Actor, verb: str, end: int) -> None:
    items = mixed()
    poor = factories.poor_episode(factories.session(factories.end_user()))
    before = world()
    batch = decide(verb, [*items.values(), poor], actor)
    assert batch.counts == {"asked": len(KINDS) + 1, "done": len(KINDS) + 1, "refused": 0}
    assert {kind: statuses(item) for kind, item in items.items()} == {kind: ENDS[kind][end] for kind in KINDS}
    assert {item.note for item in ReviewItem.objects.all()} == {"By phone"}
    assert invariants.check() == []
    undone = undo_batch(batch_id=batch.pk, actor=actor, now=LATER)
    assert (undone.counts["undone"], undone.counts["kept"]) == (len(KINDS) + 1, 0)
    assert world() == before


def test_what_hangs_together_is_undone_in_reverse(actor: Actor) -> None:
    person: EndUser = factories.end_user()
    items = [KINDS["less sure"](person)]
    for city in ("Gouda", "Utrecht"):
        fact = stored(person, f"Lives in {city}", key="home_city", value=city, status="pending")
        items.append(factories.review_item(fact))
    assert items[0].fact
    # Answered with the first of them: refused here, and no item stays behind.
    items.append(factories.review_item(items[0].fact, kind="flagged", reason="instructions"))
    before = world()
    batch = decide("approve", items, actor)
    assert batch.counts == {"asked": 4, "done": 3, "refused": 1}
    assert [statuses(item)[0] for item in items] == ["superseded", "superseded", "active", "superseded"]
    assert undo_batch(batch_id=batch.pk, actor=actor, now=LATER).counts["kept"] == 0
    assert world() == before
    assert invariants.check() == []


def test_what_was_not_seen_is_not_decided(actor: Actor) -> None:
    items = list(mixed().values())
    looked_at = seen(items)
    looked_at[items[0].pk] = ExpectedVersions(1, {})
    given = {"expected": looked_at, "actor": actor, "now": LATER}
    batch = approve_items(batch_id=uuid.uuid4(), **given)  # type: ignore[arg-type]
    assert (batch.counts["refused"], fresh(items[0]).state) == (1, "open")
