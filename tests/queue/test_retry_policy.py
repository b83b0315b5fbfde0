"""What becomes of a batch that the model failed: back-off, halving, parking."""

import pytest

from memories.exceptions import (
    ModelAnswerInvalid,
    ModelAnswerTruncated,
    ModelError,
    ModelMisconfigured,
    ModelRateLimited,
    ModelRefused,
    ModelUnavailable,
)
from memories.queue.retry_policy import RetryDecision, retry_for


def after(error: ModelError, *, fed: int = 8, limit: int | None = None, down: bool = False) -> RetryDecision:
    return retry_for(error, fed_turns=fed, batch_limit=limit, endpoint_down=down)


@pytest.mark.parametrize("error", [ModelUnavailable(), ModelAnswerInvalid()])
def test_retryable_backs_off_and_counts(error: ModelError) -> None:
    assert after(error) == RetryDecision(error.code)


def test_the_endpoints_own_wait_is_kept() -> None:
    assert after(ModelRateLimited(retry_after=40.0)).delay == 40.0


@pytest.mark.parametrize("error", [ModelRefused(), ModelMisconfigured()])
def test_what_asking_again_cannot_change_is_parked(error: ModelError) -> None:
    assert after(error) == RetryDecision(error.code, park=True)


def test_an_endpoint_that_is_down_costs_no_attempt_and_parks_nothing() -> None:
    assert after(ModelMisconfigured(retry_after=3.0), down=True) == RetryDecision(
        "model_misconfigured", delay=3.0, counts=False
    )


@pytest.mark.parametrize(
    ("fed", "limit", "half"), [(9, None, 4), (4, 5, 2), (3, 2, 1), (2, None, 1), (1, None, None), (2, 1, None)]
)
def test_too_long_is_halved_until_nothing_is_left_to_halve(fed: int, limit: int | None, half: int | None) -> None:
    expected = RetryDecision("model_answer_truncated", park=True, batch_limit=limit)
    if half:
        expected = RetryDecision("model_answer_truncated", counts=False, batch_limit=half)
    assert after(ModelAnswerTruncated(), fed=fed, limit=limit) == expected


def test_a_limit_outlives_other_failures() -> None:
    assert after(ModelUnavailable(), limit=4).batch_limit == 4
    assert after(ModelUnavailable(), limit=4, down=True).batch_limit == 4
