"""Conversations that a client sends whole each time: which session they belong to, what it lacks of them, and which of
its turns the client left.

The client may have cut off the beginning, gone back to an earlier message, or asked for another answer.
"""

import hashlib
import json
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from memories.capture import branches
from memories.capture.ingest import Lacking, PostedMessage, without_secrets
from memories.db import binary_rows
from memories.llm import tokens
from memories.models import Role, Session, Tenant, Turn
from memories.models.hand_written import read, selected
from memories.text.secrets.redaction import Redacted

# Sessions of the person that a conversation without a session is compared with, the newest first.
SESSIONS_COMPARED = 50
# The newest turns of a session that a conversation is compared with.
TURNS_COMPARED = 2_000
# So many messages in a row show where a conversation goes on whose beginning was cut off.
ENOUGH_IN_A_ROW = 3
# A first message that is sent again so soon asks for another answer. One of fewer tokens may be a greeting.
SAME_QUESTION, SAME_QUESTION_TOKENS = timedelta(minutes=5), 8
# In the metadata of an answer: its id at the endpoint.
ANSWER_ID = "response_id"
# What str.strip() takes away.
_BLANKS = "".join(one for one in map(chr, range(0x3001)) if one.isspace())
_COLUMNS = ("number", "role", "content", "parts", "tool_calls", "tool_call_id", "digest", "left_at", "follows")
_NEWEST = """
    SELECT s.id, s.external_id, s.last_turn_at, row_number() OVER (ORDER BY s.last_turn_at DESC) AS place
    FROM memories_session s
    WHERE s.tenant_id = %(tenant)s AND s.agent_id = %(agent_id)s AND s.end_user_id = (
        SELECT coalesce(p.merged_into_id, p.id) FROM memories_enduser p
        WHERE p.tenant_id = %(tenant)s AND p.external_id = %(user_id)s
    )
    ORDER BY s.last_turn_at DESC
    LIMIT %(most)s
"""
_TURN_COLUMNS = ("session_id", "role", "content", "parts", "tool_calls", "tool_call_id", "digest")
# Before the first byte of each answer: to build them by the ORM takes longer than PostgreSQL does. Most sessions begin
# otherwise than the conversation: their turns are not read.
_BEGUN = f"""
    WITH newest AS ({_NEWEST}), alike AS (
        SELECT newest.* FROM newest CROSS JOIN LATERAL (
            SELECT t.content, t.digest FROM memories_turn t
            WHERE t.tenant_id = %(tenant)s AND t.session_id = newest.id AND t.left_at IS NULL AND t.role <> %(system)s
            ORDER BY t.number LIMIT 1
        ) first
        WHERE first.digest IS NOT NULL OR btrim(first.content, %(blanks)s) = ANY(%(said)s)
    )
    SELECT alike.external_id, alike.last_turn_at, alike.place, {selected("t", _TURN_COLUMNS)}
    FROM alike CROSS JOIN LATERAL (
        SELECT t.number, {selected("t", _TURN_COLUMNS)} FROM memories_turn t
        WHERE t.tenant_id = %(tenant)s AND t.session_id = alike.id AND t.left_at IS NULL AND t.role <> %(system)s
        ORDER BY t.number LIMIT %(count)s
    ) t
    ORDER BY alike.place, t.number
"""  # noqa: S608  (columns of our own model)

Key = bytes


class Resumption(NamedTuple):
    """Where what was sent repeats what is stored: from here on the message is new, and the stored turn was left.
    `length`: so many messages in a row show it."""

    new_from: int
    left_from: int
    length: int = 0


def overlap(stored: Sequence[Key], sent: Sequence[Sequence[Key]]) -> Resumption:
    """Compare the longest run of messages that shows where the conversation goes on, of two equally long ones that from
    the start; each message sent may have several keys.

    What was sent before that run is not new: the client put a summary there, or the hub has deleted the turns.
    Without a run that shows where the conversation goes on, all of it is new and nothing was left.
    """
    places: dict[Key, list[int]] = defaultdict(list)
    for place, key in enumerate(stored):
        places[key].append(place)
    best = (0, False, -1, len(stored) - 1)
    running: dict[int, int] = {}
    for at, keys in enumerate(sent):
        running = {place: running.get(place - 1, 0) + 1 for key in keys for place in places.get(key, ())}
        runs = [
            (length, at + 1 == length == place + 1, at, place)
            for place, length in running.items()
            if _shows_where(length, at, place, stored=len(stored), sent=len(sent))
        ]
        best = max([best, *runs])
    length, _, at, place = best
    return Resumption(at + 1, place + 1, length)


