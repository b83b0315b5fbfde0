"""What the gateway asks the database, each function in one of the web server's threads: who calls, what is remembered
of the person, and which turns the conversation adds."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from memories import conf
from memories.api import bound
from memories.api.authentication import IS_MANAGEMENT_KEY, Caller, find_key, is_management_key
from memories.api.named import id_in, key_in
from memories.api.throttles import count
from memories.api.v1.fields import AgentId, Identifier
from memories.audit import Actor
from memories.capture import ingest, resent
from memories.capture.ingest import Conversation, Lacking, PostedMessage, Receipt
from memories.context import context
from memories.context.context import DEFAULT_INCLUDE, ContextRequest
from memories.db import tenancy
from memories.exceptions import Erased, InvalidInput, KeyBound, PersonRestricted
from memories.gateway import limits
from memories.gateway.dialects import ChatRequest, Dialect, UnreadableRequest
from memories.models import ActorKind, Scope, Session
from memories.queue import own_models

MAX_TOKENS = 2_000
READ_ONLY, OFF = "read-only", "off"
_MODES = ("", "on", READ_ONLY, OFF)


class GatewayRefused(Exception):
    """The gateway answers itself, in the shape of the client's protocol."""

    def __init__(self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.headers = status, code, detail, headers or {}


@dataclass(frozen=True)
class Exchange:
    """A request to the gateway: who calls, whose memory it is about ("" for nobody's), and where it goes on to.

    `document` is the request; `asked` None, where it is not what the protocol says. `session_id`: the one that was
    named, else the one that it goes on with, or a new one.
    """

    caller: Caller
    config: conf.LLMConfig
    document: dict[str, Any] | None
    asked: ChatRequest | None
    user_id: str = ""
    agent_id: str = ""
    session_id: str = ""
    mode: str = ""

    @property
    def is_kept(self) -> bool:
        """Whether what is said becomes turns."""
        return bool(self.asked and self.user_id and self.asked.store and self.mode not in (READ_ONLY, OFF))


@dataclass(frozen=True)
class Given:
    """The request with the context in it, and how long that is; without one the reason."""

    body: bytes = b""
    tokens: int = 0
    reason: str = ""


def authenticate(headers: Mapping[str, str], *, scopes: Sequence[Scope]) -> tuple[Caller, conf.LLMConfig]:
    """The caller and the endpoint. Errors: GatewayRefused."""
    key = find_key(plaintext_of(headers))
    if key is None:
        if is_management_key(plaintext_of(headers)):
            raise GatewayRefused(403, "management_key", IS_MANAGEMENT_KEY)
        raise GatewayRefused(401, "invalid_api_key", "This API key is not known, or has expired or been revoked.")
    for scope in scopes:
        if scope not in key.scopes:
            raise GatewayRefused(403, "missing_scope", f"This key lacks the scope '{scope}'.")
    allowance = count(key.pk, Scope.READ)
    if not allowance.allowed:
        detail = f"Too many requests with this key; try again in {allowance.reset} seconds."
        raise GatewayRefused(429, "rate_limit_exceeded", detail, {"retry-after": str(allowance.reset)})
    own = own_models.own_of(key.tenant_id)
    config = conf.llm(own)
    if not config.api_key and not config.base_url:
        detail = "No model endpoint is configured: set OPENAI_BASE_URL or OPENAI_API_KEY, or the tenant's own endpoint."
        raise GatewayRefused(503, "no_endpoint", detail)
    actor = Actor(kind=ActorKind.KEY, id=str(key.pk), request_id="")
    return Caller(key=key, actor=actor), config


def plaintext_of(headers: Mapping[str, str]) -> str:
    """The hub's key: X-Memory-Key, or where the client's library puts its own."""
    if own := headers.get("x-memory-key", "").strip():
        return own
    return key_in(headers)


def open_exchange(dialect: Dialect, headers: Mapping[str, str], body: bytes) -> Exchange:
    """Read and check a request. Errors: GatewayRefused."""
    caller, config = authenticate(headers, scopes=(Scope.INGEST, Scope.READ))
    try:
        document = limits.document_of(body)
        if document is None:
            raise GatewayRefused(400, "invalid_json", "The body is not a JSON object.")
        asked = dialect.read(document)
        limits.check(asked, len(body))
    except limits.TooLarge as error:
        raise GatewayRefused(413, "too_large", str(error)) from None
    except (UnreadableRequest, AttributeError, KeyError, TypeError, ValueError):
        asked = None
    mode = headers.get("x-memory", "").strip().lower()
    if mode not in _MODES:
        raise GatewayRefused(400, "invalid_header", "X-Memory is read-only, off, or left out.")
    user_id, agent_id, session_id = _names(caller, headers, asked)
    if asked and user_id and not session_id:
        found = resent.session_of(
            caller.tenant,
            user_id=user_id,
            agent_id=agent_id,
            messages=asked.messages,
            now=timezone.now(),
            follows=asked.follows,
        )
        session_id = found or f"chat-{uuid.uuid4()}"
    return Exchange(caller, config, document, asked, user_id, agent_id, session_id, mode)


def _names(caller: Caller, headers: Mapping[str, str], asked: ChatRequest | None) -> tuple[str, str, str]:
    """Person, agent and session, checked against the key. Errors: GatewayRefused."""
    person = (asked.user if asked else "") or caller.user_id
    try:
        given = {
            "user_id": id_in(headers, "X-Memory-User", Identifier(), default=person),
            "agent_id": id_in(headers, "X-Memory-Agent", AgentId(), default=caller.agent_id),
        }
        session_id = id_in(headers, "X-Memory-Session", Identifier())
        if given["user_id"]:
            bound.hold(given, caller, at="")
    except KeyBound as error:
        raise GatewayRefused(403, error.code, error.detail) from None
    except InvalidInput as error:
        [fault] = error.faults
        raise GatewayRefused(400, "invalid_header", f"{fault.pointer}: {fault.detail}") from None
    return given["user_id"], given["agent_id"], session_id


def recall(exchange: Exchange, dialect: Dialect) -> Given:
    """The request with what is remembered."""
    asked, document = exchange.asked, exchange.document
    if asked is None or document is None or not exchange.user_id or exchange.mode == OFF:
        return Given(reason="off" if exchange.mode == OFF else "unreadable" if asked is None else "no_user")
    key = exchange.caller.key
    # Turns that the request shows itself are not told again.
    include = DEFAULT_INCLUDE | {"working_memory"}
    request = ContextRequest(
        exchange.user_id,
        exchange.agent_id,
        exchange.session_id,
        query=asked.query,
        max_tokens=MAX_TOKENS,
        include=include,
    )
    built = context.build(tenant=key.tenant, request=request, now=timezone.now(), key_id=key.pk)
    if not built.memory:
        return Given(reason="restricted" if built.restricted else "empty" if built.serve else "off")
    text = json.dumps(dialect.with_memory(document, built.memory), ensure_ascii=False)
    return Given(text.encode("utf-8", "surrogatepass"), built.token_count)


def keep(exchange: Exchange) -> int:
    """Store what the session lacks of the request; of somebody who may not be stored, nothing. Returns the number of
    the turn that is its last message, 0 for none."""
    asked = exchange.asked
    if asked is None or not asked.messages:
        return 0
    found: list[Lacking] = []

    def lacking(session: Session) -> Lacking:
        found.append(resent.lacking(session, asked.messages, follows=asked.follows))
        return found[-1]

    receipt = _store(exchange, asked.messages, lacking)
    if receipt and receipt.turns:
        return receipt.turns[-1].number
    return found[-1].follows if found else 0


def keep_answer(exchange: Exchange, answer: Sequence[PostedMessage], *, after: int) -> None:
    """Store the answer behind the turn `after`, which keep() returned; 0: with the messages that the session lacks."""
    asked = exchange.asked
    if asked is None:
        return
    if after:
        count = len(asked.messages)
        _store(exchange, answer, lambda session: resent.lacking_answer(session, answer, after=after, asked=count))
    else:
        messages = [*asked.messages, *answer]
        _store(exchange, messages, lambda session: resent.lacking(session, messages, follows=asked.follows))


def _store(
    exchange: Exchange, messages: Sequence[PostedMessage], lacking: Callable[[Session], Lacking]
) -> Receipt | None:
    key = exchange.caller.key
    try:
        # In another call of a thread than the one that looked the key up.
        with tenancy.of_tenant(key.tenant_id):
            return ingest.store_lacking(
                tenant=key.tenant,
                conversation=Conversation(exchange.user_id, exchange.session_id, exchange.agent_id, messages),
                lacking=lacking,
                key_id=key.pk,
                memory_of=key.memory_of,
            )
    except (Erased, PersonRestricted):
        return None
