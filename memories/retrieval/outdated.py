"""Sentences that say what was corrected, superseded or forgotten since they were said: of turns, and of all that is
written about a person and served beside facts. A fact that holds is what counts, and is never looked at.

Nothing is stored: a decision that is undone, or a fact that is stated again, is seen by the next request.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from memories.db import binary_rows
from memories.models import TRUSTED, EndUser, Fact, Status, Turn
from memories.models.folding import fold
from memories.text import sentences
from memories.text.claims import OldClaim
from memories.text.reading.repetitions import states, tells
from memories.text.words import SpokenWords

# The newest decisions count.
MOST = 200
# So many turns are looked at for what one fact said: each is read word by word.
MOST_READ = 2_000
# So many facts, the newest, are asked whether somebody stated it again.
MOST_NEWER = 500
# What stands before an entry of a list, and what stands behind a sentence on its line.
_MARK, _REST_OF_LINE = re.compile(r"[-*•+]\s+|\d+[.)]\s+"), re.compile(r"[ \t]*(\S)")
# What stands behind a sentence that is over, before the day.
_OVER = " (no longer true since "
# By hand, because an agent waits for it before every reply. One that another fact took in is as true as before.
_ENDED = """
    SELECT old, new, since, leaves_out, turns, quotes FROM (
        SELECT fact.id, fact.content AS old, '' AS new, fact.trashed_at AS since, true AS leaves_out
        FROM memories_fact fact
        WHERE fact.tenant_id = %(tenant)s AND fact.end_user_id = %(person)s AND fact.status = 'trashed'
            AND EXISTS (SELECT 1 FROM memories_factrefusal refusal
                WHERE refusal.tenant_id = fact.tenant_id AND refusal.fact_id = fact.id)
            AND NOT EXISTS (SELECT 1 FROM memories_fact again
                WHERE again.tenant_id = fact.tenant_id AND again.end_user_id = fact.end_user_id
                AND again.status = 'active' AND again.content_hash = fact.content_hash)
        UNION ALL
        SELECT fact.id, fact.content, successor.content, fact.valid_to, false
        FROM memories_fact fact
        JOIN memories_fact successor ON successor.tenant_id = fact.tenant_id AND successor.id = fact.superseded_by_id
        WHERE fact.tenant_id = %(tenant)s AND fact.end_user_id = %(person)s AND fact.status = 'superseded'
            AND NOT EXISTS (SELECT 1 FROM memories_factrelation taken WHERE taken.tenant_id = fact.tenant_id
                AND taken.fact_id = successor.id AND taken.target_id = fact.id AND taken.type = 'derived_from')
            AND NOT EXISTS (SELECT 1 FROM memories_fact again
                WHERE again.tenant_id = fact.tenant_id AND again.end_user_id = fact.end_user_id
                AND again.status = 'active' AND again.content_hash = fact.content_hash)
        UNION ALL
        SELECT fact.id, revision.before->>'content', fact.content, revision.created_at, true
        FROM memories_fact fact
        JOIN memories_factrevision revision ON revision.tenant_id = fact.tenant_id AND revision.fact_id = fact.id
        WHERE fact.tenant_id = %(tenant)s AND fact.end_user_id = %(person)s AND fact.status = 'active'
            AND revision.verb IN ('correct', 'edit') AND revision.before->>'content' <> fact.content
    ) ended, LATERAL (
        SELECT coalesce(array_agg(turn_id::text), '{}') AS turns, coalesce(array_agg(quote), '{}') AS quotes
        FROM (SELECT turn_id, quote FROM memories_factevidence
            WHERE tenant_id = %(tenant)s AND fact_id = ended.id AND turn_id IS NOT NULL ORDER BY id LIMIT 50) cited
    ) evidence
    WHERE since IS NOT NULL AND (%(fact)s::uuid IS NULL OR id = %(fact)s) ORDER BY since DESC, old LIMIT %(most)s
