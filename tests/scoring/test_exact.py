"""The index of a heavy person ranks exactly: beside the same sums done with a centred copy and dense tables, in double
precision. Its vectors are halves, and its words lie in postings."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from memories.scoring import halves, terms
from memories.scoring.constants import DEFAULT, Constants
from memories.scoring.dense import Rows, VectorBlock, Vectors
from memories.scoring.language import LANGUAGES
from memories.scoring.lexical import Layout, Postings, Words
from memories.scoring.ranking import Query, Units, best, best_first, score
from tests.each import each

SIZE, D = 20_000, 64
BLOCK = VectorBlock("unheard-of", D)
Doubles = NDArray[np.float64]


def holding(units: Units, query: Query) -> list[list[int]]:
    """For each term of the query the units that hold it, ascending."""
    return [sorted(places.tolist()) for places, _ in units.words.holding(query.terms)]


class Store:
    """Turns in sessions of twenty, of two languages, one in fifty without a vector, of words as rare as real ones."""

    def __init__(self, size: int = SIZE) -> None:
        rng = np.random.default_rng(5)
        raw = rng.standard_normal((size, D)) * 0.13 + rng.standard_normal(D) * 0.05
        self.raw = (raw / np.linalg.norm(raw, axis=1)[:, None]).astype(np.float16)
        self.languages = np.where(rng.random(size) < 0.2, "zh", "en")
        self.languages[rng.random(size) < 0.02] = ""
        self.sessions = (np.arange(size) // 20).astype(np.int32)
        self.said = [np.unique(row) for row in np.minimum(rng.zipf(1.3, size=(size, 10)), 5_000)]
        self.packed = [self.pack(words) for words in self.said]

    @staticmethod
    def pack(words: NDArray[Any]) -> bytes:
        records = np.zeros(len(words), terms.RECORD)
        records["id"], records["count"] = words, 1 + words % 3
        header = np.zeros(1, terms.HEADER)
        header["version"], header["length"] = terms.VERSION, 2 * len(words)
        return header.tobytes() + records.tobytes()

    def units(self) -> Units:
        return Units.of(
            sessions=self.sessions,
            packed=self.packed,
            vectors=self.raw,
            present=self.languages != "",
            languages=self.languages,
            blocks=[BLOCK],
        )

    def asked(self, seed: int) -> Query:
        rng = np.random.default_rng(seed)
        near = self.raw[rng.integers(len(self.raw))] + rng.standard_normal(D).astype(np.float32) * np.float32(0.05)
        words = np.unique([*rng.integers(1, 30, 2), *rng.integers(30, 5_000, 3), 10**6]).astype(np.uint32)
        return Query(words, LANGUAGES[seed % 2], near / np.linalg.norm(near))


@cache
def store() -> Store:
    return Store()


def expected(of: Store, query: Query) -> Doubles:
    """The recipe of docs/retrieval.md."""
    size, c = len(of.raw), DEFAULT
    assert query.vector is not None
    near = np.zeros(size)
    rows = {language: of.languages == language for language in LANGUAGES}
    vectors = {language: of.raw[rows[language]].astype(np.float64) for language in LANGUAGES}
    means = {language: some.sum(axis=0) / (len(some) + c.prior_unknown) for language, some in vectors.items()}
    asked = query.vector - means[query.language]
    for language in LANGUAGES:
        centred = vectors[language] - means[language]
        near[rows[language]] = (centred / np.linalg.norm(centred, axis=1)[:, None]) @ (asked / np.linalg.norm(asked))
    counts = np.array([[1.0 + word % 3 if word in said else 0.0 for said in of.said] for word in query.terms])
    lengths = np.array([2.0 * len(said) for said in of.said])
    ordinal = of.sessions - of.sessions[0]
    sums = np.array([np.bincount(ordinal, weights=row) for row in counts])
    turn = _share(counts, lengths, c.turn_slope, c.turn_pivot)
    window = _share(
        _around(counts, of.sessions), _around(lengths[None], of.sessions)[0], c.window_slope, c.window_pivot
    )
    long = np.asarray(np.bincount(ordinal, weights=lengths), np.float64)
    session = _share(sums, long, c.session_slope, c.session_pivot)[ordinal]
    own = near + c.lexical * turn**2 + np.where(of.languages == "", c.unembedded * turn, 0)
    beside = np.zeros(size)
    same = of.sessions[1:] == of.sessions[:-1]
    beside[1:] = np.maximum(beside[1:], own[:-1] * same)
    beside[:-1] = np.maximum(beside[:-1], own[1:] * same)
    return np.asarray(own + c.neighbour * beside + c.window * window**c.window_power + c.session * session)


def _share(counts: Doubles, lengths: Doubles, slope: float, pivot: float) -> Doubles:
    holding = (counts > 0).sum(axis=1)
    idf = np.log1p((counts.shape[1] - holding + 0.5) / (holding + 0.5))
    k = DEFAULT.saturation
    shares = idf @ (counts * (k + 1) / (counts + k * (1 - slope + slope * lengths / pivot))) / idf.sum()
    return np.asarray(shares)


def _around(counts: Doubles, sessions: NDArray[np.int32]) -> Doubles:
    sums = counts.copy()
    for distance in range(1, DEFAULT.reach + 1):
        same = sessions[distance:] == sessions[:-distance]
        sums[:, distance:] += counts[:, :-distance] * same
        sums[:, :-distance] += counts[:, distance:] * same
    return sums


@each("seed", range(4))
def test_the_best_of_twenty_thousand_are_exact(seed: int) -> None:
    query = store().asked(seed)
    right = expected(store(), query)
    found = score(store().units(), [query]).total
    assert found == pytest.approx(right, abs=1e-5)
    best = best_first(found, 20)
    # Equals may change places.
    assert right[best] == pytest.approx(np.sort(right)[::-1][:20], abs=1e-5)
    assert len(np.unique(best)) == 20


def test_rows_in_two_parts_and_another_order_score_as_they_stand_together() -> None:
    whole, size = store(), 4_000
    order = np.concatenate([np.arange(0, size, 2), np.arange(1, size, 2)])
    # The row in the parts at which each unit stands, with rows between them that count no more.
    parts = [np.append(order[: size // 2], [0, 1]), order[size // 2 :]]
    places = np.argsort(order) + np.where(np.argsort(order) >= size // 2, 2, 0)
    postings = [Postings.of([whole.packed[row] for row in part]) for part in parts]
    spoken = [whole.languages[part].copy() for part in parts]
    spoken[0][-2:] = ""
    rows = [
        Rows.of(whole.raw[part], present=of != "", languages=of, blocks=[BLOCK])
        for part, of in zip(parts, spoken, strict=True)
    ]
    layout = Layout.of(whole.sessions[:size], alone=False)
    units = Units.over(
        Words.of(postings, layout, DEFAULT, places),
        Vectors.over(rows, blocks=[BLOCK], constants=DEFAULT, order=places),
    )
    plain = Units.of(
        sessions=whole.sessions[:size],
        packed=whole.packed[:size],
        vectors=whole.raw[:size],
        present=whole.languages[:size] != "",
        languages=whole.languages[:size],
        blocks=[BLOCK],
    )
    for seed in range(4):
        query = whole.asked(seed)
        assert score(units, [query]).total == pytest.approx(score(plain, [query]).total, abs=1e-5)
        assert holding(units, query) == holding(plain, query)
        assert holding(plain, query)[0] != []
    assert units.vectors is not None
    assert plain.vectors is not None
    assert np.array_equal(units.vectors.covered[0], plain.vectors.covered[0])
    some = np.array([3, 1_999, 2_000, 3_999])
    assert units.vectors.matrix(0, some) == pytest.approx(plain.vectors.matrix(0, some), abs=1e-5)
    assert np.array_equal(units.words.lengths, plain.words.lengths)


@pytest.mark.parametrize("has_signs", [True, False])
def test_few_are_read_and_the_best_are_the_same(has_signs: bool) -> None:
    """By levels, and by signs before, which one of two parts has, as the file of a heavy person and what came later."""
    whole, signed, wide = store(), 16_000, 512
    rng = np.random.default_rng(8)
    raw = rng.standard_normal((SIZE, wide)) * np.arange(1, wide + 1) ** -0.4 + 0.02
    raw = (raw / np.linalg.norm(raw, axis=1)[:, None]).astype(np.float16)
    block = VectorBlock("unheard-of", wide)
    # What stands in the other part is anywhere among the others.
    mixed = np.argsort((np.arange(SIZE) // 20 * 7_919 + 3) % 1_000, kind="stable")
    parts = [mixed[:signed], mixed[signed:]]
    languages = [whole.languages[part] for part in parts]
    rows = [
        Rows.of(raw[part], present=of != "", languages=of, blocks=[block])
        for part, of in zip(parts, languages, strict=True)
    ]
    plain = rows.copy()
    rows[0] = rows[0].with_levels([block], DEFAULT, signs=has_signs)
    postings = [Postings.of([whole.packed[row] for row in part]) for part in parts]
    order, layout = np.argsort(mixed), Layout.of(whole.sessions, alone=False)
    times = np.arange(SIZE, dtype=np.float64) * 600
    units, read = (
        Units.over(
            Words.of(postings, layout, DEFAULT, order),
            Vectors.over(some, blocks=[block], constants=DEFAULT, order=order),
            times,
        )
        for some in (rows, plain)
    )
    allowed = np.ones(SIZE, np.bool_)
    allowed[::3] = False
    same, looked_at = 0, []
    for seed in range(6):
        near = raw[seed * 3_001].astype(np.float32) + rng.standard_normal(wide).astype(np.float32) * 0.03
        asked = whole.asked(seed)
        near /= np.linalg.norm(near)
        queries = [replace(asked, vector=near), replace(asked, vector=-near, terms=asked.terms[:1])]
        right = score(units, queries[: 1 + seed % 2])
        found = best(units, queries[: 1 + seed % 2], allowed=allowed, most=20, sessions=seed == 5)
        assert allowed[found.places].all() == (seed != 5)
        expected = set(best_first(np.where(allowed, right.total, -np.inf), 20).tolist())
        total = np.where(allowed[found.places], found.scores.total, -np.inf)
        first = best_first(total, 20)
        same += len(expected & set(found.places[first].tolist()))
        for part, all_of_them in zip(found.scores, right, strict=True):
            assert part[first] == pytest.approx(all_of_them[found.places[first]], abs=1e-5)
        looked_at.append(len(found.places))
        if seed == 5:
            sessions = np.unique(layout.session[found.places[first]])
            assert np.isin(np.flatnonzero(np.isin(layout.session, sessions)), found.places).all()
    # Levels are wrong by less than they say, always.
    assert same >= (0.98 if has_signs else 1) * 6 * 20
    assert max(looked_at[:5]) < SIZE / 3
    # Where nothing stands out signs tell little, and the levels of all are read; where there are none, all vectors are.
    anywhere = rng.standard_normal(wide).astype(np.float32) - 10 * raw.mean(axis=0, dtype=np.float32)
    query = replace(whole.asked(0), vector=anywhere / np.linalg.norm(anywhere), terms=np.empty(0, np.uint32), dates=())
    found = best(units, [query], allowed=np.ones(SIZE, np.bool_), most=20)
    right = score(units, [query])
    first = found.places[best_first(found.scores.total, 20)]
    assert first.tolist() == best_first(right.total, 20).tolist()
    assert len(found.places) < SIZE / 3
    found = best(read, [query], allowed=np.ones(SIZE, np.bool_), most=20)
    assert len(found.places) == SIZE
    assert found.scores.total == pytest.approx(right.total, abs=1e-6)
    with pytest.raises(ValueError, match="Nothing is asked for"):
        best(units, [], allowed=np.ones(SIZE, np.bool_), most=20)


def test_the_rows_of_some_units_are_what_a_question_is_multiplied_with() -> None:
    vectors = store().units().vectors
    assert vectors is not None
    places = np.arange(0, SIZE, 29)
    question = store().asked(0).vector
    assert question is not None
    near, known = vectors.nearness(question, "en")
    moved = question - vectors.centred[0].shifts["en"]
    rows = vectors.matrix(0, places)
    assert rows @ moved / np.linalg.norm(moved) == pytest.approx(near[places], abs=1e-5)
    assert np.linalg.norm(rows, axis=1) == pytest.approx(known[places].astype(float), abs=1e-5)


def test_halves_are_multiplied_as_what_they_are() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = every[np.isfinite(every)]
    rows = np.zeros((len(finite), 3), np.float16)
    rows[:, 1] = finite
    assert np.array_equal(halves.products(rows, np.array([0, 1, 0], np.float32)), finite.astype(np.float32))
    assert np.array_equal(halves.products(rows[:, 1:], np.array([1, 0], np.float32)), finite.astype(np.float32))
    read = np.concatenate([block.copy() for _, block in halves.blocks(rows)])
    assert np.array_equal(read, rows.astype(np.float32))


def test_vectors_that_are_nearly_their_mean_are_compared_by_what_is_left() -> None:
    rng = np.random.default_rng(3)
    shared = rng.standard_normal(D)
    raw = (shared / np.linalg.norm(shared) + rng.standard_normal((3_000, D)) * 0.002).astype(np.float16)
    languages = np.full(len(raw), "en")
    vectors = Vectors.of(
        raw, present=np.ones(len(raw), np.bool_), languages=languages, blocks=[BLOCK], constants=DEFAULT
    )
    query = rng.standard_normal(D).astype(np.float32)
    mean = raw.astype(np.float64).sum(axis=0) / (len(raw) + DEFAULT.prior_unknown)
    centred = raw.astype(np.float64) - mean
    asked = query - mean
    right = (centred / np.linalg.norm(centred, axis=1)[:, None]) @ (asked / np.linalg.norm(asked))
    assert vectors.nearness(query, "en")[0] == pytest.approx(right, abs=1e-4)


def test_a_text_that_is_its_mean_is_near_nothing() -> None:
    raw = np.array([[0.6, 0.8]], np.float16)
    vectors = Vectors.of(
        raw,
        present=np.array([True]),
        languages=["en"],
        blocks=[VectorBlock("unheard-of", 2)],
        constants=Constants(prior_unknown=0),
    )
    assert vectors.nearness(np.array([1, 0], np.float32), "en")[0].tolist() == [0]
