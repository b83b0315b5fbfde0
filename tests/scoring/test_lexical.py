"""Coverage of a query by turn, window and session, beside sums done by hand."""

from math import log, log1p

import numpy as np
import pytest

from memories.scoring import terms
from memories.scoring.constants import DEFAULT
from memories.scoring.lexical import Coverage, Layout, Postings, Words, coverage, shares, windows_at
from tests.each import each
from tests.scoring.stores import packed


def covered(texts: list[str], sessions: list[int], query: str, *, alone: bool = False) -> Coverage:
    layout = Layout.of(np.array(sessions, np.int32), alone=alone)
    words = Words.of([Postings.of(packed(texts))], layout, DEFAULT)
    return coverage(words, words.holding(terms.count(query).ids))


def idf(size: int, holding: int) -> float:
    return log1p((size - holding + 0.5) / (holding + 0.5))


def bm(count: float, length: float, slope: float, pivot: float) -> float:
    return count * 2.2 / (count + 1.2 * (1 - slope + slope * length / pivot))


def test_a_turn_covers_what_it_holds_and_unknown_words_count_against_it() -> None:
    found = covered(["tea kettle", "coffee"], [0, 1], "tea zeppelin").turn
    whole = idf(2, 1) + idf(2, 0)
    assert found == pytest.approx([idf(2, 1) * bm(1, 2, 0.5, 20) / whole, 0], rel=1e-5)


def test_repeats_saturate() -> None:
    once, often = covered(["tea kettle kettle kettle", "tea tea tea kettle"], [0, 1], "tea").turn
    assert once == pytest.approx(bm(1, 4, 0.5, 20), rel=1e-5)
    assert often == pytest.approx(bm(3, 4, 0.5, 20), rel=1e-5)
    assert once < often < 2.2


def test_a_window_reaches_two_turns_and_not_into_another_session() -> None:
    texts = ["tea", "one", "two", "three", "four", "five"]
    window = covered(texts, [0, 0, 0, 0, 1, 1], "tea").window
    assert window[:3] == pytest.approx([bm(1, size, 0.75, 100) for size in (3, 4, 4)], rel=1e-5)
    assert window[3:].tolist() == [0, 0, 0]
    assert covered(texts, [0, 0, 1, 1, 1, 1], "tea").window[2:].tolist() == [0, 0, 0, 0]


def test_a_session_is_covered_by_all_its_turns() -> None:
    texts = ["tea", "kettle", "three", "four", "coffee", "mug"]
    session = covered(texts, [0, 0, 0, 0, 1, 1], "tea kettle").session
    telling = log(2) / log(20)
    assert session[:4] == pytest.approx([bm(1, 4, 0.75, 300) * telling] * 4, rel=1e-5)
    assert session[4:].tolist() == [0, 0]


def test_the_only_session_tells_nothing() -> None:
    assert covered(["tea", "kettle"], [0, 0], "tea").session.tolist() == [0, 0]


def test_a_unit_alone_has_no_window_and_no_session() -> None:
    for found in (
        covered(["tea", "tea one", "x"], [0, 1, 2], "tea"),
        covered(["tea", "tea one", "x"], [0, 0, 0], "tea", alone=True),
    ):
        assert found.turn[0] > found.turn[1] > 0
        assert not found.window.any()
        assert not found.session.any()


