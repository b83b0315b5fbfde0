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

from memories.curation.access.keys import authenticate_key
from memories.curation.tenants.off_boarding import off_board_tenant
from memories.models import APIKey, AuditEvent, Tenant
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of, text_of

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
    found = authenticate_key(plaintext=plaintext, now=timezone.now())
    assert found == key
    assert not list(get_messages(response.wsgi_request))
    secret = plaintext.split("_", 2)[-1]  # the secret itself may hold an underscore
    assert all(secret not in str(row.get_decoded()) for row in BrowserSession.objects.all())
    assert secret not in text_of(admin.get(page_of(key))) + text_of(admin.get(list_of(APIKey)))
    assert AuditEvent.objects.get(object_id=key.pk).verb == "create"


def test_a_key_expires_at_the_start_of_a_day_in_the_operators_zone(tenant: Tenant) -> None:
    client = signed_in(factories.operator(time_zone="Asia/Shanghai"))
    add(client, tenant, expires_on="2099-05-01")
    assert APIKey.objects.get().expires_at == datetime(2099, 4, 30, 16, tzinfo=UTC)


def test_a_bad_form_makes_no_key(admin: Client, tenant: Tenant) -> None:
    faults: list[dict[str, Any]] = [
        {"scopes": []}, {"scopes": ["everything"]}, {"name": ""}, {"tenant": ""}, {"expires_on": "2020-01-01"},
        {"expires_on": "soon"}, {"name": "x" * 101}, {"user_id": "a" * 256}, {"user_id": "  "}, {"agent_id": "a\x85b"},
    ]  # fmt: skip
    for fault in faults:
        response = add(admin, tenant, **fault)
        assert response.status_code == 400, fault
        assert not PLAINTEXT.search(text_of(response)), fault
    assert not APIKey.objects.exists()


def test_a_key_is_revoked_once(admin: Client, tenant: Tenant) -> None:
    key, plaintext = factories.api_key(tenant)
    for _ in range(2):
        assert admin.post(page_of(key, "revoke")).status_code == 302
    assert authenticate_key(plaintext=plaintext, now=timezone.now()) is None
    assert AuditEvent.objects.filter(verb="revoke").count() == 1
    page = text_of(admin.get(page_of(key)))
    assert "revoked" in page
    assert page_of(key, "revoke") not in page


def test_a_key_is_never_edited(admin: Client, tenant: Tenant) -> None:
    key, _ = factories.api_key(tenant, name="before")
    assert admin.post(page_of(key), {"name": "after", "scopes": "read"}).status_code == 405
    key.refresh_from_db()
    assert key.name == "before"


def test_the_form_is_protected_against_other_sites(tenant: Tenant) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = signed_in(factories.operator()).cookies
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


def test_it_takes_a_fresh_password(tenant: Tenant) -> None:
    operator = factories.operator()
    operator.set_password("correct horse")
    operator.save()
    stale = signed_in(operator, fresh=False)
    asked = add(stale, tenant, name="kept while asking")
    assert asked.status_code == 403
    assert 'value="kept while asking"' in text_of(asked)
    assert not PLAINTEXT.search(text_of(asked))
    assert add(stale, tenant, fresh_password="wrong").status_code == 403
    assert not APIKey.objects.exists()
    assert PLAINTEXT.search(text_of(add(stale, tenant, fresh_password="correct horse")))
    assert APIKey.objects.count() == 1


def test_the_scope_privacy_takes_the_permission_for_cases(tenant: Tenant, staff_who_may: Callable[..., Client]) -> None:
    maker = staff_who_may("add_apikey", "view_apikey", "change_apikey")
    refused = add(maker, tenant, scopes=["read", "privacy"])
    assert refused.status_code == 400
    assert "can open privacy cases" in text_of(refused)
    assert not APIKey.objects.exists()
    both = staff_who_may("add_apikey", "view_apikey", "change_apikey", "add_privacycase")
    assert add(both, tenant, scopes=["read", "privacy"]).status_code == 200
    # Nor is one rotated into one's hands.
    key = APIKey.objects.get()
    assert page_of(key, "rotate") not in text_of(maker.get(page_of(key)))
    assert maker.post(page_of(key, "rotate"), {"ends": "60"}).status_code == 403
    assert APIKey.objects.count() == 1
    assert page_of(key, "rotate") in text_of(both.get(page_of(key)))
    assert both.post(page_of(key, "rotate"), {"ends": "60"}).status_code == 200
    assert APIKey.objects.count() == 2


