"""Sentences of turns that say what was corrected, superseded or forgotten since they were said.

Nothing is stored: a decision that is undone, or a fact that is stated again, is seen by the next request.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cached_property
from uuid import UUID

from memories.db import binary_rows
from memories.models import EndUser, Turn
from memories.models.folding import fold
from memories.text import sentences
from memories.text.claims import OldClaim
from memories.text.reading.repetitions import states

# The newest decisions count.
MOST = 200
# So many turns are looked at for what one fact said: each is read word by word.
MOST_READ = 2_000
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

    def is_said_before(self, turn: Turn) -> bool:
        """Whether the turn was said before it ended; what was said later says it anew."""
        return (turn.created_at if self.leaves_out else turn.sent_at) < self.since

    def is_said_by(self, sentence: str, quote: str) -> bool:
        said = fold(sentence)
        if not self.claim.is_in(sentence):
            # The sentence that it was taken from may say it in other words.
            return bool(quote) and quote in said and self.successor is None
        is_quoted = bool(quote) and (quote in said or said in quote)
        if not (is_quoted or states(sentence, self.old)):
            return False
        # "I moved from Leiden to Utrecht" tells of both.
        return self.successor is None or not self.successor.is_in(sentence)


def turns_still_saying(person: EndUser, fact_id: UUID) -> list[Turn]:
    """The person's turns, of the newest MOST_READ, that say what the fact said before it was corrected or forgotten."""
    outdated = Outdated.of(person, fact_id)
    if outdated.is_empty:
        return []
    turns = Turn.objects.filter(tenant=person.tenant_id, end_user=person).exclude(content="").defer("terms")
    return [turn for turn in turns.order_by("-created_at", "-id")[:MOST_READ] if outdated.since(turn)]


class Outdated:
    """What of a person's turns does not hold any more."""

    def __init__(self, ended: Sequence[_Ended], zone: tzinfo) -> None:
        self._ended, self._zone = ended, zone

    @classmethod
    def of(cls, person: EndUser, fact_id: UUID | None = None) -> "Outdated":
        """Of all facts, or of one. One statement."""
        given = {"tenant": person.tenant_id, "person": person.pk, "most": MOST, "fact": fact_id}
        rows = binary_rows.fetched(_ENDED, given)
        return cls(
            [
                _Ended(old, new, since, leaves_out, dict(zip(turns, map(fold, quotes), strict=True)))
                for old, new, since, leaves_out, turns, quotes in rows
            ],
            person.clock,
        )

    @property
    def is_empty(self) -> bool:
        return not self._ended

    def since(self, turn: Turn) -> datetime | None:
        """Since when something that the turn says does not hold any more; None when all of it does."""
        found = [ended.since for _, _, ended in self._found(turn)]
        return max(found) if found else None

    def apply(self, turn: Turn) -> None:
        """Let a turn that was read to be shown tell its author's own words that still hold."""
        turn.content, turn.own = self.told(turn), None

    def told(self, turn: Turn) -> str:
        """The turn's text without what was corrected or forgotten; what is over has the day since when."""
        text, pieces, done = turn.own_text, [], 0
        for start, end, ended in self._found(turn):
            pieces.append(text[done:start].rstrip(" ") if ended.leaves_out else text[done:end])
            if not ended.leaves_out:
                pieces.append(f" (no longer true since {ended.since.astimezone(self._zone).date().isoformat()})")
            done = end
        return ("".join(pieces) + text[done:]).strip() if done else text

    def _found(self, turn: Turn) -> list[tuple[int, int, _Ended]]:
        """(start, end, what ended) of each sentence of the turn that says it."""
        turn_id = str(UUID(str(turn.pk)))
        here = [
            ended
            for ended in self._ended
            if ended.is_said_before(turn) and (turn_id in ended.quotes or ended.claim.is_in(turn.own_text))
        ]
        if not here:
            return []
        # What was taken back outweighs what is over.
        here.sort(key=lambda ended: not ended.leaves_out)
        found = []
        for start, end in sentences.spans(turn.own_text):
            said = turn.own_text[start:end]
            if ended := next((one for one in here if one.is_said_by(said, one.quotes.get(turn_id, ""))), None):
                found.append((start, end, ended))
        return found
