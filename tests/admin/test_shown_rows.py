"""Lists say which rows of how many they show, and without any what they are for."""

import pytest
from django.contrib import admin as site
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from memories.admin.site.page import HubModelAdmin
from memories.models import EndUser
from tests import factories
from tests.admin.pages import list_of, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def people() -> list[EndUser]:
    tenant = factories.tenant()
    return [factories.end_user(tenant, external_id=f"u-{number}") for number in range(27)]


@pytest.mark.parametrize(
    ("query", "said"), [("", "1–25 of 27"), ("?p=2", "26–27 of 27"), ("?all=", "1–25 of 27"), ("?q=u-26", "1–1 of 1")]
)
def test_a_list_says_what_it_shows(admin: Client, people: list[EndUser], query: str, said: str) -> None:
    assert said in text_of(admin.get(reverse("admin:memories_enduser_changelist") + query))


def test_an_empty_list_does_not(admin: Client, people: list[EndUser]) -> None:
    address = reverse("admin:memories_enduser_changelist")
    assert 'class="py-4 hub-shown"' in text_of(admin.get(address))
    assert 'class="py-4 hub-shown"' not in text_of(admin.get(f"{address}?q=nobody"))


def test_every_empty_list_says_what_it_is_for(admin: Client) -> None:
    empty = {model: page for model, page in site.site._registry.items() if not model._default_manager.exists()}
    # The rest are operators, roles and the audit trail, which are never empty.
    assert len(empty) >= 13
    for model, page in empty.items():
        shown = text_of(admin.get(list_of(model)))
        own = (page.empty_title, page.empty_hint)  # type: ignore[attr-defined]
        assert own != (HubModelAdmin.empty_title, HubModelAdmin.empty_hint), model
        for text in own:
            assert escape(str(text)) in shown, model
