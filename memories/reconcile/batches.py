"""A batch: the turns of a session that one model call reads, bounded by tokens."""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from memories.embedding import similarity
from memories.llm import tokens
from memories.llm.prompts.framing import Message, shorten
from memories.profiles import Field
from memories.reconcile.gate import BatchEvidence
from memories.text.signals import Patterns
from memories.text.transcript import TranscriptTurn


@dataclass(frozen=True)
class ShownFact:
    """An existing fact as the model was shown it; `content_hash` of its text, `content`, then."""

    fact_id: uuid.UUID
    content_hash: bytes
    content: str = ""


@dataclass(frozen=True)
class TurnBatch:
    """Turns `first_number`..`last_number` of a session: those to feed, the messages of the call, and the patterns that
    find signals (None: the hub's own).

    Without fed turns there is no call: the watermark passes over the range.
    """

    first_number: int
    last_number: int
    turns: tuple[TranscriptTurn, ...] = ()
    tool_turns: dict[int, uuid.UUID] = field(default_factory=dict)
    tools_sent_at: dict[int, datetime] = field(default_factory=dict)
    shown_facts: tuple[ShownFact, ...] = ()
    # Versions of the sections that the model is shown; a missing section has version 0.
    shown_profile: dict[str, int] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    patterns: Patterns | None = None
    # Those of the tenant's own profiles that the batch may fill, by key.
    fields: Mapping[str, Field] = field(default_factory=dict)
    # The texts of the tool turns, and what the person or an operator stated before.
    tool_texts: tuple[str, ...] = ()
    # Turns that are not shown whole, and how many of their characters are not; whether any is shown beyond its ends.
    shortened: int = 0
    left_out: int = 0
    has_long: bool = False
    existing_texts: tuple[str, ...] = ()

    @cached_property
    def evidence(self) -> BatchEvidence:
        """The evidence by which the gate judges candidates of this batch."""
        return BatchEvidence(
            fed={turn.number: turn for turn in self.turns},
            tool_numbers=frozenset(self.tool_turns),
            patterns=self.patterns,
            tools=self.tool_texts,
            existing=self.existing_texts,
            embed=similarity.vectors,
        )

    @property
    def turn_ids(self) -> dict[int, uuid.UUID]:
        """Ids of the turns that can be cited, by number."""
        return self.tool_turns | {turn.number: turn.turn.pk for turn in self.turns}

    @property
    def sent_at(self) -> dict[int, datetime]:
        """When these turns were sent."""
        return self.tools_sent_at | {turn.number: turn.at for turn in self.turns}


def shortened_cost(turn: TranscriptTurn, _budget: int) -> int:
    """The tokens of a turn that is cut to length."""
    return tokens.count(shorten(turn.text))


def bounded(
    turns: Iterable[TranscriptTurn],
    budget: int,
    limit: int | None = None,
    cost: Callable[[TranscriptTurn, int], int] = shortened_cost,
) -> tuple[tuple[TranscriptTurn, ...], bool]:
    """The first turns within `budget` tokens, at least one, and whether they are all.

    `cost`: the tokens that a turn takes of the budget. `limit` bounds their number too, but not below the first user
    turn: without one nothing is extracted.
    """
    taken: list[TranscriptTurn] = []
    spent = 0
    for turn in turns:
        spent += cost(turn, budget)
        is_full = limit is not None and len(taken) >= limit and any(turn.is_user for turn in taken)
        if taken and (spent > budget or is_full):
            return tuple(taken[: _end_of_round([*taken, turn])]), False
        taken.append(turn)
    return tuple(taken), True


def _end_of_round(turns: Sequence[TranscriptTurn]) -> int:
    """How many of `turns`, whose last is beyond the bound, make whole rounds; all before it when not even one does."""
    places = range(len(turns) - 1, 0, -1)
    ends = (place for place in places if turns[place].is_user and not turns[place - 1].is_user)
    whole = (end for end in ends if any(turn.is_user for turn in turns[:end]))
    return next(whole, len(turns) - 1)
