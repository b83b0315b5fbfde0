"""Ingest: store turns as posted, except secrets, with gapless numbers, and arm their session, in one transaction."""

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from time import perf_counter
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models.functions import Now

from memories import conf
from memories.capture import attachments, branches, get_or_create, trajectories
from memories.capture.agents import note_agents
from memories.capture.attachments import PostedAttachment
from memories.capture.session_rows import create_session, locked_queue, save_locked
from memories.db import tenancy
from memories.exceptions import Erased, ExternalIdReused, Fault, PersonRestricted
from memories.llm import tokens
from memories.models import Attachment, Author, EndUser, Role, Session, SessionQueue, Tenant, Turn
from memories.models.conversations.conversations import AUTHOR_OF_ROLE, REPEATED
from memories.queue import session_queue, window_queue
from memories.queue.session_queue import ExtractionStatus
from memories.scoring import terms
from memories.telemetry import traces
from memories.telemetry.families import TURNS
from memories.text.authorship import Reading, read, without
from memories.text.secrets import redaction

LAST_SEEN_STEP = timedelta(minutes=1)
LONGEST_NAME = 255
# What frameworks call the person.
_PERSONS = ("user", "human")


@dataclass(frozen=True)
class PostedMessage:
    """One message as posted; `content` is its text, `parts` the list of content parts if it came as one."""

    role: str
    content: str
    parts: list[Any] | None = None
    external_id: str | None = None
    timestamp: datetime | None = None
    tool_calls: list[Any] | None = None
    tool_call_id: str = ""
    name: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    # Whose words a user's message holds: as the application says it (`is_declared`), or as the gateway found; "": as
    # its text tells. `cut` are passages of it that were somebody else's.
    author: str = ""
    is_declared: bool = False
    cut: Sequence[str] = ()
    # Of a message that the gateway divided, since a program's texts stand in it beside what was typed.
    is_part: bool = False
    # Of an answer that the gateway passed on.
    answer_key: bytes | None = None
    attachments: Sequence[PostedAttachment] = ()

    @property
    def is_said(self) -> bool:
        """Whether it may be the person's own word."""
        return self.role == Role.USER and self.author in ("", Author.PERSON)

    @cached_property
    def reading(self) -> Reading:
        """Whose words a user's text holds, as far as it tells itself."""
        return read(self.content)

    @property
    def is_material(self) -> bool:
        """Whether it is nothing but what a program put there, as its text tells."""
        return self.role == Role.USER and not self.is_declared and self.reading.author == Author.APPLICATION


@dataclass(frozen=True)
class Conversation:
    """Messages of one session; an `agent_id` of "" means none."""

    user_id: str
    session_id: str
    agent_id: str
    messages: Sequence[PostedMessage]
    flush: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        return self.user_id, self.agent_id, self.session_id


@dataclass(frozen=True)
class StoredTurn:
    id: uuid.UUID
    number: int
    external_id: str | None
    token_count: int
    duplicate: bool
    is_said: bool = False
    # Ids of the files that came with it and were stored now.
    attachments: Sequence[uuid.UUID] = ()


@dataclass(frozen=True)
class Receipt:
    """The result of a post; `session` is None when capture is off, `redactions` counts secrets.

    `signals` are the kinds of signals found in the last turns (rules.md, 1.4).
    """

    session: Session | None
    turns: list[StoredTurn]
    extraction: ExtractionStatus
    redactions: int = 0
    signals: list[str] = field(default_factory=list)

    @property
    def duplicates(self) -> int:
        return sum(turn.duplicate for turn in self.turns)

    @property
    def accepted(self) -> int:
        return len(self.turns) - self.duplicates


class Lacking(NamedTuple):
    """What a session lacks of a conversation that is sent whole: new messages, stored turns that the client `left`, and
    those that it took `back`. `follows` is the number of the turn that the messages follow, 0 for none; `elsewhere`:
    the conversation went on without the messages."""

    messages: Sequence[PostedMessage]
    left: Sequence[Turn] = ()
    back: Sequence[Turn] = ()
    follows: int = 0
    elsewhere: bool = False


