"""Deliveries: signed, sent again for three days, by one worker at a time, to public addresses alone."""

import json
import runpy
import time
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import transaction
from django.utils import timezone

from memories import outbox
from memories.curation.tenants import webhooks
from memories.curation.tenants.off_boarding import off_board_tenant, take_back_tenant
from memories.exceptions import InvalidInput
from memories.models import EndUser, Event, Tenant, WebhookDelivery, WebhookEndpoint
from memories.outbox import WebhookEvent
from memories.queue import leases
from memories.webhooks import delivering, messages
from tests import factories
from tests.factories import COMMAND, NOW
from tests.ports import free_port
from tests.stateful.clock import Clock, replace_clocks
from tests.webhooks.receiver import Receiver, webhook

pytestmark = pytest.mark.django_db
State, Reason = WebhookDelivery.State, WebhookEndpoint.Reason
HOUR = timedelta(hours=1)
# The receiver of docs/webhooks.md.
EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "docs/examples/webhook_receiver.py"))


@pytest.fixture(autouse=True)
def _loopback(settings: LazySettings) -> None:
    settings.MEMORYHUB_PRIVATE_ENDPOINTS = ["127.0.0.1"]


@pytest.fixture
def receiver() -> Receiver:
    return Receiver(free_port())


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The database's clock, which stands at the present and is moved."""
    replace_clocks(monkeypatch)
    clock = Clock()
    clock.move(timezone.now() - clock.now)
    return clock


def tell(person: EndUser, count: int = 1, event: Event = Event.FACT_CREATED) -> list[WebhookDelivery]:
    happened = [WebhookEvent(event, {"number": number}, person.pk) for number in range(count)]
    with transaction.atomic():
        outbox.publish(person.tenant_id, happened, now=NOW, tenant=person.tenant)
    return list(WebhookDelivery.objects.order_by("data__number"))


def work(now: datetime) -> int:
    return delivering.run_slice(now=now, seconds=60.0, clock=time.monotonic)


def listen(person: EndUser, receiver: Receiver, **over: Any) -> tuple[WebhookEndpoint, str]:
    made: tuple[WebhookEndpoint, str] = webhook(person.tenant, receiver.url, **over)
    return made


def test_the_signature_is_that_of_the_standard() -> None:
    """The example of its reference implementations."""
    found = messages.headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        b'{"test": 2432232314}',
        signed_by=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        now=datetime.fromtimestamp(1614265330, tz=UTC),
    )
    assert found["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_receiver_that_was_down_for_an_hour_gets_everything_once(
    person: EndUser, receiver: Receiver, clock: Clock
) -> None:
    _endpoint, secret = listen(person, receiver)
    clock.move(-HOUR)
    began = clock.now
    handler: Any = type("Fresh", (EXAMPLE["Receiver"],), {"secret": secret, "seen": set(), "events": []})
    while clock.now < began + HOUR:
        if clock.now < began + HOUR / 2:
            tell(person, 2)
        assert work(clock.now) == 0
        clock.move(timedelta(minutes=5))
    waiting = WebhookDelivery.objects.filter(state=State.WAITING).count()
    assert waiting == 12
    with receiver.listening(handler):
        assert work(clock.now) == 12
    assert sorted(event["data"]["number"] for event in handler.events) == [0] * 6 + [1] * 6
    assert {event["type"] for event in handler.events} == {"fact.created"}
    endpoint = WebhookEndpoint.objects.get()
    assert (endpoint.failures, endpoint.failing_since, endpoint.disabled_at) == (0, None, None)
    assert not WebhookDelivery.objects.exclude(state=State.DELIVERED, attempts__lte=5).exists()


