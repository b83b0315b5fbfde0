"""What each decision does to a poor episode, how it is undone, and who comes second."""

import uuid
from functools import partial
from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.episodes import edit_episode, forget_episode, pin_episode, restore_episode
from memories.curation.review.deciding import Choice, ExpectedVersions, choices_of
from memories.curation.review.decisions import approve_edited, approve_item, keep_both, merge_items, reject_item
from memories.curation.review.undo import undo_decision
from memories.exceptions import Conflict, InvalidInput, NotFound, PreconditionFailed
from memories.models import ActorKind, AuditEvent, EndUser, Episode, ReviewItem
from tests import factories
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import LATER, NOW

pytestmark = pytest.mark.django_db
STAFF, BEN = (Actor(kind=ActorKind.OPERATOR, id=number) for number in ("7", "8"))
WORDS = {"summary": "Asked for the invoice of May", "key_topics": ["invoices"]}
ENDS = {
    Choice.APPROVE: ("approved", "active", False, "The user asked a question"),
    Choice.EDIT: ("approved", "active", True, WORDS["summary"]),
    Choice.REJECT: ("rejected", "trashed", False, "The user asked a question"),
}


@pytest.fixture
def item() -> ReviewItem:
    return factories.poor_episode(factories.session(factories.end_user()))


def decide(item: ReviewItem, choice: Choice, **over: Any) -> ReviewItem:
    given: dict[str, Any] = {"item_id": item.pk, "actor": STAFF, "now": LATER, "reason": "By phone", **over}
    if choice == Choice.EDIT:
        return approve_edited(changes=WORDS, **given)
    return (approve_item if choice == Choice.APPROVE else reject_item)(**given)


def undo(item: ReviewItem, **over: Any) -> ReviewItem:
    return undo_decision(**{"item_id": item.pk, "actor": STAFF, "now": LATER, **over})


def fresh(item: ReviewItem) -> ReviewItem:
    return ReviewItem.objects.get(pk=item.pk)


def episode_of(item: ReviewItem) -> Episode:
    return Episode.objects.get(review_items=item)


def state_of(item: ReviewItem) -> dict[str, Any]:
    """Of its episode, but for what any change moves."""
    [row] = Episode.objects.filter(review_items=item).values()
    return {name: value for name, value in row.items() if name not in ("version", "updated_at")}


