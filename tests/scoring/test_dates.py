"""Dates that a query names: what is read as one, and which turns were said near it."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.scoring.constants import DEFAULT
from memories.scoring.dates import MOST_DATES, Date, closeness, named
from memories.scoring.ranking import Query, score
from tests.each import each
from tests.scoring.stores import units


def seconds(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> float:
    return datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp()


@each(
    ("text", "date"),
    [
        ("What did I buy on 1 February, 2023?", Date(2023, 2, 1)),
        ("the 3rd of march? No: the 3rd of March 2024", Date(2024, 3, 3)),
        ("who came on October 13, 2023", Date(2023, 10, 13)),
        ("Who came on Aug 15th?", Date(None, 8, 15)),
        ("on 2023-06-03 at noon", Date(2023, 6, 3)),
        ("on 2023/6/3", Date(2023, 6, 3)),
        ("What did we paint in July 2022?", Date(2022, 7, None)),
        ("Where was I in may, sorry, in May?", Date(None, 5, None)),
        ("what happened last june", Date(None, 6, None)),
        ("Which state did I visit in summer 2021?", Date(2021, None, None)),
        ("我2023年7月3日做了什么？", Date(2023, 7, 3)),
        ("二〇年的事不算，2023年十二月呢", Date(2023, 12, None)),
        ("五月三十一号我去了哪里", Date(None, 5, 31)),
        ("我十月去了哪里", Date(None, 10, None)),
        ("2022 年发生了什么", Date(2022, None, None)),
        ("on 29 February", Date(None, 2, 29)),
        ("五月上旬我读了什么书", Date(None, 5, 1, 10)),
        ("2024年十一月份中旬的聚会", Date(2024, 11, 11, 20)),
        ("8月底谁来过", Date(None, 8, 21, 31)),
        ("九月初搬的家", Date(None, 9, 1, 10)),
        ("五月初五包粽子", Date(None, 5, None)),
        ("Whom did I meet in early July?", Date(None, 7, 1, 10)),
        ("at the end of February 2023", Date(2023, 2, 21, 31)),
        ("mid-August plans", Date(None, 8, 11, 20)),
        ("the middle of May", Date(None, 5, 11, 20)),
        ("from the 3rd to the 5th of May", Date(None, 5, 3, 5)),
        ("between 12 and 14 June 2024", Date(2024, 6, 12, 14)),
        ("June 12\u201314, 2024", Date(2024, 6, 12, 14)),
        ("从5月12日到31日", Date(None, 5, 12, 31)),
        ("2024年3月1-3号去了哪里", Date(2024, 3, 1, 3)),
        ("Where was I between August 11 and August 15 2023?", Date(2023, 8, 11, 15, 8)),
        ("从5月12日到6月3日，哪些天跑了步", Date(None, 5, 12, 3, 6)),
        ("from 2023-12-20 until 2024-01-05", Date(2023, 12, 20, 5, 1)),
        ("三月至五月读的书", Date(None, 3, 1, 31, 5)),
    ],
)
def test_a_date_is_read(text: str, date: Date) -> None:
    assert named(text) == (date,)


@each(
    "text",
    [
        "",
        "I may go, and march on",
        "Which of these 3 may I eat?",
        "a present from June for April",
        "on 31 April, on 2023-02-30, on 0 June",
        "version 2023.1, in 12 months, 2023 people",
        "我住了三个月，等了2年",
        " and ".join(f"{day} June" for day in range(1, MOST_DATES + 2)),
    ],
)
def test_what_is_no_date(text: str) -> None:
    assert named(text) == ()


def test_several_dates() -> None:
    assert named("Was I there on August 11 or on 15 August 2023?") == (Date(2023, 8, 15), Date(None, 8, 11))
    # Two that name no time between them are two.
    assert set(named("5月12日到北京，6月3日回来")) == {Date(None, 5, 12), Date(None, 6, 3)}
    assert set(named("from 3 May 2020 to 4 June 2023")) == {Date(2020, 5, 3), Date(2023, 6, 4)}
    assert named("5月12日到3日") == (Date(None, 5, 12),)


@given(st.text(alphabet="0123456789 -/.年月日十一二三MayJunedecof,in", max_size=60))
def test_any_text_is_read(text: str) -> None:
    assert len(closeness(np.array([0.0, 1.7e9]), named(text), before=1, after=7)) == 2


@each(
    ("said", "near"),
    [
        ((2023, 6, 3), 1),
        ((2023, 6, 3, 23, 59), 1),
        ((2023, 6, 2, 12), 0.5),
        ((2023, 6, 2), 0),
        ((2023, 6, 7, 12), 0.5),
        ((2023, 6, 11), 0),
        ((2022, 6, 3), 0),
    ],
)
def test_near_a_day(said: tuple[int, ...], near: float) -> None:
    found = closeness(np.array([seconds(*said)]), [Date(2023, 6, 3)], before=1, after=7)
    assert found == pytest.approx([near], abs=1e-3)


def test_the_end_of_a_month_is_that_of_its_calendar() -> None:
    times = np.array([seconds(2023, 2, 20, 12), seconds(2023, 2, 21), seconds(2023, 2, 28, 23), seconds(2023, 3, 1, 1)])
    found = closeness(times, [Date(2023, 2, 21, 31)], before=1, after=1)
    assert found == pytest.approx([0.5, 1, 1, 23 / 24], abs=1e-3)


def test_between_two_dates() -> None:
    times = np.array([seconds(2023, 12, 19, 12), seconds(2023, 12, 31), seconds(2024, 1, 5, 23), seconds(2024, 3, 1)])
    for year in (2023, None):
        found = closeness(times, [Date(year, 12, 20, 5, 1)], before=1, after=7)
        assert found == pytest.approx([0.5, 1, 1, 0], abs=1e-3)


def test_without_a_year_it_is_that_of_every_year() -> None:
    times = np.array([seconds(2021, 12, 31), seconds(2022, 1, 3), seconds(2022, 12, 5), seconds(2023, 11, 1)])
    assert closeness(times, [Date(None, 12, None)], before=1, after=7) == pytest.approx([1, 5 / 7, 1, 0], abs=1e-3)
    assert closeness(times, [Date(None, 2, 29)], before=1, after=7).tolist() == [0, 0, 0, 0]


def test_of_several_dates_the_nearest_counts() -> None:
    times = np.array([seconds(2023, 7, 4), seconds(2023, 8, 12, 12), seconds(2024, 1, 1, 12)])
    dates = [Date(2023, 8, 14), Date(2023, 7, 3), Date(2023, None, None)]
    assert closeness(times, dates, before=1, after=1) == pytest.approx([1, 1, 0.5], abs=1e-3)
    assert closeness(times, dates[:2], before=3, after=1) == pytest.approx([1, 0.5, 0], abs=1e-3)
    assert closeness(np.zeros(0), [Date(None, 7, 3), *dates], before=1, after=1).tolist() == []


def test_a_month_and_a_year_last_until_they_end() -> None:
    times = np.array([seconds(2024, 2, 1), seconds(2024, 2, 29, 23), seconds(2024, 12, 31, 23), seconds(2026, 1, 1)])
    assert closeness(times, [Date(2024, 2, None)], before=1, after=7).tolist() == [1, 1, 0, 0]
    assert closeness(times, [Date(2024, None, None)], before=1, after=7).tolist() == [1, 1, 1, 0]


def test_a_turn_of_the_date_is_worth_more() -> None:
    texts, times = ["tea", "tea", "tea"], [seconds(2023, 5, 1), seconds(2023, 6, 3), seconds(2023, 7, 1)]
    dated, plain = Query.of("tea on 3 June 2023"), Query.of("tea")
    store = units(texts, [0, 1, 2], times=times)
    found = score(store, [dated])
    assert found.context == pytest.approx([0, DEFAULT.day_of_turn, 0], abs=1e-6)
    assert found.total == pytest.approx(found.vector + found.lexical + found.context)
    assert score(store, [plain]).context.tolist() == [0, 0, 0]
    month = score(store, [Query.of("tea in June 2023")]).context
    assert month == pytest.approx([0, DEFAULT.date_of_turn, DEFAULT.date_of_turn], abs=1e-6)
    assert score(units(texts, [0, 1, 2]), [dated]).context.tolist() == [0, 0, 0]