@dataclass(frozen=True)
class _Prepared:
    """Turns without secrets, still without session, number and time. `follows`: the number of the turn that the first
    of them follows, where they may be a branch."""

    turns: list[Turn]
    redactions: int
    signals: list[str]
    follows: int | None = None
    # By the id of their turn.
    attachments: Mapping[uuid.UUID, list[Attachment]] = field(default_factory=dict)


def store_turns(
    *,
    tenant: Tenant,
    user_id: str,
    session_id: str,
    agent_id: str,
    messages: Sequence[PostedMessage],
    flush: bool = False,
    key_id: uuid.UUID | None = None,
    memory_of: str = "",
) -> Receipt:
    """Store messages in order and arm the session; person and session are created where missing.

    `key_id` is the API key that posted them, `memory_of` its choice of whose memory a session becomes that it opens.

    Errors, with nothing stored: PersonRestricted; Erased; ExternalIdReused when an external_id has other content.
    """
    began = perf_counter()
    conversation = Conversation(user_id, session_id, agent_id, messages, flush)
    # Before the lock: redacting a long text takes longer than storing it.
    prepared = _prepare(conversation, tenant, key_id)
    if tenant.capture:
        note_agents(tenant, [agent_id])
    with transaction.atomic():
        receipt = _store(tenant, conversation, lambda _session: prepared, memory_of=memory_of)
        _note_activity([receipt], began=began)
        return receipt


def store_lacking(
    *,
    tenant: Tenant,
    conversation: Conversation,
    lacking: Callable[[Session], Lacking],
    then: Callable[[Receipt], None] = lambda _: None,
    key_id: uuid.UUID | None = None,
    memory_of: str = "",
) -> Receipt:
    """Store what `lacking` finds once the session is locked, and do `then` in the same transaction. Errors: as
    store_turns()."""
    began = perf_counter()
    if tenant.capture:
        note_agents(tenant, [conversation.agent_id])
    elsewhere: list[Turn] = []

    def prepared(session: Session) -> _Prepared:
        found = lacking(session)
        branches.change(session, left=found.left, back=found.back)
        made = _prepare(replace(conversation, messages=found.messages), tenant, key_id)
        elsewhere.extend(made.turns if found.elsewhere else [])
        return replace(made, follows=found.follows)

    with transaction.atomic():
        receipt = _store(tenant, conversation, prepared, memory_of=memory_of)
        if receipt.session:
            # Those without a number were there already.
            branches.change(receipt.session, left=[turn for turn in elsewhere if turn.number], back=[])
        then(receipt)
        _note_activity([receipt], began=began)
        return receipt


def store_conversations(
    *, tenant: Tenant, conversations: Sequence[Conversation], key_id: uuid.UUID | None = None, memory_of: str = ""
) -> list[Receipt]:
    """Store them all, or none; the receipts are in the given order.

    They can be sent again, whole or from the middle: what has an external_id or a timestamp is stored once.

    Errors, with a pointer to the conversation: those of store_turns().
    """
    began = perf_counter()
    prepared = [_prepare(conversation, tenant, key_id) for conversation in conversations]
    if tenant.capture:
        note_agents(tenant, (conversation.agent_id for conversation in conversations))
    receipts: dict[int, Receipt] = {}
    with transaction.atomic():
        # All requests lock in the same order, so that two with the same sessions cannot deadlock.
        for index in sorted(range(len(conversations)), key=lambda index: conversations[index].key):
            try:
                receipts[index] = _store(
                    tenant,
                    conversations[index],
                    lambda _session, index=index: prepared[index],  # type: ignore[misc]
                    memory_of=memory_of,
                    resumes=True,
                )
            except (Erased, ExternalIdReused, PersonRestricted) as error:
                fault = Fault(f"/conversations/{index}", error.code, error.detail)
                raise type(error)(faults=[fault]) from error
        _note_activity(receipts.values(), began=began)
    return [receipts[index] for index in range(len(conversations))]


