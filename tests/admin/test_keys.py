"""API keys: shown once in the answer that makes them, revoked, never edited."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.contrib.sessions.models import Session as BrowserSession
from django.test import Client
from django.utils import timezone

from memories import curation
from memories.models import APIKey, AuditEvent, Tenant
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import HOSTILE, LIST_BUDGET, list_of, page_of, queries_of, shows_harmless, text_of

PLAINTEXT = re.compile(r"mh_[a-z0-9]{10}_[A-Za-z0-9_-]{20,}")


@pytest.fixture
def tenant(db: None) -> Tenant:
    return factories.tenant(slug="acme-prod")


def add(client: Client, owner: Tenant, **over: Any) -> Any:
    form = {"tenant": str(owner.pk), "name": "support-bot", "scopes": ["ingest", "read"], "expires_on": ""}
    return client.post(f"{list_of(APIKey)}add/", {**form, **over})


def test_the_plaintext_is_in_the_answer_and_nowhere_else(admin: Client, tenant: Tenant) -> None:
    response = add(admin, tenant)
    assert response.status_code == 200
    (plaintext,) = set(PLAINTEXT.findall(text_of(response)))
    assert "no-store" in response["Cache-Control"]
    key = APIKey.objects.get()
    assert (key.tenant, key.name, key.scopes, key.expires_at) == (tenant, "support-bot", ["ingest", "read"], None)
    found = curation.authenticate_key(plaintext=plaintext, now=timezone.now())
    assert found == key
    assert not list(get_messages(response.wsgi_request))
    secret = plaintext.split("_", 2)[-1]  # the secret itself may hold an underscore
    assert all(secret not in str(row.get_decoded()) for row in BrowserSession.objects.all())
    assert secret not in text_of(admin.get(page_of(key))) + text_of(admin.get(list_of(APIKey)))
    assert AuditEvent.objects.get(object_id=key.pk).verb == "create"


def test_the_copy_button_needs_no_inline_script(admin: Client, tenant: Tenant) -> None:
    page = text_of(add(admin, tenant))
    assert 'data-copy="plaintext"' in page
    assert "memories/copy.js" in page
    assert "onclick" not in page


def test_a_key_expires_at_the_start_of_a_day_in_the_operators_zone(tenant: Tenant) -> None:
    client = signed_in(factories.operator(time_zone="Asia/Shanghai"))
    add(client, tenant, expires_on="2099-05-01")
    assert APIKey.objects.get().expires_at == datetime(2099, 4, 30, 16, tzinfo=UTC)


@pytest.mark.parametrize(
    "fault",
    [{"scopes": []}, {"scopes": ["everything"]}, {"name": ""}, {"tenant": ""}, {"expires_on": "2020-01-01"},
     {"expires_on": "soon"}, {"name": "x" * 101}],
)  # fmt: skip
def test_a_bad_form_makes_no_key(admin: Client, tenant: Tenant, fault: dict[str, Any]) -> None:
    response = add(admin, tenant, **fault)
    assert response.status_code == 400
    assert not PLAINTEXT.search(text_of(response))
    assert not APIKey.objects.exists()


def test_a_key_is_revoked_once(admin: Client, tenant: Tenant) -> None:
    key, plaintext = factories.api_key(tenant)
    for _ in range(2):
        assert admin.post(page_of(key, "revoke")).status_code == 302
    assert curation.authenticate_key(plaintext=plaintext, now=timezone.now()) is None
    assert AuditEvent.objects.filter(verb="revoke").count() == 1
    page = text_of(admin.get(page_of(key)))
    assert "revoked" in page
    assert page_of(key, "revoke") not in page


def test_a_key_is_never_edited(admin: Client, tenant: Tenant) -> None:
    key, _ = factories.api_key(tenant, name="before")
    assert admin.post(page_of(key), {"name": "after", "scopes": "read"}).status_code == 405
    key.refresh_from_db()
    assert key.name == "before"


def test_making_and_revoking_need_permissions(tenant: Tenant, staff_who_may: Callable[..., Client]) -> None:
    reader = staff_who_may("view_apikey")
    assert reader.get(f"{list_of(APIKey)}add/").status_code == 403
    assert add(reader, tenant).status_code == 403
    key, _ = factories.api_key(tenant)
    assert reader.post(page_of(key, "revoke")).status_code == 403
    assert add(staff_who_may("add_apikey", "view_apikey"), tenant).status_code == 200
    assert staff_who_may("change_apikey").post(page_of(key, "revoke")).status_code == 302


def test_the_form_is_protected_against_other_sites(tenant: Tenant) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(factories.operator())
    assert add(strict, tenant).status_code == 403
    token = str(strict.get(f"{list_of(APIKey)}add/").context["csrf_token"])
    assert add(strict, tenant, csrfmiddlewaretoken=token).status_code == 200


def test_the_list_shows_states(admin: Client, tenant: Tenant) -> None:
    now = timezone.now()
    factories.api_key(tenant, name="old", expires_at=now - timedelta(days=1))
    gone, _ = factories.api_key(tenant, name="gone")
    APIKey.objects.filter(pk=gone.pk).update(revoked_at=now)
    factories.api_key(tenant, name="fresh")
    page = text_of(admin.get(list_of(APIKey)))
    for state in ("active", "expired", "revoked"):
        assert f"{state.capitalize()}\n</span>" in page


def test_the_list_takes_few_queries(admin: Client, tenant: Tenant) -> None:
    factories.api_key(tenant)
    few = queries_of(admin, list_of(APIKey))
    for _ in range(30):
        factories.api_key(tenant)
    assert queries_of(admin, list_of(APIKey)) == few <= LIST_BUDGET


def test_a_hostile_name_is_escaped(admin: Client, tenant: Tenant) -> None:
    key, _ = factories.api_key(tenant, name=HOSTILE)
    assert shows_harmless(admin.get(page_of(key)))
    assert shows_harmless(admin.get(list_of(APIKey)))


def test_an_empty_list_says_what_to_do(admin: Client) -> None:
    page = text_of(admin.get(list_of(APIKey)))
    assert "No API keys yet" in page
    assert f"{list_of(APIKey)}add/" in page
