"""The one retry policy: what becomes of a batch when its attempt failed."""

import random
from dataclasses import dataclass

from memories import conf
from memories.exceptions import ModelAnswerTruncated, ModelError, PersonRestricted

# Failure code of an attempt that an error of the hub itself ended.
INTERNAL_ERROR = "internal_error"
BACKOFF_BASE_SECONDS = 4.0
BACKOFF_FACTOR = 3.0
BACKOFF_LIMIT_SECONDS = 120.0


@dataclass(frozen=True)
class RetryDecision:
    """The code of the failure, and how to go on.

    `delay`: wait for at least so many seconds. `park`: do not try again. `counts`: the attempt counts, so back off, and
    park after the last one. `batch_limit`: how many fed turns the next batch may hold (None: as many as this one).
    """

    failure: str
    delay: float | None = None
    park: bool = False
    counts: bool = True
    batch_limit: int | None = None

    def parks(self, attempt: int, rules: conf.Rules) -> bool:
        """Whether the batch is parked after the given attempt (1, 2, …)."""
        return self.park or (self.counts and attempt >= rules.max_attempts)

    def wait(self, attempt: int) -> float:
        """Seconds until the next attempt, if there is one."""
        return max(self.delay or 0.0, backoff(attempt) if self.counts else 0.0)


INTERRUPTED = RetryDecision(INTERNAL_ERROR)
# Until the restriction is lifted.
RESTRICTED = RetryDecision(PersonRestricted.code, counts=False)


def retry_for(
    error: ModelError, *, endpoint_down: bool, fed_turns: int | None = None, batch_limit: int | None = None
) -> RetryDecision:
    """What follows from `error` for a batch of `fed_turns` (None: it cannot be split), fed under `batch_limit`.

    If the endpoint fails others, too, by an outage or a wrong key, the batch keeps its attempts and waits with them. A
    batch whose answer was too long is halved, down to a single turn. A failure that a retry cannot change parks it.
    """
    if endpoint_down:
        return RetryDecision(error.code, delay=error.retry_after, counts=False)
    if isinstance(error, ModelAnswerTruncated) and fed_turns is not None:
        half = fed_turns // 2
        smaller = half > 0 and (batch_limit is None or half < batch_limit)
        return RetryDecision(error.code, park=not smaller, counts=not smaller, batch_limit=half if smaller else None)
    return RetryDecision(error.code, delay=error.retry_after, park=not error.retryable)


def backoff(attempt: int) -> float:
    """Seconds to wait after the given attempt (1, 2, …): 4 · 3^(n−1), at most 120, give or take a quarter."""
    seconds = min(BACKOFF_LIMIT_SECONDS, BACKOFF_BASE_SECONDS * BACKOFF_FACTOR ** (attempt - 1))
    # The jitter keeps sessions that failed together from coming back together.
    return seconds * random.uniform(0.75, 1.25)  # noqa: S311