def _prepare(conversation: Conversation, tenant: Tenant, key_id: uuid.UUID | None) -> _Prepared:
    redacted = [_redacted(message, key_id) for message in conversation.messages]
    turns = [turn for turn, _ in redacted]
    files = {
        turn.pk: [attachments.of(turn, one, tenant) for one in message.attachments]
        for turn, message in zip(turns, conversation.messages, strict=True)
        if message.attachments
    }
    secrets = sum(count for _, count in redacted)
    return _Prepared(turns, secrets, session_queue.signals_of(turns, tenant), attachments=files)


def without_secrets(message: PostedMessage) -> redaction.Redacted:
    """What is stored of the message's texts."""
    return redaction.redact_message(
        content=message.content,
        parts=message.parts,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        metadata=message.metadata,
        name=message.name,
    )


def _redacted(message: PostedMessage, key_id: uuid.UUID | None) -> tuple[Turn, int]:
    """The message without secrets as a turn, and how many it had."""
    clean = without_secrets(message)
    turn = Turn(
        role=message.role,
        content=clean.content,
        parts=clean.parts,
        tool_calls=clean.tool_calls,
        # A mark can be longer than the secret that it replaces.
        tool_call_id=clean.tool_call_id[:LONGEST_NAME],
        name=clean.name[:LONGEST_NAME],
        metadata=clean.metadata,
        answer_key=message.answer_key,
        external_id=message.external_id or None,
        timestamp=message.timestamp,
        token_count=tokens.count(clean.content),
        key_id=key_id,
    )
    attribute(turn, message)
    turn.terms = terms.pack(turn.own_text) if turn.is_searchable else None
    return turn, clean.count


def attribute(turn: Turn, message: PostedMessage) -> None:
    """Note whose words the turn holds, and which parts of it, as the message that it was posted as tells."""
    turn.author = AUTHOR_OF_ROLE.get(turn.role, Author.APPLICATION)
    if turn.role != Role.USER:
        return
    reading = message.reading if turn.content == message.content else read(turn.content)
    if message.is_declared and reading.author != Author.PERSON:
        # Whoever types a block alone means it.
        reading = Reading(Author.PERSON)
    turn.author = reading.author if message.is_said else message.author
    if not turn.is_said:
        return
    own = reading.own
    if message.cut:
        # The turn has no secrets any more.
        passages = [redaction.redact_text(passage)[0] for passage in message.cut]
        places = [(at, at + len(passage)) for passage in passages if (at := turn.content.find(passage)) >= 0]
        own = without(places, turn.content, own)
    turn.own = None if own is None else [list(span) for span in own]
    turn.is_doubtful = reading.is_doubtful and not message.is_declared


def _store(
    tenant: Tenant,
    conversation: Conversation,
    prepare: Callable[[Session], _Prepared],
    *,
    memory_of: str,
    resumes: bool = False,
) -> Receipt:
    queue = _capturing_queue(tenant, *conversation.key, memory_of)
    if queue is None:
        return Receipt(session=None, turns=[], extraction=ExtractionStatus("off"))
    session, now = queue.session, queue.clock
    prepared = prepare(session)
    _tell_speakers_apart(session, conversation.user_id, prepared.turns)
    timed = _timed(session, prepared.turns) if resumes else {}
    stored, new = _number(session, prepared.turns, timed, now=now, follows=prepared.follows)
    if new:
        session.turn_count += len(new)
        session.token_count += sum(turn.token_count for turn in new)
        session.round_count += sum(turn.role == Role.USER for turn in new)
        session.last_turn_at, session.ended_at = now, None
    # With nothing new a flush still moves the due time.
    if new or conversation.flush:
        rules, window = conf.rules(session.tenant), session.working_memory
        found = prepared.signals if new else []
        session_queue.arm(queue, new, rules=rules, now=now, flush=conversation.flush, found=found)
        moved = bool(new) and window_queue.arm(window, session, rules=rules, now=now)
        save_locked(queue, new, window if moved else None)
    if trajectories.may_settle([turn.own_text for turn in new if turn.is_said], prepared.signals):
        transaction.on_commit(partial(_settle, session), robust=True)
    if new and prepared.attachments:
        files = attachments.store(new, prepared.attachments)
        stored = [replace(turn, attachments=files.get(turn.id, ())) for turn in stored]
    status = session_queue.status_of(queue, now=now)
    return Receipt(session, stored, status, prepared.redactions, prepared.signals)