def test_a_year_is_filled_in(admin: Client) -> None:
    form = admin.get(f"{list_of(APIKey)}add/").context["form"]
    assert form["expires_on"].value() == timezone.localdate() + timedelta(days=365)


def test_a_key_chooses_whose_memory_its_sessions_become_and_so_does_its_successor(
    admin: Client, tenant: Tenant
) -> None:
    add(admin, tenant, memory_of="agent")
    key = APIKey.objects.get()
    assert key.memory_of == "agent"
    assert "private to the agent of the conversation" in text_of(admin.get(page_of(key)))
    admin.post(page_of(key, "rotate"), {"ends": "60"})
    assert list(APIKey.objects.values_list("memory_of", flat=True)) == ["agent", "agent"]
    assert add(admin, tenant, memory_of="everybody").status_code == 400


def test_a_key_for_one_person_and_agent(admin: Client, tenant: Tenant, staff_who_may: Callable[..., Client]) -> None:
    add(admin, tenant, user_id="anna-4711", agent_id="Support", name="bound")
    key = APIKey.objects.get()
    assert (key.user_id, key.agent_id, key.writes_as) == ("anna-4711", "support", "agent")
    page, listed = text_of(admin.get(page_of(key))), text_of(admin.get(list_of(APIKey)))
    assert "anna-4711" in page
    assert "support" in page
    # Who it is, is told on the key's page alone, to whoever may see people.
    assert "anna-4711" not in listed
    assert "one end user, support" in listed
    assert "anna-4711" not in text_of(staff_who_may("view_apikey").get(page_of(key)))
    assert "bound" in text_of(admin.get(list_of(APIKey), {"tab": "bound"}))


def test_no_key_is_for_somebody_restricted(admin: Client, tenant: Tenant) -> None:
    factories.end_user(tenant, external_id="anna", restricted_at=factories.NOW)
    assert add(admin, tenant, user_id="anna").status_code == 423
    assert not APIKey.objects.exists()
    assert add(admin, tenant, user_id="berta").status_code == 200


def test_the_list_shows_what_expires_soon(admin: Client, tenant: Tenant) -> None:
    factories.api_key(tenant, expires_at=timezone.now() + timedelta(days=29))
    assert "Expires soon\n</span>" in text_of(admin.get(list_of(APIKey)))
    APIKey.objects.update(expires_at=timezone.now() + timedelta(days=31))
    assert "Expires soon\n</span>" not in text_of(admin.get(list_of(APIKey)))


def test_a_key_that_went_with_its_tenant_can_be_revoked_for_good(admin: Client, tenant: Tenant) -> None:
    key, _ = factories.api_key(tenant)
    off_board_tenant(tenant_id=tenant.pk, expected_keys=1, actor=factories.COMMAND, now=timezone.now())
    page = text_of(admin.get(page_of(key)))
    assert page_of(key, "revoke") in page
    assert page_of(key, "rotate") not in page
    assert admin.post(page_of(key, "revoke")).status_code == 302
    assert page_of(key, "revoke") not in text_of(admin.get(page_of(key)))


@pytest.mark.parametrize(
    ("binding", "is_warned"),
    [
        ({"agent_id": "support", "writes_as": "user"}, True),
        ({"agent_id": "support"}, False),
        ({"user_id": "anna-4711", "writes_as": "user"}, False),
    ],
)
def test_a_key_for_an_agent_that_writes_as_the_user_is_warned_of(
    admin: Client, tenant: Tenant, binding: dict[str, str], is_warned: bool
) -> None:
    made = add(admin, tenant, **binding)
    key = APIKey.objects.get()
    for answer in (made, admin.get(page_of(key))):
        assert answer.status_code == 200
        assert ("is for an agent and writes as the user" in text_of(answer)) == is_warned
    assert ("Its agent speaks for the user" in text_of(admin.get(list_of(APIKey)))) == is_warned