def _shows_where(length: int, at: int, place: int, *, stored: int, sent: int) -> bool:
    """Whether a run of `length` messages that ends at these places is more than the same words said twice."""
    from_the_start = at + 1 == length == place + 1
    to_the_end = place + 1 == stored
    if sent == 1:
        # A client that sends its newest message alone may say the same again.
        return to_the_end or (from_the_start and stored <= 2)
    return from_the_start or to_the_end or length >= ENOUGH_IN_A_ROW


def lacking(session: Session, messages: Sequence[PostedMessage], *, follows: str = "") -> Lacking:
    """What the session lacks of a request's messages, and which turns it left and took back. The session is locked.

    `follows`: the answer that they follow by its id, where the endpoint keeps the conversation.
    """
    turns = _turns_of(session)
    if follows and (answer := _answer_called(session, follows)) is not None:
        return _following(session, turns, answer, messages)
    keys = _keys_of(messages, turns, session)
    current = [turn for turn in turns if turn.left_at is None]
    found = overlap([_key_of_turn(turn) for turn in current], keys)
    if len(messages) > 1 and current and len(current) < len(turns) and _key_of_turn(current[0]) in keys[0]:
        # From its start on the conversation may be one that was left.
        again = _going_on(session, turns, current[0], keys[1:])
        if len(again) + 1 >= found.length:
            return _resumed(turns, current[0], again, messages[len(again) + 1 :])
    if not found.length:
        return Lacking(messages, follows=current[-1].number if current else 0)
    last = current[found.left_from - 1]
    again = _going_on(session, turns, last, keys[found.new_from :])
    return _resumed(turns, last, again, messages[found.new_from + len(again) :])


def _following(session: Session, turns: Sequence[Turn], answer: int, messages: Sequence[PostedMessage]) -> Lacking:
    """The conversation goes on from that answer, on whichever branch it is; what the session has after it is left."""
    by_number, before = {turn.number: turn for turn in turns}, _before(turns)
    way: list[Turn] = []
    number = answer
    while number in by_number and by_number[number].left_at:
        way.insert(0, by_number[number])
        number = before[number]
    if number not in by_number:
        # What it follows is too long ago to compare.
        return Lacking(messages, follows=max((turn.number for turn in turns if not turn.left_at), default=0))
    # What extraction passed over is stored anew, with all after it, as where the messages themselves are sent again.
    unread = branches.unread(session, way)
    count = next((place for place, turn in enumerate(way) if turn.number in unread), len(way))
    anew = [_as_posted(turn) for turn in way[count:] if not turn.digest]
    again = way[:count]
    if not anew:
        again += _going_on(session, turns, by_number[answer], _keys_of(messages, turns, session))
    return _resumed(turns, by_number[number], again, [*anew, *messages[len(again) - count :]])


def _resumed(turns: Sequence[Turn], last: Turn, again: Sequence[Turn], new: Sequence[PostedMessage]) -> Lacking:
    """The conversation goes on from `last` with the turns `again` and then with what is new."""
    kept = {turn.number for turn in again}
    return Lacking(
        new,
        left=[turn for turn in turns if turn.number > last.number and not turn.left_at and turn.number not in kept],
        back=[turn for turn in again if turn.left_at],
        follows=(again or [last])[-1].number,
    )


