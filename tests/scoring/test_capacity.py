"""What a fact is worth keeping: by hand, and that it rises with each of its parts."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.scoring.weighting import retention_score
from tests.each import each
from tests.factories import NOW

BY_HAND = [
    # confidence, days since last used, mentions, worth
    (1.0, 0, 31, 1.0),
    (1.0, 0, 1_000, 1.0),
    (0.0, 0, 0, 0.25),
    (0.8, 90, 1, 0.52 + 0.125 + 0.02),
    (0.8, 180, 3, 0.52 + 0.0625 + 0.04),
    (0.5, -10, 7, 0.325 + 0.25 + 0.06),
]


@each(("confidence", "days", "mentions", "expected"), BY_HAND)
def test_by_hand(confidence: float, days: int, mentions: int, expected: float) -> None:
    last = NOW - timedelta(days=days)
    assert retention_score(confidence=confidence, last_used=last, mentions=mentions, now=NOW) == pytest.approx(expected)


@given(st.floats(0, 1), st.integers(0, 10**6), st.floats(0, 10_000))
def test_stays_a_share_and_rises_with_each_part(confidence: float, mentions: int, days: float) -> None:
    last = NOW - timedelta(days=days)
    score = retention_score(confidence=confidence, last_used=last, mentions=mentions, now=NOW)
    assert 0 <= score <= 1
    assert score <= retention_score(confidence=1.0, last_used=last, mentions=mentions, now=NOW)
    assert score <= retention_score(confidence=confidence, last_used=last, mentions=mentions + 1, now=NOW)
    assert score <= retention_score(confidence=confidence, last_used=NOW, mentions=mentions, now=NOW)
