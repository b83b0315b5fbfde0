"""An approved suggestion supersedes what was said before it. What was said later stays, and the suggestion ends there;
the pages say so before."""

from collections.abc import Callable
from typing import Any

import pytest

from memories import audit
from memories.curation.facts.approving import asked_too_late
from memories.curation.reverting import revert
from memories.curation.review.decisions import approve_item
from memories.curation.review.suggestions import approve_fact
from memories.models import ChangeSet, EndUser, Fact, ReviewItem
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.curation.test_older_statements import day, since, turn_of
from tests.factories import NOW, STAFF

pytestmark = pytest.mark.django_db
WARNING = "Something else was said later"
Approve = Callable[[ReviewItem], Any]


def told(person: EndUser, city: str, *days: int, **over: Any) -> Fact:
    """A fact that rests on a turn of each of these days."""
    given = {"category": "identity", "key": "city", "value": city, **over}
    moments = {"valid_from": day(days[0]), "first_observed_at": day(days[0]), "last_confirmed_at": day(days[-1])}
    fact = factories.fact(person, f"Lives in {city}", **{**moments, **given})
    for number in days:
        factories.evidence(fact, turn_of(person, number), "I told you where I live")
    audit.revise(fact=fact, verb="extract", actor=factories.COMMAND, before={}, reason="", now=NOW)
    return fact


def asked(person: EndUser, *days: int, known: Fact | None = None, **over: Any) -> ReviewItem:
    """About a suggestion from these days."""
    fact = told(person, "Delft", *days, status="pending", trust="assistant", **over)
    kind, reason = ("conflict", "outranked") if known else ("quarantined", "assistant_trust")
    return factories.review_item(fact, known=known, kind=kind, reason=reason)


def by_item(item: ReviewItem) -> Any:
    return approve_item(item_id=item.pk, actor=STAFF, now=NOW)


def by_fact(item: ReviewItem) -> Any:
    assert item.fact_id
    return approve_fact(fact_id=item.fact_id, actor=STAFF, now=NOW)


def evidence_of(fact: Fact) -> list[int]:
    return list(fact.evidence.order_by("pk").values_list("pk", flat=True))


def history(person: EndUser) -> list[tuple[Any, ...]]:
    rows = Fact.objects.filter(end_user=person).exclude(status="trashed").order_by("valid_from", "pk")
    return [
        (row.value or row.content, row.status, since(row.valid_from), since(row.valid_to),
         row.superseded_by and (row.superseded_by.value or row.superseded_by.content))
        for row in rows
    ]  # fmt: skip


both_ways = pytest.mark.parametrize("approve", [by_item, by_fact])