"""


@dataclass(frozen=True)
class Written:
    """A text about a person as it is served.

    `at`: when somebody wrote it. None: a job did, which carries on what it read, and is nobody's later word. `before`:
    the text as it was at a moment (None: not known), of what is written again and again, with old sentences in it.
    """

    text: str
    at: datetime | None = None
    before: Callable[[datetime], str | None] | None = None


@dataclass(frozen=True)
class _Ended:
    """What was true, or said to be, until `since`; `leaves_out`: an operator or a key took it back, else it is over."""

    old: str
    new: str
    since: datetime
    leaves_out: bool
    quotes: dict[str, str]

    @cached_property
    def claim(self) -> OldClaim:
        return OldClaim(self.old, self.new)

    @cached_property
    def successor(self) -> OldClaim | None:
        return OldClaim(self.new, self.old) if self.new else None

    def is_said_by(self, sentence: "_Sentence", quote: str) -> bool:
        """By a sentence of the person's own; `quote`: the words of its turn that the fact was taken from."""
        said = fold(sentence.text) if quote else ""
        if not self.claim.is_in(sentence.text, sentence.words):
            # The sentence that it was taken from may say it in other words.
            return bool(quote) and quote in said and self.successor is None
        is_quoted = bool(quote) and (quote in said or said in quote)
        return (is_quoted or states(sentence.text, self.old)) and not self._tells_of_both(sentence)

    def is_told_by(self, sentence: "_Sentence") -> bool:
        """By a sentence about the person."""
        is_in = self.claim.is_in(sentence.text, sentence.words)
        return is_in and tells(sentence.text, self.old, before=sentence.before) and not self._tells_of_both(sentence)

    def _tells_of_both(self, sentence: "_Sentence") -> bool:
        """As "I moved from Leiden to Utrecht" does."""
        return self.successor is not None and self.successor.is_in(sentence.text, sentence.words)


class _Sentence:
    """A sentence with its words and the sentence before it."""

    def __init__(self, text: str, before: str = "") -> None:
        self.text, self.before, self.words = text, before, SpokenWords([text])


class _OfTurn:
    """A turn, with the quotes that facts have of it: what was said later says it anew."""

    def __init__(self, turn: Turn) -> None:
        self.text, self._turn = turn.own_text, turn

    @cached_property
    def _id(self) -> str:
        return str(UUID(str(self._turn.pk)))

    def may_say(self, ended: _Ended, voice: SpokenWords) -> bool:
        moment = self._turn.created_at if ended.leaves_out else self._turn.sent_at
        return moment < ended.since and (self._id in ended.quotes or ended.claim.is_in(self.text, voice))

    def says(self, ended: _Ended, sentence: _Sentence) -> bool:
        return ended.is_said_by(sentence, ended.quotes.get(self._id, ""))


class _OfWritten:
    """A text about the person."""

    def __init__(self, written: Written, newer: Callable[[_Ended], bool]) -> None:
        self.text = written.text
        self._written, self._is_stated_again = written, newer

    def may_say(self, ended: _Ended, voice: SpokenWords) -> bool:
        at, before = self._written.at, self._written.before
        return (at is None or at < ended.since or before is not None) and ended.claim.is_in(self.text, voice)

    def says(self, ended: _Ended, sentence: _Sentence) -> bool:
        is_told = ended.is_told_by(sentence)
        return is_told and self._is_older(ended, sentence.text) and not self._is_stated_again(ended)

    def _is_older(self, ended: _Ended, sentence: str) -> bool:
        at, before = self._written.at, self._written.before
        if at is None or at < ended.since:
            return True
        earlier = before(ended.since) if before else ""
        return earlier is None or fold(sentence) in fold(earlier)


class SayingTurn(NamedTuple):
    """A turn with its sentences that say something, as they stand in it."""

    turn: Turn
    sentences: list[str]


def turns_still_saying(person: EndUser, fact_id: UUID) -> list[SayingTurn]:
    """The person's turns, of the newest MOST_READ, that say what the fact said before it was corrected or forgotten."""
    outdated = Outdated(person, fact_id)
    if outdated.is_empty:
        return []
    turns = Turn.objects.filter(tenant=person.tenant_id, end_user=person).exclude(content="").defer("terms")
    read = (SayingTurn(turn, outdated.sentences(turn)) for turn in turns.order_by("-created_at", "-id")[:MOST_READ])
    return [one for one in read if one.sentences]


