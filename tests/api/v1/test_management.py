"""/management: kinds of keys, tenants, keys and webhooks of tenants, and what is never shown."""

import json
import logging
import re
import threading
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.utils import timezone

from memories import conf
from memories.curation.access.keys import revoke_management_key
from memories.curation.tenants import language_models, webhooks
from memories.exceptions import ModelMisconfigured, ModelTimeout, ModelUnavailable
from memories.models import (
    APIKey,
    AuditEvent,
    LanguageModel,
    ManagementKey,
    Tenant,
    WebhookDelivery,
    WebhookEndpoint,
)
from tests import factories
from tests.api.client import BASE, HubClient, follow, management_operations
from tests.database import at_once
from tests.test_docs_api import run_curl

pytestmark = pytest.mark.django_db
TENANTS = "/management/tenants"
ACME = f"{TENANTS}/acme"
URL = "http://127.0.0.1:9/in/path"
HOOK: dict[str, Any] = {"name": "CRM", "url": URL, "events": ["person.erased", "fact.created"], "content": False}
KEY = {"name": "support-bot", "scopes": ["ingest", "read"]}
# A body for each operation that takes one.
BODIES: dict[str, dict[str, Any]] = {
    "putTenant": {"name": "Acme"},
    "changeTenant": {"name": "Acme"},
    "createTenantKey": KEY,
    "rotateTenantKey": {},
    "addWebhook": HOOK,
    "putWebhook": HOOK,
    "sendWebhookAgain": {},
    "putTenantModel": {"model": "small"},
    "changeTenantAgent": {"recall": False},
    "putTenantProfile": {"schema": {"type": "object", "properties": {"city": {"type": "string"}}}},
    "putOperator": {"tenants": None},
}


@pytest.fixture(autouse=True)
def _loopback(settings: LazySettings) -> None:
    settings.MEMORYHUB_PRIVATE_ENDPOINTS = ["127.0.0.1"]


@pytest.fixture
def acme() -> Tenant:
    return factories.tenant(slug="acme")


@pytest.fixture
def manager() -> HubClient:
    return HubClient(factories.management_key(operators=True)[1])


def call(client: HubClient, operation: str, **path: str) -> Any:
    """The operation on the tenant acme, and on objects that are not there unless `path` names them."""
    method, template = management_operations()[operation]
    ids = {name: str(uuid.uuid4()) for name in ("key_id", "webhook_id", "agent_id")}
    named = {"slug": "acme", "name": "travel", **ids, **path}
    query = "username=lin" if "/operators/" in template else ""
    return client.call(method, template.removeprefix(BASE).format(**named), BODIES.get(operation), query=query)


def faults(answer: Any) -> dict[str, str]:
    return {one["pointer"]: one["code"] for one in answer.json()["errors"]}


# Kinds of keys


def test_a_management_key_is_let_in_where_a_tenants_key_is_refused(acme: Tenant, manager: HubClient) -> None:
    ordinary = HubClient(factories.api_key(acme)[1])
    for operation in management_operations():
        refused = call(ordinary, operation)
        assert (refused.status_code, refused.json()["code"]) == (403, "no_management_key"), operation
        assert "management keys" in refused.json()["detail"]
    assert Tenant.objects.get().offboarded_at is None
    assert not AuditEvent.objects.exclude(verb="create").exists()
    for operation in management_operations():
        assert call(manager, operation).status_code in (200, 201, 204, 404, 409), operation


@pytest.mark.parametrize("how", ["revoked", "expired", "unknown", "cut", "none"])
def test_a_key_that_does_not_work_is_refused(how: str) -> None:
    now = timezone.now()
    key, plaintext = factories.management_key(expires_at=now - timedelta(seconds=1) if how == "expired" else None)
    client = HubClient(plaintext if how in ("revoked", "expired") else f"mhm_{'a' * 10}_{'b' * 43}")
    if how == "revoked":
        assert client.get(TENANTS).status_code == 200
        for _ in range(2):
            revoke_management_key(key=key, actor=factories.COMMAND, now=now)
    if how == "cut":
        client = HubClient(plaintext[:-1])
    headers = {"Authorization": ""} if how == "none" else {}
    refused = client.call("GET", TENANTS, headers=headers)
    assert refused.status_code == 401
    assert AuditEvent.objects.filter(verb="revoke").count() == (how == "revoked")


