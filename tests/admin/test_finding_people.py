"""Whom an operator means: by any id, or by the name if only one end user of the tenant fits."""

import pytest
from django.test import Client
from django.urls import reverse

from memories.admin.people.finding import find_person
from memories.models import EndUser
from tests import factories
from tests.admin.pages import page_of, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna() -> EndUser:
    return factories.end_user(external_id="u-1", display_name="Anna Visser")


def test_by_id_and_by_a_name_that_one_has(anna: EndUser) -> None:
    factories.end_user(external_id="u-9", display_name="Anna Visser")
    assert find_person(anna.tenant, "u-1") == (anna, "")
    assert find_person(anna.tenant, "visser") == (anna, "")
    assert find_person(anna.tenant, "u-9")[0] is None


def test_several_are_listed_by_their_ids(anna: EndUser) -> None:
    factories.end_user(anna.tenant, external_id="u-2", display_name="Anna Bos")
    found, why_not = find_person(anna.tenant, "anna")
    assert found is None
    assert why_not.endswith("u-2, u-1")


def test_a_merge_and_why_recalled_take_a_name(admin: Client, anna: EndUser) -> None:
    other = factories.end_user(anna.tenant, external_id="u-2", display_name="Ben Bos")
    preview = text_of(admin.post(page_of(anna, "merge"), {"other": "ben bos"}))
    assert "<code>u-2</code>" in preview
    asked = {"tenant": anna.tenant.pk, "user_id": "visser", "agent": "", "query": "tea", "max_tokens": "2000"}
    answer = admin.post(reverse("admin:recalled"), asked)
    assert (answer.status_code, answer.context["form"].person) == (200, anna)
    refused = admin.post(reverse("admin:recalled"), {**asked, "user_id": "nobody"})
    assert refused.status_code == 400
    assert other.external_id not in text_of(refused)
