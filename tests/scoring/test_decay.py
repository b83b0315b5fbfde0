"""Decay: the table of rules.md 7.1, and what must hold for every value."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories import conf
from memories.models import Category
from memories.scoring.decay import DecayInput, decay_score, forget_at, half_life
from tests.each import each

LAST = datetime(2026, 1, 1, tzinfo=UTC)
HUB = conf.hub_rules()
BELOW = HUB.forget_below
importances = st.floats(0, 1)
mention_counts = st.integers(0, 2**31 - 1)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2099, 12, 31), timezones=st.just(UTC))


@dataclass(frozen=True)
class Numbers:
    half_life_days: float = 90.0
    half_lives: dict[str, float | None] = field(default_factory=dict)
    grace_days: float = 30.0


numbers = st.builds(
    Numbers,
    half_life_days=st.floats(1, 3650),
    half_lives=st.dictionaries(st.sampled_from(Category.values), st.none() | st.floats(1, 3650)),
    grace_days=st.floats(0, 365),
)
memories = st.builds(
    DecayInput, importances, moments, mention_counts, st.sampled_from([*Category.values, "episode"]), st.none()
)


def score(importance: float, days: float, mentions: int = 1) -> float:
    return decay_score(DecayInput(importance, LAST, mentions, "knowledge"), HUB, now=LAST + timedelta(days=days))


def forgotten(importance: float, mentions: int = 1, category: str = "knowledge") -> datetime | None:
    return forget_at(DecayInput(importance, LAST, mentions, category), HUB, below=BELOW)


@each(
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
        # Said in the future: as if now.
        (0.8, -1, 1, 0.8),
        (0.8, -40_000, 1, 0.8),
    ],
)
def test_decay_score_follows_the_formula(importance: float, days: float, mentions: int, expected: float) -> None:
    assert score(importance, days, mentions) == pytest.approx(expected)


@each(("mentions", "days"), [(-1, 90), (0, 90), (1, 90), (2, 180), (4, 270), (8, 360)])
def test_half_life_grows_with_the_mentions(mentions: int, days: float) -> None:
    assert half_life(DecayInput(0.5, LAST, mentions, "knowledge"), HUB) == pytest.approx(days)


@each(
    ("given_numbers", "category", "left_after_60_days"),
    [
        (Numbers(), "goal", 2 ** (-30 / 90)),
        (Numbers(half_life_days=30), "goal", 0.5),
        (Numbers(grace_days=0), "goal", 2 ** (-60 / 90)),
        (Numbers(grace_days=60), "goal", 1.0),
        (Numbers(half_lives={"goal": 15}), "goal", 0.25),
        (Numbers(half_lives={"goal": 15}), "skill", 2 ** (-30 / 90)),
        (Numbers(half_lives={"goal": None}), "goal", 1.0),
        (Numbers(half_lives={}), "identity", 2 ** (-30 / 90)),
        (Numbers(half_lives={"episode": 15}), "episode", 0.25),
        (HUB, "identity", 1.0),
        (HUB, "correction", 2 ** (-30 / 90)),
        (HUB, "episode", 2 ** (-30 / 90)),
    ],
)
def test_a_tenants_numbers(given_numbers: Numbers, category: str, left_after_60_days: float) -> None:
    left = decay_score(DecayInput(1.0, LAST, 1, category), given_numbers, now=LAST + timedelta(days=60))
    assert left == pytest.approx(left_after_60_days)


@each(
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
    at = forgotten(importance, mentions)
    assert at is not None
    assert abs(at - (LAST + timedelta(days=days))) < timedelta(seconds=1)


@each("category", Category.values)
def test_identity_relationship_and_constraint_never_fade(category: str) -> None:
    never = category in {"identity", "relationship", "constraint"}
    assert (forgotten(0.5, category=category) is None) is never
    assert (half_life(DecayInput(0.5, LAST, 1, category), HUB) is None) is never


def test_below_a_threshold_of_nothing_nobody_falls() -> None:
    assert forget_at(DecayInput(0.5, LAST), HUB, below=0.0) is None
    assert forget_at(DecayInput(0.5, LAST), HUB, below=0.01) is not None


@given(memory=memories, given_numbers=numbers, days=st.floats(-400, 40_000), more=st.floats(0, 40_000))
def test_the_score_is_bounded_and_only_falls(
    memory: DecayInput, given_numbers: Numbers, days: float, more: float
) -> None:
    earlier, later = (
        decay_score(memory, given_numbers, now=memory.last_reinforced + timedelta(days=passed))
        for passed in (days, days + more)
    )
    assert 0 <= later <= earlier <= memory.importance


@given(memory=memories, given_numbers=numbers, days=st.floats(0, 40_000), more=st.integers(0, 10**6))
def test_more_mentions_never_score_lower(memory: DecayInput, given_numbers: Numbers, days: float, more: int) -> None:
    now = memory.last_reinforced + timedelta(days=days)
    oftener = memory._replace(mentions=memory.mentions + more)
    assert decay_score(memory, given_numbers, now=now) <= decay_score(oftener, given_numbers, now=now)


@given(memory=memories, given_numbers=numbers, below=st.floats(0.01, 1))
def test_forget_at_is_the_inverse_of_the_score(memory: DecayInput, given_numbers: Numbers, below: float) -> None:
    at = forget_at(memory, given_numbers, below=below)
    if at is None:
        far = datetime.max.replace(tzinfo=UTC)
        assert decay_score(memory, given_numbers, now=far) >= min(below, memory.importance)
        return
    assert at >= memory.last_reinforced + timedelta(days=given_numbers.grace_days) - timedelta(microseconds=1)
    left = decay_score(memory, given_numbers, now=at)
    assert left == pytest.approx(min(below, memory.importance), abs=1e-6)


@given(memory=memories, given_numbers=numbers, below=st.floats(0.01, 1), looks=st.lists(st.floats(0, 9_000)))
def test_how_often_a_pass_ran_changes_nothing(
    memory: DecayInput, given_numbers: Numbers, below: float, looks: list[float]
) -> None:
    """Whatever was stored in between: score and date come from the base values, which no pass touches."""
    due = forget_at(memory, given_numbers, below=below)
    for days in sorted(looks):
        now = memory.last_reinforced + timedelta(days=days)
        once = decay_score(memory, given_numbers, now=now)
        assert decay_score(memory, given_numbers, now=now) == once
        assert forget_at(memory, given_numbers, below=below) == due


@given(
    importance=importances,
    last=st.datetimes(datetime(9990, 1, 1), datetime.max, timezones=st.just(UTC)),
    mentions=mention_counts,
)
def test_a_date_beyond_the_calendar_is_never(importance: float, last: datetime, mentions: int) -> None:
    at = forget_at(DecayInput(importance, last, mentions), HUB, below=BELOW)
    assert at is None or at >= last


def test_what_was_said_long_ago_has_the_days_of_grace_from_its_arrival() -> None:
    arrived = LAST + timedelta(days=900)
    old = DecayInput(0.5, LAST, category="knowledge", arrived=arrived)
    assert forget_at(old, HUB, below=BELOW) == arrived + timedelta(days=30)
    # The control: what is still fresh when it arrives fades as if it had been there.
    fresh = old._replace(arrived=LAST + timedelta(days=1))
    assert forget_at(fresh, HUB, below=BELOW) == forgotten(0.5)
    # It counts by when it was said all the same.
    assert decay_score(old, HUB, now=arrived) < 0.01


def test_the_end_of_the_calendar_is_where_never_begins() -> None:
    end = datetime.max.replace(tzinfo=UTC)
    assert forget_at(DecayInput(0.2, end - timedelta(days=31)), HUB, below=BELOW) is not None
    assert forget_at(DecayInput(0.2, end - timedelta(days=29)), HUB, below=BELOW) is None
    assert forget_at(DecayInput(1.0, end), HUB, below=BELOW) is None