@pytest.mark.parametrize("common", [0, 10**9])
def test_a_rare_word_is_counted_as_a_common_one_is(common: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["tea", "one", "tea tea", "three", "tea", "five", "tea", "tea", "eight", "nine", "ten", "tea"]
    sessions = [0, 0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 3]
    either = covered(texts, sessions, "tea ten")
    monkeypatch.setattr("memories.scoring.lexical.COMMON", common)
    assert covered(texts, sessions, "tea ten").window == pytest.approx(either.window, rel=1e-6)


@pytest.mark.parametrize("many", [0, 10**9])
def test_shares_are_the_coverage_however_many_hold_a_word(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["tea", "one", "tea tea", "three", "tea", "five", "tea", "tea", "eight tea", "nine", "ten", "tea"]
    layout = Layout.of(np.array([0, 0, 0, 0, 1, 1, 2, 3, 3, 3, 3, 3], np.int32), alone=False)
    words = Words.of([Postings.of(packed(texts))], layout, DEFAULT)
    held = list(words.holding(terms.count("tea ten zeppelin").ids))
    monkeypatch.setattr("memories.scoring.lexical.MANY", many)
    found, whole = shares(words, held), coverage(words, held)
    assert len(found.common) == (2 if many else 0)
    places = np.arange(len(texts))
    for one, other in (
        (found.turn, whole.turn),
        (found.session[layout.session], whole.session),
        (windows_at(words, found, places), whole.window),
    ):
        assert one == pytest.approx(other, rel=1e-5)
        assert other.any()
    assert windows_at(words, found, places[4:5]) == pytest.approx(whole.window[4:5], rel=1e-5)


def test_terms_in_two_parts_are_those_of_one() -> None:
    texts, sessions = ["tea kettle", "mug", "coffee", "tea mug"], np.array([0, 0, 1, 1], np.int32)
    query, layout = terms.count("tea mug zeppelin").ids, Layout.of(sessions, alone=False)
    words = Words.of([Postings.of(packed(texts))], layout, DEFAULT)
    whole = coverage(words, words.holding(query))
    # The first two units stand last in the parts.
    parts = [Postings.of(packed(texts[2:])), Postings.of(packed(texts[:2]))]
    words = Words.of(parts, layout, DEFAULT, np.array([2, 3, 0, 1]))
    parted = coverage(words, words.holding(query))
    for one, other in ((whole.turn, parted.turn), (whole.window, parted.window), (whole.session, parted.session)):
        assert one == pytest.approx(other, rel=1e-6)
        assert one.any()


def test_a_word_of_many_is_counted_whatever_the_order_of_those_who_hold_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.scoring.lexical.MANY", 10**9)
    texts, sessions = ["tea", "mug", "tea tea", "tea", "kettle", "tea"], np.array([0, 0, 0, 1, 1, 1], np.int32)
    query, layout = terms.count("tea").ids, Layout.of(sessions, alone=False)
    # The first three units stand last in the parts.
    parts = [Postings.of(packed(texts[3:])), Postings.of(packed(texts[:3]))]
    words = Words.of(parts, layout, DEFAULT, np.array([3, 4, 5, 0, 1, 2]))
    held = list(words.holding(query))
    assert held[0][0].tolist() == [0, 2, 3, 5]
    found = shares(words, held)
    assert windows_at(words, found, np.arange(6)) == pytest.approx(coverage(words, held).window, rel=1e-6)


def test_terms_that_were_joined_are_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memories.scoring.lexical.MANY", 10**9)
    texts, sessions = ["tea", "mug", "tea tea", "tea", "kettle", "tea"], np.array([0, 0, 0, 1, 1, 1], np.int32)
    query, layout = terms.count("tea").ids, Layout.of(sessions, alone=False)
    # Sessions that grew: the second part has the last unit of each, the first of nobody any more.
    parts = [Postings.of(packed([*texts[:2], *texts[3:5], "tea"])), Postings.of(packed([texts[2], texts[5]]))]
    joined = Postings.joined(parts, [np.array([0, 1, 3, 4, -1]), np.array([2, 5])], 6)
    whole, grown = (Words.of([one], layout, DEFAULT) for one in (Postings.of(packed(texts)), joined))
    assert [units.tolist() for units, _ in grown.holding(query)] == [[0, 2, 3, 5]]
    one, other = coverage(whole, whole.holding(query)), coverage(grown, grown.holding(query))
    found = shares(grown, list(grown.holding(query)))
    for right, told in (
        (one.turn, other.turn),
        (one.session, other.session),
        (one.window, other.window),
        (one.window, windows_at(grown, found, np.arange(6))),
    ):
        assert told == pytest.approx(right, rel=1e-6)
        assert right.any()


def test_units_that_were_not_counted_yet_hold_nothing() -> None:
    postings = Postings.of([b"", *packed(["tea", ""]), b""])
    assert postings.lengths.tolist() == [0, 1, 0, 0]
    [(units, counts)] = [held for held in postings.holding(terms.count("tea zeppelin").ids) if held]
    assert (units.tolist(), counts.tolist()) == ([1], [1])


def test_terms_of_another_version_are_refused() -> None:
    with pytest.raises(ValueError, match="version"):
        Postings.of([*packed(["tea"]), b"\x63" + bytes(5)])


@each("size", [0, 1])
def test_the_smallest_stores(size: int) -> None:
    assert covered(["tea"] * size, [0] * size, "tea").turn.shape == (size,)
    assert not covered(["tea"] * size, [0] * size, "").turn.any()
