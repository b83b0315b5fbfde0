"""One budget for the answer to a request, however many operations it has."""

import pytest

from memories import budgets
from memories.exceptions import RequestTooCostly
from memories.text.injection import detection


def test_all_operations_take_from_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "MOST_ROWS", 10)
    with budgets.of_request():
        budgets.spend(rows=6)
        budgets.spend(rows=4)
        with pytest.raises(RequestTooCostly, match="10 rows"):
            budgets.spend(rows=1)
    # The next request has one of its own.
    with budgets.of_request():
        budgets.spend(rows=10)


def test_texts_count_and_rows_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "MOST_BYTES", 2 * budgets.ROW_BYTES + 100)
    with budgets.of_request():
        budgets.spend(rows=1, size=60)
        assert budgets.bytes_left() == budgets.ROW_BYTES + 40
        budgets.spend(rows=1, size=40)
        assert budgets.bytes_left() == 0
        with pytest.raises(RequestTooCostly, match="bytes"):
            budgets.spend(rows=0, size=1)


def test_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(budgets, "monotonic", lambda: now[0])
    with budgets.of_request():
        now[0] += budgets.MOST_SECONDS
        budgets.check_time()
        now[0] += 0.1
        with pytest.raises(RequestTooCostly, match="seconds"):
            budgets.check_time()


def test_outside_of_a_request_nothing_is_counted() -> None:
    budgets.spend(rows=10**9, size=10**12)
    budgets.check_time()
    assert budgets.bytes_left() is None


def test_each_text_that_is_judged_looks_at_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(budgets, "monotonic", lambda: now[0])
    with budgets.of_request():
        assert not detection.are_meant_for_model("Likes tea.")
        now[0] += budgets.MOST_SECONDS + 1
        with pytest.raises(RequestTooCostly):
            detection.are_meant_for_model("Likes tea.")
