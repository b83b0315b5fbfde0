"""What was said in a batch, and which of its clauses support a statement: those that have most of its words; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress

from memories.text import quantities, words
from memories.text.reading import arrangements, moods, patterns
from memories.text.reading.moods import Clause
from memories.text.words import SpokenWords, StatementWord

# What a shared word weighs: names and distinctive words most, the words that any text has hardly anything.
_DISTINCTIVE, _COMMON, _PLAIN, _PAIR = 3.0, 2.0, 0.6, 2.0
_SHOWN = 2_000
_OF_IDEA = 0.8
_SHORT = 3
_FEW = 4
# Clauses with so much of the best one's share support a statement, too.
_NEARLY = 0.85
# A statement of which less is found is in other words or another language.
_FOUND = 1.5


@dataclass(frozen=True)
class Heard:
    """What the person says in a batch, and what they or an operator stated before; `questions` are those of an
    assistant that a turn answers, by the turn's place."""

    turns: Sequence[str]
    known: Sequence[str] = ()
    questions: dict[int, str] = field(default_factory=dict)

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        found = [clause for turn in self.turns for clause in moods.spoken(turn)]
        answers = [moods.answered(asked, self.turns[place]) for place, asked in self.questions.items()]
        return (*found, *answers)

    @cached_property
    def words(self) -> SpokenWords:
        return SpokenWords([*self.turns, *self.questions.values(), *self.known])

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Those of its clauses."""
        return tuple(dict.fromkeys(name for clause in self.clauses for name in clause.languages))

    def languages_with(self, statement: str) -> tuple[str, ...]:
        """Those that it and a statement show together: either may be too short to show one."""
        return patterns.languages_of(f"{self.words.text[:_SHOWN]} {statement}", self.languages)


def supporting_clauses(part: Clause, clauses: Iterable[Clause]) -> list[Clause]:
    """The clauses that have most of the part's words; none if they have too little."""
    clauses = list(clauses)
    voice = SpokenWords([clause.text for clause in clauses])
    shares = [(share(part, clause, voice), clause) for clause in clauses]
    best = max((found for found, _ in shares), default=0.0)
    if best < _FOUND:
        return []
    found = [clause for much, clause in shares if much >= _NEARLY * best]
    rest = [clause for much, clause in shares if much < _NEARLY * best]
    # Also those with a telling word, a number or a date of the part that the best ones lack.
    telling = [piece for piece in words.of(part.text).pieces if piece.is_distinctive]
    missing = [piece for piece in telling if not any(says(clause.words, piece) for clause in found)]
    counted = _counted(part) - frozenset().union(*map(_counted, found))
    completes = (any(says(clause.words, piece) for piece in missing) or counted & _counted(clause) for clause in rest)
    return [*found, *compress(rest, completes)]


def share(part: Clause, clause: Clause, voice: SpokenWords | None = None) -> float:
    """How much of the part the clause says; `voice` says all that is compared."""
    statement = words.of(part.text)
    telling = [piece for piece in statement.pieces if not piece.is_plain]
    pieces = [(piece, _weight(piece, alone=not telling)) for piece in statement.pieces]
    if voice is not None:
        pieces = [(piece, weight) for piece, weight in pieces if weight and says(voice, piece)]
    found = sum(weight * _much(clause.words, piece) for piece, weight in pieces if weight)
    found += sum(_DISTINCTIVE for code in statement.codes if clause.words.has_code(code))
    numbers = statement.quantities.numbers & quantities.of(clause.text).numbers
    much = found + _COMMON * len(numbers)
    characters = arrangements.characters(part.text)
    said = sum(character in clause.text for character in characters)
    # Of a few Chinese or Japanese characters without a pair in common half of them is enough.
    is_half = 0 < len(characters) <= _FEW and 2 * said >= len(characters) and said >= min(2, len(characters))
    return max(much, _FOUND if is_half else 0.0)


def says(voice: SpokenWords, piece: StatementWord) -> bool:
    """Whether a side has the word, its idea, or another spelling of a name."""
    if voice.says(piece) or (piece.is_name and voice.resembles(piece.text)):
        return True
    if len(piece.text) > _FEW and not piece.is_name and not piece.is_plain and voice.begins_like(piece.text):
        return True
    return not piece.is_plain and not words.concepts_of(piece.text).isdisjoint(voice.concepts)


def _counted(clause: Clause) -> frozenset[str]:
    """Its numbers, and the days of its dates."""
    found = quantities.of(clause.text)
    return found.numbers | {f"{one.month}/{one.day}" for one in found.dates}


def _much(voice: SpokenWords, piece: StatementWord) -> float:
    """How much of a word a side says: its idea alone is less than the word."""
    if voice.says(piece):
        return 1.0
    return _OF_IDEA if says(voice, piece) else 0.0


def _weight(piece: StatementWord, *, alone: bool) -> float:
    if piece.is_east:
        return _PAIR if piece.is_pair else 1.0
    if piece.is_distinctive:
        return _DISTINCTIVE
    if piece.is_common:
        return _COMMON
    if len(piece.text) <= _SHORT:
        return 0.0
    return _COMMON if alone else _PLAIN
