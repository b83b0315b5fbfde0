"""What a hub holds of people's conversations once it has nothing left to do: what is wrong with it, and what of it must
be the same whenever things happened."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from memories.conf import Rules
from memories.models import Turn
from memories.models.folding import fold
from memories.text.transcript import TranscriptTurn, fed

TURNS = """
    SELECT s.external_id, t.number, t.role, t.content, t.tool_calls, t.metadata
    FROM memories_turn t JOIN memories_session s ON s.id = t.session_id JOIN memories_enduser p ON p.id = s.end_user_id
    WHERE p.external_id = %s ORDER BY s.external_id, t.number
"""
RUNS = """
    SELECT s.external_id, r.first_number, r.last_number
    FROM memories_extractionrun r JOIN memories_session s ON s.id = r.session_id
    JOIN memories_enduser p ON p.id = s.end_user_id
    WHERE p.external_id = %s AND r.status = 'committed'
"""
EPISODES = """
    SELECT s.external_id, e.first_number, e.last_number
    FROM memories_episode e JOIN memories_session s ON s.id = e.session_id JOIN memories_enduser p
        ON p.id = s.end_user_id
    WHERE p.external_id = %s
"""
FACTS = """
    SELECT f.content, f.status, s.external_id, e.turn_number
    FROM memories_fact f JOIN memories_enduser p ON p.id = f.end_user_id
    LEFT JOIN memories_factevidence e ON e.fact_id = f.id LEFT JOIN memories_session s ON s.id = e.session_id
    WHERE p.external_id = %s
"""
WINDOWS = """
    SELECT s.external_id, s.token_count - w.left_tokens, s.round_count - w.left_rounds, q.parked_at, w.parked_at
    FROM memories_session s JOIN memories_workingmemory w ON w.session_id = s.id
    JOIN memories_sessionqueue q ON q.session_id = s.id JOIN memories_enduser p ON p.id = s.end_user_id
    WHERE p.external_id = %s
