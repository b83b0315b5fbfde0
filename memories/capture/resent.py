"""Conversations that a client sends whole each time: which session they belong to, and what it lacks of them.

The client may have cut off the beginning, gone back to an earlier message, or asked for another answer.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from memories.capture.ingest import PostedMessage, without_secrets
from memories.models import EndUser, Role, Session, Tenant, Turn

# Sessions of the person that a conversation without a session is compared with, the newest first.
SESSIONS_COMPARED = 50
# The newest turns of a session that a conversation is compared with.
TURNS_COMPARED = 2_000
# So many messages in a row show where a conversation goes on whose beginning was cut off.
ENOUGH_IN_A_ROW = 3
# In the metadata of an answer: its id at the endpoint.
ANSWER_ID = "response_id"
_COLUMNS = ("number", "role", "content", "parts", "tool_calls", "tool_call_id", "digest")

Key = bytes


class Resumption(NamedTuple):
    """Where what was sent repeats what is stored: from here on the message is new, and the stored turn was left."""

    new_from: int
    left_from: int


def overlap(stored: Sequence[Key], sent: Sequence[Sequence[Key]]) -> Resumption:
    """Compare the longest run of messages that both have; each message sent may have several keys.

    What was sent before that run is not new: the client put a summary there, or the hub has deleted the turns.
    Without a run that shows where the conversation goes on, all of it is new and nothing was left.
    """
    places: dict[Key, list[int]] = defaultdict(list)
    for place, key in enumerate(stored):
        places[key].append(place)
    best = (0, -1, -1)
    running: dict[int, int] = {}
    for at, keys in enumerate(sent):
        running = {place: running.get(place - 1, 0) + 1 for key in keys for place in places.get(key, ())}
        best = max([best, *((length, at, place) for place, length in running.items())])
    length, at, place = best
    if not _shows_where(length, at, place, stored=len(stored), sent=len(sent)):
        return Resumption(0, len(stored))
    return Resumption(at + 1, place + 1)


def _shows_where(length: int, at: int, place: int, *, stored: int, sent: int) -> bool:
    """Whether a run of `length` messages that ends at these places is more than the same words said twice."""
    if not length:
        return False
    from_the_start = at + 1 == length == place + 1
    to_the_end = place + 1 == stored
    if sent == 1:
        # A client that sends its newest message alone may say the same again.
        return to_the_end or (from_the_start and stored <= 2)
    return from_the_start or to_the_end or length >= ENOUGH_IN_A_ROW


def lacking(session: Session, messages: Sequence[PostedMessage]) -> list[PostedMessage]:
    """Those of the messages that the session does not have yet, in order."""
    turns = list(reversed(Turn.objects.filter(session=session).order_by("-number").only(*_COLUMNS)[:TURNS_COMPARED]))
    turns = [turn for turn in turns if turn.role != Role.SYSTEM]
    found = overlap([_key_of_turn(turn) for turn in turns], _keys_of(messages, turns, session))
    return list(messages[found.new_from :])


def session_of(
    tenant: Tenant, *, user_id: str, agent_id: str, messages: Sequence[PostedMessage], follows: str = ""
) -> str:
    """The session that the conversation goes on with: the one with the answer that it follows, where that is named,
    else the one with most turns that the conversation begins with.

    Of two branches that begin alike, an answer must be among what both have. "" when there is none.
    """
    people = EndUser.objects.called(tenant, user_id).values("pk")
    sessions = Session.objects.filter(tenant=tenant, end_user__in=people, agent_id=agent_id)
    newest = dict(sessions.order_by("-last_turn_at").values_list("pk", "external_id")[:SESSIONS_COMPARED])
    if follows:
        answers = Turn.objects.filter(session__in=newest, metadata__contains={ANSWER_ID: follows})
        followed = answers.values_list("session", flat=True).first()
        return newest.get(followed, "") if followed else ""
    begun = Turn.objects.filter(session__in=newest, number__lte=len(messages) + 1).exclude(role=Role.SYSTEM)
    lines: dict[Any, list[Turn]] = defaultdict(list)
    for turn in begun.order_by("session", "number").only("session", *_COLUMNS):
        lines[turn.session_id].append(turn)
    best, chosen = 0, ""
    for pk, external_id in newest.items():
        turns = lines.get(pk, [])
        keys = _keys_of(messages, turns, Session(pk=pk))
        common = 0
        for turn, alternatives in zip(turns, keys, strict=False):
            if _key_of_turn(turn) not in alternatives:
                break
            common += 1
        answered = any(turn.role == Role.ASSISTANT for turn in turns[:common])
        if common > best and (answered or common == len(turns)):
            best, chosen = common, external_id
    return chosen


def _keys_of(messages: Sequence[PostedMessage], turns: Sequence[Turn], session: Session) -> list[list[Key]]:
    """For each message the keys under which the session may have it: as sent, without secrets, or redacted since."""
    stored = {_key_of_turn(turn) for turn in turns}
    is_redacted = any(turn.digest for turn in turns)
    keys = []
    for message in messages:
        alternatives = [_key(message.role, message.content, message.parts, message.tool_calls, message.tool_call_id)]
        if turns and alternatives[0] not in stored:
            clean = without_secrets(message)
            alternatives.append(_key(message.role, clean.content, clean.parts, clean.tool_calls, clean.tool_call_id))
            if is_redacted:
                said = Turn(
                    session_id=session.pk,
                    role=message.role,
                    content=clean.content,
                    parts=clean.parts,
                    tool_call_id=clean.tool_call_id,
                )
                alternatives.append(said.content_digest)
        keys.append(alternatives)
    return keys


def _key_of_turn(turn: Turn) -> Key:
    if turn.digest:
        return bytes(turn.digest)
    return _key(turn.role, turn.content, turn.parts, turn.tool_calls, turn.tool_call_id)


def _key(role: str, content: str, parts: Any, tool_calls: Any, tool_call_id: str) -> Key:
    """Equal for messages that say the same: clients trim texts and drop fields that hold nothing."""
    beside_text = [part for part in parts or [] if not (isinstance(part, dict) and part.get("type") == "text")]
    said = json.dumps([str(role), content.strip(), beside_text, tool_calls or [], tool_call_id], sort_keys=True)
    return hashlib.blake2b(said.encode(), digest_size=16).digest()
