"""Why somebody changes something: optional, with reasons to choose from, and left out where nobody gave one."""

import re

import pytest
from django.test import Client

from memories.models import Fact, FactRevision, Operator, ReviewItem
from tests import factories
from tests.admin.pages import page_of, text_of

pytestmark = pytest.mark.django_db
VERBS = ("correct", "expire", "forget", "lock", "pin")


@pytest.fixture
def fact() -> Fact:
    return factories.fact(factories.end_user(), "Lives in Leiden")


def given(fact: Fact, reason: str) -> dict[str, object]:
    day = {"last_day": "2099-01-01"}
    return {
        "version": fact.version,
        "content": f"Now {fact.content}",
        "category": fact.category,
        "reason": reason,
        **day,
    }


@pytest.mark.parametrize("reason", ["", "Out of date"])
def test_each_verb_takes_a_reason_or_none(admin: Client, fact: Fact, reason: str) -> None:
    for verb in VERBS:
        one = factories.fact(fact.end_user, f"To {verb}")
        assert admin.post(page_of(one, verb), given(one, reason)).status_code == 302, verb
        revision = FactRevision.objects.filter(fact=one).order_by("-version")[0]
        assert (revision.verb, revision.reason) == (verb, reason)
    assert ("Reason: " in text_of(admin.get(page_of(one)))) is bool(reason)


def test_to_make_a_fact_public_needs_one(admin: Client, fact: Fact) -> None:
    assert admin.post(page_of(fact, "publish"), given(fact, "")).status_code == 400
    fact.refresh_from_db()
    assert fact.scope == "private"


@pytest.mark.parametrize("reason", ["", "Only guessed"])
def test_an_item_is_rejected_with_a_reason_or_without(admin: Client, fact: Fact, reason: str) -> None:
    Fact.objects.update(status="pending")
    fact.refresh_from_db()
    item = factories.review_item(fact)
    sent = {"version": item.version, "fact_version": fact.version, "reason": reason}
    assert admin.post(page_of(item, "reject"), sent).status_code == 302
    item.refresh_from_db()
    assert (item.state, item.note) == (ReviewItem.State.REJECTED, reason)


def test_each_field_has_a_list_of_its_own(admin: Client, fact: Fact) -> None:
    page = text_of(admin.get(page_of(fact)))
    fields = re.findall(r'<input[^>]* name="reason"[^>]*>', page)
    listed = [found.group(1) for field in fields if (found := re.search(r' list="([^"]+)"', field))]
    assert len(set(listed)) == len(listed) >= len(VERBS)
    assert {f'<datalist id="{name}">' in page for name in listed} == {True}


def test_they_are_offered_in_the_language_of_the_page(admin: Client, administrator: Operator, fact: Fact) -> None:
    assert '<option value="Misunderstood">' in text_of(admin.get(page_of(fact)))
    chinese = text_of(admin.get(page_of(fact), headers={"accept-language": "zh-hans"}))
    assert '<option value="Misunderstood">' not in chinese
    assert '<option value="误解">' in chinese