"""

Range = tuple[int, int]
Place = tuple[str, int]


@dataclass(frozen=True)
class Kept:
    """What is kept of one person, by the names of the sessions; `evidence`: of each fact, by its folded text."""

    turns: Mapping[str, Sequence[Turn]]
    runs: Mapping[str, Sequence[Range]]
    episodes: Mapping[str, Sequence[Range]]
    facts: Sequence[tuple[str, str]]
    evidence: Mapping[str, frozenset[Place]]
    # Tokens and rounds of each window, and whether its session, or itself, is parked.
    windows: Mapping[str, tuple[int, int, bool]]

    @property
    def fed(self) -> dict[str, list[TranscriptTurn]]:
        return {name: list(fed(turns)) for name, turns in self.turns.items()}


@dataclass
class Counts:
    """How much there is of everything."""

    turns: int = 0
    fed: int = 0
    sessions: int = 0
    qualifying: int = 0
    extractions: int = 0
    episodes: int = 0
    facts: int = 0

    def add(self, kept: Kept, rules: Rules) -> None:
        fed_turns = [len(turns) for turns in kept.fed.values()]
        self.turns += sum(map(len, kept.turns.values()))
        self.fed += sum(fed_turns)
        self.sessions += len(kept.turns)
        self.qualifying += sum(count >= rules.episode_turns for count in fed_turns)
        self.extractions += sum(map(len, kept.runs.values()))
        self.episodes += sum(map(len, kept.episodes.values()))
        self.facts += len(kept.facts)


@dataclass
class EndState:
    """Of many people: what is wrong, how much there is, and a digest by person of what timing must not change."""

    wrong: list[str] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    digests: dict[str, str] = field(default_factory=dict)


def look(database: psycopg.Connection, told: Mapping[str, Mapping[str, Sequence[str]]], rules: Rules) -> EndState:
    """The end state of people, of whom each was told these texts by the names of the sessions."""
    state = EndState()
    for person, sessions in told.items():
        kept = read(database, person)
        state.wrong += [f"{person}: {found}" for found in wrong(kept, sessions, rules)]
        state.counts.add(kept, rules)
        state.digests[person] = digest(kept)
    return state


def read(database: psycopg.Connection, person: str) -> Kept:
    """All that is kept of the person."""
    rows = _rows(database, FACTS, person)
    places: dict[str, set[Place]] = {}
    for content, _, session, number in rows:
        places.setdefault(fold(content), set()).update({(session, number)} if session else ())
    return Kept(
        turns=_by_session(
            (name, Turn(number=number, role=role, content=content, tool_calls=calls, metadata=metadata))
            for name, number, role, content, calls, metadata in _rows(database, TURNS, person)
        ),
        runs=_by_session((name, (first, last)) for name, first, last in _rows(database, RUNS, person)),
        episodes=_by_session((name, (first, last)) for name, first, last in _rows(database, EPISODES, person)),
        facts=sorted({(fold(content), status) for content, status, _, _ in rows}),
        evidence={text: frozenset(found) for text, found in places.items()},
        windows={
            name: (tokens, rounds, bool(queue or window))
            for name, tokens, rounds, queue, window in _rows(database, WINDOWS, person)
        },
    )


def wrong(kept: Kept, told: Mapping[str, Sequence[str]], rules: Rules) -> Iterator[str]:
    """What must not be: turns lost, doubled or changed, and fed ones not in exactly one extraction or episode."""
    if {name: [turn.content for turn in turns] for name, turns in kept.turns.items()} != told:
        yield "the turns are not those that were told"
    for name, turns in kept.fed.items():
        yield from _miscounted(kept, name, [turn.number for turn in turns], rules)
    for name, (tokens, rounds, is_parked) in kept.windows.items():
        if is_parked:
            yield f"{name}: parked"
        if rounds > rules.window_rounds or (tokens > rules.window_tokens and rounds > 1):
            yield f"{name}: {tokens} tokens in {rounds} rounds are in the window"
    said = {fold(turn.text) for turns in kept.fed.values() for turn in turns if turn.is_user}
    if strange := [text for text, _ in kept.facts if text not in said]:
        yield f"{len(strange)} facts that nobody said"


def digest(kept: Kept) -> str:
    """Of what neither timing nor kills may change, whatever the session and person are called by the database.

    Borders of extractions and of episodes depend on when a worker looked, and so does whether the repetition of a text
    is one more piece of evidence for its fact, or a second mention in one batch: of those only the text is compared.
    """
    spoken = Counter(fold(turn.text) for turns in kept.fed.values() for turn in turns if turn.is_user)
    state = {
        "turns": {name: [[turn.role, turn.content] for turn in turns] for name, turns in kept.turns.items()},
        "extracted": {name: _covered(kept, name, kept.runs) for name in kept.turns},
        "told": {name: _covered(kept, name, kept.episodes) for name in kept.turns},
        "facts": kept.facts,
        "evidence": {text: sorted(kept.evidence[text]) for text, _ in kept.facts if spoken[text] == 1},
    }
    return hashlib.sha256(json.dumps(state, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def _covered(kept: Kept, name: str, ranges: Mapping[str, Sequence[Range]]) -> list[int]:
    """Numbers of the session's fed turns within the ranges."""
    inside = ranges.get(name, ())
    return [turn.number for turn in kept.fed[name] if any(first <= turn.number <= last for first, last in inside)]


def _miscounted(kept: Kept, name: str, numbers: Sequence[int], rules: Rules) -> Iterator[str]:
    yield from _not_once(f"{name}: extractions", numbers, kept.runs.get(name, ()))
    if len(numbers) >= rules.episode_turns:
        yield from _not_once(f"{name}: episodes", numbers, kept.episodes.get(name, ()))
    elif name in kept.episodes:
        yield f"{name}: an episode of {len(numbers)} fed turns"


def _not_once(what: str, numbers: Iterable[int], ranges: Sequence[Range]) -> Iterator[str]:
    for number in numbers:
        count = sum(first <= number <= last for first, last in ranges)
        if count != 1:
            yield f"{what}: {count} of turn {number}"


def _by_session(rows: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for name, row in rows:
        found.setdefault(name, []).append(row)
    return found


def _rows(database: psycopg.Connection, query: str, person: str) -> list[tuple[Any, ...]]:
    return database.execute(query.encode(), [person]).fetchall()
