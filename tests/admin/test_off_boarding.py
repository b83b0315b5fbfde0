"""Off-boarding in the admin: what it means comes first, the slug is typed out, and there is a way back."""

from typing import Any

import pytest
from django.test import Client

from memories.models import APIKey, Tenant
from tests import factories
from tests.admin.pages import page_of, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    tenant = factories.tenant(slug="acme-prod")
    factories.api_key(tenant)
    return tenant


def off_board(client: Client, tenant: Tenant, **over: Any) -> Any:
    return client.post(page_of(tenant, "off_board"), {"slug": "acme-prod", "keys": "1", **over})


def is_off_boarded(tenant: Tenant) -> bool:
    return Tenant.objects.filter(pk=tenant.pk, offboarded_at__isnull=False).exists()


def test_it_says_what_it_means_and_is_done_and_taken_back(admin: Client, tenant: Tenant) -> None:
    assert '<dd id="keys-revoked">1</dd>' in text_of(admin.get(page_of(tenant, "off_board")))
    assert not is_off_boarded(tenant)
    assert off_board(admin, tenant).status_code == 302
    assert is_off_boarded(tenant)
    assert not APIKey.objects.filter(revoked_at=None).exists()
    page = text_of(admin.get(page_of(tenant)))
    # The way back stands in the overview, before the form.
    assert page.index(page_of(tenant, "take_back")) < page.index('name="name"')
    assert 'name="capture"' not in page
    assert admin.post(page_of(tenant, "take_back")).status_code == 302
    assert not is_off_boarded(tenant)
    assert APIKey.objects.filter(revoked_at=None).exists()
    assert page_of(tenant, "off_board") in text_of(admin.get(page_of(tenant)))


@pytest.mark.parametrize(("over", "status"), [({"slug": "acme"}, 400), ({"slug": ""}, 400), ({"keys": "2"}, 412)])
def test_a_slip_ends_nothing(admin: Client, tenant: Tenant, over: dict[str, str], status: int) -> None:
    response = off_board(admin, tenant, **over)
    assert response.status_code == status
    assert 'name="keys" value="1"' in text_of(response)
    assert not is_off_boarded(tenant)


def test_a_second_time_is_told(admin: Client, tenant: Tenant) -> None:
    off_board(admin, tenant)
    assert off_board(admin, tenant, keys="0").status_code == 409
    admin.post(page_of(tenant, "take_back"))
    assert admin.post(page_of(tenant, "take_back")).status_code == 409
