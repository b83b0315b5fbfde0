"""Only operators who can view sessions see the messages: on the page of a fact, and where a fact is decided."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from memories import audit
from memories.models import Fact, ReviewItem
from tests import factories
from tests.admin.pages import page_of, text_of

pytestmark = pytest.mark.django_db
SAID, BESIDE, QUOTE = "Well, my leg has hurt since Tuesday", "What hurts, if I may ask?", "my leg has hurt"
HIDDEN = "Only operators who can view sessions see the messages"


@pytest.fixture
def fact() -> Fact:
    person = factories.end_user()
    session = factories.session(person, [("assistant", BESIDE), ("user", SAID)])
    made = factories.fact(person, "Has pain in the leg", raw=QUOTE, status="pending")
    factories.evidence(made, session.turns.get(number=2))
    return made


@pytest.fixture
def item(fact: Fact) -> ReviewItem:
    return factories.review_item(fact)


def pages(client: Client, fact: Fact, item: ReviewItem) -> list[str]:
    queue = client.get(reverse("admin:memories_reviewitem_queue"), {"item": str(item.pk)})
    return [text_of(answer) for answer in (client.get(page_of(fact)), client.get(page_of(item)), queue)]


def test_who_may_not_see_sessions_sees_no_turn(
    staff_who_may: Callable[..., Client], fact: Fact, item: ReviewItem
) -> None:
    reader = staff_who_may("view_fact", "view_reviewitem", "change_reviewitem")
    for page in pages(reader, fact, item):
        assert "Has pain in the leg" in page
        assert HIDDEN in page
        for said in (SAID, BESIDE, QUOTE):
            assert said not in page


def test_who_may_sees_them(staff_who_may: Callable[..., Client], fact: Fact, item: ReviewItem) -> None:
    reader = staff_who_may("view_fact", "view_reviewitem", "change_reviewitem", "view_session")
    for page in pages(reader, fact, item):
        assert QUOTE in page
        assert BESIDE in page
        assert HIDDEN not in page


def test_a_quote_is_hidden_where_no_turn_is_left(staff_who_may: Callable[..., Client], fact: Fact) -> None:
    fact.evidence.all().delete()
    assert QUOTE not in text_of(staff_who_may("view_fact").get(page_of(fact)))
    assert QUOTE in text_of(staff_who_may("view_fact", "view_session").get(page_of(fact)))


def test_a_quote_that_a_revision_changed_is_hidden(staff_who_may: Callable[..., Client], fact: Fact) -> None:
    before = audit.snapshot(fact)
    fact.raw, fact.version = "", fact.version + 1
    fact.save()
    audit.revise(fact=fact, verb="edit", actor=factories.COMMAND, before=before, reason="", now=factories.NOW)
    fact.evidence.all().delete()
    assert QUOTE not in text_of(staff_who_may("view_fact").get(page_of(fact)))
    assert QUOTE in text_of(staff_who_may("view_fact", "view_session").get(page_of(fact)))