def _settle(session: Session) -> None:
    """Afterwards: it locks the person, whom ingest updates last."""
    with tenancy.of_tenant(session.tenant_id):
        trajectories.settle_session(session)


def _capturing_queue(
    tenant: Tenant, user_id: str, agent_id: str, session_id: str, memory_of: str
) -> SessionQueue | None:
    """The session's queue row, locked, created where missing; None when capture is off."""
    if not tenant.capture:
        return None
    key = {"user_id": user_id, "session_id": session_id, "agent_id": agent_id}
    queue = locked_queue(tenant, **key)
    while queue is None:
        if not _create_session(tenant, **key, memory_of=memory_of):
            return None
        # Somebody may have deleted it since, or given the person another id.
        queue = locked_queue(tenant, **key)
    return queue if _may_capture(queue.session.end_user) else None


def _create_session(tenant: Tenant, *, user_id: str, session_id: str, agent_id: str, memory_of: str) -> bool:
    """Create person, session and queue rows where missing. False: capture is off."""
    now = Tenant.objects.annotate(clock=Now()).values_list("clock", flat=True).get(pk=tenant.pk)
    named, is_new = get_or_create.end_user(tenant=tenant, user_id=user_id, now=now)
    # Nobody else sees one that was created just now.
    person = named if is_new else get_or_create.lock_alias(named)
    if person is None:
        return True
    if not _may_capture(person):
        return False
    create_session(person, agent_id=agent_id, external_id=session_id, memory_of=memory_of, now=now)
    return True


def _may_capture(person: EndUser) -> bool:
    if person.restricted_at:
        raise PersonRestricted
    return person.capture


def _tell_speakers_apart(session: Session, user_id: str, turns: Sequence[Turn]) -> None:
    """A user's message under another name than the person's is another speaker's. The person's name is their id, else
    that of the first who spoke in the session."""
    named = [turn for turn in turns if turn.name and turn.role == Role.USER]
    if not named:
        return
    first = (
        Turn.objects.filter(session=session).said().exclude(name="").order_by("number").values_list("name", flat=True)
    )
    own = speaker((first.first() or "", *(turn.name for turn in named)), user_id=user_id)
    for turn in named:
        if turn.name != own and turn.is_said:
            turn.author, turn.own = Author.OTHER, None


def speaker(names: Iterable[str], *, user_id: str) -> str:
    """The person's name among those of messages, given in order."""
    given = [name for name in names if name]
    others = [name for name in given if name.casefold() in (user_id.casefold(), *_PERSONS)]
    return (others or given or [""])[0]


