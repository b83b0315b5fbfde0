"""The figures of the evaluation, on rankings done by hand."""

import pytest

from evals import metrics


def test_one_ranking() -> None:
    row = metrics.of_ranking(["a", "x", "b", *"123456", "c"], {"a", "b", "c", "d"})
    assert row["hit@1"] == 1
    assert row["R@5"] == 0.5
    assert row["R@10"] == 0.75
    assert row["recall_all@10"] == 0
    assert row["nDCG@10"] == pytest.approx((1 + 1 / 2 + 0.2890648) / (1 + 0.6309298 + 0.5 + 0.4306766))


def test_all_of_the_gold() -> None:
    row = metrics.of_ranking(["x", "a", "b"], {"a", "b"})
    assert (row["hit@1"], row["recall_all@1"], row["recall_all@5"]) == (0, 0, 1)


def test_categories_and_all() -> None:
    good, bad = metrics.of_ranking(["a"], {"a"}), metrics.of_ranking(["x"], {"a"})
    figures = metrics.by_category([("one", good), ("two", bad), ("two", good)])
    assert [(name, row["n"], row["hit@1"]) for name, row in figures.items()] == [
        ("all", 3, 0.667),
        ("one", 1, 1),
        ("two", 2, 0.5),
    ]
    assert "hit@1" in metrics.table(figures)
    assert metrics.mean([]) == {}
