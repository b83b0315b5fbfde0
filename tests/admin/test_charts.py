"""Charts as numbers, by tables of cases."""

from datetime import date, timedelta

from memories.admin.dashboard.charts import Series, short, stacked
from tests.each import each

DAYS = [date(2026, 11, 1) + timedelta(days=number) for number in range(7)]
SERIES = [Series("one", "One"), Series("two", "Two")]


def test_series_stand_on_one_another() -> None:
    chart = stacked(DAYS, SERIES, {DAYS[0]: (3, 2), DAYS[6]: (0, 10)})
    assert chart.totals == (3, 12)
    first, last = chart.columns[0].bars, chart.columns[6].bars
    assert [(bar.style, bar.y, bar.height) for bar in first] == [("one", "70", "30"), ("two", "50", "20")]
    # What is nothing has no bar.
    assert [(bar.style, bar.x, bar.y, bar.height) for bar in last] == [("two", "61.5", "0", "100")]
    assert chart.columns[3].bars == ()


def test_today_has_a_name() -> None:
    assert all(column.is_named for column in stacked(DAYS, SERIES, {}).columns)
    month = [DAYS[0] + timedelta(days=number) for number in range(30)]
    # Where there is little room every second is left out.
    columns = stacked(month, SERIES, {}).columns
    assert [at for at, column in enumerate(columns) if column.is_named] == list(range(4, 30, 5))
    named = [at for at, column in enumerate(columns) if column.is_named and not column.is_minor]
    assert named == [9, 19, 29]


@each(
    ("most", "ticks"),
    [
        (0, ["1", "0"]),
        (1, ["1", "0"]),
        (5, ["5", "4", "3", "2", "1", "0"]),
        (23, ["25", "20", "15", "10", "5", "0"]),
        (101, ["150", "100", "50", "0"]),
        (4_000, ["4k", "3k", "2k", "1k", "0"]),
        (2_400_000, ["2.5M", "2M", "1.5M", "1M", "500k", "0"]),
    ],
)
def test_lines_stand_at_round_numbers(most: int, ticks: list[str]) -> None:
    chart = stacked(DAYS, SERIES, {DAYS[0]: (most, 0)})
    assert [tick.label for tick in chart.ticks] == ticks
    assert (chart.ticks[0].y, chart.ticks[-1].y) == ("0", "100")


def test_nothing_is_said_to_be_nothing() -> None:
    assert stacked(DAYS, SERIES, {}).is_empty
    assert not stacked(DAYS, SERIES, {DAYS[0]: (1, 0)}).is_empty


@each(("value", "text"), [(0, "0"), (950, "950"), (1_200, "1.2k"), (40_000, "40k"), (3_000_000, "3M")])
def test_short(value: int, text: str) -> None:
    assert short(value) == text
