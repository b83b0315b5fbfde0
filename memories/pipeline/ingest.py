"""Capture: turns are stored as posted but for secrets, numbered without gaps, and their session is armed, in one
transaction."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from memories import conf
from memories.exceptions import Erased, ExternalIdReused, Fault, PersonRestricted
from memories.llm import tokens
from memories.models import EndUser, Role, Session, SessionQueue, Tenant, Turn, WorkingMemory
from memories.pipeline import debounce, newcomers, presence, redaction, working_memory
from memories.pipeline.closing import locked_queue, save_locked
from memories.pipeline.debounce import ExtractionStatus
from memories.scoring import terms

LAST_SEEN_STEP = timedelta(minutes=1)
LONGEST_NAME = 255
# What a message must repeat to be the same as the one that has its external_id.
SAID = ("role", "content", "parts", "tool_call_id")


@dataclass(frozen=True)
class Message:
    """One message as posted; `content` is its text, `parts` the list it came as, if it did."""

    role: str
    content: str
    parts: list[Any] | None = None
    external_id: str | None = None
    timestamp: datetime | None = None
    tool_calls: list[Any] | None = None
    tool_call_id: str = ""
    name: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Conversation:
    """Messages of one session; an `agent_id` of "" means none."""

    user_id: str
    session_id: str
    agent_id: str
    messages: Sequence[Message]
    flush: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """Whose session it is: person, agent, session."""
        return self.user_id, self.agent_id, self.session_id


@dataclass(frozen=True)
class StoredTurn:
    id: uuid.UUID
    number: int
    external_id: str | None
    token_count: int
    duplicate: bool


@dataclass(frozen=True)
class Receipt:
    """What became of a post; `session` is None when capture is switched off, `redactions` counts secrets cut.

    `signals` are the kinds of signs found in what the person said last (rules.md, 1.4).
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


@dataclass(frozen=True)
class _Reading:
    """Turns without secrets, which await their session, number and time; how many secrets were cut; the signs."""

    turns: list[Turn]
    redactions: int
    signals: list[str]


def store_turns(
    *,
    tenant: Tenant,
    user_id: str,
    session_id: str,
    agent_id: str,
    messages: Sequence[Message],
    flush: bool = False,
    key_id: uuid.UUID | None = None,
) -> Receipt:
    """Store messages in order and arm the session; person and session are made on first sight.

    `key_id` is of the API key that posted them.

    Errors, with nothing stored: PersonRestricted; Erased; ExternalIdReused when an external_id has other content.
    """
    conversation = Conversation(user_id, session_id, agent_id, messages, flush)
    # Read before the lock: that of a long text takes longer than storing it.
    reading = _read(conversation, tenant, key_id)
    with transaction.atomic():
        receipt = _store(tenant, conversation, reading)
        if receipt.session and receipt.accepted:
            _note_seen(receipt.session.end_user, now=receipt.session.last_turn_at)
        return receipt


def store_conversations(
    *, tenant: Tenant, conversations: Sequence[Conversation], key_id: uuid.UUID | None = None
) -> list[Receipt]:
    """Store them all, or none; the receipts are in the given order.

    Errors, with the conversation's pointer: those of store_turns().
    """
    readings = [_read(conversation, tenant, key_id) for conversation in conversations]
    receipts: dict[int, Receipt] = {}
    with transaction.atomic():
        # In one order for everybody: two that name the same sessions wait for each other one way only.
        for index in sorted(range(len(conversations)), key=lambda index: conversations[index].key):
            try:
                receipts[index] = _store(tenant, conversations[index], readings[index])
            except (Erased, ExternalIdReused, PersonRestricted) as error:
                fault = Fault(f"/conversations/{index}", error.code, error.detail)
                raise type(error)(faults=[fault]) from error
        _note_all_seen(receipts.values())
    return [receipts[index] for index in range(len(conversations))]


def _read(conversation: Conversation, tenant: Tenant, key_id: uuid.UUID | None) -> _Reading:
    redacted = [_redacted(message) for message in conversation.messages]
    turns = [turn for turn, _ in redacted]
    for turn in turns:
        turn.key_id = key_id
    return _Reading(turns, sum(count for _, count in redacted), debounce.signals_of(turns, tenant))


def _redacted(message: Message) -> tuple[Turn, int]:
    """The message without secrets as a turn, and how many it held."""
    clean = redaction.redact_message(
        content=message.content,
        parts=message.parts,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        metadata=message.metadata,
        name=message.name,
    )
    turn = Turn(
        role=message.role,
        content=clean.content,
        parts=clean.parts,
        tool_calls=clean.tool_calls,
        tool_call_id=clean.tool_call_id[:LONGEST_NAME],
        metadata=clean.metadata,
        # A mark may be longer than the secret in whose place it stands.
        name=clean.name[:LONGEST_NAME],
        external_id=message.external_id or None,
        timestamp=message.timestamp,
        token_count=tokens.count(clean.content),
    )
    turn.terms = terms.pack(terms.count(turn.content)) if turn.is_searchable else None
    return turn, clean.count


