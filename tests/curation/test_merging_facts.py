"""Merging facts, taking it back, and splitting one off again: what each leaves, refuses, and what it is undone by."""

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from memories import audit, invariants
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.facts.keeping import lock_fact, pin_fact
from memories.curation.facts.merging import merge_facts, preview_fact_merge
from memories.curation.facts.splitting import split_fact
from memories.curation.reverting import revert
from memories.curation.review.decisions import merge_items
from memories.exceptions import (
    Conflict,
    DuplicateFact,
    InvalidInput,
    MemoryHubError,
    NotFound,
    PreconditionFailed,
)
from memories.models import (
    AuditEvent,
    ChangeSet,
    EndUser,
    Fact,
    FactEvidence,
    FactRefusal,
    FactRelation,
    FactRevision,
    ReviewItem,
)
from tests import factories
from tests.curation.marks import places_of
from tests.database import at_once
from tests.factories import LATER, NOW, STAFF

pytestmark = pytest.mark.django_db
SAID = "Allergic to peanuts, carries an EpiPen"


@pytest.fixture
def facts(person: EndUser) -> list[Fact]:
    """Three facts: the first two rest on turns, of which they share one."""
    session = factories.session(person, [("user", "I react to peanuts"), ("assistant", "Noted"), ("user", "EpiPen")])
    turns = list(session.turns.order_by("number"))
    made = [
        factories.fact(person, "Allergic to peanuts", key="allergy", value="peanuts", tags=["health"]),
        factories.fact(person, "Has a peanut allergy", tags=["food"], importance=0.9),
        factories.fact(person, "Carries an EpiPen", pinned=True),
    ]
    audit.revise_new(made, verb="add", actor=STAFF)
    for fact, number in ((made[0], 0), (made[1], 0), (made[1], 2)):
        factories.evidence(fact, turns[number])
    return made


def merge(facts: Sequence[Fact], content: str = SAID, **over: Any) -> ChangeSet:
    seen = {fact.pk: fact.version for fact in facts}
    given = {"survivor": facts[0].pk, "expected": seen, "content": content, "actor": STAFF, "now": LATER, **over}
    return merge_facts(**given).change_sets.filter(verb="merge")[0]


def undo(made: ChangeSet, **over: Any) -> None:
    revert(**{"change_set": made.pk, "actor": STAFF, "now": LATER, **over})


def split(fact: Fact, rest: str = "", **over: Any) -> Fact:
    return split_fact(**{"fact_id": fact.pk, "rest": rest, "actor": STAFF, "now": LATER, **over})


def now_of(fact: Fact) -> Fact:
    return Fact.objects.get(pk=fact.pk)


def turns_of(fact: Fact) -> list[int]:
    return sorted(FactEvidence.objects.filter(fact=fact).values_list("turn_number", flat=True))


def told() -> list[Any]:
    """All that is said of facts, but for versions and times of change, and what they are refused or rest on."""
    rows = Fact.objects.order_by("pk").values(
        "content", "status", "superseded_by", "valid_to", "binding", "pinned", "locked", "trust", "source", "value",
        "confidence", "importance", "tags", "expires_at", "last_confirmed_at", "forget_at",
    )  # fmt: skip
    items = ReviewItem.objects.order_by("pk").values("state", "fact", "known")
    refusals = sorted(bytes(row) for row in FactRefusal.objects.values_list("digest", flat=True))
    evidence = sorted(FactEvidence.objects.values_list("fact", "turn_number"))
    return [list(rows), list(items), refusals, evidence, list(FactRelation.objects.values_list("fact", "target"))]


