"""How the verbs on facts and sessions decide, settle and reopen the items about them."""

import uuid
from typing import Any

import pytest

from memories import invariants
from memories.curation.facts import editing, forgetting, restoring
from memories.curation.review import suggestions
from memories.curation.review.decisions import reject_item
from memories.curation.sessions import delete_session
from memories.exceptions import Conflict, OperatorWord
from memories.models import EndUser, Fact, FactRevision, ReviewItem
from tests import factories
from tests.curation.test_review_decisions import conflict, duplicate, fresh, statuses, stored, suggested, undo
from tests.factories import KEY, LATER, NOW, STAFF

pytestmark = pytest.mark.django_db


@pytest.fixture
def item(person: EndUser) -> ReviewItem:
    return conflict()(person)


def act(verb: str, fact_id: uuid.UUID | None, **over: Any) -> Any:
    given: dict[str, Any] = {"fact_id": fact_id, "actor": STAFF, "now": LATER, **over}
    if verb in ("edit", "correct", "forget", "delete", "restore"):
        given = {"tenant": None, **given}
    module = next(one for one in (suggestions, editing, forgetting, restoring) if hasattr(one, f"{verb}_fact"))
    return getattr(module, f"{verb}_fact")(**given)


class TestASuggestion:
    def test_approved_on_its_own_page(self, item: ReviewItem) -> None:
        act("approve", item.fact_id, reason="By phone")
        closed = fresh(item)
        assert (closed.state, closed.decided_by, closed.note) == ("approved", "7", "By phone")
        assert statuses(item) == ("active", "superseded")
        undo(item)
        assert (fresh(item).state, statuses(item)) == ("open", ("pending", "active"))

    def test_rejected_and_reconsidered(self, item: ReviewItem) -> None:
        act("reject", item.fact_id)
        assert (fresh(item).state, statuses(item)) == ("rejected", ("rejected", "active"))
        act("reconsider", item.fact_id)
        again = fresh(item)
        assert (again.state, again.decided_by, again.change_set, again.version) == ("open", "", None, 3)

    def test_rejected_by_the_item_and_reconsidered_on_its_page(self, item: ReviewItem) -> None:
        reject_item(item_id=item.pk, actor=STAFF, now=LATER, reason="No")
        act("reconsider", item.fact_id)
        assert fresh(item).state == "open"

    @pytest.mark.parametrize(
        ("over", "reason"),
        [
            ({}, "suggested"),
            ({"trust": "assistant"}, "assistant_trust"),
            ({"trust": "tool"}, "tool_trust"),
            ({"trust": "tool", "flags": ["instructions"]}, "instructions"),
            ({"flags": ["possible_secret"]}, "possible_secret"),
        ],
    )
    def test_reconsidered_it_is_asked_about_though_it_never_was(
        self, person: EndUser, over: dict[str, Any], reason: str
    ) -> None:
        fact = suggested(person, **{"flags": [], "status": "rejected", **over})
        act("reconsider", fact.pk)
        assert (ReviewItem.objects.get().fact_id, ReviewItem.objects.get().reason) == (fact.pk, reason)

    def test_corrected_its_question_is_settled(self, item: ReviewItem) -> None:
        act("correct", item.fact_id, content="Lives in Gouda", reason="By phone")
        assert fresh(item).state == "settled"

    def test_forgotten_and_restored_it_is_asked_about_again(self, item: ReviewItem) -> None:
        act("forget", item.fact_id)
        assert fresh(item).state == "settled"
        act("restore", item.fact_id)
        assert (fresh(item).state, statuses(item)[0]) == ("open", "pending")

    def test_edited_it_still_waits(self, item: ReviewItem) -> None:
        act("edit", item.fact_id, changes={"importance": 0.9})
        assert fresh(item).state == "open"

    def test_deleted_its_question_goes(self, item: ReviewItem) -> None:
        act("delete", item.fact_id)
        assert not ReviewItem.objects.exists()