def _store(tenant: Tenant, conversation: Conversation, reading: _Reading) -> Receipt:
    queue = _capturing_queue(tenant, *conversation.key)
    if queue is None:
        return Receipt(session=None, turns=[], extraction=ExtractionStatus("off"))
    stored, new = _sort_out(queue.session, reading.turns, now=queue.clock)
    _append(queue, new, now=queue.clock, flush=conversation.flush, found=reading.signals)
    status = debounce.status_of(queue, now=queue.clock)
    return Receipt(queue.session, stored, status, reading.redactions, reading.signals)


def _capturing_queue(tenant: Tenant, user_id: str, agent_id: str, session_id: str) -> SessionQueue | None:
    """The session's queue row, locked, made where missing; None when capture is off."""
    if not tenant.capture:
        return None
    named = {"user_id": user_id, "session_id": session_id, "agent_id": agent_id}
    queue = locked_queue(tenant, **named)
    while queue is None:
        if not _make_session(tenant, **named):
            return None
        # Somebody may have deleted it again since, or given the person another id.
        queue = locked_queue(tenant, **named)
    return queue if _may_capture(queue.session.end_user) else None


def _make_session(tenant: Tenant, *, user_id: str, session_id: str, agent_id: str) -> bool:
    """Make person, session and queue row where missing; two at once both find one row. False: capture is off."""
    now = Tenant.objects.annotate(clock=Now()).values_list("clock", flat=True).get(pk=tenant.pk)
    named, is_new = newcomers.find_or_make(tenant=tenant, user_id=user_id, now=now)
    # Nobody else sees one that was made just now.
    person = named if is_new else presence.hold(named)
    if person is None:
        return True
    if not _may_capture(person):
        return False
    session, _ = Session.objects.get_or_create(
        end_user=person,
        agent_id=agent_id,
        external_id=session_id,
        defaults={"tenant": tenant, "created_at": now, "last_turn_at": now},
    )
    # Whoever comes second finds them made: one statement each, where a look before would be a second.
    SessionQueue.objects.bulk_create([SessionQueue(session=session)], ignore_conflicts=True)
    WorkingMemory.objects.bulk_create([WorkingMemory(session=session)], ignore_conflicts=True)
    return True


def _may_capture(person: EndUser) -> bool:
    if person.restricted_at:
        raise PersonRestricted
    return person.capture


def _sort_out(session: Session, turns: Sequence[Turn], *, now: datetime) -> tuple[list[StoredTurn], list[Turn]]:
    """Number the new turns and recognise those that the session already has."""
    known = _known_turns(session, [turn.external_id for turn in turns if turn.external_id])
    stored: list[StoredTurn] = []
    new: list[Turn] = []
    for given in turns:
        turn = known.get(given.external_id) if given.external_id else None
        duplicate = turn is not None
        if turn is None:
            turn = given
            _place(turn, session, number=session.turn_count + len(new) + 1, now=now)
            new.append(turn)
            known.update({turn.external_id: turn} if turn.external_id else {})
        elif any(getattr(turn, name) != getattr(given, name) for name in SAID):
            raise ExternalIdReused
        stored.append(StoredTurn(turn.pk, turn.number, turn.external_id, turn.token_count, duplicate))
    return stored, new


def _known_turns(session: Session, external_ids: list[str]) -> dict[str | None, Turn]:
    if not external_ids:
        return {}
    return {turn.external_id: turn for turn in Turn.objects.filter(session=session, external_id__in=external_ids)}


def _place(turn: Turn, session: Session, *, number: int, now: datetime) -> None:
    turn.tenant_id, turn.end_user_id, turn.session_id = session.tenant_id, session.end_user_id, session.pk
    turn.number, turn.created_at = number, now


def _append(queue: SessionQueue, new: Sequence[Turn], *, now: datetime, flush: bool, found: Sequence[str]) -> None:
    """Write the new turns with the counters; with nothing new a flush still moves the due time."""
    session = queue.session
    if new:
        session.turn_count += len(new)
        session.token_count += sum(turn.token_count for turn in new)
        session.round_count += sum(turn.role == Role.USER for turn in new)
        session.last_turn_at, session.ended_at = now, None
    if new or flush:
        found = found if new else []
        rules, window = conf.rules(session.tenant), session.working_memory
        debounce.arm(queue, new, rules=rules, now=now, flush=flush, found=found)
        moved = bool(new) and working_memory.arm(window, session, rules=rules, now=now)
        save_locked(queue, new, window if moved else None)


def _note_all_seen(receipts: Iterable[Receipt]) -> None:
    """Once no session has to be waited for: whoever stores turns locks the session first and its person then."""
    sessions = [receipt.session for receipt in receipts if receipt.session and receipt.accepted]
    people = {session.end_user_id: session for session in sessions}
    for session in sorted(people.values(), key=lambda session: session.end_user_id):
        _note_seen(session.end_user, now=session.last_turn_at)


def _note_seen(person: EndUser, *, now: datetime) -> None:
    # To the minute: a write per turn on the person's row would serialise all of their sessions.
    if now - person.last_seen_at >= LAST_SEEN_STEP:
        EndUser.objects.filter(pk=person.pk, last_seen_at__lt=now).update(last_seen_at=now)
