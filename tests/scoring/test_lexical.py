"""Coverage of a query by turn, window and session, beside sums done by hand."""

from math import log, log1p

import numpy as np
import pytest

from memories.scoring import terms
from memories.scoring.constants import DEFAULT
from memories.scoring.lexical import Coverage, Layout, Postings, coverage
from tests.scoring.stores import packed


def covered(texts: list[str], sessions: list[int], query: str, *, alone: bool = False) -> Coverage:
    layout = Layout.of(np.array(sessions, np.int32), alone=alone)
    return coverage(Postings.of(packed(texts)), layout, terms.count(query).ids, DEFAULT)


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


def test_a_long_query_in_pieces_is_the_same_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, query = ["tea kettle mug", "coffee mug", "milk"], "tea kettle mug coffee milk sugar"
    whole = covered(texts, [0, 0, 1], query)
    monkeypatch.setattr("memories.scoring.lexical.TERMS_AT_ONCE", 2)
    pieces = covered(texts, [0, 0, 1], query)
    for one, other in zip(
        (whole.turn, whole.window, whole.session), (pieces.turn, pieces.window, pieces.session), strict=True
    ):
        assert one == pytest.approx(other, rel=1e-5)


def test_units_that_were_not_counted_yet_hold_nothing() -> None:
    postings = Postings.of([b"", *packed(["tea", ""]), b""])
    assert postings.lengths.tolist() == [0, 1, 0, 0]
    assert postings.counts_of(terms.count("tea").ids).tolist() == [[0, 1, 0, 0]]


def test_terms_of_another_version_are_refused() -> None:
    with pytest.raises(ValueError, match="version"):
        Postings.of([*packed(["tea"]), b"\x63" + bytes(5)])


@pytest.mark.parametrize("size", [0, 1])
def test_the_smallest_stores(size: int) -> None:
    assert covered(["tea"] * size, [0] * size, "tea").turn.shape == (size,)
    assert not covered(["tea"] * size, [0] * size, "").turn.any()
