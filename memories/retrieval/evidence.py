"""How strong the evidence is that memories have to do with a query: strong, weak or none (docs/retrieval.md).

A score orders what was found. It grows with each word that a short query shares with a memory, so the size of the best
one tells little about whether anything answers. Evidence is measured in nearness, which means the same for every query:

    evidence = max(nearness, 0.3 · w / n) + 0.1 · min(w, 2) + 0.2 · min(m, 1) + half of what a date adds to a score
    w = sum of idf / highest idf, over those of the query's n words that the memory has; m = the same of its names

`w` counts telling words: a word of this memory alone is one, a word of many memories a part of one. What is rare shows
among the person's memories together with everyday sentences (scoring/data/), so a few facts are enough. `w / n` stands
for the nearness to a query that names little else. Without a vector half of the share of the query's words does.

How near chance comes depends on what a person's memories are about. It is measured without labels, with their own
vectors: the median, over questions about the world (scoring/data/unrelated_*.txt), of the nearness to the nearest
memory. Half of what differs from the usual 0.15 moves the least evidence that counts. A model that nobody measured may
find any two texts near: with it nearness counts from that of two unlike memories on. Nothing of it is kept, or shared
between people.
"""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from functools import cache, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.scoring import means, terms
from memories.scoring.dense import Vectors
from memories.scoring.language import Language
from memories.scoring.lexical import coverage
from memories.scoring.ranking import Query, Scores, Units

Floats = NDArray[np.float32]
# Positions of units, ascending.
Places = NDArray[np.int64]


class Level(StrEnum):
    """How strong evidence is."""

    NONE = "none"
    WEAK = "weak"
    STRONG = "strong"

    @property
    def rank(self) -> int:
        """0 to 2: the higher the stronger."""
        return _ORDER.index(self)


_ORDER = (Level.NONE, Level.WEAK, Level.STRONG)
_LEVELS = np.array(_ORDER, object)

# What a telling word adds, and how many count.
WORD, MOST_WORDS = 0.1, 2.0
# What a word adds beyond that if it is written as a name, and how many such count.
NAME, MOST_NAMES = 0.2, 1.0
# The nearness of a memory that has every word of a query, if all of them tell.
NAMED = 0.3
# The same where there is no vector, whether they tell or not.
UNEMBEDDED = 0.5
# What a date that the query names adds, as a share of what it adds to the score.
DATED = 0.5
# A memory is strong, and the best one makes others weak, from so much on.
LEAST_STRONG, LEAST_WEAK = 0.32, 0.25
# Beside the best of its kind: a strong one has such a share of its evidence, a weak one of its evidence or its score.
STRONG_SHARE, WEAK_SHARE, WEAK_SCORE_SHARE = 0.55, 0.45, 0.4
# How near chance comes to some hundred memories of people; what of a difference counts, and the most that does.
USUAL_CHANCE, CHANCE_SHARE, MOST_SHIFT = 0.15, 0.5, 0.075
# Memories that chance is measured with.
MEASURED = 256
# Memories that lie nearer to each other all say the same, and tell no scale.
MOST_APART = 0.9
# A Chinese word of two characters is three terms.
_TERMS_OF_A_WORD = {"en": np.float32(1), "zh": np.float32(3)}


class Evidence(NamedTuple):
    """The level of each memory of one kind, in their order, and the strongest of them."""

    levels: list[Level]
    best: Level


def of(
    units: Units,
    queries: Sequence[Query],
    scores: Scores,
    *,
    dates: Floats | None = None,
    allowed: NDArray[np.bool_] | None = None,
    trusted: NDArray[np.bool_] | None = None,
    places: Places | None = None,
) -> Evidence:
    """The levels of memories that were scored for these queries, those at `places` (None: all); `dates`: what a date
    that a query names added.

    Those that are not `allowed` have none and do not count: nobody learns from a level what they may not see. The
    `trusted` are held to the best of their own: what somebody else plants cannot make them look weak.
    """
    strength = strengths(units, queries, scores, places)
    if dates is not None:
        strength = strength + np.float32(DATED) * dates
    shift = _shift(units, queries[0].language)
    found = graded(strength, scores.total, allowed=allowed, shift=shift)
    if trusted is None or trusted.all():
        return found
    usable = trusted if allowed is None else trusted & allowed
    own = graded(strength, scores.total, allowed=usable, shift=shift).levels
    levels = [mine if is_trusted else level for mine, level, is_trusted in zip(own, found.levels, trusted, strict=True)]
    return Evidence(levels, strongest(levels))


