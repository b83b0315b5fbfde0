"""Conversations that a client sends whole each time: which session they belong to, what it lacks of them, and which of
its turns the client left.

The client may have cut off the beginning, gone back to an earlier message, or asked for another answer.
"""

import hashlib
import json
import unicodedata
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import accumulate, groupby
from operator import itemgetter
from typing import Any, NamedTuple

from memories.capture.ingest import Lacking, PostedMessage, without_secrets
from memories.conf import pepper
from memories.db import binary_rows
from memories.llm import tokens
from memories.models import Author, Role, Session, Tenant, Turn
from memories.models.conversations.conversations import speaker
from memories.models.hand_written import read, selected
from memories.text.secrets.redaction import Redacted

# Sessions of the person in which an answer is looked for by its id, the newest first.
SESSIONS_COMPARED = 50
# The newest turns of a session that a conversation is compared with.
TURNS_COMPARED = 2_000
# So many messages in a row show where a conversation goes on whose beginning was cut off.
ENOUGH_IN_A_ROW = 3
# A first message that is sent again so soon asks for another answer. One of fewer tokens may be a greeting.
SAME_QUESTION, SAME_QUESTION_TOKENS = timedelta(minutes=5), 8
# A client that writes its answers anew goes on with a session of which so short a time ago all that the person said is
# at the request's beginning.
REWRITTEN = timedelta(minutes=10)
# A client may write its rules behind what the person said, and take them away later.
SAME_BEGINNING = 20
# Answers of a request that are looked up: the newest, and those at its beginning.
NEWEST_ANSWERS, FIRST_ANSWERS = 60, 20
# In the metadata of an answer: its id at the endpoint.
ANSWER_ID = "response_id"
_COLUMNS = (
    "id", "number", "role", "author", "content", "parts", "tool_calls", "tool_call_id", "digest", "left_at", "follows",
    "answer_key",
)  # fmt: skip
_PERSON = """
    SELECT coalesce(p.merged_into_id, p.id) FROM memories_enduser p
    WHERE p.tenant_id = %(tenant)s AND p.external_id = %(user_id)s
"""
# Before the first byte of each answer. An answer that the hub passed on, with what it answers, shows where a
# conversation goes on, however much of its beginning the client has cut off.
_ANSWERED = f"""
    SELECT s.external_id FROM (
        SELECT t.session_id, count(DISTINCT t.answer_key) AS answers, max(t.number) AS last
        FROM memories_turn t
        WHERE t.tenant_id = %(tenant)s AND t.end_user_id = ({_PERSON}) AND t.answer_key = ANY(%(keys)s)
        GROUP BY t.session_id
    ) found JOIN memories_session s ON s.tenant_id = %(tenant)s AND s.id = found.session_id
    WHERE s.agent_id = %(agent_id)s
    ORDER BY found.answers DESC, s.turn_count - found.last, s.last_turn_at DESC
    LIMIT 1
"""  # noqa: S608  (our own text)
_FOLLOWED = f"""
    SELECT newest.external_id FROM (
        SELECT s.id, s.external_id, s.last_turn_at FROM memories_session s
        WHERE s.tenant_id = %(tenant)s AND s.agent_id = %(agent_id)s AND s.end_user_id = ({_PERSON})
        ORDER BY s.last_turn_at DESC LIMIT %(most)s
    ) newest
    WHERE EXISTS (
        SELECT 1 FROM memories_turn t
        WHERE t.tenant_id = %(tenant)s AND t.session_id = newest.id AND t.metadata @> %(answer)s::jsonb
    )
    ORDER BY newest.last_turn_at DESC LIMIT 1
"""  # noqa: S608  (our own text)
_RECENT = f"""
    SELECT newest.external_id, newest.last_turn_at, newest.place, t.speaker, t.content
    FROM (
        SELECT s.id, s.external_id, s.last_turn_at, row_number() OVER (ORDER BY s.last_turn_at DESC) AS place
        FROM memories_session s
        WHERE s.tenant_id = %(tenant)s AND s.agent_id = %(agent_id)s AND s.end_user_id = ({_PERSON})
            AND s.last_turn_at > %(since)s
        ORDER BY s.last_turn_at DESC LIMIT 5
    ) newest CROSS JOIN LATERAL (
        SELECT number, {speaker("t")} AS speaker, content FROM memories_turn t
        WHERE t.tenant_id = %(tenant)s AND t.session_id = newest.id AND t.left_at IS NULL AND t.role <> 'system'
        ORDER BY number LIMIT %(count)s
    ) t
    ORDER BY newest.place, t.number
"""  # noqa: S608  (our own text)
# With the session locked, twice for each exchange.
_TURNS = f"""
    SELECT {selected("t", _COLUMNS)} FROM (
        SELECT * FROM memories_turn WHERE tenant_id = %(tenant)s AND session_id = %(session)s
        ORDER BY number DESC LIMIT %(most)s
    ) t WHERE t.role <> 'system' ORDER BY t.number DESC
"""  # noqa: S608  (our own columns)

