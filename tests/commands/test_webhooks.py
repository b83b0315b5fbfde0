"""`manage.py webhooks`: a tenant's own are added, listed, sent again and removed; another tenant's are not found."""

import uuid
from io import StringIO

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from memories import conf
from memories.models import AuditEvent, Tenant, WebhookDelivery, WebhookEndpoint
from tests import factories

pytestmark = pytest.mark.django_db
URL = "http://127.0.0.1:9/of/a/secret"


@pytest.fixture(autouse=True)
def acme(settings: LazySettings) -> Tenant:
    settings.MEMORYHUB_PRIVATE_ENDPOINTS = ["127.0.0.1"]
    return factories.tenant(slug="acme")


def run(act: str, *arguments: str, tenant: str = "acme") -> str:
    out = StringIO()
    call_command("webhooks", act, "--tenant", tenant, *arguments, stdout=out)
    return out.getvalue().strip()


def add(events: str = "person.erased, fact.created", url: str = URL) -> str:
    return run("add", "--name", "CRM", "--url", url, "--events", events)


def test_one_is_added_listed_sent_again_and_removed(acme: Tenant) -> None:
    secret = add()
    row = WebhookEndpoint.objects.get()
    assert secret == conf.decrypted_webhook_secret(row.secret)
    assert (row.tenant, row.url, row.events, row.content) == (acme, URL, ["fact.created", "person.erased"], False)
    of = {"tenant": acme, "endpoint": row, "event": "fact.created", "data": {}, "occurred_at": factories.NOW}
    failed = WebhookDelivery.objects.create(state="failed", ended_at=factories.NOW, **of)
    assert run("list") == f"{row.pk}  enabled  waiting 0  failed 1  CRM  127.0.0.1:9"
    assert run("redeliver", "--id", str(row.pk)) == "1"
    assert run("redeliver", "--id", str(row.pk)) == "0"
    with pytest.raises(CommandError, match="waiting already"):
        run("redeliver", "--id", str(row.pk), "--delivery", str(failed.pk))
    assert run("remove", "--id", str(row.pk)) == run("list") == ""
    made = AuditEvent.objects.filter(object_type="WebhookEndpoint").order_by("pk")
    assert {event.actor_kind for event in made} == {"command"}
    assert [event.verb for event in made] == ["create", "send_again", "send_again", "delete"]


@pytest.mark.parametrize(
    ("events", "url", "says"),
    [
        ("no.event", URL, "at least one event"),
        ("", URL, "at least one event"),
        ("fact.created", "https://10.0.0.1/", "10.0.0.1|public|private"),
    ],
)
def test_what_cannot_be_added_says_why(events: str, url: str, says: str) -> None:
    with pytest.raises(CommandError, match=says):
        add(events, url)
    assert not WebhookEndpoint.objects.exists()
    assert add()


def test_those_of_another_tenant_are_not_there() -> None:
    add()
    factories.tenant(slug="other")
    row = WebhookEndpoint.objects.get()
    assert run("list", tenant="other") == ""
    for act in ("remove", "redeliver"):
        for named in (str(row.pk), str(uuid.uuid4())):
            with pytest.raises(CommandError, match="no such webhook"):
                run(act, "--id", named, tenant="other")
    with pytest.raises(CommandError, match="no tenant nobody"):
        run("list", tenant="nobody")
    assert WebhookEndpoint.objects.count() == 1
