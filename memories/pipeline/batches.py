"""A batch: the stretch of a session that one model call is to read, bounded by tokens."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memories.llm import tokens
from memories.llm.prompts.framing import Message, shorten
from memories.pipeline.feed import FedTurn
from memories.pipeline.gate import Evidence
from memories.pipeline.signals import Patterns


@dataclass(frozen=True)
class ShownFact:
    """A known fact as the model was shown it; `content_hash` of its text then."""

    fact_id: uuid.UUID
    content_hash: bytes


@dataclass(frozen=True)
class Batch:
    """Turns `first_number`..`last_number` of a session: those to feed, the messages of the call, and by which patterns
    signs are found (None: the hub's own).

    Without fed turns there is nothing to ask: the watermark passes over the range.
    """

    first_number: int
    last_number: int
    turns: tuple[FedTurn, ...] = ()
    tool_turns: dict[int, uuid.UUID] = field(default_factory=dict)
    shown_facts: tuple[ShownFact, ...] = ()
    # Versions of the sections that the model is shown; a missing one is of version 0.
    shown_profile: dict[str, int] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    patterns: Patterns | None = None

    @property
    def evidence(self) -> Evidence:
        """What the gate may hold against candidates of this batch."""
        fed = {turn.number: turn for turn in self.turns}
        return Evidence(fed=fed, tool_numbers=frozenset(self.tool_turns), patterns=self.patterns)

    @property
    def turn_ids(self) -> dict[int, uuid.UUID]:
        """Ids of the turns that can be cited, by number."""
        return self.tool_turns | {turn.number: turn.turn.pk for turn in self.turns}


def bounded(turns: Iterable[FedTurn], budget: int, limit: int | None = None) -> tuple[tuple[FedTurn, ...], bool]:
    """The first turns within `budget` tokens, at least one, and whether they are all.

    `limit` bounds their number too, but not below the first user turn: without one nothing is extracted.
    """
    taken: list[FedTurn] = []
    spent = 0
    for turn in turns:
        spent += tokens.count(shorten(turn.text))
        if taken and (spent > budget or _is_full(taken, limit)):
            return tuple(taken[: _end_of_round([*taken, turn])]), False
        taken.append(turn)
    return tuple(taken), True


def _is_full(taken: Sequence[FedTurn], limit: int | None) -> bool:
    return limit is not None and len(taken) >= limit and any(turn.is_user for turn in taken)


def _end_of_round(turns: Sequence[FedTurn]) -> int:
    """How many of `turns`, whose last is beyond the bound, make whole rounds; all before it when not even one does."""
    places = range(len(turns) - 1, 0, -1)
    ends = (place for place in places if turns[place].is_user and not turns[place - 1].is_user)
    whole = (end for end in ends if any(turn.is_user for turn in turns[:end]))
    return next(whole, len(turns) - 1)
