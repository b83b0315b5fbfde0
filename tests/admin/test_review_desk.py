"""The queue as a desk: verbs by kind, who has what, how long it waits, notes, and decisions per operator."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.models import EndUser, Fact, Operator, ReviewItem, ReviewNote
from tests import factories
from tests.admin import walk
from tests.admin.conftest import signed_in
from tests.admin.pages import HOSTILE, page_of, shows_harmless, text_of
from tests.admin.test_tenant_scope import limited

pytestmark = pytest.mark.django_db
QUEUE = reverse("admin:memories_reviewitem_queue")
DECISIONS = reverse("admin:memories_reviewitem_decisions")


def suggested(person: EndUser, content: str = "Likes tea", **over: Any) -> ReviewItem:
    return factories.review_item(factories.fact(person, content, status="pending"), created_at=timezone.now(), **over)


def conflict(person: EndUser) -> ReviewItem:
    known = factories.fact(person, "Lives in Leiden")
    return suggested(person, "Lives in Utrecht", kind="conflict", reason="less_sure", known=known)


def queue_verb(item: ReviewItem, verb: str) -> str:
    return reverse("admin:memories_reviewitem_decide", args=[item.pk, verb])


@pytest.mark.parametrize("page", ["queue", "change"])
def test_the_verbs_of_a_conflict_say_which_fact_stays(admin: Client, person: EndUser, page: str) -> None:
    item = conflict(person)
    shown = text_of(admin.get(QUEUE if page == "queue" else page_of(item)))
    assert all(verb in shown for verb in ("Use new", "Keep known", "Keep both", "Merge"))


def test_use_new_is_not_said_where_the_known_fact_stays(admin: Client, person: EndUser) -> None:
    item = conflict(person)
    assert "Use new" in text_of(admin.get(page_of(item)))
    assert item.fact
    Fact.objects.filter(pk=item.fact.pk).update(agent_id="support")
    for page in (QUEUE, page_of(item)):
        shown = text_of(admin.get(page))
        assert "stays for other agents" in shown
        assert "Use new" not in shown
        assert "Keep known" in shown


def test_those_of_a_removal_and_of_a_suggestion(admin: Client, person: EndUser) -> None:
    known = factories.fact(person, "Lives in Leiden")
    removal = factories.review_item(None, known=known, kind="conflict", reason="removal")
    shown = text_of(admin.get(page_of(removal)))
    assert "No longer true" in shown
    assert "Still true" in shown
    plain = text_of(admin.get(page_of(suggested(person))))
    assert "Approve" in plain
    assert "Use new" not in plain


def test_an_item_is_taken_and_stays_on_the_right(admin: Client, administrator: Operator, person: EndUser) -> None:
    items = [suggested(person, f"Likes tea {number}") for number in range(3)]
    taken = admin.post(queue_verb(items[1], "take"), {"expected": ""}, follow=True)
    assert taken.context["chosen"] == items[1]
    assert "With you" in text_of(taken)
    assert ReviewItem.objects.get(pk=items[1].pk).taken_by == str(administrator.pk)
    mine = admin.get(QUEUE, {"holder": "me"})
    assert [row["item"] for row in mine.context["rows"]] == [items[1]]
    nobodys = admin.get(QUEUE, {"holder": "nobody"})
    assert [row["item"] for row in nobodys.context["rows"]] == [items[0], items[2]]
    admin.post(queue_verb(items[1], "give_back"))
    assert ReviewItem.objects.get(pk=items[1].pk).taken_by == ""


def test_another_sees_who_has_it_and_decides_nevertheless(admin: Client, person: EndUser) -> None:
    anna = factories.operator(username="anna")
    item = suggested(person, taken_by=str(anna.pk), taken_at=timezone.now())
    shown = text_of(admin.get(QUEUE))
    assert "anna" in shown
    assert "You can still decide it." in shown
    assert [row["item"] for row in admin.get(QUEUE, {"holder": "others"}).context["rows"]] == [item]
    # Somebody who saw it free is told.
    assert admin.post(queue_verb(item, "take"), {"expected": ""}).status_code == 409
    given = {"version": item.version, "fact_version": item.fact.version if item.fact else ""}
    admin.post(queue_verb(item, "approve"), given)
    assert ReviewItem.objects.get().state == "approved"


def test_what_waits_beyond_the_target_is_late(admin: Client) -> None:
    slow, quick = factories.tenant(review_target_hours=0), factories.tenant(review_target_hours=2)
    three_hours_ago = timezone.now() - timedelta(hours=3)
    late = suggested(factories.end_user(quick))
    never = suggested(factories.end_user(slow))
    ReviewItem.objects.update(created_at=three_hours_ago)
    rows = {row["item"].pk: row["is_late"] for row in admin.get(QUEUE).context["rows"]}
    assert rows == {late.pk: True, never.pk: False}
    assert "target 2 h" in text_of(admin.get(page_of(late)))
    assert "target" not in text_of(admin.get(page_of(never)))


def test_notes_are_shown_and_deleted_by_their_author_alone(admin: Client, person: EndUser) -> None:
    item = suggested(person)
    shown = admin.post(queue_verb(item, "note"), {"text": HOSTILE}, follow=True)
    assert shows_harmless(shown)
    note = ReviewNote.objects.get()
    signed_in(factories.operator()).post(queue_verb(item, "delete_note"), {"note": note.pk})
    assert ReviewNote.objects.count() == 1
    admin.post(queue_verb(item, "delete_note"), {"note": note.pk})
    assert ReviewNote.objects.count() == 0
    assert admin.post(queue_verb(item, "note"), {"text": " "}).status_code == 400
    assert admin.post(queue_verb(item, "note"), {"text": "A\x00note"}).status_code == 400


def test_a_role_that_only_reads_is_told_so(person: EndUser) -> None:
    item = suggested(person)
    reads, decides = signed_in(walk.role("dpo")), signed_in(walk.role("reviewer"))
    for page in (QUEUE, page_of(item)):
        told = text_of(reads.get(page))
        assert "cannot decide it" in told
        assert 'data-key="a"' not in told
        assert "Keep the note" not in told
        assert "cannot decide it" not in text_of(decides.get(page))
    assert reads.post(queue_verb(item, "take"), {"expected": ""}).status_code == 403


class TestDecisions:
    def decided(self, by: Operator, person: EndUser, days: int, state: str = "approved") -> None:
        moment = timezone.now() - timedelta(days=days)
        suggested(person, f"Said {days} {state} {by.pk}", state=state, decided_by=str(by.pk), decided_at=moment)

    def test_they_are_counted_over_three_times(self, admin: Client, administrator: Operator, person: EndUser) -> None:
        anna = factories.operator(username="anna")
        for days in (1, 20, 80, 100):
            self.decided(anna, person, days)
        self.decided(administrator, person, 1, "rejected")
        found = admin.get(DECISIONS).context["decided"]
        assert [(row.counts, row.approved) for row in found] == [((1, 2, 3), 1.0), ((1, 1, 1), 0.0)]

    def test_a_reviewer_sees_the_own_row(self, staff_who_may: Callable[..., Client], person: EndUser) -> None:
        self.decided(factories.operator(username="anna"), person, 1)
        client = staff_who_may("view_reviewitem")
        page = client.get(DECISIONS)
        assert page.context["decided"] == []
        assert "anna" not in text_of(page)

    def test_of_other_tenants_nothing_is_counted(self, person: EndUser) -> None:
        self.decided(factories.operator(username="anna"), person, 1)
        assert signed_in(limited()).get(DECISIONS).context["decided"] == []
