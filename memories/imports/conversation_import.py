"""Stores conversations of other services, each message once, as `POST /turns` does.

A message that the API would refuse is left out by itself, and the rest of its conversation is stored. Where a newer
export shows another branch, the turns of the one that it left are left here too.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db import transaction

from memories.api.shapes import MOST_VALUES
from memories.api.v1.turns.serializers import MAX_MESSAGES, TurnsSerializer, conversation_of
from memories.capture import ingest
from memories.capture.ingest import Conversation, Lacking, PostedMessage, Receipt
from memories.exceptions import Erased, MemoryHubError, PersonRestricted, TooManySecrets
from memories.imports.raw_documents import RefusedDocumentError, checked
from memories.imports.records import Note, Said, ignore_rows
from memories.models import ImportedRow, Session, Tenant, Turn
from memories.text.secrets import effort

# Bytes and values of the messages in one part: a request has its own beside them.
_PART, _VALUES = 8_000_000, MOST_VALUES // 2
# Of a message: more than a request may have.
_TOO_MUCH = ("number", "depth", "max_values", "too_large", "message_too_large")
# Messages of one conversation whose faults are told.
_MOST_TOLD = 5
# Ids of one session that are looked up at once.
_AT_ONCE = 5000
Kind = ImportedRow.Kind
# A message, and its place among those of its conversation.
Placed = tuple[int, Any]


class ConversationImport:
    """An import under way; `done` counts by outcome, `left_out` messages by reason. `tell` is given why a conversation
    was refused, with its place. `user_id` and `agent_id`: whose those are that name nobody."""

    def __init__(
        self,
        tenant: Tenant,
        *,
        user_id: str,
        dry_run: bool,
        agent_id: str,
        tell: Callable[[str], None],
        note: Note = ignore_rows,
    ) -> None:
        self._tenant, self._user_id, self._agent_id = tenant, user_id, agent_id
        self._dry_run, self._tell, self._note = dry_run, tell, note
        self._seen: set[int] = set()
        self.done, self.left_out = Counter[str](), Counter[str]()

    def refuse(self, error: RefusedDocumentError) -> None:
        """A conversation that could not be built."""
        self.done["conversations"] += 1
        self._refuse(str(error))

    def take(self, said: Said) -> None:
        """Errors: Erased, PersonRestricted, where all conversations are of that person."""
        self.done["conversations"] += 1
        body = {**said.body, **self._own(said.body)}
        if not isinstance(said.messages, list):
            try:
                checked(TurnsSerializer, {**body, "messages": said.messages})
            except RefusedDocumentError as error:
                self._refuse(str(error))
            return
        try:
            follows = 0
            for number, part in enumerate(_parts(self._distinct(body, said.messages))):
                conversation = self._conversation(body, part, is_own=said.is_own)
                if conversation is not None:
                    follows = self._store_most(conversation, said, is_first=not number, follows=follows)
        except RefusedDocumentError as error:
            self._refuse(str(error))
        except MemoryHubError as error:
            is_named = bool(said.body.get("user_id"))
            if self._user_id and not is_named and isinstance(error, Erased | PersonRestricted):
                # Nothing else that names nobody can be stored either.
                raise
            self._refuse(error.code)

    def _refuse(self, reason: str) -> None:
        self.done["refused"] += 1
        self._tell(f"Conversation {self.done['conversations']}: {reason}")

    def _left_before(self, session: Session, said: Said) -> int:
        """How many turns of the branch that it leaves a dry run would have stored itself, of the same conversation."""
        named = self._names({**said.body, **self._own(said.body)})
        ids = [one for one in said.elsewhere if hash((named, one)) in self._seen]
        return len(ids) - Turn.objects.filter(session=session, external_id__in=ids).count() if ids else 0

    def _own(self, body: Mapping[str, Any]) -> dict[str, str]:
        """Whose it is, where the conversation names nobody."""
        own = {"user_id": self._user_id, "agent_id": self._agent_id}
        return {name: value for name, value in own.items() if value and not body.get(name)}

    @staticmethod
    def _names(body: Mapping[str, Any]) -> str:
        return json.dumps([body.get(name) for name in ("user_id", "agent_id", "session_id")])

    def _distinct(self, body: dict[str, Any], messages: Sequence[Any]) -> list[Placed]:
        """The messages with their places, without those that come twice in what is imported. A dry run keeps nothing,
        and remembers."""
        names = self._names(body)
        seen = self._seen if self._dry_run else set()
        kept: list[Placed] = []
        for place, message in enumerate(messages):
            own = message.get("external_id") if isinstance(message, dict) else None
            key = hash((names, own)) if isinstance(own, str) else None
            if key is not None and key in seen:
                self.done["duplicates"] += 1
                continue
            seen |= {key} if key is not None else set()
            kept.append((place, message))
        return kept

    def _conversation(self, body: dict[str, Any], part: list[Placed], *, is_own: bool) -> Conversation | None:
        """The part as the API reads it, without the messages that it would refuse; None where none is left.

        Errors: RefusedDocumentError, where it is the conversation's fault or one of a file that somebody can mend.
        """
        try:
            return conversation_of(checked(TurnsSerializer, {**body, "messages": [one for _, one in part]}))
        except (RefusedDocumentError, MemoryHubError):
            good: list[Any] = []
            faults: list[str] = []
            for place, message in part:
                try:
                    checked(TurnsSerializer, {**body, "messages": [message]})
                except RefusedDocumentError as error:
                    self._leave(error, place, is_own=is_own, faults=faults)
                except MemoryHubError as error:
                    self.left_out[error.code] += 1
                else:
                    good.append(message)
            if faults:
                more = f", and of {len(faults) - _MOST_TOLD:,} more messages" if len(faults) > _MOST_TOLD else ""
                self._refuse(", ".join(faults[:_MOST_TOLD]) + more)
        return conversation_of(checked(TurnsSerializer, {**body, "messages": good})) if good else None

    def _leave(self, error: RefusedDocumentError, place: int, *, is_own: bool, faults: list[str]) -> None:
        """Count the message, which has this place in its conversation. Errors: RefusedDocumentError when that has the
        fault."""
        if error.place and not error.place.startswith("/messages"):
            raise error
        if is_own and not (error.is_letters or error.code in _TOO_MUCH):
            faults.append(str(error).replace("/messages/0", f"/messages/{place}"))
        else:
            self.left_out[error.code] += 1

    def _store_most(self, conversation: Conversation, said: Said, *, is_first: bool, follows: int) -> int:
        """As _store(); where one message has too many secrets, each by itself, without that one."""
        try:
            return self._store(conversation, said, is_first=is_first, follows=follows)
        except TooManySecrets as error:
            if len(conversation.messages) == 1:
                self.left_out[error.code] += 1
                return follows
        for message in conversation.messages:
            before = self.left_out[TooManySecrets.code]
            one = replace(conversation, messages=[message])
            follows = self._store_most(one, said, is_first=is_first, follows=follows) or follows
            is_first &= self.left_out[TooManySecrets.code] > before
        return follows

    def _store(self, conversation: Conversation, said: Said, *, is_first: bool, follows: int) -> int:
        """One transaction for each part, so that a break loses no more than one. Returns the number of the turn that
        the next part follows."""
        found: dict[str, int] = {}
        moved: list[ImportedRow] = []
        gone = Counter[str]()

        def lacking(session: Session) -> Lacking:
            stored = _stored(session, conversation.messages)
            found.update({name: turn.number for name, turn in stored.items()})
            new = [one for one in conversation.messages if one.external_id not in stored]
            after = session.turn_count
            if not said.is_whole:
                return Lacking(new, follows=after)
            is_older = _is_older(session, said)
            left = [] if is_older else _left(session, said, is_first=is_first)
            back = [] if is_older else [turn for turn in stored.values() if turn.left_at]
            before = _before(conversation.messages, new, found, follows)
            gone["left"] += len(left)
            if self._dry_run and is_first and not is_older:
                gone["left"] += self._left_before(session, said)
            moved.extend(_rows(session, Kind.LEFT, left) + _rows(session, Kind.BACK, back))
            return Lacking(new, left=left, back=back, follows=before, elsewhere=is_older and bool(new))

        # An import that is repeated extracts nothing at once.
        wanted = replace(conversation, flush=False)
        with effort.bounded(), transaction.atomic():
            receipt = ingest.store_lacking(tenant=self._tenant, conversation=wanted, lacking=lacking)
            self._note([*moved, *_stored_turns(receipt)])
            # Everything was checked as it would be; nothing stays.
            transaction.set_rollback(self._dry_run)
        if receipt.session is None:
            raise RefusedDocumentError("capture_off")
        self.done.update(gone)
        self.done["accepted"] += receipt.accepted
        self.done["duplicates"] += receipt.duplicates + len(found)
        self.done["redactions"] += receipt.redactions
        numbers = {**found, **{turn.external_id: turn.number for turn in receipt.turns if turn.external_id}}
        return numbers.get(wanted.messages[-1].external_id or "", 0)


def _stored(session: Session, messages: Sequence[PostedMessage]) -> dict[str, Turn]:
    ids = [message.external_id for message in messages if message.external_id]
    turns = Turn.objects.filter(session=session, external_id__in=ids).only("id", "number", "external_id", "left_at")
    return {str(turn.external_id): turn for turn in turns}


def _rows(session: Session, kind: ImportedRow.Kind, turns: Sequence[Turn]) -> list[ImportedRow]:
    of = {"tenant_id": session.tenant_id, "end_user_id": session.end_user_id, "kind": kind}
    return [ImportedRow(**of, row=turn.pk) for turn in turns]


def _stored_turns(receipt: Receipt) -> list[ImportedRow]:
    """The new turns of a request, whose numbers follow each other."""
    numbers = [turn.number for turn in receipt.turns if not turn.duplicate]
    if not (receipt.session and numbers):
        return []
    session = receipt.session
    of = {"tenant_id": session.tenant_id, "end_user_id": session.end_user_id, "kind": Kind.TURNS}
    return [ImportedRow(**of, row=session.pk, first=min(numbers), last=max(numbers))]


def _left(session: Session, said: Said, *, is_first: bool) -> list[Turn]:
    """The turns of branches that the conversation shows no longer."""
    if not is_first or not said.elsewhere:
        return []
    ids = sorted(said.elsewhere)
    found: list[Turn] = []
    for at in range(0, len(ids), _AT_ONCE):
        some = Turn.objects.filter(session=session, external_id__in=ids[at : at + _AT_ONCE], left_at=None)
        found += some.only("id", "number", "external_id", "left_at", "session_id", "tenant_id")
    return found


def _is_older(session: Session, said: Said) -> bool:
    """Whether the session went on since this was exported: it has turns that the export knows nothing of."""
    known = {message.get("external_id") for message in said.messages} | said.elsewhere
    names = Turn.objects.filter(session=session, left_at=None).exclude(external_id=None)
    return any(name not in known for name in names.values_list("external_id", flat=True))


def _before(
    messages: Sequence[PostedMessage], new: Sequence[PostedMessage], stored: dict[str, int], follows: int
) -> int:
    """The number of the turn that the first new message follows."""
    for message in messages:
        if new and message is new[0]:
            break
        follows = stored.get(message.external_id or "", follows)
    return follows


def _parts(messages: Sequence[Placed]) -> Iterator[list[Placed]]:
    """The messages in requests of the size that the API takes; none where nothing was said."""
    part: list[Placed] = []
    size = values = 0
    for message in messages:
        written = json.dumps(message[1])
        # No value is without one of these before it; texts have some, too.
        own, several = len(written), sum(map(written.count, ",:[{"))
        if part and (len(part) == MAX_MESSAGES or size + own > _PART or values + several > _VALUES):
            yield part
            part, size, values = [], 0, 0
        part.append(message)
        size, values = size + own, values + several
    if part:
        yield part
