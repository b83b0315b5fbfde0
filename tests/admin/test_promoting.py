"""Making an agent's fact the person's own: an operator's verb, on its page and for many in the list."""

import pytest
from django.test import Client

from memories.models import AuditEvent, Fact
from tests import factories
from tests.admin.pages import page_of, text_of


@pytest.fixture
def fact(db: None) -> Fact:
    return factories.fact(factories.end_user(), agent_id="sales")


def test_on_its_page(admin: Client, fact: Fact) -> None:
    assert page_of(fact, "promote") in text_of(admin.get(page_of(fact)))
    assert admin.post(page_of(fact, "promote"), {"version": 1}).status_code == 302
    fact.refresh_from_db()
    assert (fact.agent_id, fact.version) == ("", 2)
    assert AuditEvent.objects.get().verb == "promote"
    assert page_of(fact, "promote") not in text_of(admin.get(page_of(fact)))
    assert admin.post(page_of(fact, "promote"), {"version": 2}).status_code == 409


def test_not_unseen(admin: Client, fact: Fact) -> None:
    assert admin.post(page_of(fact, "promote"), {"version": 7}).status_code == 412
    assert Fact.objects.get().agent_id == "sales"