def graded(
    strength: Floats, scores: Floats, *, allowed: NDArray[np.bool_] | None = None, shift: float = 0.0
) -> Evidence:
    """The levels of memories of one kind by their evidence and their scores, float32[n] each; pure.

    `shift`: by how much more evidence is needed than usual.
    """
    usable = np.ones(len(strength), np.bool_) if allowed is None else allowed
    if not usable.any():
        return Evidence([Level.NONE] * len(strength), Level.NONE)
    best, best_score = float(strength[usable].max()), max(0.0, float(scores[usable].max()))
    beside = (strength >= WEAK_SHARE * best) | ((scores >= WEAK_SCORE_SHARE * best_score) & (scores > 0))
    weak = usable & beside & (best >= LEAST_WEAK + shift)
    strong = usable & (strength >= max(LEAST_STRONG + shift, STRONG_SHARE * best))
    ranks = np.where(strong, np.int8(2), weak.astype(np.int8))
    return Evidence(_LEVELS[ranks].tolist(), _ORDER[int(ranks.max())])


def strongest(levels: Sequence[Level]) -> Level:
    """The strongest of these; `none` where there are none."""
    return max(levels, key=lambda one: one.rank, default=Level.NONE)


def strengths(units: Units, queries: Sequence[Query], scores: Scores, places: Places | None = None) -> Floats:
    """The evidence of each unit (of those at `places`) without that of dates, float32[n]; of several queries each word
    counts where it is."""
    places = np.arange(len(units)) if places is None else places
    words, names, share = np.zeros((3, len(places)), np.float32)
    for query in queries:
        told, named = _telling(units, query, places)
        words = np.maximum(words, told / _TERMS_OF_A_WORD[query.language])
        names = np.maximum(names, named)
        share = np.maximum(share, told / np.float32(max(1, len(query.terms))))
    near = np.maximum(_nearness(units, queries, scores, places), np.float32(NAMED) * share)
    added = np.float32(WORD) * np.minimum(words, np.float32(MOST_WORDS))
    added += np.float32(NAME) * np.minimum(names, np.float32(MOST_NAMES))
    strength: Floats = near + added
    return strength


def _telling(units: Units, query: Query, places: Places) -> tuple[Floats, Floats]:
    """How many telling terms of the query each of these units has, and how many of its names, float32[n] each.

    It has a name if it has all its terms; the name tells as much as the one that tells least.
    """
    everyday, sentences = _everyday(query.language)
    size = len(units) + sentences
    told, named = np.zeros((2, len(places)), np.float32)
    telling = [term for term in query.terms.tolist() if term not in _UNTELLING]
    rows_of, tells = {}, {}
    wanted = np.zeros(len(units), np.bool_)
    wanted[places] = True
    for term, (having, _) in zip(telling, units.words.holding(np.array(telling, np.uint32)), strict=True):
        tells[term] = _idf(size, len(having) + everyday[term]) / _idf(size, 1)
        rows_of[term] = np.searchsorted(places, having[wanted[having]])
        told[rows_of[term]] += tells[term]
    for name in query.names:
        if name and all(term in tells for term in name):
            rows = reduce(np.intersect1d, [rows_of[term] for term in name])
            named[rows] += min(tells[term] for term in name)
    return told, named


def _idf(size: int, holding: int) -> float:
    return float(np.log1p((size - holding + 0.5) / (holding + 0.5)))


def _nearness(units: Units, queries: Sequence[Query], scores: Scores, places: Places) -> Floats:
    """The nearness of each of these units, or what stands for it where it, or the query, has no vector."""
    there = np.zeros(len(places), np.bool_)
    if units.vectors is not None and queries[0].vector is not None:
        there = units.vectors.near_at(places, queries[0].language)
    near = _to_scale(scores.vector, units.vectors) if units.vectors is not None else scores.vector
    if there.all():
        return near
    covers = [coverage(units.words, units.words.holding(query.terms)).turn[places] for query in queries]
    stand_in = np.float32(UNEMBEDDED) * np.minimum(np.maximum.reduce(covers), np.float32(1))
    return np.where(there, near, stand_in)


def _to_scale(near: Floats, vectors: Vectors) -> Floats:
    """The nearness as a measured model would give it, where 0 is that of two texts taken at random."""
    apart = None if vectors.are_measured else vectors.apart(most=MEASURED)
    if apart is None or not 0 < apart <= MOST_APART:
        return near
    scaled: Floats = (near - np.float32(apart)) / np.float32(1 - apart)
    return scaled


def _shift(units: Units, language: Language) -> float:
    """By how much more evidence is needed among these units, because chance comes nearer to them; or how much less."""
    by_chance = units.vectors.by_chance(language, most=MEASURED) if units.vectors else None
    if by_chance is None:
        return 0.0
    shift = CHANCE_SHARE * (float(np.median(by_chance)) - USUAL_CHANCE)
    return min(MOST_SHIFT, max(-MOST_SHIFT, shift))


@cache
def _everyday(language: Language) -> tuple[Counter[int], int]:
    """In how many everyday sentences of a language each term is, and how many sentences there are."""
    sentences = [one for kind in ("statement", "question") for one in means.sentences(kind, language)]
    return Counter(term for one in sentences for term in terms.count(one).ids.tolist()), len(sentences)


# Numbers of one or two digits, and single letters: "2+2?" asks about no memory that has a 2.
_UNTELLING = frozenset(
    term for word in [*map(str, range(100)), *"abcdefghijklmnopqrstuvwxyz"] for term in terms.count(word).ids.tolist()
)
