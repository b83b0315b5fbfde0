"""Many at once: each in its own transaction, what is refused stops none of the others, and one undo takes all back."""

import uuid
from collections.abc import Sequence
from datetime import datetime
from functools import partial

import pytest

from memories.audit import Actor
from memories.curation import batches
from memories.curation.batches import MOST, BatchStep, Memory, carry_out, undo_batch
from memories.curation.facts.forgetting import forget_fact
from memories.curation.reverting import revert
from memories.curation.review.deciding import ExpectedVersions
from memories.curation.review.decisions import approve_item, reject_item
from memories.curation.review.suggestions import approve_fact
from memories.exceptions import Conflict, InvalidInput, NotFound
from memories.models import AuditEvent, Batch, ChangeSet, Fact, Operator, ReviewItem
from tests import factories
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import LATER

one = pytest.mark.django_db
many = pytest.mark.django_db(transaction=True)


class Died(Exception):
    """The process ended here."""


@pytest.fixture
def ana(db: None) -> Operator:
    return factories.operator(username="ana")


@pytest.fixture
def actor(ana: Operator) -> Actor:
    return Actor.operator(ana)


@pytest.fixture
def items(db: None) -> list[ReviewItem]:
    """Three suggestions, each of a tenant of its own."""
    people = [factories.end_user(), factories.end_user(), factories.end_user()]
    return [factories.review_item(factories.fact(person, status="pending")) for person in people]


def approve(item: ReviewItem, actor: Actor) -> ReviewItem:
    assert item.fact
    seen = ExpectedVersions(item.version, {item.fact.pk: item.fact.version})
    return approve_item(item_id=item.pk, actor=actor, now=LATER, expected=seen)


def steps(items: Sequence[ReviewItem], actor: Actor) -> list[BatchStep]:
    return [BatchStep(item.pk, partial(approve, item, actor)) for item in items]


def approve_all(items: Sequence[ReviewItem], actor: Actor, batch_id: uuid.UUID | None = None) -> Batch:
    chosen = steps(items, actor)
    return carry_out(batch_id=batch_id or uuid.uuid4(), verb="approve", steps=chosen, actor=actor, now=LATER)


def undo_all(batch: Batch, actor: Actor) -> Batch:
    return undo_batch(batch_id=batch.pk, actor=actor, now=LATER)


def states(items: Sequence[ReviewItem]) -> list[str]:
    found = dict(ReviewItem.objects.values_list("pk", "state"))
    return [found[item.pk] for item in items]


@one
def test_each_is_done_and_noted_and_all_are_undone(items: list[ReviewItem], actor: Actor, ana: Operator) -> None:
    batch = approve_all(items, actor)
    assert (batch.operator, batch.verb, batch.counts) == (ana, "approve", {"asked": 3, "done": 3, "refused": 0})
    steps = batch.steps.order_by("item").values_list("item", "pk")
    assert list(steps) == list(ReviewItem.objects.order_by("pk").values_list("pk", "change_set"))
    assert {*Fact.objects.values_list("status", flat=True)} == {"active"}
    undone = undo_all(batch, actor)
    assert (states(items), undone.undone_at) == (["open"] * 3, LATER)
    assert undone.counts == {"asked": 3, "done": 3, "refused": 0, "undone": 3, "kept": 0}
    assert {*Fact.objects.values_list("status", flat=True)} == {"pending"}


@one
def test_what_somebody_changed_meanwhile_is_refused_and_stops_no_other(items: list[ReviewItem], actor: Actor) -> None:
    Fact.objects.filter(pk__in=[items[1].fact_id]).update(version=9)
    items[2].delete()
    gone = BatchStep(uuid.uuid4(), partial(approve, items[2], actor))
    batch = carry_out(
        batch_id=uuid.uuid4(), verb="approve", steps=[*steps(items[:2], actor), gone], actor=actor, now=LATER
    )
    assert batch.counts == {"asked": 3, "done": 1, "refused": 2}
    assert states(items[:2]) == ["approved", "open"]


@one
def test_what_had_nothing_to_do_is_not_undone(items: list[ReviewItem], actor: Actor) -> None:
    idle = BatchStep(items[0].pk, lambda: None)
    batch = carry_out(batch_id=uuid.uuid4(), verb="approve", steps=[idle], actor=actor, now=LATER)
    assert (batch.counts, ChangeSet.objects.count()) == ({"asked": 1, "done": 0, "refused": 1}, 0)


@one
def test_undo_leaves_what_somebody_went_on_with(items: list[ReviewItem], actor: Actor) -> None:
    batch = approve_all(items, actor)
    assert items[1].fact_id
    forget_fact(fact_id=items[1].fact_id, tenant=None, actor=actor, now=LATER)
    assert undo_all(batch, actor).counts["kept"] == 1
    assert states(items) == ["open", "approved", "open"]


@one
def test_the_step_of_a_fact_is_the_change_set_of_its_revision(actor: Actor) -> None:
    fact = factories.fact(factories.end_user(), status="pending")

    def act() -> Memory:
        return approve_fact(fact_id=fact.pk, actor=actor, now=LATER)

    carry_out(batch_id=uuid.uuid4(), verb="approve", steps=[BatchStep(fact.pk, act)], actor=actor, now=LATER)
    step = Batch.objects.get().steps.get()
    assert (step.fact, step.pk) == (fact, fact.revisions.get().change_set)


