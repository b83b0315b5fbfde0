"""Where there is one tenant, no form makes people choose it; of two, each must be chosen."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from memories.models import APIKey, EndUser, PrivacyCase
from tests import factories
from tests.admin.pages import list_of, text_of

pytestmark = pytest.mark.django_db


def test_the_only_tenant_is_chosen_already(admin: Client) -> None:
    forms = [reverse("admin:rollback"), *(f"{list_of(model)}add/" for model in (APIKey, EndUser, PrivacyCase))]
    tenant = factories.tenant(slug="acme-prod")
    for address in forms:
        page = text_of(admin.get(address))
        assert (f'value="{tenant.pk}"' in page, "Choose a tenant" in page) == (True, False), address
    factories.tenant()
    assert [address for address in forms if "Choose a tenant" not in text_of(admin.get(address))] == []


def test_a_form_without_a_tenant_says_where_one_is_made(admin: Client) -> None:
    names = ("said", "recalled", "rollback", "memories_fact_add", "memories_privacycase_add")
    told = "No tenant yet: create one under Tenants"
    assert [name for name in names if told not in text_of(admin.get(reverse(f"admin:{name}")))] == []
    factories.tenant()
    assert [name for name in names if told in text_of(admin.get(reverse(f"admin:{name}")))] == []


def test_a_choice_of_tenants_without_any_leads_to_a_new_one(
    admin: Client, staff_who_may: Callable[..., Client]
) -> None:
    reader, new = staff_who_may("view_decaypass"), reverse("admin:memories_tenant_add")
    for address in map(reverse, ("admin:forgetting", "admin:retention")):
        assert new in text_of(admin.get(address))
        assert new not in text_of(reader.get(address))
