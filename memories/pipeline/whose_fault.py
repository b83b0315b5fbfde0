"""A failed call of an attempt: whether it was about what was asked, or the endpoint fails others too."""

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from memories.exceptions import ModelError
from memories.llm import client
from memories.pipeline import endpoint
from memories.pipeline.leases import Lease


@dataclass
class Calling:
    """An attempt that asks the model: its claim, and the HTTP calls that it has made."""

    claim: Lease
    begun_at: datetime
    calls: int = field(default=0, kw_only=True)
    # In this very attempt: once is enough.
    endpoint_asked: bool = field(default=False, kw_only=True)
    _begun: float = field(default_factory=time.monotonic, kw_only=True)

    def now(self) -> datetime:
        """The moment of the caller's clock, moved on by the time that has passed since."""
        return self.begun_at + timedelta(seconds=time.monotonic() - self._begun)

    def before_call(self) -> None:
        """Prolong the lease and count the call. Errors: LeaseLost, PersonRestricted."""
        raise NotImplementedError

    @property
    def calls_left(self) -> int:
        return self.claim.rules.max_model_calls - self.calls


def ask_first(attempt: Calling) -> None:
    """While the endpoint is down, find out without anybody's words whether it is back. Errors: ModelError."""
    if endpoint.is_down():
        attempt.endpoint_asked = True
        client.check(before_call=attempt.before_call)
        endpoint.answered()


def note(attempt: Calling, error: ModelError) -> bool:
    """True when the endpoint fails others too: then the failure does not count against the attempt's work."""
    if not error.endpoint_wide:
        endpoint.answered()
        return False
    down = endpoint.failed(attempt.claim.session.pk, retry_after=error.retry_after)
    if not down and _would_park(attempt, error):
        _ask_whose_fault(attempt)
    return down


def _would_park(attempt: Calling, error: ModelError) -> bool:
    return not error.retryable or attempt.claim.attempt >= attempt.claim.rules.max_attempts


def _ask_whose_fault(attempt: Calling) -> None:
    """Ask the endpoint something that has nothing to do with the work, if the attempt has a call left.

    Fails it at that too, the work goes on by itself once it answers again.
    """
    if attempt.endpoint_asked or attempt.calls_left <= 0:
        return
    try:
        client.check(before_call=attempt.before_call)
    except ModelError as error:
        endpoint.failed(attempt.claim.session.pk, retry_after=error.retry_after, surely=True)
    else:
        endpoint.answered()