class TestMerge:
    def test_one_stays_in_the_operators_words_and_rests_on_all(self, facts: list[Fact]) -> None:
        kept, *others = facts
        merge(facts, reason="The same")
        kept = now_of(kept)
        assert (kept.content, kept.binding, kept.trust, kept.source) == (SAID, True, "operator", "corrected_memory")
        assert (kept.pinned, kept.importance, kept.tags, kept.value) == (True, 0.9, ["health", "food"], "")
        assert turns_of(kept) == [1, 3]
        for other in map(now_of, others):
            assert (other.status, other.superseded_by_id, other.valid_to) == ("superseded", kept.pk, LATER)
        assert set(FactRelation.objects.values_list("fact", "target", "type")) == {
            (kept.pk, other.pk, "derived_from") for other in others
        }
        assert invariants.check() == []

    def test_its_revisions_share_a_change_set_and_the_trail_has_no_text(self, facts: list[Fact]) -> None:
        made = merge(facts)
        revisions = FactRevision.objects.filter(change_set=made.pk).order_by("id")
        assert [row.verb for row in revisions] == ["supersede", "supersede", "merge"]
        event = AuditEvent.objects.get(verb="merge")
        assert (event.object_id, event.counts, event.actor_id) == (facts[0].pk, {"facts": 2}, "7")
        assert {place.split(".")[0] for place in places_of("EpiPen")} <= {
            "memories_fact", "memories_factrevision", "memories_turn", "memories_idempotencyrecord",
        }  # fmt: skip

    def test_the_survivor_may_take_the_very_text_of_another(self, facts: list[Fact]) -> None:
        merge(facts[:2], content=facts[1].content)
        assert now_of(facts[0]).content == "Has a peanut allergy"

    def test_what_waits_about_them_is_answered(self, facts: list[Fact]) -> None:
        item = factories.review_item(facts[1], known=facts[0], kind="possible_duplicate", reason="not_judged")
        merge(facts)
        item.refresh_from_db()
        assert item.state == "settled"

    @pytest.mark.parametrize(
        ("ends", "end"),
        [((None, 5), None), ((5, None), None), ((5, 9), 9), ((None, None), None)],
    )
    def test_it_expires_when_the_last_of_them_would_have(
        self, facts: list[Fact], ends: tuple[int | None, ...], end: int | None
    ) -> None:
        for fact, days in zip(facts, ends, strict=False):
            fact.expires_at = LATER + timedelta(days=days) if days else None
            fact.save()
        merge(facts[:2])
        assert now_of(facts[0]).expires_at == (LATER + timedelta(days=end) if end else None)

    def test_a_secret_is_cut_out(self, facts: list[Fact]) -> None:
        merge(facts, content="My password is hunter2hunter2")
        assert places_of("hunter2hunter2") == []

    def test_the_preview_says_what_it_would_make_and_changes_nothing(self, facts: list[Fact]) -> None:
        before = told()
        shown = preview_fact_merge(survivor=facts[0].pk, others=[facts[2].pk, facts[1].pk])
        assert (shown.survivor, list(shown.others), shown.turns) == (facts[0], [facts[2], facts[1]], 2)
        assert told() == before


class TestMergeIsRefused:
    @pytest.mark.parametrize(
        ("which", "change"),
        [
            (0, {"status": "pending"}),
            (1, {"status": "pending"}),
            (1, {"status": "trashed"}),
            (0, {"agent_id": "sales"}),
            (1, {"scope": "public"}),
            (0, {"allowed_users": ["u1"]}),
            (1, {"allowed_roles": ["admin"]}),
        ],
        ids=str,
    )
    def test_when_they_are_not_alike(self, facts: list[Fact], which: int, change: dict[str, Any]) -> None:
        Fact.objects.filter(pk=facts[which].pk).update(**change)
        before = told()
        with pytest.raises(Conflict):
            merge(facts)
        with pytest.raises(Conflict):
            preview_fact_merge(survivor=facts[0].pk, others=[facts[1].pk])
        assert told() == before

    def test_when_they_are_of_two_people(self, facts: list[Fact]) -> None:
        with pytest.raises(Conflict):
            merge([facts[0], factories.fact(factories.end_user(facts[0].tenant))])

    def test_alone_and_in_crowds(self, person: EndUser, facts: list[Fact]) -> None:
        crowd = [factories.fact(person, f"Number {number}") for number in range(11)]
        for chosen in (facts[:1], [facts[0], *crowd]):
            with pytest.raises(Conflict):
                merge(chosen)
        merge([facts[0], *crowd[1:]])

    def test_when_one_was_changed_meanwhile(self, facts: list[Fact]) -> None:
        pin_fact(fact_id=facts[1].pk, actor=STAFF, now=LATER)
        with pytest.raises(PreconditionFailed):
            merge(facts)
        assert not ChangeSet.objects.filter(verb="merge").exists()

    def test_when_one_is_gone(self, facts: list[Fact]) -> None:
        facts[1].delete()
        facts[1].pk = uuid.uuid4()
        with pytest.raises(NotFound):
            merge(facts)

    def test_without_a_text(self, facts: list[Fact]) -> None:
        with pytest.raises(InvalidInput):
            merge(facts, content=" \n")

    def test_when_a_third_says_so(self, facts: list[Fact]) -> None:
        with pytest.raises(DuplicateFact):
            merge(facts[:2], content=facts[2].content)
        assert now_of(facts[1]).status == "active"


class TestUndo:
    def test_everything_is_as_it_was(self, facts: list[Fact]) -> None:
        factories.review_item(facts[1], known=facts[0], kind="possible_duplicate", reason="not_judged")
        refused = add_fact(end_user=facts[0].end_user, draft=FactDraft(SAID, "knowledge"), actor=STAFF, now=NOW).row
        forget_fact(fact_id=refused.pk, tenant=None, actor=STAFF, now=NOW)
        before = told()
        made = merge(facts)
        assert told() != before
        undo(made, reason="Not the same after all")
        assert told() == before
        assert AuditEvent.objects.filter(verb="undo_merge", object_id=facts[0].pk).count() == 1
        assert invariants.check() == []

    def test_a_recall_is_no_change(self, facts: list[Fact]) -> None:
        made = merge(facts)
        Fact.objects.filter(pk=facts[0].pk).update(last_recalled_at=LATER)
        undo(made)

    def test_it_can_be_merged_and_undone_again(self, facts: list[Fact]) -> None:
        before = told()
        for _ in range(2):
            undo(merge([now_of(fact) for fact in facts]))
        assert told() == before


