"""The one retry policy: what becomes of a batch when the model failed it."""

from dataclasses import dataclass

from memories.exceptions import ModelAnswerTruncated, ModelError


@dataclass(frozen=True)
class Setback:
    """The code of the failure; seconds to wait at least; whether to park at once; whether the attempt counts (then
    the back-off holds as well, and the last one parks); how many fed turns the next batch may hold."""

    failure: str
    delay: float | None = None
    park: bool = False
    counts: bool = True
    batch_limit: int | None = None


def setback(error: ModelError, *, fed_turns: int, batch_limit: int | None, endpoint_down: bool) -> Setback:
    """What follows from `error` for a batch of `fed_turns`, fed under `batch_limit`.

    An endpoint that is down for everybody says nothing of the batch, be it an outage or a wrong key: the batch keeps
    its attempts and waits with the others (how that is found out: `endpoint`). One that was too long is halved, which
    ends at a single turn. What asking again cannot change is parked.
    """
    if endpoint_down:
        return Setback(error.code, delay=error.retry_after, counts=False, batch_limit=batch_limit)
    if isinstance(error, ModelAnswerTruncated):
        half = fed_turns // 2
        smaller = half > 0 and (batch_limit is None or half < batch_limit)
        return Setback(error.code, park=not smaller, counts=not smaller, batch_limit=half if smaller else batch_limit)
    return Setback(error.code, delay=error.retry_after, park=not error.retryable, batch_limit=batch_limit)


def whole_setback(error: ModelError, *, endpoint_down: bool) -> Setback:
    """The same for what cannot be made smaller: one that was too long is asked again as often as any other."""
    if isinstance(error, ModelAnswerTruncated) and not endpoint_down:
        return Setback(error.code)
    return setback(error, fed_turns=0, batch_limit=None, endpoint_down=endpoint_down)
