"""Webhooks in the admin: added with a secret that is shown once, changed, tested, sent again, by who may."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse

from memories import conf
from memories.models import AuditEvent, Event, Tenant, WebhookDelivery, WebhookEndpoint
from tests import factories
from tests.admin.pages import list_of, page_of, said, text_of

pytestmark = pytest.mark.django_db
URL = "http://127.0.0.1:9/in/secret-path"


@pytest.fixture(autouse=True)
def _loopback(settings: LazySettings) -> None:
    settings.MEMORYHUB_PRIVATE_ENDPOINTS = ["127.0.0.1"]


@pytest.fixture
def tenant() -> Tenant:
    return factories.tenant(slug="acme")


def add(client: Client, tenant: Tenant, **over: Any) -> Any:
    given = {"tenant": tenant.pk, "name": "CRM", "url": URL, "events": [Event.PERSON_ERASED], **over}
    return client.post(reverse("admin:memories_webhookendpoint_add"), given)


def act(client: Client, endpoint: WebhookEndpoint, verb: str, **given: Any) -> Any:
    return client.post(page_of(endpoint, verb), given)


def test_it_is_added_and_its_secret_is_shown_once(admin: Client, tenant: Tenant) -> None:
    shown = text_of(add(admin, tenant, content="on"))
    endpoint = WebhookEndpoint.objects.get()
    secret = conf.decrypted_webhook_secret(endpoint.secret)
    assert secret
    assert secret in shown
    assert (endpoint.tenant, endpoint.content, endpoint.events) == (tenant, True, ["person.erased"])
    tenant.refresh_from_db()
    assert tenant.webhook_events == ["person.erased"]
    for page in (page_of(endpoint), list_of(WebhookEndpoint), page_of(tenant)):
        assert secret not in text_of(admin.get(page))
    assert secret not in str(AuditEvent.objects.values())
    rotated = text_of(act(admin, endpoint, "rotate"))
    assert "whsec_" in rotated
    assert secret not in rotated
    assert "also signs; ends" in text_of(admin.get(page_of(endpoint)))


def test_what_cannot_be_is_refused(admin: Client, tenant: Tenant) -> None:
    faults: list[dict[str, Any]] = [
        {"url": "https://10.0.0.7/in"}, {"url": "no address"}, {"url": "https://user:word@crm.example/"},
        {"events": []}, {"events": ["test"]}, {"events": ["made.up"]}, {"name": ""},
    ]  # fmt: skip
    for over in faults:
        assert add(admin, tenant, **over).status_code == 400, over
    assert not WebhookEndpoint.objects.exists()


def test_verbs_and_their_opposites(admin: Client, tenant: Tenant) -> None:
    add(admin, tenant)
    endpoint = WebhookEndpoint.objects.get()
    changed = {"name": "ERP", "url": f"{URL}2", "events": ["case.due", "test"], "version": endpoint.version}
    assert act(admin, endpoint, "update", **changed).status_code == 400
    changed["events"] = ["case.due"]
    assert "changed" in said(act(admin, endpoint, "update", **changed))
    # A form that was open meanwhile.
    assert act(admin, endpoint, "update", **changed).status_code == 412
    assert "on its way" in said(act(admin, endpoint, "send_test"))
    assert "disabled" in said(act(admin, endpoint, "disable"))
    assert act(admin, endpoint, "disable").status_code == 409
    assert WebhookDelivery.objects.get().state == "failed"
    assert act(admin, endpoint, "send_again").status_code == 409
    assert "enabled" in said(act(admin, endpoint, "enable"))
    delivery = WebhookDelivery.objects.get()
    assert "sent again" in said(act(admin, endpoint, "send_again", delivery=delivery.pk))
    assert act(admin, endpoint, "send_again", delivery=delivery.pk).status_code == 409
    assert "deleted" in said(act(admin, endpoint, "remove"))
    assert not WebhookDelivery.objects.exists()
    verbs = AuditEvent.objects.filter(object_type="WebhookEndpoint").order_by("id").values_list("verb", flat=True)
    assert list(verbs) == [
        "create", "update", "send_test", "disable", "enable", "send_again", "delete",
    ]  # fmt: skip


def test_who_may_only_look_sees_no_path(staff_who_may: Callable[..., Client], tenant: Tenant) -> None:
    endpoint = factories.webhook(tenant, url=URL, disabled_at=factories.NOW, disabled_for="failing")
    reader = staff_who_may("view_webhookendpoint")
    shown = text_of(reader.get(page_of(endpoint)))
    assert "It failed for three days" in shown
    assert "answered with HTTP 500" in shown
    assert "secret-path" not in shown