class TestSplit:
    def test_it_is_a_fact_of_its_own_again_whatever_happened_since(self, facts: list[Fact]) -> None:
        merge(facts)
        lock_fact(fact_id=facts[0].pk, actor=STAFF, now=LATER)
        split(facts[1], rest="Allergic to peanuts")
        kept, freed = now_of(facts[0]), now_of(facts[1])
        assert (freed.status, freed.content, freed.superseded_by_id) == ("active", "Has a peanut allergy", None)
        assert (freed.valid_to, freed.last_confirmed_at) == (None, LATER)
        assert (kept.content, kept.locked, kept.binding) == ("Allergic to peanuts", True, True)
        # The turn that both rest on was not copied.
        assert (turns_of(kept), turns_of(freed)) == ([1], [1, 3])
        assert not FactRelation.objects.filter(target=freed).exists()
        assert FactRelation.objects.filter(target=facts[2]).exists()
        assert AuditEvent.objects.get(verb="split").object_id == freed.pk
        assert invariants.check() == []

    def test_without_a_text_the_other_stays_as_it_is(self, facts: list[Fact]) -> None:
        merge(facts)
        version = now_of(facts[0]).version
        split(facts[1])
        assert (now_of(facts[0]).content, now_of(facts[0]).version) == (SAID, version)

    def test_the_other_makes_room_for_its_text(self, facts: list[Fact]) -> None:
        merge(facts, content=facts[1].content)
        with pytest.raises(DuplicateFact):
            split(facts[1])
        split(facts[1], rest="Allergic to peanuts")
        assert now_of(facts[1]).status == "active"

    def test_also_when_the_other_is_in_the_trash(self, facts: list[Fact]) -> None:
        merge(facts)
        forget_fact(fact_id=facts[0].pk, tenant=None, actor=STAFF, now=LATER)
        split(facts[1], rest="Allergic to peanuts")
        assert (now_of(facts[0]).status, now_of(facts[0]).content) == ("trashed", SAID)
        assert now_of(facts[1]).status == "active"

    def test_what_a_review_merged_is_split_too(self, facts: list[Fact]) -> None:
        item = factories.review_item(facts[1], known=facts[0], kind="possible_duplicate", reason="not_judged")
        merge_items(item_id=item.pk, survivor=facts[0].pk, content=SAID, actor=STAFF, now=LATER, reason="The same")
        assert turns_of(facts[0]) == [1, 3]
        split(facts[1])
        assert turns_of(facts[0]) == [1]

    def test_what_was_merely_superseded_is_not(self, facts: list[Fact]) -> None:
        Fact.objects.filter(pk=facts[1].pk).update(status="superseded", superseded_by=facts[0])
        with pytest.raises(Conflict):
            split(facts[1])

    def test_not_twice(self, facts: list[Fact]) -> None:
        merge(facts)
        split(facts[1])
        with pytest.raises(Conflict):
            split(facts[1])

    @pytest.mark.parametrize("stale", [0, 1])
    def test_not_when_one_was_changed_meanwhile(self, facts: list[Fact], stale: int) -> None:
        merge(facts)
        seen = {fact.pk: now_of(fact).version for fact in facts[:2]}
        seen[facts[stale].pk] -= 1
        with pytest.raises(PreconditionFailed):
            split(facts[1], expected=seen)

    def test_not_once_its_key_is_taken(self, person: EndUser, facts: list[Fact]) -> None:
        Fact.objects.filter(pk=facts[1].pk).update(key="reaction", value="mild")
        merge(facts)
        factories.fact(person, "Reacts badly", key="reaction", value="bad")
        with pytest.raises(Conflict):
            split(facts[1])

    def test_it_can_be_merged_again(self, facts: list[Fact]) -> None:
        merge(facts)
        split(facts[1])
        merge([now_of(facts[0]), now_of(facts[1])])
        assert turns_of(facts[0]) == [1, 3]


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_of_two_merges_that_share_a_fact_one_is_made(self, facts: list[Fact]) -> None:
        pairs = [[facts[0], facts[1]], [facts[1], facts[0]]]
        outcomes = at_once(2, lambda index: merge(pairs[index], content=f"Text {index}"))
        lost = [one for one in outcomes if isinstance(one, MemoryHubError)]
        assert [type(one) for one in lost] == [PreconditionFailed]
        assert ChangeSet.objects.filter(verb="merge").count() == 1
        assert Fact.objects.filter(pk__in=[facts[0].pk, facts[1].pk], status="active").count() == 1

    def test_of_undo_and_split_one_is_done(self, facts: list[Fact]) -> None:
        made = merge(facts)
        outcomes = at_once(2, lambda index: split(facts[1]) if index else undo(made))
        assert sum(isinstance(one, Conflict) for one in outcomes) == 1
        assert now_of(facts[1]).status == "active"
        assert invariants.check() == []