class TestWhatIsKnown:
    def test_forgotten_the_suggestion_still_waits(self, item: ReviewItem) -> None:
        act("forget", item.known_id)
        assert fresh(item).state == "open"

    def test_deleted_the_suggestion_waits_by_itself(self, item: ReviewItem) -> None:
        act("delete", item.known_id)
        left = fresh(item)
        assert (left.state, left.known_id, left.fact_id) == ("open", None, item.fact_id)

    def test_deleted_of_two_questions_one_is_left(self, person: EndUser, item: ReviewItem) -> None:
        factories.review_item(item.fact, kind="conflict", reason="refused_before")
        act("delete", item.known_id)
        assert ReviewItem.objects.get().known is None

    def test_deleted_a_duplicate_is_none_any_more(self, person: EndUser) -> None:
        act("delete", duplicate(person).known_id)
        assert not ReviewItem.objects.exists()

    def test_forgotten_a_duplicate_is_none_any_more(self, person: EndUser) -> None:
        item = duplicate(person)
        act("forget", item.known_id)
        assert fresh(item).state == "settled"


class TestASession:
    def test_deleted_with_what_is_known_the_suggestion_waits_by_itself(self, person: EndUser) -> None:
        item = conflict()(person)
        assert item.known
        session = item.known.evidence.get().session
        delete_session(session_id=session.pk, tenant=None, actor=STAFF, now=NOW)
        assert (fresh(item).known_id, fresh(item).state) == (None, "open")

    def test_deleted_with_the_suggestion_nothing_waits(self, person: EndUser) -> None:
        item = conflict()(person)
        assert item.fact
        session = item.fact.evidence.get().session
        delete_session(session_id=session.pk, tenant=None, actor=STAFF, now=NOW)
        assert not ReviewItem.objects.exists()


class TestRestoring:
    """Two values of one key are never served."""

    @pytest.fixture
    def old(self, person: EndUser) -> Fact:
        newer = stored(person, "Lives in Delft", key="home_city", value="Delft")
        closed = {"status": "superseded", "valid_to": NOW, "superseded_by": newer}
        return stored(person, "Lives in Leiden", key="home_city", value="Leiden", **closed)

    def test_by_an_operator_what_holds_the_key_makes_way(self, old: Fact) -> None:
        act("restore", old.pk, version=1)
        newer = Fact.objects.get(content="Lives in Delft")
        assert (newer.status, newer.superseded_by_id) == ("superseded", old.pk)
        made = FactRevision.objects.exclude(verb="extract")
        assert len(made) == 2
        assert len({revision.change_set for revision in made}) == 1
        assert invariants.check() == []

    def test_by_a_key_it_is_refused_with_the_reason(self, old: Fact) -> None:
        with pytest.raises(Conflict, match="different value"):
            act("restore", old.pk, version=1, actor=KEY)
        assert list(Fact.objects.filter(status="active").values_list("content", flat=True)) == ["Lives in Delft"]

    def test_by_a_key_it_may_where_nothing_holds_the_key(self, old: Fact) -> None:
        act("forget", Fact.objects.get(content="Lives in Delft").pk, actor=KEY)
        act("restore", old.pk, version=1, actor=KEY)
        assert Fact.objects.get(status="active") == old

    def test_by_a_key_it_may_not_where_an_operator_refused_the_key(self, old: Fact) -> None:
        act("forget", Fact.objects.get(content="Lives in Delft").pk)
        with pytest.raises(OperatorWord):
            act("restore", old.pk, version=1, actor=KEY)
        act("restore", old.pk, version=1)
        assert Fact.objects.get(status="active") == old

    @pytest.mark.parametrize("over", [{"value": "LEIDEN"}, {"value": ""}, {"key": "work_city"}, {"agent_id": "bot"}])
    def test_what_is_no_rival_stays(self, old: Fact, over: dict[str, Any]) -> None:
        Fact.objects.filter(content="Lives in Delft").update(**over)
        act("restore", old.pk, version=1, actor=KEY)
        assert Fact.objects.filter(status="active").count() == 2