def test_a_key_for_one_tenant_finds_no_other(acme: Tenant) -> None:
    other = factories.tenant(slug="other")
    theirs, hook, agent = factories.api_key(other)[0], factories.webhook(other), factories.agent(other)
    limited = HubClient(factories.management_key(acme)[1])
    assert [one["slug"] for one in limited.get(TENANTS).json()["results"]] == ["acme"]
    for operation, (_, template) in management_operations().items():
        if "{slug}" in template:
            ids = {"key_id": str(theirs.pk), "webhook_id": str(hook.pk), "agent_id": str(agent.pk)}
            named = {"slug": "other", **ids}
            assert call(limited, operation, **named).status_code == 404, operation
            # Of another tenant by its own one's address, also for a key of all tenants.
            if "_id}" in template:
                assert call(limited, operation, **{**named, "slug": "acme"}).status_code == 404, operation
    assert limited.call("PUT", f"{TENANTS}/new", {}).status_code == 404
    assert Tenant.objects.count() == 2
    theirs.refresh_from_db()
    other.refresh_from_db()
    agent.refresh_from_db()
    assert (theirs.revoked_at, other.offboarded_at, WebhookEndpoint.objects.count()) == (None, None, 1)
    assert (agent.recall, LanguageModel.objects.count()) == (True, 0)
    assert limited.call("PATCH", ACME, {"name": "Own"}).status_code == 200


def test_its_use_and_its_name_are_kept_and_its_requests_are_counted(
    acme: Tenant, monkeypatch: pytest.MonkeyPatch, settings: LazySettings
) -> None:
    key, plaintext = factories.management_key()
    client = HubClient(plaintext)
    assert client.call("PATCH", ACME, {"name": "A"}).status_code == 200
    key.refresh_from_db()
    assert key.last_used_at
    assert bytes(key.digest) != plaintext.encode()
    event = AuditEvent.objects.get(verb="update")
    assert (event.actor_kind, event.actor_id, event.tenant_uuid) == ("key", str(key.pk), acme.pk)
    monkeypatch.setattr("memories.api.throttles.MANAGEMENT", conf.Rate(requests=0, seconds=60))
    refused = client.get(TENANTS)
    assert refused.status_code == 429
    assert refused.headers["Retry-After"]
    # A setting replaces the limit, and counts in windows of its own.
    settings.MEMORYHUB_THROTTLES = {**settings.MEMORYHUB_THROTTLES, "management": (2, 86_400)}
    assert [client.get(TENANTS).status_code for _ in range(3)] == [200, 200, 429]


# Tenants


def test_a_tenant_is_made_once_and_read_back_whole(manager: HubClient) -> None:
    given = {
        "name": "Acme", "time_zone": "Asia/Shanghai", "language": "zh-hans", "capture": True, "serve": False,
        "memory_of": "agent", "extraction_guidance": "Remember sizes.", "trust_assistant": True,
        "signal_phrases": {"goal": ["our target is … this year"]}, "context_log": "off", "file_seed": "# Notes\n",
        "dream_guide": "Short.", "dream_model": "small", "dream_files": ["/notes/me.md", "/skills/"],
        "person_namespaces": ["p.{user_id}"],
        "numbers": {"debounce_seconds": 20, "half_lives": {"goal": None, "skill": 30}},
    }  # fmt: skip
    made = manager.call("PUT", ACME, given, headers={"If-None-Match": "*"})
    assert made.status_code == 201
    assert {name: made.json()[name] for name in given} == given
    again = manager.call("PUT", ACME, given)
    assert (again.status_code, again.json()) == (200, made.json())
    assert manager.get(ACME).json() == made.json()
    assert made.headers["ETag"] == manager.get(ACME).headers["ETag"] == f'"{made.json()["version"]}"'
    # Nothing changed, so nothing was written.
    assert list(AuditEvent.objects.filter(object_type="Tenant").values_list("verb", flat=True)) == ["add"]
    refused = manager.call("PUT", ACME, given, headers={"If-None-Match": "*"})
    assert (refused.status_code, refused.json()["code"]) == (412, "version_mismatch")
    # What a PUT leaves out is the default.
    emptied = manager.call("PUT", ACME, {"numbers": {"max_wait_seconds": 900}}).json()
    assert (emptied["name"], emptied["serve"], emptied["memory_of"]) == ("", True, "person")
    assert emptied["numbers"] == {"max_wait_seconds": 900}


