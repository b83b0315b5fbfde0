"""What passed through the gateway lately: texts as keyed hashes of their sentences, by which the hub knows them again.

They are kept for a week, and go with the person. A text of a session that the hub keeps nowhere is noted, too: a
summary that a model made comes back in role user.
"""

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from django.db import connection

from memories.capture.ingest import PostedMessage
from memories.conf import pepper
from memories.db import binary_rows
from memories.models import Author, EndUser, SeenText, Tenant
from memories.models.folding import bare, fold
from memories.models.hand_written import columns_of, given
from memories.models.ids import new_id
from memories.text import authorship, labels
from memories.text import sentences as splitting
from memories.text.frames import SHORTEST

# Words come back within hours; templates after days.
CAME_BACK_WITHIN, KEPT = timedelta(hours=12), timedelta(days=7)
# The newest texts that a request is compared with, and texts that may have a frame in common with it.
COMPARED, FRAMES_COMPARED = 200, 3
SIZE = 8
# A sentence has at least so many characters, or so many bytes: four of Chinese say as much as a dozen letters.
SHORTEST_SENTENCE, SHORTEST_SENTENCE_BYTES = 8, 12
_MOST_SENTENCES = 400
_LONGEST = 100_000
_MOST_LINES = 100
# Around a line of a transcript.
_TAGS = re.compile(r"^<[^<>\n]{1,200}>|</[^<>\n]{1,60}>?$")
_FENCED = re.compile(r"```[\w-]{0,20}\n(?P<inner>.{0,100000}?)\n?```", re.DOTALL)
_SEEN = """
    SELECT NULL AS content, s.id, s.author, s.turn_id, s.hashes, s.instructions, s.has_tools, s.seen_at, c.agent_id,
        c.external_id
    FROM memories_seentext s LEFT JOIN memories_session c ON c.tenant_id = %(tenant)s AND c.id = s.session_id
    WHERE s.tenant_id = %(tenant)s AND s.key_id = %(key)s AND s.seen_at > %(since)s AND s.end_user_id = (
        SELECT coalesce(p.merged_into_id, p.id) FROM memories_enduser p
        WHERE p.tenant_id = %(tenant)s AND p.external_id = %(user_id)s
    )
    ORDER BY s.seen_at DESC LIMIT %(most)s
"""
# Of two alike the newest.
_FRAMES = """
    SELECT t.content, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM (
        SELECT s.turn_id, s.seen_at FROM memories_seentext s
        WHERE s.tenant_id = %(tenant)s AND s.key_id = %(key)s AND s.turn_id IS NOT NULL
            AND s.seen_at > %(kept_since)s AND (s.head = %(head)s OR s.tail = %(tail)s)
        ORDER BY s.seen_at DESC LIMIT %(most_frames)s
    ) found JOIN memories_turn t ON t.tenant_id = %(tenant)s AND t.id = found.turn_id
"""
# One statement before the first byte of each answer.
_SEEN_AND_FRAMES = f"({_SEEN}) UNION ALL ({_FRAMES})"
_COLUMNS = columns_of(SeenText)
# By hand: it goes with each message that is stored.
_NOTE = f"INSERT INTO memories_seentext ({', '.join(_COLUMNS)}) VALUES ({given(_COLUMNS)})"  # noqa: S608


class Seen(NamedTuple):
    """A row of SeenText. `hashes`: the whole text's, then those of its sentences."""

    id: uuid.UUID
    author: str
    turn_id: uuid.UUID | None
    packed: bytes
    instructions: bytes | None
    has_tools: bool
    seen_at: datetime
    agent_id: str | None
    session_id: str | None

    @property
    def session(self) -> tuple[str, str] | None:
        """Agent and name of the conversation that it was in; None where it is kept in none."""
        return None if self.session_id is None else (self.agent_id or "", self.session_id)

    @property
    def whole(self) -> bytes:
        return self.packed[:SIZE]

    @property
    def sentences(self) -> frozenset[bytes]:
        return frozenset(_unpacked(self.packed))

    @property
    def lines(self) -> frozenset[bytes] | None:
        return None if self.instructions is None else frozenset(_unpacked(self.instructions))


class Source(NamedTuple):
    """An earlier text, by id, and whose words it held."""

    id: uuid.UUID
    author: str


@dataclass(frozen=True)
class Recent:
    """What passed in the last hours about a person with a key, the newest first; `alike`: texts that may have a frame
    in common with the one that was asked about."""

    texts: Sequence[Seen] = ()
    alike: Sequence[str] = ()

    @cached_property
    def sources(self) -> Mapping[bytes, Source]:
        """Of each sentence, and of each whole text, where it was seen first."""
        found: dict[bytes, Source] = {}
        for one in self.texts:
            # The newest first: an older one takes its place.
            found.update(dict.fromkeys(_unpacked(one.packed), Source(one.id, one.author)))
        return found


class Noted(NamedTuple):
    """A text to note: whose it is; of a person's text its turn, where it is kept, and how it was asked."""

    text: str
    author: str
    turn_id: uuid.UUID | None = None
    instructions: frozenset[bytes] | None = None
    has_tools: bool = False


