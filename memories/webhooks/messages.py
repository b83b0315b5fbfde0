"""What is sent: the body of an event, and the headers that sign it (Standard Webhooks, https://www.standardwebhooks.com).

A body has ids alone. With content, texts are read when it is sent: what is forgotten or erased by then is not in it.
"""

import base64
import hashlib
import hmac
import json
import secrets
import uuid
from datetime import datetime
from typing import Any

from memories import conf
from memories.models import (
    EndUser,
    Episode,
    EpisodeStatus,
    Event,
    Fact,
    Session,
    Status,
    WebhookDelivery,
    WebhookEndpoint,
)
from memories.outbox import SAID_OF_FACT

SECRET_BYTES = 32
_PREFIX = "whsec_"


def new_secret() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def id_of(delivery: WebhookDelivery) -> str:
    """The webhook-id: a receiver that has seen it knows the event."""
    return f"msg_{delivery.pk.hex}"


def secrets_of(endpoint: WebhookEndpoint, *, now: datetime) -> list[str]:
    """The secrets that sign now, the newest first, without those that no key of the hub decrypts."""
    tokens = [endpoint.secret]
    if endpoint.former_secret and endpoint.former_until and now < endpoint.former_until:
        tokens.append(endpoint.former_secret)
    return [secret for token in tokens if (secret := conf.decrypted_webhook_secret(token))]


def headers(message: str, body: bytes, *, signed_by: list[str], now: datetime) -> dict[str, str]:
    """The headers of a message, with a signature by each of the secrets."""
    moment = str(int(now.timestamp()))
    signed = b".".join([message.encode(), moment.encode(), body])
    signatures = [f"v1,{_signature(secret, signed)}" for secret in signed_by]
    return {
        "webhook-id": message,
        "webhook-timestamp": moment,
        "webhook-signature": " ".join(signatures),
        "content-type": "application/json",
    }


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def body_of(delivery: WebhookDelivery, *, content: bool) -> bytes:
    """The body as JSON; at most two queries, for content alone."""
    data = dict(delivery.data)
    if content and delivery.end_user_id:
        data |= _content(delivery, delivery.end_user_id)
    document = {"type": delivery.event, "timestamp": delivery.occurred_at.isoformat(), "data": data}
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _content(delivery: WebhookDelivery, person_id: uuid.UUID) -> dict[str, Any]:
    person = EndUser.objects.filter(tenant=delivery.tenant_id, pk=person_id).first()
    if person is None:
        return {}
    content: dict[str, Any] = {"user_id": person.external_id}
    own = {"tenant": delivery.tenant_id, "end_user": person}
    if delivery.event in (Event.FACT_CREATED, Event.FACT_UPDATED, Event.FACT_SUPERSEDED):
        wanted = Status.SUPERSEDED if delivery.event == Event.FACT_SUPERSEDED else Status.ACTIVE
        if fact := Fact.objects.filter(pk=delivery.data["fact_id"], status=wanted, **own).first():
            content |= {name: getattr(fact, name) for name in SAID_OF_FACT}
    elif delivery.event == Event.EPISODE_CREATED:
        found = Episode.objects.filter(pk=delivery.data["episode_id"], status=EpisodeStatus.ACTIVE, **own)
        if episode := found.first():
            content |= {"summary": episode.summary, "key_topics": episode.key_topics}
    elif delivery.event == Event.SESSION_EXTRACTED:
        session = Session.objects.filter(pk=delivery.data["session_id"], **own).first()
        content |= {"session": session.external_id, "agent_id": session.agent_id} if session else {}
    return content