def test_the_library_of_the_standard_takes_what_is_sent(person: EndUser, receiver: Receiver) -> None:
    library = import_module("standardwebhooks")
    _endpoint, secret = listen(person, receiver)
    tell(person)
    with receiver.listening():
        assert work(timezone.now()) == 1
    [(headers, body)] = receiver.got
    assert library.Webhook(secret).verify(body, headers)["type"] == "fact.created"
    with pytest.raises(library.WebhookVerificationError):
        library.Webhook(messages.new_secret()).verify(body, headers)


def test_both_secrets_sign_for_a_day(person: EndUser, receiver: Receiver) -> None:
    endpoint, first = listen(person, receiver)
    now = timezone.now()
    _row, second = webhooks.rotate_secret(webhook_id=endpoint.pk, actor=COMMAND, now=now - timedelta(hours=23))
    with receiver.listening():
        tell(person)
        work(now)
        tell(person)
        work(now + timedelta(hours=2))
    (headers, body), (later, later_body) = receiver.got
    assert len(headers["webhook-signature"].split()) == 2
    assert all(EXAMPLE["is_genuine"](headers, body, secret) for secret in (first, second))
    assert later["webhook-signature"].count("v1,") == 1
    assert messages.headers(later["webhook-id"], later_body, signed_by=[second], now=now + timedelta(hours=2)) == {
        name: later[name] for name in ("webhook-id", "webhook-timestamp", "webhook-signature", "content-type")
    }


def test_a_worker_that_dies_before_the_mark_is_followed_by_another_with_the_same_id(
    person: EndUser, receiver: Receiver, clock: Clock
) -> None:
    listen(person, receiver)
    [row] = tell(person)
    with receiver.listening():
        lost = delivering.claim(row.pk)
        assert lost
        delivering._post(lost.row, now=clock.now)
        assert work(clock.now) == 0
        clock.move(leases.LEASE)
        assert work(clock.now) == 1
        # The dead one wakes up: it notes nothing.
        assert not delivering.send(lost, now=clock.now)
    assert len({headers["webhook-id"] for headers, _body in receiver.got}) == 1
    assert WebhookDelivery.objects.get().state == State.DELIVERED


@pytest.mark.parametrize("gone", ["webhook", "person"])
def test_what_is_deleted_while_it_is_sent_leaves_nothing(person: EndUser, receiver: Receiver, gone: str) -> None:
    endpoint, _secret = listen(person, receiver)
    [row] = tell(person)
    claimed = delivering.claim(row.pk)
    assert claimed
    with receiver.listening():
        if gone == "webhook":
            webhooks.delete_webhook(webhook_id=endpoint.pk, actor=COMMAND, now=NOW)
        else:
            person.delete()
        assert not delivering.send(claimed, now=timezone.now())
    assert len(receiver.got) == 1
    assert not WebhookDelivery.objects.exists()


def test_an_endpoint_that_fails_for_three_days_is_disabled_and_can_be_enabled(
    person: EndUser, receiver: Receiver, clock: Clock
) -> None:
    endpoint, _secret = listen(person, receiver)
    receiver.status = 500
    tell(person)
    with receiver.listening():
        for _quarter in range(3 * 4):
            work(clock.now)
            assert not WebhookEndpoint.objects.get().disabled_at
            clock.move(timedelta(hours=6))
        tell(person)
        work(clock.now)
        endpoint.refresh_from_db()
        assert (endpoint.disabled_for, endpoint.failures > 8) == (Reason.FAILING, True)
        assert set(WebhookDelivery.objects.values_list("state", flat=True)) == {State.FAILED}
        person.tenant.refresh_from_db()
        assert person.tenant.webhook_events == []
        webhooks.enable_webhook(webhook_id=endpoint.pk, actor=COMMAND, now=clock.now)
        receiver.status = 200
        assert webhooks.send_again(webhook_id=endpoint.pk, delivery_id=None, actor=COMMAND, now=clock.now) == 2
        assert work(clock.now) == 2


