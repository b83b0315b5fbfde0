"""The whole score: its parts by hand, its order, and what can never happen for any text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.scoring.constants import DEFAULT, Constants
from memories.scoring.ranking import SAMPLE, Query, Scores, best_first, highest, query_texts, score, sessions
from tests.each import each
from tests.scoring.stores import PLAIN, floats, units

UNCENTRED = Constants(prior_unknown=1e12)
words = st.lists(st.sampled_from(["tea", "kettle", "mug", "milk", "coffee", "sugar"]), max_size=6).map(" ".join)


def asked(text: str, vector: list[float] | None = None) -> list[Query]:
    return [Query.of(text, None if vector is None else floats(vector))]


def test_alone_it_is_nearness_and_twice_the_squared_coverage() -> None:
    store = units(["tea", "milk"], vectors=[[0.6, 0.8], [0, 1]], alone=True, constants=UNCENTRED)
    found = score(store, asked("tea", [1, 0]))
    covered = 2.2 / (1 + 1.2 * (0.5 + 0.5 / 20))
    assert found.vector == pytest.approx([0.6, 0], abs=1e-6)
    assert found.lexical == pytest.approx([2 * covered**2, 0], rel=1e-5)
    assert found.context.tolist() == [0, 0]
    assert found.total == pytest.approx(found.vector + found.lexical, rel=1e-6)


def test_a_neighbour_lends_a_quarter_of_what_it_is_worth() -> None:
    vectors = [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [-1.0, 0.0], [0.0, 1.0]]
    store = units(["a"] * 5, [0, 0, 0, 1, 1], vectors=vectors, constants=UNCENTRED)
    assert score(store, asked("", [1, 0])).context == pytest.approx([0, 0.25, 0, 0, 0], abs=1e-6)


def test_what_is_told_is_compared_with_each_turn_alone() -> None:
    texts = ["ladder neighbour weekend", "tea", "ladder", "neighbour"]
    store = units(texts, [0, 0, 0, 1], vectors=[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.6, 0.8]], constants=UNCENTRED)
    told = score(store, asked("I gave the neighbour my ladder for the weekend.", [1, 0]))
    alone = score(store, asked("Who gave the neighbour my ladder for the weekend?", [1, 0]))
    assert told.context.tolist() == [0, 0, 0, 0]
    assert alone.context.max() > 0
    assert told.total == pytest.approx(alone.total - alone.context, abs=1e-6)


def test_the_parts_add_up() -> None:
    store = units(["tea kettle", "mug", "tea"], [0, 0, 1], vectors=[[1, 0], [0.6, 0.8], [0, 1]])
    found = score(store, asked("tea mug", [0.8, 0.6]))
    assert found.total == pytest.approx(found.vector + found.lexical + found.context, rel=1e-6)
    assert all(part.dtype == np.float32 for part in found)


def test_of_several_queries_the_best_counts_for_each_unit() -> None:
    store = units(["tea", "milk", "mug"], [0, 1, 2])
    both = score(store, [*asked("tea"), *asked("milk")])
    one, other = score(store, asked("tea")), score(store, asked("milk"))
    assert both.total.tolist() == np.maximum(one.total, other.total).tolist()
    assert both.lexical.tolist() == [one.lexical[0], other.lexical[1], 0]


def test_a_unit_without_a_vector_is_still_found_by_its_words() -> None:
    vectors = [[1, 0], [0, 1], [0, 0]]
    store = units(["x", "y", "tea"], [0, 1, 2], vectors=vectors, present=[True, True, False], constants=UNCENTRED)
    found = score(store, asked("tea", [1, 0]))
    assert found.vector == pytest.approx([1, 0, 0], abs=1e-6)
    assert best_first(found.total, 1).tolist() == [2]


def test_without_any_vector_words_alone_decide() -> None:
    for store, query in (
        (units(["tea", "milk"]), asked("milk", [1, 0])),
        (units(["tea", "milk"], vectors=[[1, 0], [0, 1]]), asked("milk")),
    ):
        found = score(store, query)
        assert not found.vector.any()
        assert best_first(found.total, 2).tolist() == [1, 0]


def test_nothing_is_asked_for() -> None:
    with pytest.raises(ValueError, match="Nothing"):
        score(units(["tea"]), [])


def test_an_empty_store() -> None:
    empty = units([])
    assert score(empty, asked("tea", [1, 0])).total.shape == (0,)
    assert [len(one) for one in sessions(np.zeros(0, np.float32), empty.layout.session, DEFAULT)] == [0, 0]


@each(
    ("total", "limit", "expected"),
    [
        ([1, 3, 2], 3, [1, 2, 0]),
        ([1, 1, 1, 1], 2, [0, 1]),
        ([0, 2, 1, 2, 1], 3, [1, 3, 2]),
        ([1, 2], 0, []),
        ([1, 2], 9, [1, 0]),
        ([], 5, []),
    ],
)
def test_equals_stand_in_their_own_order(total: list[float], limit: int, expected: list[int]) -> None:
    assert best_first(floats(total), limit).tolist() == expected


def test_a_session_is_its_best_turn_and_a_tenth_of_each_of_the_next_three() -> None:
    store = units(["a"] * 11, [0, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3])
    lowest = -np.inf
    found = sessions(floats([4, 1, 2, 3, 5, 5, 1, 2, lowest, -1, 1]), store.layout.session, DEFAULT)
    assert found.best.tolist() == [0, 2, 4, 10]
    # The fifth adds nothing, and neither does one below zero or left out by a filter.
    assert found.others == pytest.approx([0, 0.1, 0.1 * (5 + 3 + 2), 0], rel=1e-5)


def test_a_short_query_is_one_text() -> None:
    assert query_texts(" Where do I live? And since when? ") == ["Where do I live? And since when?"]


def test_one_long_sentence_is_one_text() -> None:
    sentence = "where " * 80 + "do I live?"
    assert query_texts(sentence) == [sentence]


@each(
    ("told", "questions"),
    [
        ("I went to the market. " * 15, ["One?", "Where is Anna?", "Who came?", "What did I buy?"]),
        ("我昨天去了菜市场。" * 12, ["一？", "安娜在哪里？", "谁来了？", "我买了什么？"]),
    ],
)
def test_a_rambling_query_is_also_its_last_three_questions(told: str, questions: list[str]) -> None:
    rambling = told + " ".join(questions)
    assert query_texts(rambling) == [rambling, *questions[1:]]


@given(st.lists(st.tuples(words, st.integers(0, 2)), min_size=1, max_size=8), words)
def test_the_order_of_sessions_changes_no_score(said: list[tuple[str, int]], query: str) -> None:
    groups = [[text for text, session in said if session == one] for one in range(3)]
    order = [2, 0, 1]
    there = _totals(groups, query)
    moved = _totals([groups[one] for one in order], query)
    for place, one in enumerate(order):
        assert moved[place] == pytest.approx(there[one], rel=1e-4, abs=1e-5)


def _totals(groups: list[list[str]], query: str) -> list[list[float]]:
    texts = [text for group in groups for text in group]
    sessions = [place for place, group in enumerate(groups) for _ in group]
    found = iter(score(units(texts, sessions), asked(query)).total.tolist())
    return [[next(found) for _ in group] for group in groups]


@given(words, words, words)
def test_more_of_the_query_never_scores_less(query: str, text: str, other: str) -> None:
    # Of two turns of one length, the one that holds all of the query is not behind the one that holds none.
    holds = f"{query} filler" if query else "filler"
    lacks = " ".join(["unrelated"] * len(holds.split()))
    total = score(units([holds, lacks, other], alone=True), asked(query)).total
    assert total[0] >= total[1]


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_text_has_a_finite_score(text: str, query: str) -> None:
    _is_finite(score(units([text, "tea"], vectors=[[1, 0], [0, 1]]), asked(query, [1, 0])))


@each("text", ["", "\0", "\ud800", "x" * 50_000, "tea " * 12_500, "红茶" * 25_000])
def test_extreme_texts_have_a_finite_score(text: str) -> None:
    store = units([text, text, "tea"], vectors=[[1, 0], [0, 0], [0, 1]], blocks=PLAIN)
    queries = [query for one in query_texts(text) for query in asked(one, [0, 0])]
    _is_finite(score(store, queries))


def _is_finite(found: Scores) -> None:
    assert all(np.isfinite(part).all() for part in found)


def test_the_highest_values_and_all_that_equal_the_last_of_them() -> None:
    values = np.array([3.0, -np.inf, 1.0, 2.0, 2.0, 0.0])
    assert highest(values, 1).tolist() == [0]
    assert highest(values, 2).tolist() == [0, 3, 4]
    assert highest(values, 9).tolist() == [0, 2, 3, 4, 5]
    assert highest(np.full(3, -np.inf), 2).tolist() == []


@pytest.mark.parametrize("where", ["last", "first", "spread", "alone"])
def test_the_highest_of_very_many_are_exact(where: str) -> None:
    size, most = 8 * SAMPLE, 50
    values = np.arange(size, dtype=np.float64)
    if where == "first":
        values = values[::-1].copy()
    elif where == "spread":
        np.random.default_rng(3).shuffle(values)
    elif where == "alone":
        # No sample sees them.
        values[:] = -np.inf
        values[1 : 8 * most : 8] = np.arange(most)
    expected = np.sort(np.argsort(values)[-most:])
    assert highest(values, most).tolist() == expected.tolist()
