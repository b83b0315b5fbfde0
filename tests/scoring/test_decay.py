"""Decay: the table of rules.md 7.1, and what must hold for every value."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.models import Category
from memories.scoring.decay import FORGET_BELOW, NEVER_FADES, decay_score, forget_at, half_life

LAST = datetime(2026, 1, 1, tzinfo=UTC)
importances = st.floats(0, 1)
mention_counts = st.integers(0, 2**31 - 1)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2099, 12, 31), timezones=st.just(UTC))


def score(importance: float, days: float, mentions: int = 1) -> float:
    return decay_score(importance=importance, last_reinforced=LAST, mentions=mentions, now=LAST + timedelta(days=days))


def forgotten(importance: float, *, last: datetime = LAST, mentions: int = 1, **over: object) -> datetime | None:
    given = {"category": "knowledge", "protected": False, **over}
    return forget_at(importance=importance, last_reinforced=last, mentions=mentions, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("importance", "days", "mentions", "expected"),
    [
        (0.8, 0, 1, 0.8),
        (0.8, 30, 1, 0.8),
        (0.8, 75, 1, 0.8 * 2**-0.5),
        (0.8, 120, 1, 0.4),
        (0.8, 210, 1, 0.2),
        (0.8, 300, 1, 0.1),
        (0.8, 120, 2, 0.8 * 2**-0.5),
        (0.8, 210, 2, 0.4),
        (0.8, 390, 8, 0.4),
        (1.0, 120, 0, 0.5),
        (0.0, 500, 1, 0.0),
        (0.8, -1, 1, 0.8),
        (0.8, -40_000, 1, 0.8),
    ],
)
def test_decay_score_follows_the_formula(importance: float, days: float, mentions: int, expected: float) -> None:
    assert score(importance, days, mentions) == pytest.approx(expected)


@pytest.mark.parametrize(("mentions", "days"), [(-1, 90), (0, 90), (1, 90), (2, 180), (4, 270), (8, 360)])
def test_half_life_grows_with_the_mentions(mentions: int, days: float) -> None:
    assert half_life(mentions=mentions) == pytest.approx(days)


@pytest.mark.parametrize(
    ("importance", "mentions", "days"),
    [
        (0.8, 1, 30 + 180),
        (0.4, 1, 30 + 90),
        (0.4, 2, 30 + 180),
        (0.2, 1, 30),
        (0.1, 1, 30),
        (0.0, 1, 30),
    ],
)
def test_forget_at_is_where_the_score_passes_the_threshold(importance: float, mentions: int, days: float) -> None:
    at = forgotten(importance, mentions=mentions)
    assert at is not None
    assert abs(at - (LAST + timedelta(days=days))) < timedelta(seconds=1)


@pytest.mark.parametrize("category", Category.values)
def test_identity_relationship_and_constraint_never_fade(category: str) -> None:
    never = category in {"identity", "relationship", "constraint"}
    assert (category in NEVER_FADES) is never
    assert (forgotten(0.5, category=category) is None) is never


def test_what_is_protected_never_fades() -> None:
    assert forgotten(0.5, protected=True) is None
    assert forgotten(0.5, protected=False) is not None


@given(importance=importances, days=st.floats(-400, 40_000), more=st.floats(0, 40_000), mentions=mention_counts)
def test_the_score_is_bounded_and_only_falls(importance: float, days: float, more: float, mentions: int) -> None:
    earlier, later = score(importance, days, mentions), score(importance, days + more, mentions)
    assert 0 <= later <= earlier <= importance


@given(importance=importances, days=st.floats(0, 40_000), mentions=st.integers(1, 10**6), more=st.integers(0, 10**6))
def test_more_mentions_never_score_lower(importance: float, days: float, mentions: int, more: int) -> None:
    assert score(importance, days, mentions) <= score(importance, days, mentions + more)


@given(importance=st.floats(FORGET_BELOW, 1), last=moments, mentions=mention_counts)
def test_forget_at_is_the_inverse_of_the_score(importance: float, last: datetime, mentions: int) -> None:
    at = forgotten(importance, last=last, mentions=mentions)
    assert at is not None
    assert at >= last + timedelta(days=30)
    left = decay_score(importance=importance, last_reinforced=last, mentions=mentions, now=at)
    assert left == pytest.approx(FORGET_BELOW, abs=1e-9)


@given(
    importance=importances,
    last=st.datetimes(datetime(9990, 1, 1), datetime.max, timezones=st.just(UTC)),
    mentions=mention_counts,
)
def test_a_date_beyond_the_calendar_is_never(importance: float, last: datetime, mentions: int) -> None:
    at = forgotten(importance, last=last, mentions=mentions)
    assert at is None or at >= last


def test_the_end_of_the_calendar_is_where_never_begins() -> None:
    end = datetime.max.replace(tzinfo=UTC)
    assert forgotten(0.2, last=end - timedelta(days=31)) is not None
    assert forgotten(0.2, last=end - timedelta(days=29)) is None
    assert forgotten(1.0, last=end) is None
