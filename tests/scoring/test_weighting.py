"""Facts and episodes: relevance first, then what is sure, fresh and recent."""

import pytest

from memories.scoring.weighting import Weighed, Weights, weigh
from tests.each import each
from tests.scoring.stores import floats


def weighed(relevance: list[float], **parts: list[float]) -> Weighed:
    same = {name: [1.0] * len(relevance) for name in ("confidence", "decay", "age_days")} | parts
    return weigh(floats(relevance), Weights.of(zip(same["confidence"], same["decay"], same["age_days"], strict=True)))


def test_the_sum_by_hand() -> None:
    found = weighed([0.5], confidence=[0.9], decay=[0.4], age_days=[30])
    assert found.recency == pytest.approx([0.5])
    assert found.total == pytest.approx([0.5 + 0.08 * 0.9 + 0.05 * 0.4 + 0.03 * 0.5])


@each("part", ["confidence", "decay"])
def test_each_part_settles_what_is_equally_relevant(part: str) -> None:
    found = weighed([0.5, 0.5], **{part: [0.6, 0.9]})
    assert found.total[0] < found.total[1]


def test_the_newer_of_two_equals_comes_first() -> None:
    found = weighed([0.5, 0.5], age_days=[400, 1])
    assert found.total[0] < found.total[1]


def test_a_clear_difference_in_relevance_is_never_overturned() -> None:
    found = weighed([0.7, 0.5], confidence=[0, 1], decay=[0, 1], age_days=[10_000, 0])
    assert found.total[0] > found.total[1]


def test_parts_out_of_bounds_count_as_the_nearest_bound() -> None:
    found = weighed([0, 0], confidence=[7, -1], decay=[7, -1], age_days=[-5, 1e9])
    assert found.confidence.tolist() == found.decay.tolist() == found.recency.tolist() == [1, 0]
