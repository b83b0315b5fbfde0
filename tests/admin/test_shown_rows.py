"""Lists say which rows of how many they show."""

import pytest
from django.test import Client
from django.urls import reverse

from memories.models import EndUser
from tests import factories
from tests.admin.pages import text_of

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