@pytest.mark.parametrize(
    ("status", "failure"), [(302, delivering.REFUSED), (404, delivering.REFUSED), (410, delivering.DISABLED)]
)
def test_an_answer_that_is_no_success_is_a_failure(
    person: EndUser, receiver: Receiver, status: int, failure: str
) -> None:
    listen(person, receiver)
    tell(person, 2)
    receiver.status, receiver.location = status, receiver.url
    with receiver.listening():
        assert work(timezone.now()) == 0
    # No redirect is followed, and the endpoint rests after its first failure.
    assert len(receiver.got) == 1
    first, second = WebhookDelivery.objects.order_by("-attempts")
    assert (first.status, first.attempts, second.attempts) == (status, 1, 0)
    assert second.failure == (failure if status == 410 else "")
    assert WebhookEndpoint.objects.get().disabled_for == (Reason.GONE if status == 410 else "")


def test_a_private_address_is_refused_when_it_is_saved_and_when_it_is_called(
    person: EndUser, receiver: Receiver, settings: LazySettings
) -> None:
    listen(person, receiver)
    settings.MEMORYHUB_PRIVATE_ENDPOINTS = []
    with pytest.raises(InvalidInput) as refused:
        webhook(person.tenant, "https://127.0.0.1/other")
    assert [fault.pointer for fault in refused.value.faults] == ["url"]
    [row] = tell(person)
    with receiver.listening():
        assert work(timezone.now()) == 0
    row.refresh_from_db()
    assert (row.failure, receiver.got) == (delivering.PRIVATE, [])


def test_content_is_sent_if_the_endpoint_has_it_and_is_read_when_it_is_sent(
    person: EndUser, receiver: Receiver
) -> None:
    listen(person, receiver, content=True)
    said, forgotten = (factories.fact(person, text) for text in ("Lives in Leiden", "Owns a red bicycle"))
    happened = [WebhookEvent(Event.FACT_CREATED, {"fact_id": fact.pk}, person.pk) for fact in (said, forgotten)]
    outbox.publish(person.tenant_id, happened, now=NOW, tenant=person.tenant)
    assert "Leiden" not in str(list(WebhookDelivery.objects.values()))
    forgotten.status = "trashed"
    forgotten.save()
    with receiver.listening():
        assert work(timezone.now()) == 2
    bodies = [json.loads(body)["data"] for _headers, body in receiver.got]
    assert {body.get("content") for body in bodies} == {"Lives in Leiden", None}
    assert {body["user_id"] for body in bodies} == {person.external_id}


def test_what_is_about_people_under_restriction_waits(person: EndUser, receiver: Receiver) -> None:
    listen(person, receiver)
    tell(person)
    EndUser.objects.filter(pk=person.pk).update(restricted_at=NOW)
    with receiver.listening():
        assert work(timezone.now()) == 0
        EndUser.objects.filter(pk=person.pk).update(restricted_at=None)
        assert work(timezone.now()) == 1


def test_off_boarding_ends_webhooks_and_its_undo_brings_them_back(person: EndUser, receiver: Receiver) -> None:
    listen(person, receiver)
    tell(person)
    off_board_tenant(tenant_id=person.tenant_id, expected_keys=0, actor=COMMAND, now=NOW)
    assert WebhookDelivery.objects.get().state == State.FAILED
    assert not delivering.is_due()
    person.tenant.refresh_from_db()
    assert len(tell(person)) == 1
    take_back_tenant(tenant_id=person.tenant_id, actor=COMMAND, now=NOW)
    assert Tenant.objects.get(pk=person.tenant_id).webhook_events


def test_deliveries_that_ended_long_ago_go(person: EndUser, receiver: Receiver) -> None:
    listen(person, receiver)
    old, _waiting = tell(person, 2)
    WebhookDelivery.objects.filter(pk=old.pk).update(state=State.DELIVERED, ended_at=NOW)
    assert delivering.sweep(now=NOW + delivering.KEPT) == 0
    assert delivering.sweep(now=NOW + delivering.KEPT + HOUR) == 1