@pytest.mark.parametrize("choice", ENDS)
class TestEachDecision:
    def test_does_what_it_says(self, item: ReviewItem, choice: Choice) -> None:
        decide(item, choice)
        episode, decided = episode_of(item), fresh(item)
        assert (decided.state, episode.status, episode.binding, episode.summary) == ENDS[choice]
        assert (decided.decided_by, decided.note) == ("7", "By phone")
        assert (episode.trashed_at == LATER) == (choice == Choice.REJECT)
        events = AuditEvent.objects.order_by("id").values_list("object_type", "object_id")
        assert list(events) == [("Episode", episode.pk), ("ReviewItem", item.pk)]

    def test_is_undone_as_a_whole(self, item: ReviewItem, choice: Choice) -> None:
        before = state_of(item)
        decide(item, choice)
        undo(item)
        assert state_of(item) == before
        assert (fresh(item).state, fresh(item).change_set, episode_of(item).version) == ("open", None, 3)
        assert AuditEvent.objects.filter(object_id=episode_of(item).pk, verb="undo").exists()
        decide(item, choice)
        assert episode_of(item).status == ENDS[choice][1]

    def test_is_not_undone_once_the_episode_has_changed(self, item: ReviewItem, choice: Choice) -> None:
        decide(item, choice)
        verb = restore_episode if choice == Choice.REJECT else pin_episode
        verb(episode_id=episode_of(item).pk, actor=STAFF, now=LATER)
        with pytest.raises(Conflict, match="the episode has changed"):
            undo(item)
        assert fresh(item).state == ENDS[choice][0]

    def test_of_another_version_than_was_seen_is_refused(self, item: ReviewItem, choice: Choice) -> None:
        assert item.episode_id
        for seen in (
            ExpectedVersions(9, {item.episode_id: 1}),
            ExpectedVersions(1, {item.episode_id: 9}),
            ExpectedVersions(1),
            ExpectedVersions(1, {uuid.uuid4(): 1}),
        ):
            with pytest.raises(PreconditionFailed):
                decide(item, choice, expected=seen)
        decide(item, choice, expected=ExpectedVersions(1, {item.episode_id: 1}))

    def test_of_an_episode_forgotten_meanwhile_is_refused(self, item: ReviewItem, choice: Choice) -> None:
        forget_episode(episode_id=episode_of(item).pk, tenant=None, actor=BEN, now=NOW)
        with pytest.raises(Conflict, match="settled"):
            decide(item, choice)
        assert episode_of(item).status == "trashed"

    @pytest.mark.django_db(transaction=True)
    def test_the_second_of_two_is_told_of_the_first(self, item: ReviewItem, choice: Choice) -> None:
        with held(lambda: decide(item, choice)):
            second = blocked(lambda: decide(item, Choice.REJECT, actor=BEN))
        with pytest.raises(Conflict, match=f"decided this in the meantime: {ENDS[choice][0]}"):
            second.result(PATIENCE)
        assert (fresh(item).decided_by, episode_of(item).status) == ("7", ENDS[choice][1])

    @pytest.mark.django_db(transaction=True)
    def test_a_person_erased_meanwhile(self, item: ReviewItem, choice: Choice) -> None:
        with held(lambda: EndUser.objects.filter(pk=item.end_user_id).delete()):
            waiting = blocked(lambda: decide(item, choice))
        with pytest.raises(NotFound):
            waiting.result(PATIENCE)
        assert not AuditEvent.objects.exists()

    @pytest.mark.django_db(transaction=True)
    def test_an_application_that_rewrote_it_meanwhile_is_seen_first(self, item: ReviewItem, choice: Choice) -> None:
        pk = episode_of(item).pk
        given = {"episode_id": pk, "tenant": None, "now": NOW, "actor": Actor(kind=ActorKind.KEY, id="k")}
        with held(lambda: edit_episode(changes={"importance": 0.9}, **given)):  # type: ignore[arg-type]
            waiting = blocked(lambda: decide(item, choice, expected=ExpectedVersions(1, {pk: 1})))
        with pytest.raises(PreconditionFailed):
            waiting.result(PATIENCE)
        assert fresh(item).state == "open"


@pytest.mark.parametrize("verb", [keep_both, partial(merge_items, content="x")])
def test_there_are_no_two_to_keep_or_to_merge(item: ReviewItem, verb: Any) -> None:
    survivor = {"survivor": item.episode_id} if isinstance(verb, partial) else {}
    with pytest.raises(Conflict, match="not possible here"):
        verb(item_id=item.pk, actor=STAFF, now=LATER, reason="x", **survivor)
    assert choices_of(fresh(item)) == (Choice.APPROVE, Choice.EDIT, Choice.REJECT)


def test_a_fact_is_not_approved_with_the_words_of_an_episode() -> None:
    item = factories.review_item(factories.fact(factories.end_user(), status="pending"))
    with pytest.raises(InvalidInput):
        decide(item, Choice.EDIT)
    assert fresh(item).state == "open"


def test_an_undo_waits_beside_the_questions_of_other_episodes(item: ReviewItem) -> None:
    """Without the episode in the comparison, any open one would count as the same question asked anew."""
    factories.poor_episode(factories.session(item.end_user))
    decide(item, Choice.REJECT)
    undo(item)
    assert fresh(item).state == "open"


@pytest.mark.django_db(transaction=True)
def test_a_decision_is_undone_once(item: ReviewItem) -> None:
    decide(item, Choice.EDIT)
    outcomes = at_once(4, lambda _: undo(item))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict"] * 3 + ["ReviewItem"]
    assert episode_of(item).version == 3