class TestOfAKey:
    @both_ways
    def test_what_was_said_later_stays(self, person: EndUser, approve: Approve) -> None:
        item = asked(person, 2)
        told(person, "Leiden", 5)
        approve(item)
        assert history(person) == [("Delft", "superseded", 2, 5, "Leiden"), ("Leiden", "active", 5, None, None)]

    def test_what_was_said_before_does_not(self, person: EndUser) -> None:
        told(person, "Leiden", 2)
        by_item(asked(person, 5))
        assert [row[:2] for row in history(person)] == [("Leiden", "superseded"), ("Delft", "active")]

    def test_between_two_the_older_ends_there(self, person: EndUser) -> None:
        later = told(person, "Leiden", 5)
        told(person, "Utrecht", 1, status="superseded", valid_to=day(5), superseded_by=later)
        item = asked(person, 2)
        before = history(person)
        by_item(item)
        assert history(person) == [
            ("Utrecht", "superseded", 1, 2, "Delft"),
            ("Delft", "superseded", 2, 5, "Leiden"),
            ("Leiden", "active", 5, None, None),
        ]
        revert(change_set=ChangeSet.objects.get().pk, actor=STAFF, now=NOW)
        assert history(person) == before
        assert ReviewItem.objects.get(pk=item.pk).state == "open"

    @both_ways
    def test_what_was_said_on_both_sides_becomes_two(self, person: EndUser, approve: Approve) -> None:
        whole = told(person, "Leiden", 1, 5)
        told(person, "Utrecht", 0, status="superseded", valid_to=day(1), superseded_by=whole)
        item = asked(person, 2)
        before, cited = history(person), evidence_of(whole)
        approve(item)
        assert history(person) == [
            ("Utrecht", "superseded", 0, 1, "Leiden"),
            ("Leiden", "superseded", 1, 2, "Delft"),
            ("Delft", "superseded", 2, 5, "Leiden"),
            ("Leiden", "active", 5, None, None),
        ]
        earlier = Fact.objects.get(value="Leiden", status="superseded")
        assert evidence_of(whole) + evidence_of(earlier) == cited[::-1]
        assert Fact.objects.get(value="Utrecht").superseded_by == earlier
        revert(change_set=ChangeSet.objects.get().pk, actor=STAFF, now=NOW)
        assert history(person) == before
        assert evidence_of(whole) == cited
        assert Fact.objects.get(pk=earlier.pk).status == "trashed"
        assert Fact.objects.get(value="Utrecht").superseded_by == whole
        assert ReviewItem.objects.get(pk=item.pk).state == "open"
        # Once more, as if nothing had been.
        approve(item)
        assert [row[:2] for row in history(person)][1:] == [
            ("Leiden", "superseded"), ("Delft", "superseded"), ("Leiden", "active")
        ]  # fmt: skip

    def test_an_operators_word_on_both_sides_stays_one(self, person: EndUser) -> None:
        told(person, "Leiden", 1, 5, binding=True)
        by_item(asked(person, 2))
        assert [row[0] for row in history(person)] == ["Leiden", "Delft"]

    def test_an_approval_is_no_statement(self, person: EndUser) -> None:
        """Of two suggestions the one that was said last holds, in whatever order they are approved."""
        earlier = told(person, "Leiden", 2, status="pending", trust="assistant")
        by_item(factories.review_item(earlier, kind="quarantined", reason="assistant_trust"))
        by_item(asked(person, 5))
        assert [row[:2] for row in history(person)] == [("Leiden", "superseded"), ("Delft", "active")]

    def test_an_agents_suggestion_stands_beside_the_persons_own(self, person: EndUser) -> None:
        told(person, "Leiden", 5)
        by_item(asked(person, 2, agent_id="sales"))
        assert [row[:2] for row in history(person)] == [("Delft", "active"), ("Leiden", "active")]


@both_ways
@pytest.mark.parametrize(("said", "ends"), [(2, ("superseded", "active")), (6, ("active", "superseded"))])
def test_without_a_key_a_conflict_counts(person: EndUser, approve: Approve, said: int, ends: tuple[str, str]) -> None:
    known = told(person, "Leiden", 5, key="", value="")
    item = asked(person, said, known=known, key="", value="")
    approve(item)
    assert item.fact
    assert (Fact.objects.get(pk=item.fact.pk).status, Fact.objects.get(pk=known.pk).status) == ends


@pytest.mark.parametrize(("said", "is_late"), [(2, True), (6, False)])
def test_the_pages_say_so_before(person: EndUser, said: int, is_late: bool) -> None:
    admin = signed_in(factories.operator(is_superuser=True))
    item = asked(person, said)
    told(person, "Leiden", 5)
    assert item.fact
    pages = [page_of(item), page_of(item.fact), f"/admin/memories/reviewitem/queue/?item={item.pk}"]
    shown = [text_of(admin.get(page)) for page in pages]
    assert [WARNING in page for page in shown] == [is_late] * 3
    assert ["Keep as history" in page for page in shown] == [is_late] * 3


@pytest.mark.parametrize(("said", "is_late"), [(2, True), (6, False)])
def test_use_new_stands_only_where_the_new_one_is_used(person: EndUser, said: int, is_late: bool) -> None:
    admin = signed_in(factories.operator(is_superuser=True))
    item = asked(person, said, known=told(person, "Leiden", 5))
    shown = text_of(admin.get(page_of(item)))
    assert ("Use new" in shown, "Keep known" in shown, "Keep as history" in shown) == (
        not is_late,
        not is_late,
        is_late,
    )


def test_many_items_take_as_many_statements_as_one(person: EndUser, django_assert_num_queries: Any) -> None:
    items = [asked(person, 2), asked(factories.end_user(person.tenant), 2)]
    late = told(person, "Leiden", 5)
    with django_assert_num_queries(3):
        assert asked_too_late(items[:1], now=NOW) == {items[0].pk}
    with django_assert_num_queries(3):
        assert asked_too_late(items, now=NOW) == {items[0].pk}
    late.delete()
    assert asked_too_late(items, now=NOW) == set()
