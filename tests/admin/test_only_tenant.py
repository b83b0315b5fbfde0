"""Where there is one tenant, no form makes people choose it; of two, each must be chosen."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from memories.models import APIKey, EndUser, PrivacyCase
from tests import factories
from tests.admin.pages import list_of, text_of

pytestmark = pytest.mark.django_db
MODELS = {"key": APIKey, "person": EndUser, "case": PrivacyCase}


@pytest.mark.parametrize("which", ["key", "person", "case", "roll back"])
def test_the_only_tenant_is_chosen_already(admin: Client, which: str) -> None:
    address = f"{list_of(MODELS[which])}add/" if which in MODELS else reverse("admin:rollback")
    tenant = factories.tenant(slug="acme-prod")
    page = text_of(admin.get(address))
    assert f'value="{tenant.pk}"' in page
    assert "Choose a tenant" not in page
    factories.tenant()
    assert "Choose a tenant" in text_of(admin.get(address))


@pytest.mark.parametrize("name", ["said", "recalled", "rollback", "memories_fact_add", "memories_privacycase_add"])
def test_a_form_without_a_tenant_says_where_one_is_made(admin: Client, name: str) -> None:
    address, told = reverse(f"admin:{name}"), "No tenant yet: create one under Tenants"
    assert told in text_of(admin.get(address))
    factories.tenant()
    assert told not in text_of(admin.get(address))


@pytest.mark.parametrize("name", ["forgetting", "retention"])
def test_a_choice_of_tenants_without_any_leads_to_a_new_one(
    admin: Client, staff_who_may: Callable[..., Client], name: str
) -> None:
    address, new = reverse(f"admin:{name}"), reverse("admin:memories_tenant_add")
    assert new in text_of(admin.get(address))
    assert new not in text_of(staff_who_may("view_decaypass").get(address))
