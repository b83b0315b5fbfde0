"""The score of a person's units against a query, and their order; pure. The recipe is told in docs/retrieval.md."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.scoring import dates, language, questions, terms
from memories.scoring.constants import DEFAULT, Constants
from memories.scoring.dates import Date
from memories.scoring.dense import VectorBlock, Vectors
from memories.scoring.halves import Halves
from memories.scoring.language import Language
from memories.scoring.lexical import Coverage, Held, Layout, Postings, Words, coverage
from memories.scoring.moments import Moments
from memories.scoring.questions import subject, tells
from memories.scoring.relative_dates import Period

Floats = NDArray[np.float32]
# A query of this many words (characters of Chinese count as words) in several sentences is looked at in parts.
LONG_QUERY_WORDS = 60
LAST_QUESTIONS = 3
_SENTENCE = re.compile(r"[^.!?。！？\n]*[.!?。！？\n]+|[^.!?。！？\n]+$")
_WORD = re.compile(r"[\u2e80-\u9fff]|[^\W\u2e80-\u9fff]+")
_QUESTION = re.compile(r"[?？]\s*$")


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """One text that is asked for: its distinct terms, its language, its raw unit vector if there is one, the dates that
    it names, with the zone of their days, the terms of each name in it, and whether it tells and asks for nothing."""

    terms: NDArray[np.uint32]
    language: Language
    vector: Floats | None = None
    dates: tuple[Date | Period, ...] = ()
    zone: tzinfo = UTC
    names: tuple[tuple[int, ...], ...] = ()
    tells: bool = False

    @classmethod
    def of(cls, text: str, vector: Floats | None = None, *, asked: datetime | None = None) -> "Query":
        """From the text, its vector as the model gave it, and when it is asked, in the zone of who asks."""
        zone = (asked and asked.tzinfo) or UTC
        named = tuple(tuple(terms.count(name).ids.tolist()) for name in questions.names(text))
        return cls(terms.count(text).ids, language.of(text), vector, dates.named(text, asked), zone, named, tells(text))

    def date_scores(self, times: NDArray[np.float64], c: Constants = DEFAULT) -> Floats:
        """What a date that the query names adds to the score of what was said then; `times` in seconds since 1970."""
        near = dates.closeness(times, self.dates, before=c.date_before, after=c.date_after, zone=self.zone)
        return np.float32(c.date) * near

    def turn_date_scores(self, times: NDArray[np.float64], c: Constants = DEFAULT) -> Floats:
        """The same for turns; a single day tells more than a longer time."""
        longer = tuple(date for date in self.dates if not date.is_day)
        days = tuple(date for date in self.dates if date.is_day)
        weighed = ((c.date_of_turn, longer), (c.day_of_turn, days))
        added = [
            np.float32(weight) * dates.closeness(times, some, before=c.date_before, after=c.date_after, zone=self.zone)
            for weight, some in weighed
            if some
        ]
        return np.maximum.reduce(added) if added else np.zeros(times.shape, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """n units of one person with all that does not depend on the query, prepared once."""

    words: Words
    vectors: Vectors | None
    constants: Constants
    times: NDArray[np.float64] | None = None
    moments: Moments | None = None

    @classmethod
    def of(
        cls,
        *,
        sessions: NDArray[np.int32],
        packed: Sequence[bytes],
        vectors: Floats | Halves | None = None,
        present: NDArray[np.bool_] | None = None,
        languages: Sequence[str] | NDArray[np.str_] = (),
        blocks: Sequence[VectorBlock] = (),
        times: NDArray[np.float64] | None = None,
        alone: bool = False,
        constants: Constants = DEFAULT,
    ) -> "Units":
        """Units ordered by session and number.

        `sessions`: one ordinal for each unit, equal for the units of a session, which stand together.
        `packed`: terms.pack of each, b"" if not counted yet. `vectors`: raw unit vectors float[n, d], of which
        only the rows that are `present` (all, if None) are read; None: no unit has one; then `languages` and
        `blocks` may be left out. `times`: when each was said, in seconds since 1970; None: dates in a query tell
        nothing of these units. `alone`: facts or episodes, which have no neighbours. ValueError if vectors do not have
        the dimensions of the blocks, or for terms of another version.
        """
        centred = None
        if vectors is not None and blocks:
            there = np.ones(len(packed), np.bool_) if present is None else present
            centred = Vectors.of(vectors, present=there, languages=languages, blocks=blocks, constants=constants)
        layout = Layout.of(sessions, alone=alone)
        return cls.over(Words.of([Postings.of(packed)], layout, constants), centred, times)

    @classmethod
    def over(cls, words: Words, vectors: Vectors | None, times: NDArray[np.float64] | None = None) -> "Units":
        """Of words and vectors that were read in parts."""
        layout, c = words.layout, words.constants
        moments = None if layout.alone or times is None else Moments.of(times, layout.starts, words.lengths, c)
        return cls(words, vectors, c, times, moments)

    @property
    def layout(self) -> Layout:
        return self.words.layout

    def __len__(self) -> int:
        return len(self.words)


class Scores(NamedTuple):
    """float32[n] each: the total and its parts. total = vector + lexical + context."""

    total: Floats
    vector: Floats
    lexical: Floats
    context: Floats


class SessionScores(NamedTuple):
    """For each session the place of its best turn, and what its other turns add to the score of that one."""

    best: NDArray[np.int64]
    others: Floats


def query_texts(text: str) -> list[str]:
    """What to embed and score for a query: what it is about; of a long rambling one also its last three questions."""
    whole = subject(text.strip())
    sentences = [one.strip() for one in _SENTENCE.findall(whole)]
    if len(sentences) < 2 or len(_WORD.findall(whole)) < LONG_QUERY_WORDS:
        return [whole]
    questions = [one for one in sentences if _QUESTION.search(one)]
    return list(dict.fromkeys([whole, *questions[-LAST_QUESTIONS:]]))


def score(units: Units, queries: Sequence[Query]) -> Scores:
    """The scores of all units; of several queries the best for each unit. ValueError without a query."""
    if not queries:
        raise ValueError("Nothing is asked for")
    if not len(units):
        return Scores(*np.zeros((4, 0), np.float32))
    each = [_score(units, query) for query in queries]
    best = each[0]
    for other in each[1:]:
        better = other.total > best.total
        best = Scores(*(np.where(better, new, old) for new, old in zip(other, best, strict=True)))
    return best


def _score(units: Units, query: Query) -> Scores:
    c = units.constants
    vector, near = np.zeros(len(units), np.float32), np.zeros(len(units), np.bool_)
    if units.vectors is not None and query.vector is not None:
        vector, near = units.vectors.nearness(query.vector, query.language)
    holding = list(units.words.holding(query.terms))
    covered = coverage(units.words, holding)
    lexical = np.float32(c.lexical) * covered.turn**c.lexical_power
    if not near.all():
        lexical += np.where(near, np.float32(0), np.float32(c.unembedded) * covered.turn)
    around = np.zeros_like(vector) if query.tells else _context(vector + lexical, covered, units, holding)
    if units.times is not None and query.dates:
        around += query.turn_date_scores(units.times, c)
    return Scores(vector + lexical + around, vector, lexical, around)


def _context(own: Floats, covered: Coverage, units: Units, holding: Sequence[Held]) -> Floats:
    """What the neighbours, the window and the session add, and the moment."""
    c, best = units.constants, np.zeros_like(own)
    if len(own) > 1:
        together = units.layout.together(1)
        best[1:] = np.maximum(best[1:], own[:-1] * together)
        best[:-1] = np.maximum(best[:-1], own[1:] * together)
    added: Floats = c.neighbour * best + c.window * _power(covered.window, c.window_power) + c.session * covered.session
    if units.moments is not None:
        added += units.moments.coverage(holding, c)
    return added


def _power(values: Floats, exponent: float) -> Floats:
    """Most are zero, and a power takes long."""
    powers = np.zeros_like(values)
    np.power(values, np.float32(exponent), where=values > 0, out=powers)
    return powers


def best_first(total: Floats, limit: int) -> NDArray[np.int64]:
    """Places of the highest scores, highest first; equal ones in the order of the units."""
    if limit < len(total):
        least = np.partition(total, len(total) - limit)[len(total) - limit] if limit > 0 else np.inf
        some = np.flatnonzero(total >= least)
    else:
        some = np.arange(len(total))
    return some[np.argsort(-total[some], kind="stable")][:limit]


def sessions(total: Floats, units: Units) -> SessionScores:
    """The sessions in the order of the units; of turns that are equal the first is the best.

    Turns that are not there, or score below zero, add nothing: a short session is not held to a mean of few.
    """
    c, starts = units.constants, units.layout.starts
    order = np.lexsort((np.arange(len(total)), -total, units.layout.session))
    ends = np.append(starts[1:], len(total))
    added = np.zeros(len(starts), np.float32)
    for rank in range(1, 1 + c.others_counted):
        longer = np.flatnonzero(starts + rank < ends)
        added[longer] += np.maximum(total[order[starts[longer] + rank]], 0)
    return SessionScores(order[starts], np.float32(c.others / c.others_counted) * added)
