"""One attempt at a session's work: the lease that it holds and the model calls that it makes."""

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from memories import conf
from memories.models import Session
from memories.models.conversations.conversations import QueueRow
from memories.queue import spending
from memories.queue.leases import Lease
from memories.queue.retry_policy import RetryDecision

Row = TypeVar("Row", bound=QueueRow)


@dataclass(kw_only=True)
class SessionLease(Lease[Row]):
    """The right to work on one of a session's rows, until the lease is lost or the person's generation changes."""

    session: Session
    generation: int
    rules: conf.Rules
    # The model that its calls ask, as it was at the claim.
    config: conf.LLMConfig = field(default_factory=conf.llm)


@dataclass
class Attempt:
    """An attempt that calls the model: its claim, and how many HTTP calls it has made."""

    claim: SessionLease[Any]
    begun_at: datetime
    calls: int = field(default=0, kw_only=True)
    # An attempt probes the endpoint at most once.
    has_probed: bool = field(default=False, kw_only=True)
    _begun: float = field(default_factory=time.monotonic, kw_only=True)

    def now(self) -> datetime:
        """The time that the caller gave, moved on by what has passed since."""
        return self.begun_at + timedelta(seconds=time.monotonic() - self._begun)

    def before_call(self) -> None:
        """Renew the lease and count the call. Errors: LeaseLost, PersonRestricted."""
        raise NotImplementedError

    def release(self, retry: RetryDecision) -> None:
        """Postpone or park the work."""
        raise NotImplementedError

    def discard(self, failure: str) -> None:
        """Note that the lease was lost."""

    def spend(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Count what a call used, at once, for the tenant's daily caps."""
        spending.count(
            self.claim.session.tenant,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            prices=self.claim.config.prices,
            now=self.now(),
        )

    @property
    def calls_left(self) -> int:
        return self.claim.rules.max_model_calls - self.calls