class Outdated:
    """What of a person's turns, and of what is written about the person, does not hold any more."""

    def __init__(
        self, person: EndUser, fact_id: UUID | None = None, *, as_of: datetime | None = None, has_ended: bool = True
    ) -> None:
        """Of all facts, or of one. `as_of`: what was over only later was true then. `has_ended`: False where the
        caller knows that nothing can have ended (serving.HAS_ENDED)."""
        self._person, self._fact_id, self._as_of, self._has_ended = person, fact_id, as_of, has_ended

    @cached_property
    def _ended(self) -> list[_Ended]:
        """One statement, once there is something to ask about."""
        if not self._has_ended:
            return []
        given = {"tenant": self._person.tenant_id, "person": self._person.pk, "most": MOST, "fact": self._fact_id}
        return [
            _Ended(old, new, since, leaves_out, dict(zip(turns, map(fold, quotes), strict=True)))
            for old, new, since, leaves_out, turns, quotes in binary_rows.fetched(_ENDED, given)
            if leaves_out or self._as_of is None or since <= self._as_of
        ]

    @property
    def is_empty(self) -> bool:
        return not self._ended

    @property
    def stamp(self) -> int:
        """What stands for all that does not hold any more, in 64 bits: a decision gives another one."""
        told = [(one.old, one.new, one.since.isoformat(), one.leaves_out) for one in self._ended]
        return int.from_bytes(hashlib.blake2b(repr(told).encode(), digest_size=8).digest(), signed=True)

    def since(self, said: Turn | Written) -> datetime | None:
        """Since when something that it says does not hold any more; None when all of it does."""
        found = [ended.since for _, _, ended in self._found(self._side(said))]
        return max(found) if found else None

    def sentences(self, turn: Turn) -> list[str]:
        """Those of the turn that say it."""
        side = self._side(turn)
        return [side.text[start:end] for start, end, _ in self._found(side)]

    def apply(self, turn: Turn) -> None:
        """Let a turn that was read to be shown tell its author's own words that still hold."""
        turn.content, turn.own = self.told(turn), None

    def told(self, said: Turn | Written) -> str:
        """Its text without what was corrected or forgotten; what is over has the day since when."""
        side = self._side(said)
        text, done = side.text, 0
        pieces: list[str] = []
        for start, end, ended in self._found(side):
            if ended.leaves_out:
                mark = _MARK.match(text, start, end)
                goes_on = _REST_OF_LINE.match(text, end)
                # What is left of an entry of a list stays one.
                pieces.append(text[done : mark.end()] if mark and goes_on else text[done:start].rstrip(" "))
                done = goes_on.start(1) if goes_on and (mark or start == 0 or text[start - 1] == "\n") else end
            else:
                day = ended.since.astimezone(self._person.clock).date()
                pieces.append(f"{text[done:end]}{_OVER}{day.isoformat()})")
                done = end
        return ("".join(pieces) + text[done:]).strip() if done else text

    def is_still_in(self, shown: str, said: Turn | Written, *, as_shown: Callable[[str], str]) -> bool:
        """Whether a text in which it was shown once tells a sentence of it that does not hold, as if it did.

        `as_shown`: how a sentence was written there.
        """
        side = self._side(said)
        for start, end, ended in self._found(side):
            _, *behind = shown.split(as_shown(side.text[start:end]))
            if any(ended.leaves_out or not rest.startswith(_OVER) for rest in behind):
                return True
        return False

    def _side(self, said: Turn | Written) -> _OfTurn | _OfWritten:
        return _OfWritten(said, self._is_stated_again) if isinstance(said, Written) else _OfTurn(said)

    def _found(self, side: _OfTurn | _OfWritten) -> list[tuple[int, int, _Ended]]:
        """(start, end, what ended) of each sentence that says it."""
        # Nothing is asked of the database for no text.
        if not side.text or self.is_empty:
            return []
        voice = SpokenWords([side.text])
        here = [ended for ended in self._ended if side.may_say(ended, voice)]
        # What was taken back outweighs what is over.
        here.sort(key=lambda ended: not ended.leaves_out)
        found, before = [], ""
        for start, end in sentences.spans(side.text) if here else ():
            sentence = _Sentence(side.text[start:end], before)
            if ended := next((one for one in here if side.says(one, sentence)), None):
                found.append((start, end, ended))
            before = sentence.text
        return found

    def _is_stated_again(self, ended: _Ended) -> bool:
        """Whether a newer fact of the user's or an operator's states it: then it holds, in whatever was written."""
        newer = (content for content, at in self._newer if at >= ended.since)
        return any(ended.is_told_by(_Sentence(content)) for content in newer)

    @cached_property
    def _newer(self) -> list[tuple[str, datetime]]:
        person, first = self._person, min(ended.since for ended in self._ended)
        rows = Fact.objects.filter(
            tenant=person.tenant_id, end_user=person, status=Status.ACTIVE, created_at__gte=first
        )
        rows = rows.filter(trust__in=TRUSTED).order_by("-created_at", "-id")
        return list(rows.values_list("content", "created_at")[:MOST_NEWER])