Key = bytes


class Resumption(NamedTuple):
    """Where what was sent repeats what is stored: from here on the message is new, and the stored turn was left.
    `length`: so many messages in a row show it."""

    new_from: int
    left_from: int
    length: int = 0


def overlap(stored: Sequence[Key], sent: Sequence[Sequence[Key]], shows: Sequence[bool]) -> Resumption:
    """Compare the longest run of messages that shows where the conversation goes on, of two equally long ones that from
    the start; each message sent may have several keys. `shows`: of each stored one whether it tells this conversation
    from others, as what the person said and answers that the hub passed on do; a greeting or an example does not.

    What was sent before that run is not new: the client put a summary there, or the hub has deleted the turns.
    Without a run that shows where the conversation goes on, all of it is new and nothing was left.
    """
    places: dict[Key, list[int]] = defaultdict(list)
    for place, key in enumerate(stored):
        places[key].append(place)
    told = [0, *accumulate(shows)]
    best = (0, False, -1, len(stored) - 1)
    running: dict[int, int] = {}
    for at, keys in enumerate(sent):
        running = {place: running.get(place - 1, 0) + 1 for key in keys for place in places.get(key, ())}
        runs = [
            (length, at + 1 == length == place + 1, at, place)
            for place, length in running.items()
            if told[place + 1] > told[place + 1 - length]
            and _shows_where(length, at, place, stored=len(stored), sent=len(sent))
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
    # Blocks of a harness change from request to request, and show nothing.
    compared = [at for at, message in enumerate(messages) if not message.is_material]
    sent = [keys[at] for at in compared]
    known = {key for alternatives in sent for key in alternatives}
    now = [turn for turn in turns if turn.left_at is None]
    current = [turn for turn in now if turn.speaker != Author.APPLICATION or _key_of_turn(turn) in known]
    found = overlap([_key_of_turn(turn) for turn in current], sent, [_tells(turn) for turn in current])
    if len(sent) > 1 and current and len(now) < len(turns) and _key_of_turn(current[0]) in sent[0]:
        # From its start on the conversation may be one that was left.
        again = _going_on(turns, current[0], sent[1:])
        if len(again) + 1 >= found.length and any(map(_tells, [current[0], *again])):
            return _resumed(turns, current[0], again, messages[compared[len(again)] + 1 :])
    if not found.length:
        stored = set(map(_key_of_turn, turns))
        new = [message for at, message in enumerate(messages) if message.is_said or stored.isdisjoint(keys[at])]
        return Lacking(new, follows=current[-1].number if current else 0)
    last = current[found.left_from - 1]
    start = compared[found.new_from - 1] + 1
    again = _going_on(turns, last, keys[start:])
    return _resumed(turns, last, again, messages[start + len(again) :])


def _tells(turn: Turn) -> bool:
    """Whether it tells its conversation from others that begin alike."""
    return turn.is_said or turn.answer_key is not None


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
    again = _going_on(turns, by_number[answer], _keys_of(messages, turns, session))
    return _resumed(turns, by_number[number], [*way, *again], messages[len(again) :], is_named=True)


def _resumed(
    turns: Sequence[Turn],
    last: Turn,
    again: Sequence[Turn],
    new: Sequence[PostedMessage],
    *,
    is_named: bool = False,
) -> Lacking:
    """The conversation goes on from `last` with the turns `again` and then with what is new.

    Where it would leave turns for nothing but a new question, it may be a request beside the conversation, or a message
    that the person has changed: the next request shows which branch goes on. Until then this one is the left one.
    """
    kept = {turn.number for turn in again}
    left = [turn for turn in turns if turn.number > last.number and not turn.left_at and turn.number not in kept]
    follows = (again or [last])[-1].number
    is_open = not is_named and not again and not any(one.role == Role.ASSISTANT for one in new)
    if is_open and any(turn.is_said for turn in left):
        return Lacking(new, follows=follows, elsewhere=True)
    return Lacking(new, left=left, back=[turn for turn in again if turn.left_at], follows=follows)


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
    again = _going_on(turns, last, _keys_of(answer, later, session))
    kept = {turn.number for turn in again}
    has_gone_on = any(not turn.left_at and turn.number not in kept for turn in later)
    new, follows = answer[len(again) :], (again or [last])[-1].number
    # A client that sends its newest message alone may ask two things at once.
    if last.left_at or (has_gone_on and asked > 1):
        return Lacking(new, follows=follows, elsewhere=True)
    return Lacking(new, back=[turn for turn in again if turn.left_at], follows=follows)


def _turns_of(session: Session) -> list[Turn]:
    rows = binary_rows.fetched(_TURNS, {"tenant": session.tenant_id, "session": session.pk, "most": TURNS_COMPARED})
    return [read(Turn, _COLUMNS, row) for row in reversed(rows)]


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


def _going_on(turns: Sequence[Turn], last: Turn, keys: Sequence[Sequence[Key]]) -> list[Turn]:
    """The turns that the next messages repeat, each of which follows the one before it, the first `last`. So what was
    said on one branch is not what was said on another, though the words are the same."""
    if not keys or last is turns[-1]:
        return []
    before = _before(turns)
    after: dict[int, list[Turn]] = defaultdict(list)
    for turn in turns:
        after[before[turn.number]].append(turn)
    found: list[Turn] = []
    for alternatives in keys:
        others = after[(found or [last])[-1].number]
        same = next((one for one in others if _key_of_turn(one) in alternatives), None)
        if same is None:
            break
        found.append(same)
    return found


def session_of(
    tenant: Tenant, *, user_id: str, agent_id: str, messages: Sequence[PostedMessage], now: datetime, follows: str = ""
) -> str:
    """The session that the conversation goes on with; "" when there is none.

    It is the one with the answer that it follows, where that is named; else the one with most of its answers that the
    hub itself passed on, each with what it answers: examples and greetings that a client sends show nothing. Without
    one it is a session of minutes ago of which the request begins with all that the person said. A first message that
    is asked again soon, when only its answer followed, asks for another answer.
    """
    named = {"tenant": tenant.pk, "user_id": user_id, "agent_id": agent_id}
    if follows:
        given = {**named, "most": SESSIONS_COMPARED, "answer": json.dumps({ANSWER_ID: follows})}
        answered = binary_rows.fetched(_FOLLOWED, given)
        return str(answered[0][0]) if answered else ""
    answers = [at for at, message in enumerate(messages) if message.role == Role.ASSISTANT]
    if len(answers) > NEWEST_ANSWERS + FIRST_ANSWERS:
        answers = answers[:FIRST_ANSWERS] + answers[-NEWEST_ANSWERS:]
    keys = [key for at in answers if (key := answer_key(tenant, messages[:at], messages[at]))]
    if keys and (found := binary_rows.fetched(_ANSWERED, {**named, "keys": keys})):
        return str(found[0][0])
    return _rewritten(named, messages, now=now)


def answer_key(tenant: Tenant, before: Sequence[PostedMessage], answer: PostedMessage) -> bytes | None:
    """What stands for an answer to that message; None where nothing is before it but what a harness puts there."""
    asked = next((one for one in reversed(before) if not one.is_material), None)
    if asked is None:
        return None
    parts = [_key(one.role, one.content, one.parts, one.tool_calls, one.tool_call_id) for one in (asked, answer)]
    return pepper.digest("answer", tenant.pk.bytes, *parts)[:16]


def said_key(message: PostedMessage) -> bytes:
    """What stands for a message, however a client writes it."""
    return _key(message.role, message.content, message.parts, message.tool_calls, message.tool_call_id)


def _rewritten(named: dict[str, Any], messages: Sequence[PostedMessage], *, now: datetime) -> str:
    """The newest session of minutes ago of which the request begins with all that the person said."""
    sent = [one for one in messages if one.role == Role.USER and not one.is_material]
    if not sent:
        return ""
    rows = binary_rows.fetched(_RECENT, {**named, "since": now - REWRITTEN, "count": 4 * len(messages) + 8})
    clean = [_blankless(without_secrets(one).content) for one in sent] if rows else []
    for (external_id, last_turn_at, place), of in groupby(rows, key=itemgetter(0, 1, 2)):
        turns = [(who, content) for *_, who, content in of]
        said = [_blankless(content) for who, content in turns if who == Role.USER]
        if not said or len(said) > len(clean) or not all(map(_begins_alike, said, clean)):
            continue
        if len(messages) > 1:
            return str(external_id)
        has_answer = any(who == Role.ASSISTANT for who, _ in turns)
        is_soon = place == 1 and now - last_turn_at <= SAME_QUESTION
        asks_again = is_soon and tokens.count(messages[0].content) >= SAME_QUESTION_TOKENS
        if said == clean and (asks_again or not has_answer):
            return str(external_id)
    return ""


def _begins_alike(stored: str, sent: str) -> bool:
    shorter, longer = sorted((stored, sent), key=len)
    return longer == shorter or (len(shorter) >= SAME_BEGINNING and longer.startswith(shorter))


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
    """Equal for messages that say the same: clients trim texts, write arguments anew and drop empty fields."""
    beside_text = [part for part in parts or [] if not (isinstance(part, dict) and part.get("type") == "text")]
    calls = [_meaning(call) for call in tool_calls or []]
    text = json.dumps([str(role), _blankless(content), beside_text, calls, tool_call_id], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _blankless(content: str) -> str:
    """Text with its blanks folded, and its letters composed: parts of a message are joined by one or another."""
    return unicodedata.normalize("NFC", " ".join(content.split()))


def _meaning(call: Any) -> Any:
    """A call with its arguments as what they mean: clients write their JSON anew."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return call
    arguments: Any = function.get("arguments") or "{}"
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    return {**call, "function": {**function, "arguments": json.dumps(arguments, sort_keys=True)}}
