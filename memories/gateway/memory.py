"""What the gateway asks the database, each function in one of the web server's threads: who calls, what is remembered
of the person, and which turns the conversation adds."""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from rest_framework.exceptions import ValidationError

from memories import conf
from memories.api import bound
from memories.api.authentication import IS_MANAGEMENT_KEY, Caller, find_key, is_management_key
from memories.api.named import id_in, key_in
from memories.api.throttles import count
from memories.api.v1.context.serializers import MAX_TOKENS
from memories.api.v1.fields import AgentId, Identifier
from memories.audit import Actor
from memories.capture import authors, ingest, resent, seen_texts
from memories.capture.authors import NOTHING_SAID, Judged
from memories.capture.ingest import Conversation, Lacking, PostedMessage, Receipt
from memories.capture.seen_texts import Noted, Seen
from memories.conf import pepper
from memories.context import context, sent_blocks
from memories.context.context import Context, ContextBlock, ContextRequest
from memories.context.parts import DEFAULT_INCLUDE, INCLUDABLE
from memories.context.sent_blocks import Block, Kind, Sending, SentBefore
from memories.db import tenancy
from memories.exceptions import Erased, InvalidInput, KeyBound, PersonRestricted
from memories.gateway import limits, places, trajectories
from memories.gateway.dialects import ChatRequest, Dialect, UnreadableRequest, shortened_query
from memories.gateway.documents import UnreadableDocument
from memories.gateway.places import Layout
from memories.llm.tokenizers import DEFAULT_TOKENIZER, TokenizerNotInstalled, UnknownTokenizer, named, of_model
from memories.llm.tokens import is_loaded
from memories.models import ActorKind, Author, Role, Scope, Session
from memories.queue import own_models

# Of the memory that is added, where the request does not say.
DEFAULT_TOKENS = 2_000
ON, READ_ONLY, OFF = "on", "read-only", "off"
_MODES = ("", ON, READ_ONLY, OFF)
_SAID = ("", authors.LAST, authors.NONE)
# Under these names clients tell their conversation, the surest first.
_SESSION_HEADERS = (
    "x-claude-code-session-id",
    "x-session-id",
    "x-session-affinity",
    "session-id",
    "session_id",
    "thread-id",
    "x-thread-id",
)


# Made once: fields keep nothing of what they check.
_ID, _AGENT_ID = Identifier(), AgentId()


