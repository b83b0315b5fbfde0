"""When a request is sent again. One loop for both clients: it says what to do next and is told what came of it."""

import random
import sys
from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import cast

from memoryhub_client._calls import PreparedRequest
from memoryhub_client.errors import (
    ConnectionFailedError,
    MemoryHubError,
    NoAnswerInTimeError,
    ProblemError,
    ServerError,
    problem,
)

# httpx2 is the maintained continuation of httpx, and left Python 3.10.
if sys.version_info >= (3, 11):
    import httpx2 as httpx
else:
    import httpx

__all__ = ["Came", "Retries", "RetryDelay", "httpx", "refusal", "steps", "unreachable"]

# Of 409: the first request with this key is still at work, or an operator merged the person at this moment.
PASSING = {"idempotency_key_busy", "merged"}
# 408: the request did not come whole in time. 502 and 504 are a proxy's.
TRANSIENT = {408, 429, 502, 503, 504}
FIRST_WAIT_SECONDS = 0.5


@dataclass(frozen=True)
class Retries:
    """How often a request is sent again, and how long it waits for that at most each time."""

    times: int = 3
    longest_wait: float = 30.0


@dataclass(frozen=True)
class Send:
    """Send the request and tell what came: the answer, or the error of the connection."""


@dataclass(frozen=True)
class RetryDelay:
    seconds: float


Came = httpx.Response | httpx.TransportError
# What comes back after a wait says nothing.
Steps = Generator[Send | RetryDelay, Came | None, bytes]


def steps(call: PreparedRequest, retries: Retries) -> Steps:
    """Ends with the body of the answer, or raises what the caller should know."""
    lost = False
    for attempt in range(retries.times + 1):
        outcome = cast("Came", (yield Send()))
        if isinstance(outcome, httpx.Response):
            error: MemoryHubError | None = refusal(outcome)
            if error is None:
                return outcome.content
            if lost and call.method == "DELETE" and outcome.status_code == 404:
                # An attempt whose answer was lost has deleted it.
                return b""
        else:
            error = unreachable(outcome)
            lost = lost or not _never_sent(outcome)
        wait = _wait(error, attempt)
        if attempt == retries.times or not _may_repeat(call, outcome, error) or wait > retries.longest_wait:
            error.may_be_done = _may_be_done(error, lost=lost)
            raise error
        yield RetryDelay(wait)
    raise AssertionError


def refusal(answer: httpx.Response) -> ProblemError | None:
    """What the hub refused, of an answer that was read."""
    if answer.is_success:
        return None
    return problem(answer.status_code, answer.content, retry_after=_retry_after(answer.headers.get("Retry-After")))


def unreachable(error: httpx.TransportError) -> ConnectionFailedError:
    """What the caller is told of a broken connection."""
    late = isinstance(error, httpx.TimeoutException)
    found = (NoAnswerInTimeError if late else ConnectionFailedError)(str(error) or type(error).__name__)
    found.__cause__ = error
    return found


def _never_sent(error: httpx.TransportError) -> bool:
    return isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)


def _may_repeat(call: PreparedRequest, outcome: Came, error: Exception) -> bool:
    if isinstance(error, ProblemError):
        # The hub did nothing. Of a proxy nobody knows.
        refused = error.status in TRANSIENT or (error.status == 409 and error.code in PASSING)
        return refused and (call.repeatable or error.status in {408, 429} or bool(error.code))
    return isinstance(outcome, httpx.TransportError) and (call.repeatable or _never_sent(outcome))


def _may_be_done(error: MemoryHubError, *, lost: bool) -> bool:
    """Whether an attempt may have been carried out. A refusal of the hub's holds for the attempts before it, too."""
    if isinstance(error, ProblemError) and error.code:
        return lost and (error.status in TRANSIENT or error.status >= 500)
    # Of a proxy nobody knows.
    return lost or isinstance(error, ServerError)


def _wait(error: Exception, attempt: int) -> float:
    """What the hub says and a little more, because others wait for the same moment; else twice as long each time."""
    asked = error.retry_after if isinstance(error, ProblemError) else None
    if asked is None:
        return FIRST_WAIT_SECONDS * float(2**attempt) * random.uniform(0.5, 1.0)  # noqa: S311  # no secret
    return asked + random.uniform(0.0, 0.5)  # noqa: S311  # no secret


def _retry_after(header: str | None) -> float | None:
    """Seconds from now; the header has seconds or a date."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        at = parsedate_to_datetime(header)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=timezone.utc)
    return max(0.0, (at - datetime.now(timezone.utc)).total_seconds())
