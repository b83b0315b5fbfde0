"""What becomes of a batch that the model failed: back-off, halving, parking."""

from memories import conf
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
from tests.each import each


def after(error: ModelError, *, fed: int = 8, limit: int | None = None, down: bool = False) -> RetryDecision:
    return retry_for(error, fed_turns=fed, batch_limit=limit, endpoint_down=down)


@each("error", [ModelUnavailable(), ModelAnswerInvalid()])
def test_retryable_backs_off_and_counts(error: ModelError) -> None:
    assert after(error) == RetryDecision(error.code)


def test_the_endpoints_own_wait_is_kept() -> None:
    assert after(ModelRateLimited(retry_after=40.0)).delay == 40.0


@each("error", [ModelRefused(), ModelMisconfigured()])
def test_what_asking_again_cannot_change_is_parked(error: ModelError) -> None:
    assert after(error) == RetryDecision(error.code, park=True)


def test_an_endpoint_that_is_down_costs_no_attempt_and_parks_nothing() -> None:
    assert after(ModelMisconfigured(retry_after=3.0), down=True) == RetryDecision(
        "model_misconfigured", delay=3.0, counts=False
    )


@each(("fed", "limit", "half"), [(9, None, 4), (4, 5, 2), (3, 2, 1), (2, None, 1), (1, None, None), (2, 1, None)])
def test_too_long_is_halved_until_nothing_is_left_to_halve(fed: int, limit: int | None, half: int | None) -> None:
    expected = RetryDecision("model_answer_truncated", park=True)
    if half:
        expected = RetryDecision("model_answer_truncated", counts=False, batch_limit=half)
    assert after(ModelAnswerTruncated(), fed=fed, limit=limit) == expected


@each(
    ("retry", "parks"),
    [
        (RetryDecision("model_timeout"), [False, False, True]),
        (RetryDecision("model_refused", park=True), [True, True, True]),
        (RetryDecision("model_timeout", counts=False), [False, False, False]),
    ],
)
def test_the_last_attempt_that_counts_parks(retry: RetryDecision, parks: list[bool]) -> None:
    rules = conf.Rules(debounce_seconds=30, max_wait_seconds=300, lease_seconds=120, max_attempts=3)
    assert [retry.parks(attempt, rules) for attempt in (1, 2, 3)] == parks