def recent(tenant: Tenant, *, user_id: str, key_id: uuid.UUID, now: datetime, text: str = "") -> Recent:
    """What passed about that person with that key, and of anybody what begins, or ends, like `text`."""
    named = {"tenant": tenant.pk, "user_id": user_id, "key": key_id, "since": now - CAME_BACK_WITHIN, "most": COMPARED}
    statement = _SEEN
    if ends := _ends(text):
        statement = _SEEN_AND_FRAMES
        named |= {"kept_since": now - KEPT, "most_frames": FRAMES_COMPARED, "head": ends[0], "tail": ends[1]}
    rows = binary_rows.fetched(statement, named)
    return Recent([Seen(*row[1:]) for row in rows if row[0] is None], [row[0] for row in rows if row[0] is not None])


def sentences(text: str) -> Iterator[tuple[str, bytes]]:
    """The sentences of a text that are long enough to be known again, with their hashes."""
    text = text[:_LONGEST]
    for place, (start, end) in enumerate(splitting.spans(text)):
        if place == _MOST_SENTENCES:
            return
        sentence = labels.without_speaker(_TAGS.sub("", text[start:end].strip("-*•> \t")).strip())
        # A label comes with each text of its program.
        if _is_long_enough(sentence) and not authorship.introduces(sentence):
            yield sentence, _hash(sentence)


def whole_of(text: str) -> bytes:
    return _hash(text[:_LONGEST])


def text_of(message: PostedMessage) -> str:
    """What a message says, in its text and in the arguments of its calls, which are the model's words, too. Of JSON, as
    models are asked for and tools answer with, its texts."""
    calls = [call.get("function") or {} for call in message.tool_calls or [] if isinstance(call, dict)]
    said = [text for call in calls for text in _strings(call.get("arguments"))]
    return "\n".join([*_strings(_unfenced(message.content)), *said])


def lines_of(instructions: str) -> frozenset[bytes]:
    """Hashes of the lines of a system prompt, without blank ones."""
    lines = [line.strip() for line in instructions[:_LONGEST].splitlines() if line.strip()]
    return frozenset(map(_hash, lines[:_MOST_LINES]))


def note(
    person: EndUser, texts: Sequence[Noted], *, session_id: uuid.UUID | None, key_id: uuid.UUID, now: datetime
) -> None:
    """Note that these texts passed."""
    with connection.cursor() as cursor:
        for one in texts:
            if one.text.strip():
                cursor.execute(_NOTE, _row(person, one, session_id=session_id, key_id=key_id, now=now))


def person_of(tenant: Tenant, user_id: str) -> EndUser | None:
    """The person of that id, if they are known and may be stored."""
    named = EndUser.objects.filter(tenant=tenant, external_id=user_id).select_related("merged_into").first()
    person = named and (named.merged_into or named)
    may_store = person and tenant.capture and person.capture and not person.restricted_at
    return person if may_store else None


def sweep(now: datetime, *, most: int = 1_000) -> int:
    """Delete some of those that are too old; how many."""
    old = SeenText.objects.filter(seen_at__lt=now - KEPT).order_by("seen_at").values_list("pk", flat=True)[:most]
    return SeenText.objects.filter(pk__in=list(old)).delete()[0]


def _row(
    person: EndUser, noted: Noted, *, session_id: uuid.UUID | None, key_id: uuid.UUID, now: datetime
) -> dict[str, Any]:
    """Its columns."""
    head, tail = (_ends(noted.text) if noted.author == Author.PERSON else None) or (None, None)
    return {
        "id": new_id(),
        "tenant_id": person.tenant_id,
        "end_user_id": person.pk,
        "session_id": session_id,
        "turn_id": noted.turn_id,
        "key_id": key_id,
        "author": str(noted.author),
        "hashes": whole_of(noted.text) + b"".join(digest for _, digest in sentences(noted.text)),
        "head": head,
        "tail": tail,
        "instructions": None if noted.instructions is None else b"".join(sorted(noted.instructions)),
        "has_tools": noted.has_tools,
        "seen_at": now,
    }


def _is_long_enough(sentence: str) -> bool:
    return len(sentence) >= SHORTEST_SENTENCE or len(sentence.encode(errors="replace")) >= SHORTEST_SENTENCE_BYTES


def _hash(text: str) -> bytes:
    return pepper.digest("seen text", bare(fold(text)).encode())[:SIZE]


def _ends(text: str) -> tuple[int, int] | None:
    """What stands for its beginning and its end, as numbers; None of a text too short for a frame."""
    text = text.strip()
    if len(text) <= SHORTEST:
        return None
    return _number(text[:SHORTEST]), _number(text[-SHORTEST:])


def _number(text: str) -> int:
    return int.from_bytes(pepper.digest("seen end", text.encode())[:8], signed=True)


def _unpacked(packed: bytes) -> Iterator[bytes]:
    return (packed[at : at + SIZE] for at in range(0, len(packed), SIZE))


def _strings(value: Any, depth: int = 8) -> Iterator[str]:
    """The texts in a call's arguments, which may be JSON."""
    if isinstance(value, str) and (inner := _parsed(value)) is None:
        yield value
    elif depth:
        within: Any = inner if isinstance(value, str) else value
        parts = within.values() if isinstance(within, Mapping) else within if isinstance(within, list) else ()
        for one in parts:
            yield from _strings(one, depth - 1)


def _unfenced(text: str) -> str:
    """A text without the marks of code around all of it."""
    fenced = _FENCED.fullmatch(text.strip())
    return fenced["inner"] if fenced else text


def _parsed(text: str) -> Any:
    with suppress(ValueError, RecursionError):
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    return None