def _number(
    session: Session, turns: Sequence[Turn], timed: dict[str, list[Turn]], *, now: datetime, follows: int | None
) -> tuple[list[StoredTurn], list[Turn]]:
    """Number the new turns and recognise those that the session already has: (all of them, the new ones).

    They are recognised by their external_id, as one of those that are `timed`, or as one that was redacted.
    """
    existing = _existing(session, [turn.external_id for turn in turns if turn.external_id])
    redacted: dict[tuple[bytes, datetime | None], Turn] = {}
    if session.redactions:
        without_id = Turn.objects.filter(session=session, redacted_at__isnull=False, external_id=None)
        redacted = {(bytes(turn.digest), turn.timestamp): turn for turn in without_id if turn.digest}
    stored: list[StoredTurn] = []
    new: list[Turn] = []
    for given in turns:
        given.tenant_id, given.end_user_id, given.session_id = session.tenant_id, session.end_user_id, session.pk
        same = timed.get(_repeat_key(given)) if timed and not given.external_id else None
        turn = existing.get(given.external_id) if given.external_id else same.pop(0) if same else None
        if turn is None and redacted and not given.external_id:
            turn = redacted.get((given.content_digest, given.timestamp))
        duplicate = turn is not None
        if turn is None:
            turn = given
            turn.number, turn.created_at = session.turn_count + len(new) + 1, now
            turn.follows = follows if follows not in (None, turn.number - 1) else None
            new.append(turn)
            existing.update({turn.external_id: turn} if turn.external_id else {})
        elif not _repeats(given, turn):
            raise ExternalIdReused
        follows = None if follows is None else turn.number
        stored.append(StoredTurn(turn.pk, turn.number, turn.external_id, turn.token_count, duplicate, turn.is_said))
    return stored, new


def _existing(session: Session, external_ids: list[str]) -> dict[str | None, Turn]:
    if not external_ids:
        return {}
    return {turn.external_id: turn for turn in Turn.objects.filter(session=session, external_id__in=external_ids)}


def _repeats(given: Turn, turn: Turn) -> bool:
    """Whether it says what the session's turn says, or said before it was redacted."""
    if turn.digest and given.content_digest == bytes(turn.digest):
        return True
    return all(getattr(turn, name) == getattr(given, name) for name in REPEATED)


def _timed(session: Session, turns: Iterable[Turn]) -> dict[str, list[Turn]]:
    """The session's turns without an external_id that were said at a time at which one of these was, by what was said:
    said twice at a time, there are two."""
    times = {turn.timestamp for turn in turns if turn.timestamp and not turn.external_id}
    found: dict[str, list[Turn]] = {}
    stored = Turn.objects.filter(session=session, external_id=None, timestamp__in=times).order_by("number")
    for turn in stored if times else ():
        found.setdefault(_repeat_key(turn), []).append(turn)
    return found


def _repeat_key(turn: Turn) -> str:
    """Equal for messages of one time that repeat each other."""
    at = turn.timestamp.astimezone(UTC).isoformat() if turn.timestamp else ""
    return json.dumps([at, *(getattr(turn, name) for name in REPEATED)], sort_keys=True)


def _count(receipts: Sequence[Receipt], began: float) -> None:
    TURNS.count("stored", by=sum(receipt.accepted for receipt in receipts))
    TURNS.count("duplicate", by=sum(receipt.duplicates for receipt in receipts))
    for receipt in receipts if traces.is_on() else ():
        new = [turn.id for turn in receipt.turns if not turn.duplicate]
        if receipt.session and new:
            attributes = {"session": str(receipt.session.pk), "tenant": receipt.session.tenant.slug}
            traces.record_post(new[0], perf_counter() - began, turns=len(new), **attributes)


def _note_activity(receipts: Collection[Receipt], *, began: float) -> None:
    """Update people's last_seen_at, after all sessions are locked: ingest locks a session before its person."""
    transaction.on_commit(partial(_count, list(receipts), began))
    sessions = [receipt.session for receipt in receipts if receipt.session and receipt.accepted]
    by_person = {session.end_user_id: session for session in sessions}
    for pk, session in sorted(by_person.items()):
        now = session.last_turn_at
        # To the minute: a write per turn on the person's row would serialize all of their sessions.
        if now - session.end_user.last_seen_at >= LAST_SEEN_STEP:
            EndUser.objects.filter(pk=pk, last_seen_at__lt=now).update(last_seen_at=now)
