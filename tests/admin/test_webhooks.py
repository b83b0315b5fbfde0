"""Webhooks in the admin: added with a secret that is shown once, changed, tested, sent again, by who may."""

import json
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
from tests.ports import free_port
from tests.webhooks.receiver import Receiver

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


class TestTrying:
    """Before it is added, an address is sent a test, past the same guard as every delivery."""

    @pytest.fixture
    def receiver(self) -> Receiver:
        return Receiver(free_port())

    def ask(self, client: Client, url: str, *, in_place: bool = True) -> Any:
        given = {"name": "", "url": url, "events": [], "content": "on"}
        headers = {"X-Fragment": "tested"} if in_place else {}
        return client.post(reverse("admin:memories_webhookendpoint_try"), given, headers=headers)

    def test_it_says_what_came_of_it_and_stores_nothing(self, admin: Client, receiver: Receiver) -> None:
        receiver.status, receiver.said = 200, "<b>ok</b> " + "x" * 500
        with receiver.listening():
            shown = text_of(self.ask(admin, receiver.url))
            receiver.status = 401
            refused = text_of(self.ask(admin, receiver.url))
        assert "Delivered: answered with HTTP 200 in" in shown
        assert "&lt;b&gt;ok&lt;/b&gt; xxx" in shown
        assert "x" * 200 not in shown
        assert "Not delivered: answered with HTTP 401, after" in refused
        assert "it gets its secret when the webhook is added" in refused
        [(headers, body), _] = receiver.got
        assert json.loads(body) == {"type": "test", "timestamp": json.loads(body)["timestamp"], "data": {}}
        assert headers["webhook-signature"].startswith("v1,")
        assert "could not be reached" in text_of(self.ask(admin, receiver.url))
        assert not WebhookEndpoint.objects.exists()
        assert not AuditEvent.objects.filter(object_type="WebhookEndpoint").exists()

    def test_an_address_in_the_hubs_network_is_explained(
        self, admin: Client, receiver: Receiver, settings: LazySettings
    ) -> None:
        settings.MEMORYHUB_PRIVATE_ENDPOINTS = []
        with receiver.listening():
            for url in (receiver.url, f"https://127.0.0.1:{receiver.port}/hook"):
                refused = self.ask(admin, url)
                assert refused.status_code == 400
                assert f"MEMORYHUB_PRIVATE_ENDPOINTS=127.0.0.1:{receiver.port}" in text_of(refused)
        assert receiver.got == []

    def test_without_a_script_the_page_keeps_what_was_entered(self, admin: Client, receiver: Receiver) -> None:
        with receiver.listening():
            page = text_of(self.ask(admin, receiver.url, in_place=False))
        assert f'value="{receiver.url}"' in page
        assert "Nothing is saved yet." in page
        assert "Please fix" not in page
        assert self.ask(admin, "", in_place=False).status_code == 400
        assert admin.get(reverse("admin:memories_webhookendpoint_try")).status_code == 405


def test_verbs_and_their_opposites(admin: Client, tenant: Tenant) -> None:
    add(admin, tenant)
    endpoint = WebhookEndpoint.objects.get()
    changed = {"name": "ERP", "url": f"{URL}2", "events": ["case.due", "test"], "version": endpoint.version}
    assert act(admin, endpoint, "update", **changed).status_code == 400
    changed["events"] = ["case.due"]
    assert "changed" in said(act(admin, endpoint, "update", **changed))
    # A form that was open meanwhile.
    assert act(admin, endpoint, "update", **changed).status_code == 412
    assert 'http-equiv="refresh"' not in text_of(admin.get(page_of(endpoint)))
    assert "on its way" in said(act(admin, endpoint, "send_test"))
    # Until it has arrived the page looks again.
    assert 'http-equiv="refresh"' in text_of(admin.get(page_of(endpoint)))
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