def lacking_answer(session: Session, answer: Sequence[PostedMessage], *, after: int, asked: int) -> Lacking:
    """What the session lacks of the answer to a request of `asked` messages, the last of which is turn `after`.

    An answer leaves nothing: if the client has gone elsewhere meanwhile, the answer belongs to the branch that it left.
    """
    turns = _turns_of(session)
    last = next((turn for turn in turns if turn.number == after), None)
    if last is None:
        # Deleted meanwhile.
        return Lacking([])
    later = [turn for turn in turns if turn.number > after]
    again = _going_on(session, turns, last, _keys_of(answer, later, session))
    kept = {turn.number for turn in again}
    has_gone_on = any(not turn.left_at and turn.number not in kept for turn in later)
    new, follows = answer[len(again) :], (again or [last])[-1].number
    # A client that sends its newest message alone may ask two things at once.
    if last.left_at or (has_gone_on and asked > 1):
        return Lacking(new, follows=follows, elsewhere=True)
    return Lacking(new, back=[turn for turn in again if turn.left_at], follows=follows)


def _turns_of(session: Session) -> list[Turn]:
    rows = Turn.objects.filter(session=session).order_by("-number").only(*_COLUMNS)[:TURNS_COMPARED]
    return [turn for turn in reversed(rows) if turn.role != Role.SYSTEM]


def _answer_called(session: Session, response_id: str) -> int | None:
    """The number of the last turn of that answer."""
    turns = Turn.objects.filter(session=session, metadata__contains={ANSWER_ID: response_id})
    return turns.order_by("-number").values_list("number", flat=True).first()


def _before(turns: Sequence[Turn]) -> dict[int, int]:
    """For each of the session's turns the number of the one that it follows, 0 for none."""
    numbers = [0, *(turn.number for turn in turns)]
    return {
        turn.number: before if turn.follows is None else turn.follows
        for turn, before in zip(turns, numbers, strict=False)
    }


def _going_on(session: Session, turns: Sequence[Turn], last: Turn, keys: Sequence[Sequence[Key]]) -> list[Turn]:
    """The turns that the next messages repeat, each of which follows the one before it, the first `last`. So what was
    said on one branch is not what was said on another, though the words are the same."""
    if not keys or last is turns[-1]:
        return []
    before = _before(turns)
    after: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        after[before[turn.number]].append(turn)
    unread = branches.unread(session, [turn for turn in turns if turn.number > last.number])
    found: list[Turn] = []
    for alternatives in keys:
        others = after[(found or [last])[-1].number]
        same = next((one for one in others if one.number not in unread and _key_of_turn(one) in alternatives), None)
        if same is None:
            break
        found.append(same)
    return found


def _as_posted(turn: Turn) -> PostedMessage:
    """A stored turn as a message."""
    stored = Turn.objects.get(pk=turn.pk)
    return PostedMessage(
        role=stored.role,
        content=stored.content,
        parts=stored.parts,
        tool_calls=stored.tool_calls,
        tool_call_id=stored.tool_call_id,
        name=stored.name,
        metadata=stored.metadata,
    )


def session_of(
    tenant: Tenant, *, user_id: str, agent_id: str, messages: Sequence[PostedMessage], now: datetime, follows: str = ""
) -> str:
    """The session that the conversation goes on with: the one with the answer that it follows, where that is named,
    else the one with most turns that the conversation begins with.

    Of two branches that begin alike, an answer must be among what both have. A first message that is asked again soon,
    when only its answer followed, asks for another answer. "" when there is none.
    """
    named = {"tenant": tenant.pk, "user_id": user_id, "agent_id": agent_id, "most": SESSIONS_COMPARED}
    if follows:
        newest = list(Session.objects.raw(_NEWEST, named))
        answers = Turn.objects.filter(session__in=newest, metadata__contains={ANSWER_ID: follows})
        followed = answers.values_list("session", flat=True).first()
        return next((session.external_id for session in newest if session.pk == followed), "")
    if not messages:
        return ""
    sent = _Sent(messages)
    best, chosen = 0, ""
    for begun in _begun(named, sent):
        common = _repeated(begun, sent)
        answered = any(turn.role == Role.ASSISTANT for turn in begun.turns[:common])
        is_same = begun.is_newest and _asks_again(begun, messages, now=now)
        if common > best and (answered or common == len(begun.turns) or is_same):
            best, chosen = common, begun.external_id
    return chosen


class _Begun(NamedTuple):
    """A session that may begin with the first message, with the first turns of its conversation as it is now."""

    id: uuid.UUID
    external_id: str
    last_turn_at: datetime
    is_newest: bool
    turns: list[Turn]


