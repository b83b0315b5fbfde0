"""A change set is taken back whatever made it: all of it or nothing, once, and never over somebody's later change."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from memories import audit, invariants
from memories.curation import episodes
from memories.curation.facts import keeping, publishing
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.editing import correct_fact, edit_fact
from memories.curation.facts.forgetting import delete_fact, forget_fact
from memories.curation.facts.merging import merge_facts
from memories.curation.facts.restoring import restore_fact
from memories.curation.profile.sections import write_profile_section
from memories.curation.reverting import revert
from memories.curation.review.decisions import approve_item
from memories.curation.review.suggestions import reconsider_fact, reject_fact
from memories.exceptions import Conflict, DuplicateFact, MemoryHubError, NotFound
from memories.models import (
    AuditEvent,
    ChangeSet,
    EndUser,
    Episode,
    Fact,
    FactRefusal,
    ProfileSection,
    ReviewItem,
)
from tests import factories
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import KEY, LATER, NOW, STAFF

pytestmark = pytest.mark.django_db
BY_STAFF: dict[str, Any] = {"actor": STAFF, "now": LATER}


@pytest.fixture
def fact(person: EndUser) -> Fact:
    made = factories.fact(person, "Lives in Leiden", key="home_city", value="Leiden")
    audit.revise_new([made], verb="add", actor=KEY)
    return made


def take_back(change_set: uuid.UUID | None = None, **over: Any) -> None:
    """The last change set that was not taken back, unless another is named."""
    last = change_set or ChangeSet.objects.filter(undone_at=None).exclude(verb__startswith="undo")[0].pk
    revert(change_set=last, **{**BY_STAFF, **over})


def world() -> list[Any]:
    facts = [audit.snapshot(fact) for fact in Fact.objects.order_by("pk")]
    refusals = sorted((row.kind, bytes(row.digest), row.fact_id) for row in FactRefusal.objects.all())
    items = list(ReviewItem.objects.order_by("pk").values_list("pk", "state", "decided_by", "change_set"))
    told = list(Episode.objects.order_by("pk").values_list("summary", "importance", "status", "pinned", "binding"))
    sections = list(ProfileSection.objects.values_list("summary", "binding", "trust", "evidence"))
    return [facts, refusals, items, told, sections]


def trashed(fact: Fact) -> dict[str, Any]:
    forget_fact(fact_id=fact.pk, tenant=None, actor=KEY, now=NOW)
    return {"fact_id": fact.pk, "tenant": None}


CHANGES: dict[str, Callable[[Fact], object]] = {
    "edit": lambda fact: edit_fact(fact_id=fact.pk, tenant=None, changes={"content": "Lives in Delft"}, **BY_STAFF),
    "correct": lambda fact: correct_fact(fact_id=fact.pk, tenant=None, content="Left Leiden", reason="", **BY_STAFF),
    "forget": lambda fact: forget_fact(fact_id=fact.pk, tenant=None, **BY_STAFF),
    "restore": lambda fact: restore_fact(**trashed(fact), **BY_STAFF),
    "publish": lambda fact: publishing.publish_fact(fact_id=fact.pk, **BY_STAFF),
    **{
        verb: lambda fact, verb=verb: getattr(keeping, f"{verb}_fact")(fact_id=fact.pk, **BY_STAFF)  # type: ignore[misc]
        for verb in ("pin", "lock")
    },
}


@pytest.mark.parametrize("verb", CHANGES)
def test_a_change_of_a_fact_is_taken_back(fact: Fact, verb: str) -> None:
    FactRefusal.objects.create(
        tenant_id=fact.end_user.tenant_id, end_user=fact.end_user, kind="text", digest=b"d" * 32, created_at=NOW
    )
    if verb == "restore":
        CHANGES["forget"](fact)
        forgotten = world()
        restore_fact(fact_id=fact.pk, tenant=None, **BY_STAFF)
    else:
        forgotten = world()
        CHANGES[verb](fact)
    assert world() != forgotten
    take_back(reason="A slip")
    assert world() == forgotten
    made = ChangeSet.objects.filter(verb="undo").get()
    assert (made.fact, made.actor_id, made.reason, made.undone_at) == (fact, "7", "A slip", None)
    assert ChangeSet.objects.get(reverted_by=made.pk).undone_at == LATER
    assert AuditEvent.objects.filter(verb="undo", object_type="Fact", object_id=fact.pk).count() == 1
    assert invariants.check() == []


def test_a_correction_refuses_again_what_it_had_lifted(fact: Fact) -> None:
    other = add_fact(end_user=fact.end_user, draft=FactDraft("Lives in Delft", "knowledge"), **BY_STAFF).row
    forget_fact(fact_id=other.pk, tenant=None, **BY_STAFF)
    before = world()
    correct_fact(fact_id=fact.pk, tenant=None, content="Lives in Delft", reason="", **BY_STAFF)
    take_back()
    assert world() == before


def test_a_rejection_and_its_reconsidering_are_taken_back_from_the_last(person: EndUser) -> None:
    item = factories.review_item(factories.fact(person, status="pending"))
    assert item.fact_id
    states = [world()]
    for verb in (reject_fact, reconsider_fact):
        verb(fact_id=item.fact_id, **BY_STAFF)
        states.append(world())
    for before in (states[1], states[0]):
        take_back()
        assert world()[:2] == before[:2]
    assert ReviewItem.objects.get().state == "open"


@pytest.mark.parametrize("verb", ["edit", "pin", "forget"])
def test_a_change_of_an_episode_is_taken_back_and_goes_with_it(person: EndUser, verb: str) -> None:
    episode = factories.poor_episode(factories.session(person)).episode
    assert episode
    given: dict[str, Any] = {"episode_id": episode.pk, **BY_STAFF}
    given |= {} if verb == "pin" else {"tenant": None}
    given |= {"changes": {"summary": "They met."}} if verb == "edit" else {}
    before = world()
    getattr(episodes, f"{verb}_episode")(**given)
    assert world() != before
    take_back()
    assert world() == before
    episodes.edit_episode(episode_id=episode.pk, tenant=None, changes={"summary": "They parted."}, **BY_STAFF)
    episodes.delete_episode(episode_id=episode.pk, tenant=None, **BY_STAFF)
    # Else its texts of before would stay in the changes.
    assert not ChangeSet.objects.exists()


def test_a_section_is_what_it_was_with_what_it_rested_on(person: EndUser) -> None:
    factories.profile_section(person, trust="assistant", evidence=[1])
    factories.profile_revision(person, trust="assistant", evidence=[1], verb="extract")
    before = world()
    write_profile_section(end_user=person, section="work_context", summary="Retired.", **BY_STAFF)
    take_back()
    assert world() == before


def test_what_was_changed_since_and_taken_back_does_not_count(fact: Fact) -> None:
    before = world()
    CHANGES["pin"](fact)
    first = ChangeSet.objects.get()
    for verb in ("lock", "edit"):
        CHANGES[verb](fact)
    for _ in range(2):
        with pytest.raises(Conflict, match="changed since"):
            take_back(first.pk)
        take_back()
    take_back(first.pk)
    assert world() == before


@pytest.mark.parametrize("verb", ["lock", "forget"])
def test_over_a_change_that_stands_nothing_is_taken_back(fact: Fact, verb: str) -> None:
    CHANGES["pin"](fact)
    first = ChangeSet.objects.get()
    CHANGES[verb](fact)
    # Also when a change after that one is taken back.
    edit_fact(fact_id=fact.pk, tenant=None, changes={"importance": 0.1}, **BY_STAFF) if verb == "lock" else None
    take_back() if verb == "lock" else None
    after = world()
    with pytest.raises(Conflict, match="changed since"):
        take_back(first.pk)
    assert world() == after


def test_not_when_one_of_its_facts_was_deleted(person: EndUser, fact: Fact) -> None:
    other = factories.fact(person, "Has a house in Leiden")
    merge_facts(survivor=fact.pk, expected={fact.pk: 1, other.pk: 1}, content="Lives in Leiden, in a house", **BY_STAFF)
    delete_fact(fact_id=other.pk, tenant=None, **BY_STAFF)
    with pytest.raises(Conflict, match="changed since"):
        take_back()


def test_not_when_another_fact_has_its_key_or_its_text(person: EndUser, fact: Fact) -> None:
    CHANGES["forget"](fact)
    rival = factories.fact(person, "Lives in Gouda", key="home_city", value="Gouda")
    with pytest.raises(Conflict, match="keys a different value"):
        take_back()
    Fact.objects.filter(pk=rival.pk).update(key="", value="")
    rival.refresh_from_db()
    rival.set_text(fact.content)
    rival.save()
    with pytest.raises(DuplicateFact):
        take_back()
    assert Fact.objects.get(pk=fact.pk).status == "trashed"


def test_once_and_never_what_is_no_persons_change(person: EndUser, fact: Fact) -> None:
    CHANGES["pin"](fact)
    made = ChangeSet.objects.get()
    take_back()
    undone = ChangeSet.objects.exclude(pk=made.pk).get()
    for pk in (made.pk, undone.pk):
        with pytest.raises(Conflict, match="nothing to undo"):
            take_back(pk)
    edit_fact(fact_id=fact.pk, tenant=None, changes={"importance": 0.1}, actor=KEY, now=LATER)
    assert ChangeSet.objects.count() == 2
    with pytest.raises(NotFound):
        take_back(fact.revisions.first().change_set)  # type: ignore[union-attr]


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_of_many_at_once_one_takes_it_back(self, fact: Fact) -> None:
        CHANGES["forget"](fact)
        made = ChangeSet.objects.get()
        outcomes = at_once(4, lambda _: take_back(made.pk))
        assert sum(outcome is None for outcome in outcomes) == 1
        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 3
        assert (Fact.objects.get().status, Fact.objects.get().version) == ("active", 3)

    def test_who_edits_meanwhile_comes_first(self, fact: Fact) -> None:
        CHANGES["pin"](fact)
        made = ChangeSet.objects.get()
        with held(lambda: CHANGES["edit"](fact)):
            waiting = blocked(lambda: take_back(made.pk))
        with pytest.raises(Conflict, match="changed since"):
            waiting.result(PATIENCE)
        assert (Fact.objects.get().content, Fact.objects.get().pinned) == ("Lives in Delft", True)

    def test_who_edits_after_it_sees_what_it_left(self, fact: Fact) -> None:
        CHANGES["pin"](fact)
        made = ChangeSet.objects.get()
        with held(lambda: take_back(made.pk)):
            waiting = blocked(lambda: keeping.unpin_fact(fact_id=fact.pk, **BY_STAFF))
        with pytest.raises(Conflict):
            waiting.result(PATIENCE)

    def test_a_person_erased_meanwhile(self, person: EndUser) -> None:
        item = factories.review_item(factories.fact(person, status="pending"))
        approve_item(item_id=item.pk, **BY_STAFF)
        made = ChangeSet.objects.get()
        with held(lambda: EndUser.objects.filter(pk=person.pk).delete()):
            waiting = blocked(lambda: take_back(made.pk))
        with pytest.raises(MemoryHubError):
            waiting.result(PATIENCE)
        assert not ChangeSet.objects.exists()