def test_changes_are_of_what_is_named_and_null_is_the_default(acme: Tenant, manager: HubClient) -> None:
    manager.call("PATCH", ACME, {"name": "A", "numbers": {"debounce_seconds": 20, "capacity": 500}})
    first = manager.get(ACME)
    changed = manager.call("PATCH", ACME, {"name": None, "numbers": {"capacity": None}})
    assert (changed.json()["name"], changed.json()["numbers"]) == ("", {"debounce_seconds": 20})
    late = manager.call("PATCH", ACME, {"name": "B"}, headers={"If-Match": first.headers["ETag"]})
    assert late.status_code == 412
    assert manager.call("PATCH", ACME, {"name": "B"}, headers={"If-Match": changed.headers["ETag"]}).status_code == 200
    assert manager.call("PATCH", ACME, {"numbers": None}).json()["numbers"] == {}
    acme.refresh_from_db()
    assert (acme.name, acme.numbers) == ("B", {})


WRONG_SETTINGS: list[tuple[dict[str, Any], str]] = [
    ({"time_zone": "Mars/Base"}, "/time_zone"),
    ({"person_namespaces": ["memories"]}, "/person_namespaces"),
    *(({"dream_files": ["/USER.md", path]}, "/dream_files") for path in ("USER.md", "/", "/a/../b.md", "/temp/x.md")),
    ({"signal_phrases": {"no_kind": ["abc"]}}, "/signal_phrases"),
    ({"signal_phrases": {"goal": ["x"]}}, "/signal_phrases"),
    ({"numbers": {"no_number": 1}}, "/numbers/no_number"),
    ({"numbers": {"debounce_seconds": "soon"}}, "/numbers/debounce_seconds"),
    ({"numbers": {"half_lives": {"goal": -1}}}, "/numbers/half_lives/goal"),
    ({"numbers": {"half_lives": 3}}, "/numbers/half_lives"),
    ({"numbers": {"debounce_seconds": 300, "max_wait_seconds": 60}}, "/numbers/max_wait_seconds"),
    ({"language": "fr"}, "/language"),
    ({"name": "x" * 201}, "/name"),
    ({"capture": "yes"}, "/capture"),
    ({"slug": "new"}, "/slug"),
]
WRONG_MODELS: list[tuple[dict[str, Any], str]] = [
    ({"base_url": "https://10.0.0.1/v1"}, "/base_url"),
    ({"base_url": "http://example.org/v1"}, "/base_url"),
    ({"base_url": "https://127.0.0.1:9/v2"}, "/api_key"),
    ({"base_url": "", "api_key": "k"}, "/api_key"),
    ({"prompt_price": 0.15}, "/completion_price"),
    ({"daily_cost": 1}, "/daily_cost"),
    ({"daily_cost": 0}, "/daily_cost"),
    ({"prompt_price": True}, "/prompt_price"),
    ({"prompt_price": 1e12}, "/prompt_price"),
    ({"prompt_price": "0.15"}, "/prompt_price"),
    ({"daily_cost": 0.125, "prompt_price": 1, "completion_price": 1}, "/daily_cost"),
    ({"daily_tokens": 0}, "/daily_tokens"),
    ({"daily_tokens": 10**15}, "/daily_tokens"),
    ({"model": "x" * 101}, "/model"),
    ({"has_key": True}, "/has_key"),
]
WRONG_KEYS: list[tuple[dict[str, Any], str]] = [
    ({"name": " \u200b"}, "/name"),
    ({"scopes": []}, "/scopes"),
    ({"expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
    ({"user_id": "u1"}, "/user_id"),
    ({"agent_id": "a" * 256}, "/agent_id"),
    ({"id": "7"}, "/id"),
]


def test_what_is_wrong_names_its_place(acme: Tenant, manager: HubClient) -> None:
    model = {"model": "small", "base_url": "https://127.0.0.1:9/v1"}
    manager.call("PUT", f"{ACME}/model", {**model, "api_key": SECRET})
    before = [manager.get(path).json() for path in (ACME, f"{ACME}/model")]
    refused = [
        (manager.call(method, ACME, body), place) for body, place in WRONG_SETTINGS for method in ("PATCH", "PUT")
    ]
    refused += [(manager.call("PUT", f"{ACME}/model", {**model, **body}), place) for body, place in WRONG_MODELS]
    refused += [(manager.post(f"{ACME}/keys", {**KEY, **body}), place) for body, place in WRONG_KEYS]
    found = [(answer.status_code, list(faults(answer))) for answer, _ in refused]
    assert found == [(400, [place]) for _, place in refused]
    assert [manager.get(path).json() for path in (ACME, f"{ACME}/model")] == before
    assert not APIKey.objects.exists()


def test_a_tenant_is_off_boarded_and_taken_back(acme: Tenant, manager: HubClient) -> None:
    _, plaintext = factories.api_key(acme)
    key_id = manager.get(f"{ACME}/keys").json()["results"][0]["id"]
    for _ in range(2):
        assert manager.call("DELETE", ACME).status_code == 204
    assert manager.get(ACME).json()["offboarded_at"]
    assert manager.get(f"{ACME}/keys/{key_id}").json()["state"] == "offboarded"
    assert HubClient(plaintext).get("/users").status_code == 401
    assert [one["slug"] for one in manager.get(TENANTS, offboarded="true").json()["results"]] == ["acme"]
    assert manager.get(TENANTS, offboarded="false").json()["results"] == []
    for answer in (
        manager.call("PATCH", ACME, {"capture": True}),
        manager.call("PUT", ACME, {}),
        manager.post(f"{ACME}/keys", KEY),
        manager.post(f"{ACME}/webhooks", HOOK),
    ):
        assert answer.status_code == 409
    assert manager.post(f"{ACME}/take-back").json()["offboarded_at"] is None
    assert HubClient(plaintext).get("/users").status_code == 200
    assert manager.post(f"{ACME}/take-back").status_code == 409
    assert [*AuditEvent.objects.filter(object_type="Tenant").order_by("pk").values_list("verb", flat=True)] == [
        "off_board", "take_back",
    ]  # fmt: skip


def test_lists_have_pages(manager: HubClient) -> None:
    for _ in range(3):
        factories.tenant()
    first = manager.get(TENANTS, page_size=2).json()
    rest = follow(manager, first["next"])
    assert len({one["slug"] for one in first["results"] + rest["results"]}) == 3
    assert manager.get(f"{TENANTS}/no-such-tenant").status_code == 404
    assert manager.call("PUT", f"{TENANTS}/{'x' * 64}", {}).status_code == 400


# Language models and agents

MODEL: dict[str, Any] = {
    "model": "small", "base_url": "https://127.0.0.1:9/v1", "prompt_price": 0.15, "completion_price": 0.6,
    "daily_tokens": 1_000_000, "daily_cost": 12.5, "sees_pictures": True,
}  # fmt: skip
SECRET = "sk-of-the-endpoint-0123456789"


def test_a_model_is_given_and_taken_away_and_its_key_is_never_told(
    acme: Tenant, manager: HubClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path = f"{ACME}/model"
    none = manager.get(path)
    assert none.json() == dict.fromkeys(MODEL) | {"sees_pictures": False, "has_key": False, "version": 0}
    made = manager.call("PUT", path, {**MODEL, "api_key": SECRET}, headers={"If-Match": none.headers["ETag"]})
    assert made.json() == {**MODEL, "has_key": True, "version": 1}
    # The same again, and without the key, which stays: nothing changes.
    for given in ({**MODEL, "api_key": SECRET}, MODEL, {**MODEL, "api_key": None}):
        assert manager.call("PUT", path, given).json() == made.json()
    row = LanguageModel.objects.get()
    assert (row.tenant_id, conf.decrypted_model_key(row.api_key)) == (acme.pk, SECRET)
    late = manager.call("PUT", path, MODEL, headers={"If-Match": none.headers["ETag"]})
    assert (late.status_code, late.json()["code"]) == (412, "version_mismatch")
    keyless = manager.call("PUT", path, {"base_url": MODEL["base_url"], "api_key": ""})
    assert (keyless.json()["has_key"], keyless.json()["model"], keyless.json()["daily_cost"]) == (False, None, None)
    manager.call("PUT", path, {"model": f"Paste {manager.plaintext}"})
    assert "mhm_" not in manager.get(path).json()["model"]
    for _ in range(2):
        assert manager.call("DELETE", path).status_code == 204
    assert manager.get(path).json() == none.json() | {"version": 4}
    events = AuditEvent.objects.filter(verb="change_model")
    assert next(event.counts for event in events.order_by("pk")) == dict.fromkeys([*MODEL, "api_key"], 1)
    assert events.count() == 4
    kept = [str(row) for table in (AuditEvent, LanguageModel) for row in table._default_manager.values()]
    assert SECRET not in caplog.text + "".join(kept)
    off = manager.call("DELETE", ACME)
    assert off.status_code == 204
    assert [manager.call("PUT", path, MODEL).status_code, manager.call("DELETE", path).status_code] == [409, 409]


def test_the_model_of_a_tenants_calls_is_asked_for_one_word(
    acme: Tenant, manager: HubClient, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{ACME}/model/test"

    def refused() -> tuple[int, str, str]:
        answer = manager.call("POST", path)
        assert answer.headers["Content-Type"] == "application/problem+json"
        return answer.status_code, answer.json()["code"], answer.json()["detail"]

    settings.MEMORYHUB_LLM = "rules"
    assert refused() == (409, "conflict", "No model is configured, so there is nothing to ask.")
    asked: list[conf.LLMConfig] = []
    fails: list[Exception] = []

    def ask(*, config: conf.LLMConfig) -> None:
        asked.append(config)
        for one in fails:
            raise one

    settings.MEMORYHUB_LLM, settings.OPENAI_API_KEY = "openai", SECRET
    monkeypatch.setattr("memories.llm.client.check", ask)
    answer = manager.call("POST", path)
    assert (answer.status_code, answer.json()["model"]) == (200, settings.MEMORYHUB_LLM_MODEL)
    # From now on its own.
    assert manager.call("PUT", f"{ACME}/model", MODEL | {"api_key": SECRET}).status_code == 200
    own = manager.call("POST", path)
    assert (own.json()["model"], asked[-1].model, asked[-1].tenant_id) == (MODEL["model"], MODEL["model"], acme.pk)
    assert asked[-1].timeout <= language_models.TEST_SECONDS
    assert SECRET not in answer.content.decode() + own.content.decode()
    for fails[:] in ([ModelTimeout()], [ModelMisconfigured()], [ModelUnavailable("It answered 500.")]):
        assert refused()[:2] == (409, fails[0].code)  # type: ignore[attr-defined]
    fails.clear()
    with language_models._testing:
        assert "Another test is running" in refused()[2]
    assert manager.call("POST", path).status_code == 200
    # A test changes nothing and leaves no trace.
    assert not AuditEvent.objects.exclude(verb__in=["create", "change_model"]).exists()
    manager.call("DELETE", ACME)
    assert refused()[0] == 409


def test_a_test_asks_no_private_address(acme: Tenant, manager: HubClient, settings: LazySettings) -> None:
    settings.MEMORYHUB_LLM, settings.MEMORYHUB_PRIVATE_ENDPOINTS = "openai", []
    LanguageModel.objects.create(
        tenant=acme, base_url="https://127.0.0.1:9/v1", model="small", updated_at=timezone.now()
    )
    refused = manager.call("POST", f"{ACME}/model/test")
    assert (refused.status_code, refused.json()["code"]) == (409, "model_misconfigured")


def test_an_agent_is_switched_with_an_operators_word(acme: Tenant, manager: HubClient) -> None:
    agent, other = factories.agent(acme, agent_id="bot"), factories.agent(acme, agent_id="other")
    listed = manager.get(f"{ACME}/agents").json()["results"]
    assert {one["agent_id"] for one in listed} == {"bot", "other"}
    assert [one["id"] for one in manager.get(f"{ACME}/agents", agent_id="Bot").json()["results"]] == [str(agent.pk)]
    path = f"{ACME}/agents/{agent.pk}"
    changed = manager.call("PATCH", path, {"recall": False, "guidance": f"Sizes. {manager.plaintext}"})
    assert (changed.status_code, changed.json()["recall"]) == (200, False)
    assert manager.get(path).json() == changed.json()
    assert changed.json()["guidance"] == "Sizes. [redacted:memoryhub_key]"
    # A key of the tenant can change what a key of the tenant set alone.
    theirs = HubClient(factories.api_key(acme)[1])
    for body in ({"recall": True}, {"guidance": "Colours."}):
        refused = theirs.call("PATCH", f"/agents/{agent.pk}", body)
        assert (refused.status_code, refused.json()["code"]) == (409, "operator_word")
    assert theirs.call("PATCH", f"/agents/{other.pk}", {"recall": False}).status_code == 200
    assert manager.call("PATCH", f"{ACME}/agents/{other.pk}", {"recall": True}).json()["recall"] is True
    assert faults(manager.call("PATCH", path, {"recall": "no"})) == {"/recall": "invalid"}
    assert manager.call("PATCH", path, {}).status_code == 400
    assert manager.call("DELETE", ACME).status_code == 204
    assert manager.call("PATCH", path, {"recall": True}).status_code == 409


# Keys


def test_a_key_is_made_shown_once_rotated_and_revoked(acme: Tenant, manager: HubClient) -> None:
    mine = str(uuid.uuid4())
    given = {**KEY, "id": mine, "agent_id": "Bot", "writes_as": "user", "memory_of": "agent", "expires_at": None}
    made = manager.post(f"{ACME}/keys", given)
    assert made.status_code == 201
    assert made.headers["Cache-Control"] == "no-store"
    key = made.json()
    secret = key.pop("secret")
    assert HubClient(secret).get("/users").status_code == 200
    assert (key["id"], key["agent_id"], key["state"], key["expires_at"]) == (mine, "bot", "active", None)
    read = manager.get(f"{ACME}/keys/{mine}").json()
    assert {**read, "last_used_at": None} == key
    assert manager.get(f"{ACME}/keys").json()["results"] == [read]
    again = manager.post(f"{ACME}/keys", given)
    assert (again.status_code, APIKey.objects.count()) == (409, 1)
    rotated = manager.post(f"{ACME}/keys/{mine}/rotate", {"overlap_seconds": 0}).json()
    assert HubClient(secret).get("/users").status_code == 401
    assert HubClient(rotated["secret"]).get("/users").status_code == 200
    assert manager.get(f"{ACME}/keys/{mine}").json()["successor_id"] == rotated["id"]
    assert manager.post(f"{ACME}/keys/{mine}/rotate", {}).status_code == 409
    for status in (204, 404):
        assert manager.call("DELETE", f"{ACME}/keys/{rotated['id']}").status_code == status
    assert HubClient(rotated["secret"]).get("/users").status_code == 401
    assert manager.get(f"{ACME}/keys/{rotated['id']}").status_code == 404
    assert [one["id"] for one in manager.get(f"{ACME}/keys").json()["results"]] == [mine]


def test_it_gives_the_scopes_that_it_was_made_for_and_no_management_key(acme: Tenant) -> None:
    client = HubClient(factories.management_key(gives=["ingest", "read"])[1])
    assert client.post(f"{ACME}/keys", KEY).status_code == 201
    refused = client.post(f"{ACME}/keys", {**KEY, "scopes": ["read", "privacy"]})
    assert (refused.status_code, "ingest, read" in refused.json()["detail"]) == (403, True)
    key, _ = factories.api_key(acme, scopes=["read", "privacy"])
    assert client.post(f"{ACME}/keys/{key.pk}/rotate", {}).status_code == 403
    assert faults(client.post(f"{ACME}/keys", {**KEY, "scopes": ["management"]})) == {"/scopes/0": "invalid_choice"}
    assert ManagementKey.objects.count() == 1


def test_whom_a_key_is_for_is_not_shown(acme: Tenant, manager: HubClient) -> None:
    from memories.curation.access.keys import Binding

    factories.api_key(acme, binding=Binding("anna@example.org"))
    answer = manager.get(f"{ACME}/keys")
    assert answer.json()["results"][0]["for_one_person"] is True
    assert b"anna" not in answer.content


# Webhooks


def test_a_webhook_is_added_changed_and_deleted(acme: Tenant, manager: HubClient) -> None:
    made = manager.post(f"{ACME}/webhooks", HOOK)
    assert made.status_code == 201
    hook = made.json()
    secret = hook.pop("secret")
    assert secret == conf.decrypted_webhook_secret(WebhookEndpoint.objects.get().secret)
    path = f"{ACME}/webhooks/{hook['id']}"
    assert {name: hook[name] for name in HOOK} == {**HOOK, "events": sorted(HOOK["events"])}
    assert manager.get(path).json() == hook
    assert manager.get(f"{ACME}/webhooks").json()["results"] == [hook]
    twice = manager.post(f"{ACME}/webhooks", HOOK)
    assert (twice.status_code, faults(twice)) == (409, {"/url": "taken"})
    changed = manager.call("PUT", path, {**HOOK, "name": "New"}, headers={"If-Match": made.headers["ETag"]})
    assert (changed.status_code, changed.json()["version"]) == (200, 2)
    assert manager.call("PUT", path, HOOK, headers={"If-Match": made.headers["ETag"]}).status_code == 412
    rotated = manager.post(f"{path}/rotate").json()
    assert rotated["secret"] not in (secret, "")
    assert manager.post(f"{path}/disable").json()["enabled"] is False
    assert manager.post(f"{path}/test").status_code == 409
    assert manager.post(f"{path}/enable").json()["enabled"] is True
    assert manager.post(f"{path}/enable").status_code == 409
    assert manager.post(f"{path}/test").status_code == 204
    WebhookDelivery.objects.update(state="failed", ended_at=factories.NOW, data={"webhook_id": "x"})
    [delivery] = manager.get(f"{path}/deliveries").json()["results"]
    assert (delivery["event"], delivery["state"]) == ("test", "failed")
    assert "data" not in delivery
    assert manager.post(f"{path}/send-again", {"delivery_id": delivery["id"]}).json() == {"count": 1}
    assert manager.post(f"{path}/send-again", {}).json() == {"count": 0}
    assert manager.call("DELETE", path).status_code == 204
    assert manager.get(path).status_code == 404
    assert manager.get(f"{ACME}/webhooks").json()["results"] == []
    events = AuditEvent.objects.filter(object_type="WebhookEndpoint").order_by("pk")
    assert [*events.values_list("verb", flat=True)] == [
        "create", "update", "rotate", "disable", "enable", "send_test", "send_again", "send_again", "delete",
    ]  # fmt: skip


def test_an_address_that_no_webhook_may_have_is_refused(acme: Tenant, manager: HubClient) -> None:
    hook = factories.webhook(acme)
    for url in (
        "http://192.0.2.7/x",
        "https://127.0.0.2/x",
        "https://10.0.0.1/",
        "https://a:b@example.org/",
        "ftp://x",
    ):
        for answer in (
            manager.post(f"{ACME}/webhooks", {**HOOK, "url": url}),
            manager.call("PUT", f"{ACME}/webhooks/{hook.pk}", {**HOOK, "url": url}),
        ):
            assert (answer.status_code, faults(answer)) == (400, {"/url": "invalid"}), url
    assert [one.url for one in WebhookEndpoint.objects.all()] == [hook.url]


# What is never kept


def test_secrets_are_in_no_list_log_or_audit_event(
    acme: Tenant, manager: HubClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key = manager.post(f"{ACME}/keys", KEY).json()
    hook = manager.post(f"{ACME}/webhooks", HOOK).json()
    secrets = [key["secret"], hook["secret"], manager.plaintext]
    # Somebody pastes one where a text belongs.
    pasted = " and ".join([key["secret"], manager.plaintext])
    manager.call("PATCH", ACME, {"name": pasted, "extraction_guidance": pasted, "file_seed": pasted})
    other = manager.post(f"{ACME}/keys", {**KEY, "name": manager.plaintext}).json()
    named = manager.call("PUT", f"{ACME}/webhooks/{hook['id']}", {**HOOK, "name": key["secret"]}).json()
    assert other["name"] == named["name"] == "[redacted:memoryhub_key]"
    said = json.dumps([
        manager.get(path).json()
        for path in (TENANTS, ACME, f"{ACME}/keys", f"{ACME}/keys/{key['id']}", f"{ACME}/webhooks")
    ])  # fmt: skip
    tables = [Tenant, APIKey, ManagementKey, WebhookEndpoint, AuditEvent]
    kept = [str(row) for table in tables for row in table._default_manager.values()]
    for secret in secrets:
        assert secret not in said + caplog.text + "".join(kept)
    assert key["id"] in said


# The page

TEXT = (Path(__file__).resolve().parents[3] / "docs/management.md").read_text(encoding="utf-8")


def test_the_page_names_every_operation() -> None:
    rows = re.findall(r"^\| (`.*?) \|", TEXT, flags=re.MULTILINE)
    named = {
        (method, path.replace("…", "/management/tenants/{slug}/webhooks"))
        for row in rows
        for method in re.findall(r"[A-Z]{3,}", row)
        for path in re.findall(r"(?:…|/management)[^`]*", row)
    }
    operations_of_page = {
        (method, re.sub(r"\{\w+_id\}", "{id}", path.removeprefix(BASE)))
        for method, path in management_operations().values()
    }
    assert named == operations_of_page


def test_the_lines_of_the_page_work_and_can_be_sent_again(manager: HubClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "check_address", lambda url: None)
    lines = re.findall(r"^curl .*?(?=\n```)", TEXT, flags=re.MULTILINE | re.DOTALL)
    assert [run_curl(manager, line, {}).status_code for line in lines] == [201, 201, 201, 200]
    assert [run_curl(manager, line, {}).status_code for line in lines] == [200, 409, 409, 200]
    assert (Tenant.objects.count(), APIKey.objects.count(), WebhookEndpoint.objects.count()) == (1, 1, 1)


# Races


@pytest.mark.django_db(transaction=True)
def test_two_make_the_same_at_once() -> None:
    _, plaintext = factories.management_key()

    def twice(method: str, path: str, body: dict[str, Any], **headers: str) -> list[int]:
        def act(_: int) -> Any:
            return HubClient(plaintext).call(method, path, body, headers=headers).status_code

        answers: list[Any] = at_once(2, act)
        return sorted(answers)

    assert twice("PUT", ACME, {"name": "A"}) == [200, 201]
    assert twice("PUT", f"{TENANTS}/other", {}, **{"If-None-Match": "*"}) == [201, 412]
    assert twice("POST", f"{ACME}/keys", {**KEY, "id": str(uuid.uuid4())}) == [201, 409]
    assert twice("POST", f"{ACME}/webhooks", HOOK) == [201, 409]
    assert (Tenant.objects.count(), APIKey.objects.count(), WebhookEndpoint.objects.count()) == (2, 1, 1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("what", ["key", "model", "agent"])
def test_nothing_is_changed_past_the_end_of_its_tenant(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The off-boarding has locked the tenant, and has not committed, when the change is asked for."""
    acme = factories.tenant(slug="acme")
    agent = factories.agent(acme)
    _, plaintext = factories.management_key()
    changes: dict[str, tuple[str, str, dict[str, Any]]] = {
        "key": ("POST", f"{ACME}/keys", KEY),
        "model": ("PUT", f"{ACME}/model", {"model": "small"}),
        "agent": ("PATCH", f"{ACME}/agents/{agent.pk}", {"recall": False}),
    }
    locked, asked = threading.Event(), threading.Event()
    disable = webhooks.off_board

    def held(tenant: Tenant) -> int:
        locked.set()
        assert asked.wait(timeout=300)
        return disable(tenant)

    monkeypatch.setattr(webhooks, "off_board", held)

    def act(number: int) -> Any:
        client = HubClient(plaintext)
        if number == 0:
            return client.call("DELETE", ACME).status_code
        assert locked.wait(timeout=300)
        # It is as before when the request finds the tenant.
        assert client.get(ACME).json()["offboarded_at"] is None
        asked.set()
        return client.call(*changes[what]).status_code

    assert at_once(2, act) == [204, 409]
    agent.refresh_from_db()
    assert (agent.recall, LanguageModel.objects.exists(), APIKey.objects.exists()) == (True, False, False)
    # Taken back it can be changed.
    assert HubClient(plaintext).call("POST", f"{ACME}/take-back").status_code == 200
    assert HubClient(plaintext).call(*changes[what]).status_code in (200, 201)
