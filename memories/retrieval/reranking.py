"""The best results in the order of a reranker, where one is configured and answers in time.

A reranker is foreign code: it may raise anything and never end. `deadlines.run` runs it in a thread and returns what it
raised, so nothing broad is caught here. Every failure becomes RerankFailed, and the results keep the hub's order.
"""

import logging
import math
from collections.abc import Sequence

from memories import conf
from memories.embedding import deadlines
from memories.exceptions import RerankFailed
from memories.llm import reranking
from memories.llm.reranking import Candidate, Reranker

logger = logging.getLogger(__name__)

# Enough to find what the hub ranked too low, few enough for one request.
CANDIDATES = 50
# The name of the reranker's score among the parts of a score.
PART = "rerank"
_pause = deadlines.Pause()


def candidates_for(limit: int) -> int:
    """How many results to find for the best `limit`: more with a reranker, which may move others up."""
    return max(limit, CANDIDATES) if conf.reranking().path else limit


def order(query: str, candidates: Sequence[Candidate]) -> list[tuple[int, dict[str, float]]]:
    """Positions of all candidates, given best first, in their new order, with the new part of each score.

    The first 50 are reranked. The part is empty for those that are not.
    """
    first = candidates[:CANDIDATES]
    scores = _scored(query, first) if first else None
    if scores is None:
        return [(place, {}) for place in range(len(candidates))]
    best = sorted(range(len(first)), key=lambda place: -scores[place])
    reranked = [(place, {PART: round(scores[place], 6)}) for place in best]
    return reranked + [(place, {}) for place in range(len(first), len(candidates))]


def _scored(query: str, candidates: Sequence[Candidate]) -> list[float] | None:
    """None without a reranker, during a pause after a failure, and when it fails."""
    reranker = reranking.configured()
    ticket = _pause.enter() if reranker else None
    if reranker is None or ticket is None:
        return None
    try:
        scores = _in_time(reranker, query, candidates)
    except RerankFailed as error:
        _pause.failed(ticket)
        logger.warning("Results stay in the hub's own order. %s", error.detail)
        return None
    _pause.answered(ticket)
    return scores


def _in_time(reranker: Reranker, query: str, candidates: Sequence[Candidate]) -> list[float]:
    seconds = conf.reranking().timeout
    try:
        # The thread makes the list, too: what a reranker returns is as foreign as the reranker.
        outcome = deadlines.run(lambda: [float(one) for one in reranker(query, candidates)], seconds=seconds)
    except TimeoutError:
        raise RerankFailed(f"The reranker took longer than {seconds:g} s.") from None
    error = outcome.exception()
    if isinstance(error, RerankFailed):
        raise error
    if error is not None:
        # Only its name: the message of a foreign error may hold personal data.
        raise RerankFailed(f"The reranker raised {type(error).__name__}.")
    scores = outcome.result()
    if len(scores) != len(candidates) or not all(map(math.isfinite, scores)):
        raise RerankFailed("The reranker did not give one finite score for each candidate.")
    return scores
