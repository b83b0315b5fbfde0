"""Making a fact public, and private again: an operator's verbs, on its page."""

import pytest
from django.test import Client

from memories.models import AuditEvent, Fact
from tests import factories
from tests.admin.pages import page_of, text_of


@pytest.fixture
def fact(db: None) -> Fact:
    return factories.fact(factories.end_user(), "The canteen opens at noon")


def test_it_is_published_and_withdrawn(admin: Client, fact: Fact) -> None:
    assert page_of(fact, "publish") in text_of(admin.get(page_of(fact)))
    assert admin.post(page_of(fact, "publish"), {"version": 1, "reason": "all may know"}).status_code == 302
    fact.refresh_from_db()
    assert (fact.scope, fact.binding) == ("public", True)
    page = text_of(admin.get(page_of(fact)))
    assert page_of(fact, "withdraw") in page
    assert page_of(fact, "publish") not in page
    assert admin.post(page_of(fact, "withdraw"), {"version": 2}).status_code == 302
    fact.refresh_from_db()
    assert (fact.scope, fact.binding) == ("private", True)
    assert list(AuditEvent.objects.values_list("verb", flat=True)) == ["withdraw", "publish"]


def test_not_twice_and_not_unseen(admin: Client, fact: Fact) -> None:
    for version, scope, status in ((1, "public", 409), (2, "private", 412), ("", "private", 400)):
        Fact.objects.update(scope=scope)
        given = {"reason": "all may know", "version": version}
        assert admin.post(page_of(fact, "publish"), given).status_code == status
        assert Fact.objects.get().scope == scope


def test_only_what_is_active(admin: Client, fact: Fact) -> None:
    for status in ("pending", "trashed"):
        Fact.objects.update(status=status)
        assert admin.post(page_of(fact, "publish"), {"version": 1, "reason": "x"}).status_code == 409
        assert page_of(fact, "publish") not in text_of(admin.get(page_of(fact)))


def test_going_back_to_a_version_that_was_public_publishes_nothing(admin: Client, fact: Fact) -> None:
    admin.post(page_of(fact, "publish"), {"version": 1, "reason": "x"})
    admin.post(page_of(fact, "withdraw"), {"version": 2})
    assert admin.post(page_of(fact, "restore"), {"version": 3, "earlier": 2}).status_code == 302
    assert Fact.objects.get().scope == "private"
