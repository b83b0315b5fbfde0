"""Making a fact public, and private again: an operator's verbs, on its page."""

import pytest
from django.test import Client

from memories.models import AuditEvent, Fact, Operator
from tests import factories
from tests.admin.conftest import signed_in
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


@pytest.mark.parametrize(
    ("version", "scope", "status"), [(1, "public", 409), (2, "private", 412), (None, "private", 400)]
)
def test_not_twice_and_not_unseen(admin: Client, fact: Fact, version: int | None, scope: str, status: int) -> None:
    Fact.objects.update(scope=scope)
    given = {"reason": "all may know"} | ({"version": version} if version else {})
    assert admin.post(page_of(fact, "publish"), given).status_code == status
    assert Fact.objects.get().scope == scope


@pytest.mark.parametrize("over", [{"status": "pending"}, {"status": "trashed"}])
def test_only_what_is_active(admin: Client, fact: Fact, over: dict[str, str]) -> None:
    Fact.objects.update(**over)
    assert admin.post(page_of(fact, "publish"), {"version": 1, "reason": "x"}).status_code == 409
    assert page_of(fact, "publish") not in text_of(admin.get(page_of(fact)))


def test_it_wants_a_fresh_password(administrator: Operator, fact: Fact) -> None:
    stale = signed_in(administrator, fresh=False)
    form = {"version": 1, "reason": "all may know"}
    answer = stale.post(page_of(fact, "publish"), form)
    assert answer.status_code == 403
    assert 'name="fresh_password"' in text_of(answer)
    assert Fact.objects.get().scope == "private"
    given = {**form, "fresh_password": "correct horse battery staple"}
    assert stale.post(page_of(fact, "publish"), given).status_code == 302
    assert Fact.objects.get().scope == "public"
    # Taking it back is no risk.
    again = signed_in(administrator, fresh=False)
    assert again.post(page_of(fact, "withdraw"), {"version": 2}).status_code == 302


def test_going_back_to_a_version_that_was_public_publishes_nothing(admin: Client, fact: Fact) -> None:
    admin.post(page_of(fact, "publish"), {"version": 1, "reason": "x"})
    admin.post(page_of(fact, "withdraw"), {"version": 2})
    assert admin.post(page_of(fact, "restore"), {"version": 3, "earlier": 2}).status_code == 302
    assert Fact.objects.get().scope == "private"