def _begun(named: dict[str, Any], sent: "_Sent") -> list[_Begun]:
    """The newest first."""
    given = {
        **named,
        "system": Role.SYSTEM,
        "blanks": _BLANKS,
        "said": sorted({sent.messages[0].content.strip(), sent.clean(0).content.strip()}),
        "count": len(sent.messages) + 1,
    }
    rows = binary_rows.fetched(_BEGUN, given)
    found = []
    for place, of in groupby(rows, key=itemgetter(2)):
        each = list(of)
        external_id, last_turn_at, _, session_id, *_ = each[0]
        turns = [read(Turn, _TURN_COLUMNS, row[3:]) for row in each]
        found.append(_Begun(session_id, external_id, last_turn_at, is_newest=place == 1, turns=turns))
    return found


def _repeated(begun: _Begun, sent: "_Sent") -> int:
    """With how many of these turns the messages begin."""
    common, stored = 0, [_key_of_turn(turn) for turn in begun.turns]
    for key, alternatives in zip(stored, sent.keys_in(begun.id, begun.turns, stored), strict=False):
        if key not in alternatives:
            break
        common += 1
    return common


def _asks_again(session: _Begun, messages: Sequence[PostedMessage], *, now: datetime) -> bool:
    """Whether the session's first message, sent alone, asks for another answer, nothing having followed the first."""
    if len(messages) > 1 or now - session.last_turn_at > SAME_QUESTION:
        return False
    if tokens.count(messages[0].content) < SAME_QUESTION_TOKENS:
        return False
    return Turn.objects.filter(session=session.id, role=Role.USER).current().count() == 1


def _keys_of(messages: Sequence[PostedMessage], turns: Sequence[Turn], session: Session) -> list[list[Key]]:
    return list(_Sent(messages).keys_in(session.pk, turns, [_key_of_turn(turn) for turn in turns]))


class _Sent:
    """Messages as they are compared with sessions, each made ready once however many these are."""

    def __init__(self, messages: Sequence[PostedMessage]) -> None:
        self.messages = messages
        self._clean: dict[int, Redacted] = {}
        self._keys: dict[tuple[int, bool], Key] = {}

    def keys_in(self, session_id: uuid.UUID, turns: Sequence[Turn], stored: Sequence[Key]) -> Iterator[list[Key]]:
        """For each message the keys under which the session, of which these are the turns with their keys, may have
        it: as sent, without secrets, or redacted since."""
        known = set(stored)
        is_redacted = any(turn.digest for turn in turns)
        for at, message in enumerate(self.messages):
            alternatives = [self._key(at, as_sent=True)]
            if turns and alternatives[0] not in known:
                alternatives.append(self._key(at, as_sent=False))
                if is_redacted:
                    clean = self.clean(at)
                    turn = Turn(
                        session_id=session_id,
                        role=message.role,
                        content=clean.content,
                        parts=clean.parts,
                        tool_call_id=clean.tool_call_id,
                    )
                    alternatives.append(turn.content_digest)
            yield alternatives

    def clean(self, at: int) -> Redacted:
        if at not in self._clean:
            self._clean[at] = without_secrets(self.messages[at])
        return self._clean[at]

    def _key(self, at: int, *, as_sent: bool) -> Key:
        if (at, as_sent) not in self._keys:
            message = self.messages[at]
            parts = message if as_sent else self.clean(at)
            key = _key(message.role, parts.content, parts.parts, parts.tool_calls, parts.tool_call_id)
            self._keys[at, as_sent] = key
        return self._keys[at, as_sent]


def _key_of_turn(turn: Turn) -> Key:
    if turn.digest:
        return bytes(turn.digest)
    return _key(turn.role, turn.content, turn.parts, turn.tool_calls, turn.tool_call_id)


def _key(role: str, content: str, parts: Any, tool_calls: Any, tool_call_id: str) -> Key:
    """Equal for messages that say the same: clients trim texts and drop fields that hold nothing."""
    beside_text = [part for part in parts or [] if not (isinstance(part, dict) and part.get("type") == "text")]
    text = json.dumps([str(role), content.strip(), beside_text, tool_calls or [], tool_call_id], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
