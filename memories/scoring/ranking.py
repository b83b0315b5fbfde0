"""The score of a person's units against a query, and their order; pure. The recipe is told in docs/retrieval.md."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.scoring import arrays, dates, language, questions, terms
from memories.scoring.constants import DEFAULT, Constants
from memories.scoring.dates import Date
from memories.scoring.dense import VectorBlock, Vectors
from memories.scoring.halves import Halves
from memories.scoring.language import Language
from memories.scoring.lexical import Coverage, Holding, Layout, Postings, Shares, Words, coverage, shares, windows_at
from memories.scoring.moments import Moments, Stretches
from memories.scoring.questions import subject, tells
from memories.scoring.relative_dates import Period

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
# A query of this many words (characters of Chinese count as words) in several sentences is looked at in parts.
LONG_QUERY_WORDS = 60
LAST_QUESTIONS = 3
# Units whose neighbours are looked at, where the others are estimated.
LOOKED_AT = 256
# If signs leave a larger share of all, they tell little, and the levels of all are read; if those do, all vectors are.
SIGNS_SHARE, LEVELS_SHARE = 1 / 12, 1 / 4
# By so many standard deviations an estimate may be too low.
SURE = 3.0
# Of the best by an estimate so many more than are wanted, and a quarter, are looked at.
SPARE = 32
# Of a session that may be among the best.
MOST_OF_SESSION = 1_000
# Of so many drafts the threshold is taken.
SAMPLE = 16_384
# Units whose windows are weighed at once: they fit into a processor's cache.
_AT_ONCE = 65_536
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
    return _best_of([_score(units, query) for query in queries])


def _best_of(each: Sequence[Scores]) -> Scores:
    best = each[0]
    for other in each[1:]:
        better = other.total > best.total
        best = Scores(*(np.where(better, new, old) for new, old in zip(other, best, strict=True)))
    return best


class Best(NamedTuple):
    """Some units, in their order, and their scores; where they are not all, what is known of the others."""

    places: Ints
    scores: Scores
    drafts: Sequence["_Draft"] = ()


def best(
    units: Units, queries: Sequence[Query], *, allowed: NDArray[np.bool_], most: int, sessions: bool = False
) -> Best:
    """The scores of the units that may be among the best `most` of those that are allowed: of all where all vectors
    are read, else of those that an estimate of their nearness does not rule out. `sessions`: and all others of the
    sessions that may be among the best. ValueError without a query."""
    if not queries:
        raise ValueError("Nothing is asked for")
    drafts: list[_Draft] = []
    found = np.zeros(len(units), np.bool_)
    for query in queries:
        draft = _draft(units, query)
        candidates = _candidates(units, draft, allowed, most)
        if candidates is None:
            return Best(np.arange(len(units)), score(units, queries))
        drafts.append(draft)
        found |= candidates
    some = np.flatnonzero(found)
    scores = _best_of([_score_at(units, draft, some) for draft in drafts])
    if sessions:
        some = _with_sessions(units, found, some[best_first(scores.total, 4 * most)])
        scores = _best_of([_score_at(units, draft, some) for draft in drafts])
    return Best(some, scores, drafts)


def with_others(units: Units, found: Best, places: Ints) -> Best:
    """The same with the scores of these units, where not all are scored."""
    some = np.union1d(found.places, places)
    for draft in found.drafts:
        draft.look_at(units, _beside(units, some))
    return Best(some, _best_of([_score_at(units, draft, some) for draft in found.drafts]), found.drafts)


def _with_sessions(units: Units, found: NDArray[np.bool_], best: Ints) -> Ints:
    """Also the first units of the sessions of the best."""
    starts, ends = units.layout.starts, units.layout.ends
    for session in np.unique(units.layout.session[best]).tolist():
        found[starts[session] : min(ends[session], starts[session] + MOST_OF_SESSION)] = True
    return np.flatnonzero(found)


def _score(units: Units, query: Query) -> Scores:
    c = units.constants
    vector, near = np.zeros(len(units), np.float32), np.zeros(len(units), np.bool_)
    if units.vectors is not None and query.vector is not None:
        vector, near = units.vectors.nearness(query.vector, query.language)
    held = list(units.words.holding(query.terms)) if len(units) else []
    covered = coverage(units.words, held)
    lexical = np.float32(c.lexical) * covered.turn**c.lexical_power
    if not near.all():
        lexical += np.where(near, np.float32(0), np.float32(c.unembedded) * covered.turn)
    around = np.zeros_like(vector) if query.tells else _context(vector + lexical, covered, units, held)
    if units.times is not None and query.dates:
        around += query.turn_date_scores(units.times, c)
    return Scores(vector + lexical + around, vector, lexical, around)


def _context(own: Floats, covered: Coverage, units: Units, held: Sequence[Holding]) -> Floats:
    """What the neighbours, the window and the session add, and the moment."""
    c, best = units.constants, _best_beside(own, units.layout)
    added: Floats = c.neighbour * best + _of_windows(covered.window, c) + c.session * covered.session
    if units.moments is not None:
        added += units.moments.added(held, c).at(slice(None))
    return added


def _best_beside(own: Floats, layout: Layout, start: int = 0) -> Floats:
    """What the better of the units before and after in the session has, 0 or more; `own`: of the units from `start`."""
    within = slice(*np.searchsorted(layout.starts, [start + 1, start + len(own)]))
    first = layout.starts[within] - start
    best, after = np.zeros_like(own), own[1:].copy()
    np.maximum(own[:-1], 0, out=best[1:])
    best[first] = after[first - 1] = 0
    np.maximum(best[:-1], after, out=best[:-1])
    return best


@dataclass(slots=True, eq=False)
class _Draft:
    """What is known of all units. `own`: of their words, exact. `near`: exact where it is `exact`, else whatever was
    estimated. `around`: what their sessions and moments add, where these count. `room`: for the scores of all.

    Of a million units each array takes longer to get from the system than to fill: there are few.
    """

    query: Query
    shares: Shares
    own: Floats
    around: Stretches | None
    near: Floats
    exact: NDArray[np.bool_]
    room: Floats

    def look_at(self, units: Units, places: Ints) -> None:
        """Make the nearness of these exact."""
        some = places[~self.exact[places]]
        if units.vectors is not None and self.query.vector is not None and len(some):
            self.near[some] = units.vectors.nearness_at(some, self.query.vector, self.query.language)
            self.exact[some] = True

    def estimate(self, near: Floats, places: Ints | None = None) -> None:
        """Of what is not known exactly: of some, or of all, whose array is kept."""
        if places is not None:
            inexact = ~self.exact[places]
            self.near[places[inexact]] = near[inexact]
            return
        known = np.flatnonzero(self.exact)
        near[known] = self.near[known]
        self.near = near

    def totals(self, units: Units) -> Floats:
        """The scores of all, as far as they are known. Those of before are lost."""
        total = self.room
        for start in range(0, len(total), _AT_ONCE):
            some = slice(start, min(start + _AT_ONCE, len(total)))
            # With the units before and after them.
            first = max(0, start - 1)
            known = self.own[first : some.stop + 1] + self.near[first : some.stop + 1]
            these = slice(start - first, some.stop - first)
            total[some] = known[these] + self.around_at(units, some)
            if not self.query.tells:
                total[some] += self.rare_windows_at(units, some)
                beside = _best_beside(known, units.layout, first)[these]
                total[some] += np.float32(units.constants.neighbour) * beside
        return total

    def totals_at(self, units: Units, places: Ints) -> Floats:
        """The same of some."""
        total = self.own[places] + self.near[places] + self.around_at(units, places)
        if not self.query.tells:
            total += self.rare_windows_at(units, places)
            total += np.float32(units.constants.neighbour) * _neighbours(units, self, places)
        return total

    def around_at(self, units: Units, places: Ints | slice) -> Floats:
        """What sessions, moments and dates add to these, exact."""
        added = np.zeros_like(self.own[places]) if self.around is None else self.around.at(places)
        if units.times is not None and self.query.dates:
            added += self.query.turn_date_scores(units.times[places], units.constants)
        return added

    def rare_windows_at(self, units: Units, places: Ints | slice) -> Floats:
        """What the windows of these add, without the words that many hold."""
        return _of_windows(self.shares.window[places], units.constants)


def _draft(units: Units, query: Query) -> _Draft:
    c, vectors = units.constants, units.vectors
    held = list(units.words.holding(query.terms)) if len(units) else []
    found = shares(units.words, held)
    around = None
    if not query.tells:
        of_sessions = np.float32(c.session) * found.session
        around = Stretches(units.layout.starts, of_sessions, len(units))
        if units.moments is not None:
            added = units.moments.added(held, c)
            around = added._replace(values=around.at(added.starts) + added.values)
    far: Ints | slice = slice(None)
    if vectors is not None and query.vector is not None:
        far = vectors.far(query.language)
    unembedded = np.float32(c.unembedded) * found.turn[far]
    # Nobody asks for these shares again.
    own = np.square(found.turn, out=found.turn)
    own *= np.float32(c.lexical)
    own[far] += unembedded
    near, room = arrays.zeros(len(units), len(units))
    return _Draft(query, found, own, around, near, np.zeros(len(units), np.bool_), room)


def _candidates(units: Units, draft: _Draft, allowed: NDArray[np.bool_], most: int) -> NDArray[np.bool_] | None:
    """Units that may be among the best: by signs where there are some, or, where these tell little, by the levels of
    all. None: all may be."""
    vectors, query = units.vectors, draft.query
    if vectors is None or not vectors.have_levels:
        return None
    if query.vector is None:
        return _reaching(units, draft, _allowed(draft.totals(units), allowed), most, 0.0)
    if vectors.have_signs and (found := _by_signs(units, vectors, draft, allowed, most)) is not None:
        return found
    near, wrong = vectors.by_levels(query.vector, query.language)
    draft.estimate(near)
    total = _allowed(draft.totals(units), allowed)
    return _reaching(units, draft, total, most, wrong + units.constants.neighbour * wrong)


def _by_signs(
    units: Units, vectors: Vectors, draft: _Draft, allowed: NDArray[np.bool_], most: int
) -> NDArray[np.bool_] | None:
    """An estimate by signs tells whose levels are read, and those whose vectors are. None: of too many."""
    query = draft.query
    assert query.vector is not None  # noqa: S101 - _candidates() has looked
    doubt = SURE * vectors.noise
    vectors.estimate(query.vector, query.language, out=draft.near)
    total = _allowed(draft.totals(units), allowed)
    best = _about_the_best(total, max(4 * LOOKED_AT, 2 * most))
    if not len(best):
        return np.zeros(len(units), np.bool_)
    # The last of the best is hardly better than it seems: where this leaves many, the exact one does, too.
    least = np.partition(total[best], -min(most, len(best)))[-min(most, len(best))]
    if np.count_nonzero(total >= least - np.float32(doubt)) > len(units) * SIGNS_SHARE:
        return None
    best = best[best_first(total[best], LOOKED_AT + most)]
    draft.look_at(units, _beside(units, best))
    least = np.float32(_last_of_the_best(units, draft, best, most) - doubt)
    worth = np.flatnonzero(total >= least)
    if len(worth) > len(units) * SIGNS_SHARE:
        return None
    near, wrong = vectors.by_levels(query.vector, query.language, worth)
    draft.estimate(near, worth)
    total[worth] = draft.totals_at(units, worth)
    # Neighbours are still those of the first estimate.
    return _reaching(units, draft, total, most, wrong + units.constants.neighbour * doubt, among=worth)


def _reaching(
    units: Units,
    draft: _Draft,
    total: Floats,
    most: int,
    margin: float,
    *,
    among: Ints | None = None,
) -> NDArray[np.bool_] | None:
    """Units whose draft, with what it may lack, reaches the score of the last of the best; also by the words of their
    windows that many hold, where these may be those of the best. None: too many are. `total`: the draft's, of what is
    not allowed minus infinity."""
    c, size = units.constants, len(units)
    some = _about_the_best(total, max(4 * LOOKED_AT, 2 * most))
    wide = some[best_first(total[some], max(LOOKED_AT, 2 * most))]
    best = wide[: most + most // 4 + SPARE]
    draft.look_at(units, _beside(units, best))
    least = _last_of_the_best(units, draft, best, most) - margin
    found = np.zeros(size, np.bool_)
    if among is None:
        np.greater_equal(total, np.float32(least), out=found)
    else:
        found[among[total[among] >= least]] = True
    if np.count_nonzero(found) > size * LEVELS_SHARE:
        return None
    found[best] = True
    if draft.shares.common and not draft.query.tells:
        distances = np.arange(-c.reach, c.reach + 1)[:, None]
        beside = np.unique(np.clip(wide + distances, 0, size - 1))
        beside = beside[~found[beside]]
        more = _of_windows(windows_at(units.words, draft.shares, beside), c)
        found[beside[total[beside] - draft.rare_windows_at(units, beside) + more >= least]] = True
    return found


def _allowed(total: Floats, allowed: NDArray[np.bool_]) -> Floats:
    if not allowed.all():
        total[~allowed] = -np.inf
    return total


def _beside(units: Units, places: Ints) -> Ints:
    """These and those before and after."""
    return np.unique([places, np.maximum(places - 1, 0), np.minimum(places + 1, len(units) - 1)])


def _last_of_the_best(units: Units, draft: _Draft, best: Ints, most: int) -> float:
    """The exact score that `most` of these, whose nearness is exact and that of those beside them, reach but for words
    of their windows."""
    if not len(best):
        return np.inf
    totals = draft.totals_at(units, best)
    rank = min(most, len(best))
    return float(np.partition(totals, -rank)[-rank])


def highest(values: NDArray[np.floating[Any]], count: int) -> Ints:
    """Places of so many of the highest values that are finite, and of those that equal the last of these."""
    some = _about_the_best(values, 4 * count + 8 * len(values) // SAMPLE)
    if len(some) < count:
        some = np.flatnonzero(np.isfinite(values))
    if len(some) > count:
        some = some[values[some] >= np.partition(values[some], -count)[-count]]
    return some


def _about_the_best(total: NDArray[np.floating[Any]], count: int) -> Ints:
    """Places of about so many of the highest, by a sample."""
    step = max(1, len(total) // SAMPLE)
    sample = total[::step]
    rank = min(len(sample), max(1, count // step))
    least = np.partition(sample, -rank)[-rank] if len(sample) else 0
    some = np.flatnonzero(total >= least)
    found: Ints = some[np.isfinite(total[some])]
    return found


def _score_at(units: Units, draft: _Draft, places: Ints) -> Scores:
    """What _score() gives for these units; the neighbours of all but the best are estimated."""
    c, query = units.constants, draft.query
    draft.look_at(units, places)
    vector, lexical = draft.near[places], draft.own[places]
    around = draft.around_at(units, places)
    if not query.tells:
        around += _of_windows(windows_at(units.words, draft.shares, places), c)
        about = vector + lexical + around + c.neighbour * _neighbours(units, draft, places)
        best = places[best_first(about, LOOKED_AT)]
        draft.look_at(units, _beside(units, best))
        around += c.neighbour * _neighbours(units, draft, places)
    return Scores(vector + lexical + around, vector, lexical, around)


def _neighbours(units: Units, draft: _Draft, places: Ints) -> Floats:
    """What the better of the turns before and after has of its own, 0 or more."""
    best = np.zeros(len(places), np.float32)
    session = units.layout.session
    for distance in (-1, 1):
        beside = np.clip(places + distance, 0, len(units) - 1)
        own = draft.near[beside] + draft.own[beside]
        together = (session[beside] == session[places]) & (beside != places)
        best = np.maximum(best, np.where(together, own, np.float32(0)))
    return best


def _of_windows(shares: Floats, c: Constants) -> Floats:
    """What windows with these shares add. Most are zero, and a power takes long."""
    added = np.zeros_like(shares)
    np.power(shares, np.float32(c.window_power), where=shares > 0, out=added)
    added *= np.float32(c.window)
    return added


def best_first(total: Floats, limit: int) -> NDArray[np.int64]:
    """Places of the highest scores, highest first; equal ones in the order of the units."""
    if limit < len(total):
        least = np.partition(total, len(total) - limit)[len(total) - limit] if limit > 0 else np.inf
        some = np.flatnonzero(total >= least)
    else:
        some = np.arange(len(total))
    return some[np.argsort(-total[some], kind="stable")][:limit]


def sessions(total: Floats, session: NDArray[np.int32], c: Constants) -> SessionScores:
    """The sessions in the order of the units, `session` of each; of turns that are equal the first is the best.

    Turns that are not there, or score below zero, add nothing: a short session is not held to a mean of few.
    """
    starts = arrays.run_starts(session)
    order = np.lexsort((np.arange(len(total)), -total, session))
    ends = np.append(starts[1:], len(total))
    added = np.zeros(len(starts), np.float32)
    for rank in range(1, 1 + c.others_counted):
        longer = np.flatnonzero(starts + rank < ends)
        added[longer] += np.maximum(total[order[starts[longer] + rank]], 0)
    return SessionScores(order[starts], np.float32(c.others / c.others_counted) * added)