@one
def test_cut_short_it_goes_on_where_it_ended(items: list[ReviewItem], actor: Actor) -> None:
    def die() -> Memory:
        raise Died

    batch_id, [first, second, third] = uuid.uuid4(), steps(items, actor)
    cut = [first, BatchStep(second.id, die), third]
    with pytest.raises(Died):
        carry_out(batch_id=batch_id, verb="approve", steps=cut, actor=actor, now=LATER)
    assert states(items) == ["approved", "open", "open"]
    batch = approve_all(items, actor, batch_id)
    assert (states(items), batch.counts) == (["approved"] * 3, {"asked": 3, "done": 3, "refused": 0})
    assert AuditEvent.objects.filter(object_type="ReviewItem").count() == 3


@one
def test_an_undo_that_was_cut_short_goes_on_from_the_last(
    items: list[ReviewItem], actor: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, order = approve_all(items, actor), []

    def once(*, change_set: uuid.UUID, actor: Actor, now: datetime) -> None:
        order.append(ChangeSet.objects.get(pk=change_set).item)
        if len(order) == 2:
            raise Died
        revert(change_set=change_set, actor=actor, now=now)

    monkeypatch.setattr(batches, "revert", once)
    with pytest.raises(Died):
        undo_all(batch, actor)
    monkeypatch.undo()
    assert states(items) == ["approved", "approved", "open"]
    # Nothing more is done of a batch that is being undone.
    with pytest.raises(Conflict, match="is undoing this"):
        approve_all(items, actor, batch.pk)
    assert undo_all(batch, actor).counts["undone"] == 3
    assert (states(items), order) == (["open"] * 3, [items[2], items[1]])


@one
def test_it_leaves_an_event_of_its_own(items: list[ReviewItem], actor: Actor) -> None:
    batch = approve_all(items[:1], actor)
    undo_all(batch, actor)
    told = AuditEvent.objects.filter(object_id=batch.pk).order_by("id").values_list("verb", "tenant_uuid", "counts")
    assert [(verb, tenant) for verb, tenant, _ in told] == [
        ("approve", items[0].tenant_id),
        ("undo", items[0].tenant_id),
    ]
    assert told[0][2] == {"asked": 1, "done": 1, "refused": 0}
    # Of several tenants it belongs to none.
    assert AuditEvent.objects.get(object_id=approve_all(items[1:], actor).pk).tenant_uuid is None


@one
@pytest.mark.parametrize("count", [0, MOST + 1])
def test_there_is_a_cap(actor: Actor, count: int) -> None:
    chosen = [BatchStep(uuid.uuid4(), lambda: None)] * count
    with pytest.raises(InvalidInput):
        carry_out(batch_id=uuid.uuid4(), verb="approve", steps=chosen, actor=actor, now=LATER)
    assert not Batch.objects.exists()


@one
def test_a_batch_stays_what_and_whose_it_was_begun_as(items: list[ReviewItem], actor: Actor) -> None:
    batch, ben = approve_all(items, actor), Actor.operator(factories.operator())
    for verb, who in (("reject", actor), ("approve", ben)):
        with pytest.raises(Conflict, match="a different action"):
            carry_out(batch_id=batch.pk, verb=verb, steps=steps(items, who), actor=who, now=LATER)


@one
def test_an_unknown_batch_is_not_undone(actor: Actor) -> None:
    with pytest.raises(NotFound):
        undo_batch(batch_id=uuid.uuid4(), actor=actor, now=LATER)


@many
def test_sent_twice_at_once_each_is_done_once(items: list[ReviewItem], actor: Actor) -> None:
    batch_id = uuid.uuid4()
    outcomes = at_once(4, lambda _: approve_all(items, actor, batch_id))
    assert all(isinstance(outcome, Batch) for outcome in outcomes), outcomes
    assert (states(items), ChangeSet.objects.count()) == (["approved"] * 3, 3)
    assert AuditEvent.objects.filter(object_type="ReviewItem").count() == 3
    outcomes = at_once(4, lambda _: undo_all(Batch.objects.get(), actor))
    assert all(isinstance(outcome, Batch) for outcome in outcomes), outcomes
    assert (states(items), Batch.objects.get().counts["undone"]) == (["open"] * 3, 3)


@many
def test_a_colleague_who_decides_one_meanwhile_comes_first(items: list[ReviewItem], actor: Actor) -> None:
    ben = Actor.operator(factories.operator())
    with held(lambda: reject_item(item_id=items[1].pk, actor=ben, now=LATER, reason="No")):
        waiting = blocked(lambda: approve_all(items, actor))
    assert waiting.result(PATIENCE).counts == {"asked": 3, "done": 2, "refused": 1}
    assert states(items) == ["approved", "rejected", "approved"]


@many
def test_an_undo_waits_for_the_step_under_way_and_no_other_follows(items: list[ReviewItem], actor: Actor) -> None:
    batch = approve_all(items[:1], actor)
    with held(lambda: undo_all(batch, actor)):
        waiting = blocked(lambda: approve_all(items, actor, batch.pk))
    with pytest.raises(Conflict, match="is undoing this"):
        waiting.result(PATIENCE)
    assert states(items) == ["open"] * 3


@many
def test_a_person_erased_meanwhile_takes_the_entry_along(items: list[ReviewItem], actor: Actor) -> None:
    batch = approve_all(items, actor)
    items[1].end_user.delete()
    assert undo_all(batch, actor).counts == {"asked": 3, "done": 3, "refused": 0, "undone": 2, "kept": 0}
