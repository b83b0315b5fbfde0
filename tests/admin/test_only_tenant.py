"""Where there is one tenant, no form makes people choose it; of two, each must be chosen."""

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
