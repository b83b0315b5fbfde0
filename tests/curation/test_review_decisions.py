"""What each decision does to each kind of item, what it leaves behind, and how all of it is undone."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from memories import audit, invariants
from memories.curation.facts.forgetting import forget_fact
from memories.curation.facts.restoring import restore_fact
from memories.curation.review.deciding import Choice, ExpectedVersions, choices_of
from memories.curation.review.decisions import approve_edited, approve_item, keep_both, merge_items, reject_item
from memories.curation.review.suggestions import approve_fact
from memories.curation.review.undo import undo_decision
from memories.exceptions import Conflict, DuplicateFact, InvalidInput, NotFound, PreconditionFailed
from memories.models import (
    AuditEvent,
    EndUser,
    Fact,
    FactEvidence,
    FactRefusal,
    FactRelation,
    FactRevision,
    ReviewItem,
)
from memories.models.folding import refusal_of_key, refusal_of_text
from tests import factories
from tests.factories import LATER, NOW, STAFF

pytestmark = pytest.mark.django_db
Maker = Callable[[EndUser], ReviewItem]


def stored(person: EndUser, content: str, **over: Any) -> Fact:
    """With its first revision, and a turn that it rests on."""
    fact = factories.fact(person, content, **over)
    factories.evidence(fact, factories.session(person).turns.get(), "Hello")
    audit.revise(fact=fact, verb="extract", actor=factories.COMMAND, before={}, reason="", now=NOW)
    return fact


def suggested(person: EndUser, **over: Any) -> Fact:
    keyed = {"key": "home_city", "value": "Delft", "status": "pending", "flags": ["instructions"]}
    return stored(person, "Lives in Delft", **{**keyed, **over})


def known_fact(person: EndUser, **over: Any) -> Fact:
    return stored(person, "Lives in Leiden", **{"key": "home_city", "value": "Leiden", **over})


def alone(reason: str, kind: str) -> Maker:
    return lambda person: factories.review_item(suggested(person), reason=reason, kind=kind)


def conflict(reason: str = "less_sure", **over: Any) -> Maker:
    def make(person: EndUser) -> ReviewItem:
        known = known_fact(person, **over)
        return factories.review_item(suggested(person), known=known, reason=reason, kind="conflict")

    return make


def contradiction(person: EndUser) -> ReviewItem:
    """Without a key in common."""
    known = known_fact(person, key="", value="")
    return factories.review_item(suggested(person, key="", value=""), known=known, reason="outranked", kind="conflict")


def removal(person: EndUser) -> ReviewItem:
    return factories.review_item(None, known=known_fact(person), reason="removal", kind="conflict")


def duplicate(person: EndUser) -> ReviewItem:
    known, newcomer = known_fact(person, key="", value=""), suggested(person, key="", value="", status="active")
    return factories.review_item(newcomer, known=known, reason="not_judged", kind="possible_duplicate")


KINDS: dict[str, Maker] = {
    "quarantined": alone("assistant_trust", "quarantined"),
    "flagged": alone("instructions", "flagged"),
    "held": alone("possible_secret", "held"),
    "less sure": conflict(),
    "outranked": contradiction,
    "operator's word": conflict("operators_word", binding=True, trust="operator"),
    "refused before": alone("refused_before", "conflict"),
    "near what is rejected": conflict("near_refused", status="rejected"),
    "removal": removal,
    "duplicate": duplicate,
}
PAIRS = ("less sure", "outranked", "operator's word", "duplicate")
# Kind → the statuses of the newcomer and of what is known, after approving and after rejecting.
ENDS: dict[str, tuple[tuple[str | None, str | None], tuple[str | None, str | None]]] = {
    "quarantined": (("active", None), ("rejected", None)),
    "flagged": (("active", None), ("rejected", None)),
    "held": (("active", None), ("rejected", None)),
    "less sure": (("active", "superseded"), ("rejected", "active")),
    "outranked": (("active", "superseded"), ("rejected", "active")),
    "operator's word": (("active", "superseded"), ("rejected", "active")),
    "refused before": (("active", None), ("rejected", None)),
    "near what is rejected": (("active", "rejected"), ("rejected", "rejected")),
    "removal": ((None, "archived"), (None, "active")),
    "duplicate": (("active", "superseded"), ("archived", "active")),
}


def decide(item: ReviewItem, choice: Choice, **over: Any) -> ReviewItem:
    given: dict[str, Any] = {"item_id": item.pk, "actor": STAFF, "now": LATER, "reason": "By phone", **over}
    if choice == Choice.MERGE:
        given = {"survivor": item.fact_id, "content": "Lives in Delft, near Leiden", **given}
    if choice == Choice.EDIT:
        given = {"changes": {"content": "Lives in Delft, near Leiden"}, **given}
    verbs: dict[Choice, Callable[..., ReviewItem]] = {
        Choice.APPROVE: approve_item,
        Choice.EDIT: approve_edited,
        Choice.REJECT: reject_item,
        Choice.KEEP_BOTH: keep_both,
        Choice.MERGE: merge_items,
    }
    return verbs[choice](**given)


def undo(item: ReviewItem, **over: Any) -> ReviewItem:
    return undo_decision(**{"item_id": item.pk, "actor": STAFF, "now": LATER, **over})


def statuses(item: ReviewItem) -> tuple[str | None, str | None]:
    item = fresh(item)
    return item.fact.status if item.fact else None, item.known.status if item.known else None


def fresh(item: ReviewItem) -> ReviewItem:
    return ReviewItem.objects.select_related("fact", "known").get(pk=item.pk)


def world() -> list[Any]:
    """All that a decision may change, without versions and times of change."""
    facts = [audit.snapshot(fact) for fact in Fact.objects.order_by("pk")]
    refusals = sorted((row.kind, bytes(row.digest), row.fact_id) for row in FactRefusal.objects.all())
    evidence = sorted(FactEvidence.objects.values_list("fact", "turn", "quote"))
    relations = sorted(FactRelation.objects.values_list("fact", "target", "type"))
    items = sorted(ReviewItem.objects.values_list("pk", "state", "decided_by", "note", "change_set"))
    return [facts, refusals, evidence, relations, items]


# Three wait by themselves and are decided alike; all kinds at once: test_review_batches.py.
@pytest.fixture(params=[kind for kind in KINDS if kind not in ("quarantined", "held")])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("choice", list(Choice))
def test_each_choice_does_its_work_is_on_record_and_is_undone(person: EndUser, kind: str, choice: Choice) -> None:
    item = KINDS[kind](person)
    if choice not in choices_of(item):
        with pytest.raises(Conflict):
            decide(item, choice)
        return
    before = world()
    decide(item, choice)
    ends_well(item, kind, choice)
    closed = fresh(item)
    assert (closed.decided_by, closed.decided_at, closed.note, closed.version) == ("7", LATER, "By phone", 2)
    event = AuditEvent.objects.get()
    assert (event.verb, event.object_type, event.object_id) == (choice, "ReviewItem", item.pk)
    made = FactRevision.objects.exclude(verb="extract")
    assert {revision.change_set for revision in made} <= {closed.change_set}
    assert {revision.reason for revision in made} <= {"By phone"}
    assert invariants.check() == []
    undo(item)
    assert world() == before
    # And it can be decided anew.
    decide(item, choice)
    ends_well(item, kind, choice)


def ends_well(item: ReviewItem, kind: str, choice: Choice) -> None:
    """As the table has it; two are kept or merged only where both may hold."""
    assert choice not in (Choice.KEEP_BOTH, Choice.MERGE) or kind in PAIRS
    ends = {
        Choice.APPROVE: ENDS[kind][0],
        Choice.REJECT: ENDS[kind][1],
        Choice.KEEP_BOTH: ("active", "active"),
        Choice.MERGE: ("active", "superseded"),
    }
    assert statuses(item) == ends.get(choice, statuses(item))
    derived = FactRelation.objects.filter(type="derived_from").values_list("fact__status", "target__status")
    assert list(derived) == ([("active", "superseded")] if choice == Choice.MERGE else [])
    refused = FactRefusal.objects.filter(digest=refusal_of_text("Lives in Delft")).exists()
    assert choice != Choice.REJECT or refused == (kind not in ("removal", "duplicate"))
    if choice == Choice.APPROVE and item.fact_id:
        fact = Fact.objects.get(pk=item.fact_id)
        served_before = kind == "duplicate"
        assert (fact.flags == [], fact.trust, fact.binding) == (not served_before, "user", False)


class TestApprove:
    def test_nothing_refuses_it_any_more_until_it_is_undone(self, person: EndUser) -> None:
        item = KINDS["refused before"](person)
        for digest_kind, digest in (
            ("text", refusal_of_text("Lives in Delft")),
            ("key", refusal_of_key("knowledge", "home_city")),
            ("text", refusal_of_text("Something else")),
        ):
            FactRefusal.objects.create(
                tenant_id=person.tenant_id, end_user=person, kind=digest_kind, digest=digest, created_at=NOW
            )
        before = world()
        decide(item, Choice.APPROVE)
        assert FactRefusal.objects.count() == 1
        undo(item)
        assert world() == before

    def test_a_third_value_of_the_key_makes_way_too(self, person: EndUser) -> None:
        item = KINDS["quarantined"](person)
        third = stored(person, "Lives in Utrecht", key="home_city", value="Utrecht")
        same = stored(person, "Is at home in Delft", key="home_city", value="DELFT")
        decide(item, Choice.APPROVE)
        third.refresh_from_db()
        same.refresh_from_db()
        assert (third.status, third.superseded_by_id, same.status) == ("superseded", item.fact_id, "active")

    def test_other_questions_about_it_are_answered_and_asked_again(self, person: EndUser) -> None:
        item = conflict()(person)
        assert item.fact
        other = factories.review_item(item.fact, kind="flagged", reason="instructions")
        decide(other, Choice.APPROVE)
        assert (fresh(other).state, fresh(item).state, statuses(item)[1]) == ("approved", "settled", "superseded")
        undo(other)
        assert (fresh(other).state, fresh(item).state, statuses(item)) == ("open", "open", ("pending", "active"))

    def test_what_is_known_may_have_gone_meanwhile(self, person: EndUser) -> None:
        item = conflict()(person)
        assert item.known
        forget_fact(fact_id=item.known.pk, tenant=None, actor=STAFF, now=NOW)
        assert choices_of(fresh(item)) == (Choice.APPROVE, Choice.EDIT, Choice.REJECT)
        decide(item, Choice.APPROVE)
        assert statuses(item) == ("active", "trashed")


class TestReject:
    def test_the_key_is_refused_unless_another_fact_holds_it(self, person: EndUser) -> None:
        decide(conflict()(person), Choice.REJECT)
        assert not FactRefusal.objects.filter(kind="key").exists()
        decide(KINDS["quarantined"](factories.end_user()), Choice.REJECT)
        assert FactRefusal.objects.filter(digest=refusal_of_key("knowledge", "home_city")).exists()

    def test_a_duplicate_names_what_is_known(self, person: EndUser) -> None:
        item = duplicate(person)
        decide(item, Choice.REJECT)
        newcomer = fresh(item).fact
        assert newcomer
        assert newcomer.superseded_by_id == item.known_id


class TestKeepBoth:
    def test_of_a_conflict_it_is_noted_that_they_contradict(self, person: EndUser) -> None:
        item = conflict()(person)
        decide(item, Choice.KEEP_BOTH)
        relation = FactRelation.objects.get()
        assert (relation.fact_id, relation.target_id, relation.type) == (item.fact_id, item.known_id, "contradicts")

    def test_of_a_duplicate_nothing_changes(self, person: EndUser) -> None:
        decide(duplicate(person), Choice.KEEP_BOTH)
        assert not FactRelation.objects.exists()
        assert set(FactRevision.objects.values_list("verb", flat=True)) == {"extract"}


class TestMerge:
    @pytest.mark.parametrize("stays", ["fact", "known"])
    def test_one_stays_as_an_operators_word_with_the_evidence_of_both(self, person: EndUser, stays: str) -> None:
        item = duplicate(person)
        kept, gone = (item.fact, item.known) if stays == "fact" else (item.known, item.fact)
        assert kept
        assert gone
        decide(item, Choice.MERGE, survivor=kept.pk, category="identity")
        kept.refresh_from_db()
        gone.refresh_from_db()
        assert (kept.content, kept.category, kept.status) == ("Lives in Delft, near Leiden", "identity", "active")
        assert (kept.binding, kept.trust, kept.source, kept.confidence) == (True, "operator", "corrected_memory", 1.0)
        assert (gone.status, gone.superseded_by_id) == ("superseded", kept.pk)
        assert (kept.evidence.count(), gone.evidence.count()) == (2, 1)

    def test_the_survivor_may_say_what_the_other_said(self, person: EndUser) -> None:
        item = duplicate(person)
        before = world()
        decide(item, Choice.MERGE, content="Lives in Leiden")
        assert Fact.objects.get(status="active").content == "Lives in Leiden"
        undo(item)
        assert world() == before

    def test_a_turn_that_both_cite_is_cited_once(self, person: EndUser) -> None:
        item = duplicate(person)
        assert item.fact
        assert item.known
        cited = item.known.evidence.get().turn
        assert cited
        factories.evidence(item.fact, cited)
        decide(item, Choice.MERGE)
        assert item.fact.evidence.count() == 2

    def test_a_third_fact_with_its_text_is_named(self, person: EndUser) -> None:
        item, third = duplicate(person), stored(person, "Lives in Gouda")
        before = world()
        with pytest.raises(DuplicateFact) as raised:
            decide(item, Choice.MERGE, content="lives in GOUDA")
        assert raised.value.fact_id == third.pk
        assert world() == before

    @pytest.mark.parametrize("over", [{"content": " "}, {"survivor": uuid.uuid4()}])
    def test_nonsense_is_refused(self, person: EndUser, over: dict[str, Any]) -> None:
        item = duplicate(person)
        with pytest.raises(InvalidInput):
            decide(item, Choice.MERGE, **over)
        assert fresh(item).state == "open"


class TestEdit:
    def test_it_holds_in_the_operators_words_and_what_it_stands_against_makes_way(self, person: EndUser) -> None:
        item = conflict()(person)
        decide(item, Choice.EDIT, changes={"content": " Lives in Delft now ", "category": "identity"})
        fact = fresh(item).fact
        assert fact
        assert (fact.content, fact.category, fact.value, fact.status) == (
            "Lives in Delft now", "identity", "", "active",
        )  # fmt: skip
        assert (fact.binding, fact.trust, fact.flags, fact.source) == (True, "operator", [], "corrected_memory")
        assert (statuses(item), fresh(item).state) == (("active", "superseded"), "approved")
        assert FactRefusal.objects.filter(digest=refusal_of_text("Lives in Delft")).exists()
        assert invariants.check() == []

    def test_what_was_refused_may_be_said_once_it_is_undone_it_is_refused_again(self, person: EndUser) -> None:
        item = KINDS["refused before"](person)
        for text in ("Lives in Delft", "Lives in Delft now"):
            FactRefusal.objects.create(
                tenant_id=person.tenant_id, end_user=person, kind="text", digest=refusal_of_text(text), created_at=NOW
            )
        before = world()
        decide(item, Choice.EDIT, changes={"content": "Lives in Delft now"})
        refused = {bytes(row.digest) for row in FactRefusal.objects.all()}
        assert refused == {refusal_of_text("Lives in Delft")}
        undo(item)
        assert world() == before

    def test_a_duplicate_is_merged_instead(self, person: EndUser) -> None:
        with pytest.raises(Conflict, match="not possible here"):
            decide(duplicate(person), Choice.EDIT)

    def test_nonsense_and_another_facts_text_are_refused(self, person: EndUser) -> None:
        item = conflict()(person)
        for text, error in ((" ", InvalidInput), ("lives in LEIDEN", DuplicateFact)):
            before = world()
            with pytest.raises(error):
                decide(item, Choice.EDIT, changes={"content": text})
            assert world() == before

    def test_secrets_are_cut_out_of_it_and_of_the_reason(self, person: EndUser) -> None:
        item, said = conflict()(person), "My password is hunter2hunter2"
        decide(item, Choice.EDIT, changes={"content": said}, reason=said)
        assert not Fact.objects.filter(content__contains="hunter2").exists()
        assert "hunter2" not in fresh(item).note


class TestWhatWasSeen:
    def test_an_item_is_decided_once(self, person: EndUser) -> None:
        item = conflict()(person)
        decide(item, Choice.APPROVE)
        with pytest.raises(Conflict, match="approved"):
            decide(item, Choice.REJECT)
        assert statuses(item) == ("active", "superseded")

    @pytest.mark.parametrize("stale", ["item", "fact", "known", "other fact"])
    def test_not_by_who_saw_something_else(self, person: EndUser, stale: str) -> None:
        item = conflict()(person)
        assert item.fact
        assert item.known
        facts = {item.fact.pk: 1 + (stale == "fact"), item.known.pk: 1 + (stale == "known")}
        if stale == "other fact":
            facts = {item.fact.pk: 1}
        with pytest.raises(PreconditionFailed):
            decide(item, Choice.APPROVE, expected=ExpectedVersions(1 + (stale == "item"), facts))
        decide(item, Choice.APPROVE, expected=ExpectedVersions(1, {item.fact.pk: 1, item.known.pk: 1}))

    @pytest.mark.parametrize(("kind", "which", "status"), [
        ("less sure", "fact", "active"), ("less sure", "fact", "archived"), ("duplicate", "fact", "trashed"),
        ("removal", "known", "superseded"),
    ])  # fmt: skip
    def test_what_is_no_question_any_more_is_not_decided(
        self, person: EndUser, kind: str, which: str, status: str
    ) -> None:
        item = KINDS[kind](person)
        Fact.objects.filter(pk=getattr(item, f"{which}_id")).update(status=status)
        assert choices_of(fresh(item)) == ()
        for choice in (Choice.APPROVE, Choice.REJECT):
            with pytest.raises(Conflict, match="nothing left to decide"):
                decide(item, choice)

    def test_an_unknown_item_is_not_found(self) -> None:
        for verb in (approve_item, undo_decision):
            with pytest.raises(NotFound):
                verb(item_id=uuid.uuid4(), actor=STAFF, now=NOW)


class TestUndo:
    def test_only_what_is_decided_as_it_was_seen_and_only_once(self, person: EndUser) -> None:
        item = conflict()(person)
        with pytest.raises(Conflict, match="nothing to undo"):
            undo(item)
        decide(item, Choice.APPROVE)
        with pytest.raises(PreconditionFailed):
            undo(item, expected_version=1)
        undo(item, expected_version=2)
        with pytest.raises(Conflict, match="nothing to undo"):
            undo(item)
        assert list(AuditEvent.objects.order_by("id").values_list("verb", flat=True)) == ["approve", "undo"]

    @pytest.mark.parametrize("which", ["fact", "known"])
    @pytest.mark.parametrize("choice", [choice for choice in Choice if choice != Choice.EDIT])
    def test_not_once_a_fact_has_changed_since(self, person: EndUser, which: str, choice: Choice) -> None:
        item = conflict()(person)
        decide(item, choice)
        changed = getattr(item, f"{which}_id")
        if choice == Choice.REJECT and which == "fact":
            approve_fact(fact_id=changed, actor=STAFF, now=LATER)
        else:
            restore_fact(fact_id=changed, tenant=None, version=1, actor=STAFF, now=LATER)
        before = world()
        with pytest.raises(Conflict, match="changed since"):
            undo(item)
        assert world() == before

    def test_decisions_on_top_of_each_other_are_undone_from_the_last(self, person: EndUser) -> None:
        first = KINDS["quarantined"](person)
        rival = stored(person, "Lives in Gouda", key="home_city", value="Gouda", status="pending")
        second = factories.review_item(rival)
        before = world()
        for item in (first, second):
            decide(item, Choice.APPROVE)
        assert [statuses(item)[0] for item in (first, second)] == ["superseded", "active"]
        with pytest.raises(Conflict, match="changed since"):
            undo(first)
        for again in (False, True):
            undo(second)
            assert statuses(first)[0] == "active"
            if not again:
                decide(second, Choice.APPROVE)
        undo(first)
        assert world() == before

    def test_what_was_settled_by_itself_is_not_undone(self, person: EndUser) -> None:
        item = duplicate(person)
        forget_fact(fact_id=item.fact_id, tenant=None, actor=STAFF, now=NOW)  # type: ignore[arg-type]
        assert fresh(item).state == "settled"
        with pytest.raises(Conflict):
            undo(item)