class GatewayRefused(Exception):
    """The gateway answers itself, in the shape of the client's protocol."""

    def __init__(self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.headers = status, code, detail, headers or {}


@dataclass(frozen=True)
class Wanted:
    """What of the memory a request wants: kinds as in POST /context, the most tokens, and who counts them.

    `waits`: no other may count them while that one is loaded.
    """

    include: frozenset[str] = DEFAULT_INCLUDE
    max_tokens: int = DEFAULT_TOKENS
    tokenizer: str = DEFAULT_TOKENIZER
    waits: bool = False

    @cached_property
    def counted_by(self) -> str:
        """Of the first requests after a start the default. The tokenizer is theirs all the same: what they were sent is
        found again by later ones, whichever process gets these."""
        return self.tokenizer if self.waits or is_loaded(self.tokenizer) else DEFAULT_TOKENIZER


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
    wanted: Wanted = Wanted()
    judged: Judged = NOTHING_SAID
    # Whether it is a request beside conversations, as for a title: it is kept nowhere.
    is_aside: bool = False
    # Whether it may begin a conversation: nobody named its session, and it goes on with none.
    is_new: bool = False

    @property
    def may_keep(self) -> bool:
        """Whether the application and the person let the hub keep anything. Its own header is stronger than a client
        library's default."""
        stores = bool(self.asked and (self.asked.store or self.mode == ON))
        return stores and bool(self.user_id) and self.mode not in (READ_ONLY, OFF)

    @property
    def is_kept(self) -> bool:
        """Whether what is said becomes turns."""
        return self.may_keep and not self.is_aside


@dataclass(frozen=True)
class Given:
    """The request with the memory in it, and how long that is; without one the reason.

    `tokens`: of the stable block, and of that before what the person has just said. `sending`: what is to be kept of it
    once it was sent.
    """

    body: bytes = b""
    tokens: int = 0
    reason: str = ""
    sending: Sending | None = None


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
    except limits.TooLarge as error:
        raise GatewayRefused(413, "too_large", str(error)) from None
    except UnreadableDocument as error:
        raise GatewayRefused(400, "invalid_json", str(error)) from None
    try:
        asked = dialect.read(document)
        limits.check(asked, len(body))
    except limits.TooLarge as error:
        raise GatewayRefused(413, "too_large", str(error)) from None
    except (UnreadableRequest, AttributeError, KeyError, TypeError, ValueError):
        asked = None
    mode, said = headers.get("x-memory", "").strip().lower(), headers.get("x-memory-said", "").strip().lower()
    if mode not in _MODES:
        raise GatewayRefused(400, "invalid_header", "X-Memory is on, read-only, off, or left out.")
    if said not in _SAID:
        raise GatewayRefused(400, "invalid_header", "X-Memory-Said is last, none, or left out.")
    wanted = _wanted(headers, document)
    user_id, agent_id, session_id = _names(caller, headers, asked)
    exchange = Exchange(caller, config, document, asked, user_id, agent_id, session_id, mode, wanted)
    return _with_conversation(exchange, asked, said=said) if asked and user_id else exchange


def _wanted(headers: Mapping[str, str], document: Mapping[str, Any]) -> Wanted:
    """Errors: GatewayRefused."""
    include, tokens = headers.get("x-memory-include", ""), headers.get("x-memory-max-tokens", "").strip()
    kinds = frozenset(kind for part in include.split(",") if (kind := part.strip().lower()))
    if not kinds <= set(INCLUDABLE):
        detail = f"X-Memory-Include is some of these, with commas between: {', '.join(INCLUDABLE)}."
        raise GatewayRefused(400, "invalid_header", detail)
    if tokens and not (tokens.isascii() and tokens.isdigit() and len(tokens) < 5 and int(tokens) <= MAX_TOKENS):
        detail = f"X-Memory-Max-Tokens is a number from 0 to {MAX_TOKENS}, or left out."
        raise GatewayRefused(400, "invalid_header", detail)
    name, model = headers.get("x-memory-tokenizer", ""), document.get("model")
    try:
        tokenizer = named(name) if name else of_model(model if isinstance(model, str) else "")
    except (UnknownTokenizer, TokenizerNotInstalled) as error:
        raise GatewayRefused(400, "invalid_header", f"X-Memory-Tokenizer: {error}") from None
    most = int(tokens) if tokens else DEFAULT_TOKENS
    return Wanted(kinds or DEFAULT_INCLUDE, most, tokenizer, waits=bool(name))


def _names(caller: Caller, headers: Mapping[str, str], asked: ChatRequest | None) -> tuple[str, str, str]:
    """Person, agent and session, checked against the key. What the body calls the person is the application's own name
    where the key is for one person. Errors: GatewayRefused."""
    try:
        given = {
            "user_id": id_in(headers, "X-Memory-User", _ID, default=caller.user_id),
            "agent_id": id_in(headers, "X-Memory-Agent", _AGENT_ID, default=caller.agent_id),
        }
        session_id = id_in(headers, "X-Memory-Session", _ID)
        if given["user_id"]:
            bound.check_bound_ids(given, caller, at="")
        given["user_id"] = given["user_id"] or _usable(asked.user if asked else "")
    except KeyBound as error:
        raise GatewayRefused(403, error.code, error.detail) from None
    except InvalidInput as error:
        [fault] = error.faults
        raise GatewayRefused(400, "invalid_header", f"{fault.pointer}: {fault.detail}") from None
    named = [headers.get(name, "").strip() for name in _SESSION_HEADERS]
    named.append(asked.session if asked else "")
    session_id = session_id or next((name for one in named if (name := _usable(one))), "")
    return given["user_id"], given["agent_id"], session_id


def _usable(name: str) -> str:
    """A name that a client gives for its own ends, if it can be an id here."""
    try:
        return str(_ID.run_validation(name)) if name else ""
    except ValidationError:
        return ""


def _with_conversation(exchange: Exchange, asked: ChatRequest, *, said: str) -> Exchange:
    """The exchange with the authors of its messages and the session that it goes on with, or a new one."""
    tenant, key, now = exchange.caller.tenant, exchange.caller.key, timezone.now()
    placed = authors.placed(asked.messages, said=said, user_id=exchange.user_id)
    text = placed.messages[placed.now].content if placed.now is not None and not said else ""
    seen = seen_texts.recent(tenant, user_id=exchange.user_id, key_id=key.pk, now=now, text=text)
    judged = authors.judged(placed, seen, arrived=now, instructions=asked.instructions)
    names = {"user_id": exchange.user_id, "agent_id": exchange.agent_id}
    known = resent.session_of(tenant, **names, messages=judged.messages, now=now, follows=asked.follows)
    known = known or authors.session_behind_summary(judged.messages, seen, agent_id=exchange.agent_id)
    exchange = replace(exchange, judged=judged, session_id=exchange.session_id or known)
    if judged.now is None:
        # Without a word of the person's it goes on with a conversation, or it is none.
        answers_call = bool(judged.messages) and judged.messages[-1].role == Role.TOOL
        goes_on = bool(known) or (bool(exchange.session_id or asked.follows) and answers_call)
        exchange = replace(exchange, is_aside=not goes_on)
    elif not said and judged.asks_now:
        exchange = _beside(exchange, asked, seen.texts, now=now)
    if exchange.session_id:
        return exchange
    return replace(exchange, session_id=f"chat-{uuid.uuid4()}", is_new=not said and judged.asks_now)


def _beside(exchange: Exchange, asked: ChatRequest, seen: Sequence[Seen], *, now: datetime) -> Exchange:
    """Whether it is a request beside a conversation: it carries the name, the answers or the person's words of one that
    is known, and other instructions than that ever had, as for a title or a summary.

    If the conversation goes on with it after all, the next request shows it, and it is kept then.
    """
    lines = seen_texts.lines_of(asked.instructions)
    if asked.follows or (not lines and len(exchange.judged.messages) == 1):
        # The endpoint, or the application, keeps the conversation: it need not send what it sent before.
        return exchange
    if exchange.session_id:
        # A request beside it that the conversation has gone on with counts as its own.
        earlier = {seen_texts.whole_of(one.content) for one in exchange.judged.messages[: exchange.judged.now]}
        here = (exchange.agent_id, exchange.session_id)
        known = [one for one in seen if one.session == here or (one.session is None and one.whole in earlier)]
        return replace(exchange, is_aside=authors.is_beside(known, lines, asked.has_tools, exchange.judged.query))
    whole = exchange.judged.whole
    told = next((one for one in seen if one.author == Author.PERSON and one.whole == whole), None)
    if told is None or told.session is None:
        is_aside = authors.is_always_beside(seen, lines) or authors.is_about_quoted(exchange.judged, seen, lines)
        return replace(exchange, is_aside=is_aside)
    known = [one for one in seen if one.session == told.session]
    if not authors.is_beside(known, lines, asked.has_tools, exchange.judged.query):
        return exchange
    is_first = sum(one.author == Author.PERSON for one in known) == 1 and asked.has_tools >= told.has_tools
    is_first = is_first and now - told.seen_at < authors.SAME_MOMENT
    agent_id, session_id = told.session
    if is_first and agent_id == exchange.agent_id:
        # The request beside it came first: the conversation is what goes on.
        return replace(exchange, session_id=session_id)
    return replace(exchange, is_aside=True)


def recall(exchange: Exchange, dialect: Dialect, at_hand: Callable[[Given], None] = lambda _: None) -> Given:
    """The request with what is remembered. `at_hand` is called with what earlier requests carried alone, before more is
    looked up."""
    asked, document = exchange.asked, exchange.document
    if asked is None or document is None or not exchange.user_id or exchange.mode == OFF:
        return Given(reason="off" if exchange.mode == OFF else "unreadable" if asked is None else "no_user")
    talk = _Talk.of(exchange, asked)
    if talk.is_told:
        return _given(talk, document, dialect)
    if talk.before.blocks:
        at_hand(_given(talk, document, dialect))
    key, stable = exchange.caller.key, None if talk.asks_nothing else talk.before.stable
    texts = (message.content for message in reversed(asked.messages) if message.role == Role.USER)
    last_text = next((text for text in texts if text.strip()), "")
    request = ContextRequest(
        exchange.user_id,
        exchange.agent_id,
        exchange.session_id,
        # Where the person says nothing, a program asks.
        query=shortened_query(exchange.judged.query or last_text),
        max_tokens=max(0, exchange.wanted.max_tokens - (stable.token_count if stable else 0)),
        # Turns that the request shows itself are not told again.
        include=exchange.wanted.include | {"working_memory"},
        shown=len(exchange.judged.messages),
        blocks=True,
        told=frozenset() if talk.asks_nothing else talk.before.told,
        standing=frozenset((one["kind"], one["id"]) for one in stable.items) if stable else None,
        tokenizer=exchange.wanted.counted_by,
    )
    built = context.build(
        tenant=key.tenant, request=request, now=timezone.now(), key_id=key.pk, outdated=talk.before.outdated
    )
    if built.restricted or not built.serve:
        return Given(reason="restricted" if built.restricted else "off")
    return _given(talk.with_context(built), document, dialect)


@dataclass(frozen=True)
class _Talk:
    """A conversation with the blocks that its requests carry: what was sent `before`, and what is `new`."""

    layout: Layout
    before: SentBefore
    sending: Sending
    new: tuple[Block, ...] = ()
    # Of a request beside conversations nothing is asked for again.
    is_kept: bool = True

    @classmethod
    def of(cls, exchange: Exchange, asked: ChatRequest) -> "_Talk":
        tenant, wanted, began = exchange.caller.tenant, exchange.wanted, timezone.now()
        terms = "\n".join([exchange.agent_id, str(wanted.max_tokens), wanted.tokenizer, *sorted(wanted.include)])
        # Of what an endpoint keeps, the answer that is gone on from stands for all before it.
        after = "\n".join([terms, asked.follows])
        found = places.layout(exchange.judged, asked.places, tenant=tenant, terms=after)
        session = places.of_session(tenant, exchange.session_id, terms=terms)
        before = sent_blocks.sent_before(
            tenant,
            user_id=exchange.user_id,
            agent_id=exchange.agent_id,
            session=session,
            places=list(found.items),
            # What is kept is known by its answers.
            of_others=found.goes_on and not (exchange.is_new and exchange.may_keep),
            is_alone=not found.goes_on,
            whole_session=asked.is_kept_there,
            now=began,
        )
        sending = Sending(exchange.user_id, exchange.agent_id, before.session, began, before.person)
        return cls(found, before, sending, is_kept=not exchange.is_aside or bool(before.blocks))

    @property
    def is_told(self) -> bool:
        """Whether all that the request is to carry was sent before, as when an answer is asked for again or a tool has
        answered."""
        is_there = self.layout.newest in self.before.volatile
        return self.before.stable is not None and (is_there or (self.layout.newest is None and self.layout.goes_on))

    @property
    def asks_nothing(self) -> bool:
        """Whether there is no message before which anything could stand: all is told with the system prompt, once."""
        return self.layout.newest is None and not self.layout.goes_on

    def with_context(self, built: Context) -> "_Talk":
        new, outdated = [], self.before.outdated
        if self.asks_nothing:
            return replace(self, new=(Block(Kind.STABLE, b"", built.memory, token_count=built.token_count),))
        if self.before.stable is None:
            new.append(_block(Kind.STABLE, self.sending.session, built.stable))
        if self.layout.newest is not None and self.layout.newest not in self.before.volatile:
            new.append(_block(Kind.VOLATILE, self.layout.newest, built.volatile))
        sealed = (replace(block, ended=outdated.stamp) if outdated and block.ages else block for block in new)
        return replace(self, new=tuple(sealed))

    @property
    def stable(self) -> Block | None:
        return next((one for one in self.new if one.kind == Kind.STABLE), self.before.stable)

    @property
    def volatile(self) -> dict[bytes, Block]:
        return {**self.before.volatile, **{one.place: one for one in self.new if one.kind == Kind.VOLATILE}}

    @property
    def to_keep(self) -> Sending:
        ended = self.before.outdated.stamp if self.before.checked and self.before.outdated else 0
        new = self.new if self.is_kept and not self.asks_nothing else ()
        return self.sending._replace(blocks=new, stale=self.before.stale, checked=self.before.checked, ended=ended)


def _block(kind: str, place: bytes, built: ContextBlock | None) -> Block:
    if built is None:
        return Block(kind, place)
    items = [
        {"kind": one["kind"], "id": one["id"], **({} if (one["kind"], one["id"]) in built.told else {"part": True})}
        for one in built.items
    ]
    return Block(kind, place, built.memory, items, built.token_count)


def _given(talk: _Talk, document: Mapping[str, Any], dialect: Dialect) -> Given:
    stable, volatile, newest = talk.stable, talk.volatile, talk.layout.newest
    before = {item: volatile[place].text for place, item in talk.layout.items.items() if place in volatile}
    before = {item: text for item, text in before.items() if text}
    told = stable.text if stable else ""
    if not told and not before:
        return Given(reason="empty", sending=talk.to_keep)
    text = json.dumps(dialect.with_memory(document, told, before), ensure_ascii=False)
    tokens = (stable.token_count if stable else 0) + (volatile[newest].token_count if newest in volatile else 0)
    return Given(text.encode("utf-8", "surrogatepass"), tokens, sending=talk.to_keep)


def keep_sent(exchange: Exchange, given: Given) -> None:
    """Keep the blocks that the request was sent on with, for later requests of its conversation."""
    if given.sending:
        tenant = exchange.caller.tenant
        with tenancy.of_tenant(tenant.pk):
            sent_blocks.keep(given.sending, tenant, now=timezone.now())


def keep(exchange: Exchange) -> tuple[Exchange, int]:
    """Store what the session lacks of the request, and note what passed; of somebody who may not be stored, nothing.

    Returns the exchange as it was kept, and the number of the turn that is its last message, 0 for none. A framework
    asks an agent and a judge of what was said at the same time: whichever is kept first, the other is beside it.
    """
    if not exchange.is_new or exchange.is_aside:
        return exchange, _keep(exchange)
    names = exchange.caller.tenant.pk.bytes, exchange.user_id.encode(), exchange.judged.whole
    lock = int.from_bytes(pepper.digest("same words", *names)[:8], signed=True)
    with transaction.atomic():
        # Of requests with the same words one is kept at a time.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [lock])
        exchange = _seen_again(exchange)
        return exchange, _keep(exchange)


def _seen_again(exchange: Exchange) -> Exchange:
    """The exchange, if it is beside a conversation that began since it came."""
    tenant, key, now = exchange.caller.tenant, exchange.caller.key, timezone.now()
    if exchange.asked is None:
        return exchange
    with tenancy.of_tenant(tenant.pk):
        seen = seen_texts.recent(tenant, user_id=exchange.user_id, key_id=key.pk, now=now)
    found = _beside(replace(exchange, session_id=""), exchange.asked, seen.texts, now=now)
    return replace(found, session_id=found.session_id or exchange.session_id)


def _keep(exchange: Exchange) -> int:
    asked, messages = exchange.asked, exchange.judged.messages
    if asked is None or not messages:
        return 0
    if exchange.is_aside:
        _note_aside(exchange, _noted(exchange, None))
        return 0
    found: list[Lacking] = []

    def lacking(session: Session) -> Lacking:
        found.append(resent.lacking(session, messages, follows=asked.follows))
        return found[-1]

    receipt = _store(exchange, messages, lacking, partial(_noted, exchange))
    if receipt and receipt.turns:
        return receipt.turns[-1].number
    return found[-1].follows if found else 0


def keep_answer(exchange: Exchange, answer: Sequence[PostedMessage], *, after: int) -> None:
    """Store the answer behind the turn `after`, which keep() returned; 0: with the messages that the session lacks."""
    asked, messages = exchange.asked, exchange.judged.messages
    if asked is None:
        return
    passed = [Noted(seen_texts.text_of(one), Author.MODEL) for one in answer]
    if exchange.is_aside:
        _note_aside(exchange, passed)
        return
    tenant = exchange.caller.tenant
    keys = [resent.answer_key(tenant, [*messages, *answer[:at]], one) for at, one in enumerate(answer)]
    answer = [replace(one, answer_key=key) for one, key in zip(answer, keys, strict=True)]
    lacking: Callable[[Session], Lacking]
    if after:
        lacking = partial(resent.lacking_answer, answer=answer, after=after, asked=len(messages))
        _store(exchange, answer, lacking, lambda _: passed)
    else:
        whole = [*messages, *answer]
        lacking = partial(resent.lacking, messages=whole, follows=asked.follows)
        _store(exchange, whole, lacking, lambda _: passed)


def _noted(exchange: Exchange, receipt: Receipt | None) -> list[Noted]:
    """What of the request may come back: the person's words of now, and what tools have just answered."""
    asked, judged = exchange.asked, exchange.judged
    found = []
    if asked and judged.now is not None:
        stored = next((turn for turn in reversed(receipt.turns) if turn.is_said), None) if receipt else None
        lines = seen_texts.lines_of(asked.instructions)
        text = judged.messages[judged.now].content
        found.append(Noted(text, Author.PERSON, stored.id if stored else None, lines, asked.has_tools))
    for message in reversed(judged.messages):
        if message.role != Role.TOOL:
            break
        found.append(Noted(seen_texts.text_of(message), Author.APPLICATION))
    return found


def _note_aside(exchange: Exchange, texts: Sequence[Noted]) -> None:
    """Nothing of somebody who may not be stored, or whom nobody knows yet."""
    key = exchange.caller.key
    if not exchange.may_keep:
        return
    with tenancy.of_tenant(key.tenant_id):
        if person := seen_texts.person_of(key.tenant, exchange.user_id):
            seen_texts.note(person, texts, session_id=None, key_id=key.pk, now=timezone.now())


def _store(
    exchange: Exchange,
    messages: Sequence[PostedMessage],
    lacking: Callable[[Session], Lacking],
    noted: Callable[[Receipt], Sequence[Noted]],
) -> Receipt | None:
    """Store what the session lacks, and note what passed with it: a turn whose words come back is known by then."""
    key = exchange.caller.key

    def note(receipt: Receipt) -> None:
        if session := receipt.session:
            texts = noted(receipt)
            seen_texts.note(session.end_user, texts, session_id=session.pk, key_id=key.pk, now=timezone.now())
        trajectories.extend(receipt, key, now=timezone.now())

    try:
        # In another call of a thread than the one that looked the key up.
        with tenancy.of_tenant(key.tenant_id):
            return ingest.store_lacking(
                tenant=key.tenant,
                conversation=Conversation(exchange.user_id, exchange.session_id, exchange.agent_id, messages),
                lacking=lacking,
                then=note,
                key_id=key.pk,
                memory_of=key.memory_of,
            )
    except (Erased, PersonRestricted):
        return None
