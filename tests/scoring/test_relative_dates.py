"""Dates relative to the day on which a query is asked: what is read as one, and what is near it."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.scoring.constants import DEFAULT
from memories.scoring.dates import Date, closeness, named
from memories.scoring.ranking import Query
from memories.scoring.relative_dates import Period
from tests.each import each

# A Wednesday.
ASKED = datetime(2026, 3, 11, 15, tzinfo=UTC)


def of(first: tuple[int, int, int], last: tuple[int, int, int] | None = None) -> Period:
    return Period(date(*first), date(*(last or first)))


YESTERDAY = of((2026, 3, 10))
LAST_WEEK = of((2026, 3, 2), (2026, 3, 8))
FEBRUARY = of((2026, 2, 1), (2026, 2, 28))
YEAR_2025 = of((2025, 1, 1), (2025, 12, 31))


@each(
    ("text", "period"),
    [
        ("What did I eat yesterday?", YESTERDAY),
        ("who called last night", YESTERDAY),
        ("Where was I the day before yesterday?", of((2026, 3, 9))),
        ("What did we paint three days ago?", of((2026, 3, 8))),
        ("What did I tell you last week?", LAST_WEEK),
        ("last week's plans", LAST_WEEK),
        ("a week ago", LAST_WEEK),
        ("a couple of weeks ago", of((2026, 2, 23), (2026, 3, 1))),
        ("Whom did I meet last weekend?", of((2026, 3, 7), (2026, 3, 8))),
        ("last Monday", of((2026, 3, 9))),
        ("last wednesday", of((2026, 3, 4))),
        ("What did I read last month?", FEBRUARY),
        ("Two months ago I moved, where to?", of((2026, 1, 1), (2026, 1, 31))),
        ("3 months ago", of((2025, 12, 1), (2025, 12, 31))),
        ("where did we go last year", YEAR_2025),
        ("10 years ago", of((2016, 1, 1), (2016, 12, 31))),
        ("in the last week", of((2026, 3, 4), (2026, 3, 11))),
        ("over the past three months", of((2025, 12, 11), (2026, 3, 11))),
        ("the last 10 days", of((2026, 3, 1), (2026, 3, 11))),
        ("What happened last March?", of((2025, 3, 1), (2025, 3, 31))),
        ("what happened last february", FEBRUARY),
        ("what about this March", of((2026, 3, 1), (2026, 3, 31))),
        ("我昨天吃了什么？", YESTERDAY),
        ("昨晚谁打来的", YESTERDAY),
        ("前天我在哪里", of((2026, 3, 9))),
        ("大前天呢", of((2026, 3, 8))),
        ("三天前我画了什么", of((2026, 3, 8))),
        ("我上周说了什么", LAST_WEEK),
        ("一个星期前", LAST_WEEK),
        ("上上个星期", of((2026, 2, 23), (2026, 3, 1))),
        ("上周五我见了谁", of((2026, 3, 6))),
        ("上星期天", of((2026, 3, 8))),
        ("上周末", of((2026, 3, 7), (2026, 3, 8))),
        ("上个月我读了什么书", FEBRUARY),
        ("三个月前我住在哪里", of((2025, 12, 1), (2025, 12, 31))),
        ("半年前", of((2025, 9, 1), (2025, 9, 30))),
        ("去年我们去了哪里", YEAR_2025),
        ("前年", of((2024, 1, 1), (2024, 12, 31))),
        ("2年以前", of((2024, 1, 1), (2024, 12, 31))),
        ("最近三个月我做了什么", of((2025, 12, 11), (2026, 3, 11))),
        ("过去10天", of((2026, 3, 1), (2026, 3, 11))),
        ("上个月初我搬了家", of((2026, 2, 1), (2026, 2, 10))),
        ("上月底", of((2026, 2, 21), (2026, 2, 28))),
        ("本月上旬", of((2026, 3, 1), (2026, 3, 10))),
        ("去年年底我在做什么", of((2025, 10, 1), (2025, 12, 31))),
        ("去年下半年", of((2025, 7, 1), (2025, 12, 31))),
        ("今年年初", of((2026, 1, 1), (2026, 3, 31))),
        ("at the end of last month", of((2026, 2, 21), (2026, 2, 28))),
        ("early last year", of((2025, 1, 1), (2025, 3, 31))),
        ("late last week", LAST_WEEK),
    ],
)
def test_a_relative_date_is_read(text: str, period: Period) -> None:
    assert named(text, ASKED) == (period,)
    # Without the day on which it is asked it says nothing; a month may be that of every year.
    assert not any(isinstance(date, Period) for date in named(text))


@each(
    ("text", "dates"),
    [
        ("What did I do on 3 May last year?", (Date(2025, 5, 3),)),
        ("in June last year", (Date(2025, 6, None),)),
        ("去年七月三日", (Date(2025, 7, 3),)),
        ("今年二月我做了什么", (Date(2026, 2, None),)),
        ("yesterday or on 3 June 2024", (Date(2024, 6, 3), YESTERDAY)),
        # A year of its own stays.
        ("in June 2024 and last year", (Date(2024, 6, None), YEAR_2025)),
        ("last March 3rd", (Date(None, 3, 3),)),
        # From the day that a query opens with.
        ("On 8 May 2023, what did Ann do yesterday?", (Date(2023, 5, 8), of((2023, 5, 7)))),
        ("[2023-05-08 10:30] What did Ann do last Friday?", (Date(2023, 5, 8), of((2023, 5, 5)))),
        ("Today is May 8th, 2023. What did I do last month?", (Date(2023, 5, 8), of((2023, 4, 1), (2023, 4, 30)))),
        ("今天是2023年5月8日，昨天我做了什么？", (Date(2023, 5, 8), of((2023, 5, 7)))),
        # A month is no day, one beyond the calendar neither, and one beside another is not said to be today.
        ("In May 2023, what did I do yesterday?", (Date(2023, 5, None), YESTERDAY)),
        ("On 31 June 2023, what did I do yesterday?", (YESTERDAY,)),
        ("On 8 May 2023 or yesterday?", (Date(2023, 5, 8), YESTERDAY)),
    ],
)
def test_beside_other_dates(text: str, dates: tuple[Date | Period, ...]) -> None:
    assert named(text, ASKED) == dates


@each(
    "text",
    [
        "What is my last name?",
        "When did I last see Anna?",
        "How long did it last? May I know?",
        "the last time, at the last minute, at last",
        "my last year of school",
        "the last day of the trip",
        "What may I eat, and where do we march this time?",
        "it was this may or that",
        "what do I need today, this week and tomorrow?",
        "walk past three houses, half past ten",
        "my past jobs",
        "Chicago months",
        "half a year ago",
        "马上周末了",
        "晚上月亮很圆",
        "我以前天天跑步",
        "过去年轻的时候",
        "以前年轻人喜欢什么",
        "我上周杰伦的课",
        "住了三个月，等了两年",
        "今天我该吃什么",
        "三年级的老师是谁",
        "",
    ],
)
def test_what_is_no_relative_date(text: str) -> None:
    assert named(text, ASKED) == ()


@each(
    ("asked", "first"),
    [
        (datetime(2026, 1, 5, tzinfo=UTC), date(2025, 12, 1)),
        (datetime(2026, 3, 31, tzinfo=UTC), date(2026, 2, 1)),
        (datetime(2024, 2, 29, tzinfo=UTC), date(2024, 1, 1)),
    ],
)
def test_the_month_before(asked: datetime, first: date) -> None:
    (found,) = named("last month", asked)
    assert isinstance(found, Period)
    assert found.first == first


def test_days_are_those_of_the_zone() -> None:
    auckland = ZoneInfo("Pacific/Auckland")
    # There it is the 12th already.
    asked = ASKED.astimezone(auckland)
    query = Query.of("yesterday", asked=asked)
    assert query.dates == (of((2026, 3, 11)),)
    morning = datetime(2026, 3, 11, 0, 30, tzinfo=auckland)
    times = np.array([moment.timestamp() for moment in (morning, morning - timedelta(days=2), asked)])
    assert query.date_scores(times)[:2] == pytest.approx([DEFAULT.date, 0])
    assert 0 < query.date_scores(times)[2] < DEFAULT.date


def test_what_was_date_scores_is_near() -> None:
    times = np.array([datetime(2026, 3, day, 12, tzinfo=UTC).timestamp() for day in (1, 2, 8, 10)])
    near = closeness(times, [LAST_WEEK], before=1, after=7)
    assert near == pytest.approx([0.5, 1, 1, 1 - 1.5 / 7])


_WORDS = [
    "last ",
    "past ",
    "ago",
    "999 ",
    "years ",
    "month",
    "week",
    "上",
    "个",
    "月",
    "周",
    "前",
    "年",
    "天",
    "三",
    "去",
    "the ",
]


@given(st.lists(st.sampled_from(_WORDS), max_size=12).map("".join), st.datetimes(timezones=st.just(UTC)))
def test_any_text_on_any_day_is_read(text: str, asked: datetime) -> None:
    assert len(closeness(np.array([0.0, 1.7e9]), named(text, asked), before=1, after=7)) == 2
