"""The best results in the order of a reranker, where one is configured and answers in time.

Its code is foreign: it may raise anything and never end. It runs in a thread of `patience.run`, whose outcome holds
what it raised, so nothing broad is caught here: whatever went wrong becomes RerankFailed, and the results stay as the
hub ranked them.
"""

import logging
import math
from collections.abc import Sequence

from memories import conf
from memories.exceptions import RerankFailed
from memories.llm import reranking
from memories.llm.reranking import Candidate, Reranker
from memories.pipeline import patience

logger = logging.getLogger(__name__)

# How many of the best it is shown: enough for what the hub ranked too low, few enough for a request.
CANDIDATES = 50
# The name of its score among the parts of a result's score.
PART = "rerank"
_pause = patience.Pause()
# A place among the candidates, and its score as a part; empty for one that was not scored anew.
Placed = tuple[int, dict[str, float]]


def reach(limit: int) -> int:
    """How many results are needed for the best `limit`: more, when others may come to stand among them."""
    return max(limit, CANDIDATES) if conf.reranking().path else limit


def order(query: str, candidates: Sequence[Candidate]) -> list[Placed]:
    """The places of all candidates, given best first, in their new order: the first 50 as they are scored anew."""
    first = candidates[:CANDIDATES]
    scores = _scored(query, first) if first else None
    if scores is None:
        return [(place, {}) for place in range(len(candidates))]
    best = sorted(range(len(first)), key=lambda place: -scores[place])
    placed: list[Placed] = [(place, {PART: round(scores[place], 6)}) for place in best]
    return placed + [(place, {}) for place in range(len(first), len(candidates))]


def _scored(query: str, candidates: Sequence[Candidate]) -> list[float] | None:
    """None without a reranker, while it is left alone, and when it fails."""
    reranker = reranking.configured()
    ticket = _pause.enter() if reranker else None
    if reranker is None or ticket is None:
        return None
    try:
        scores = _asked(reranker, query, candidates)
    except RerankFailed as error:
        _pause.failed(ticket)
        logger.warning("Results stay in the hub's own order. %s", error.detail)
        return None
    _pause.answered(ticket)
    return scores


def _asked(reranker: Reranker, query: str, candidates: Sequence[Candidate]) -> list[float]:
    seconds = conf.reranking().timeout
    try:
        # Made a list in the thread, too: what it returns may be as foreign as itself.
        outcome = patience.run(lambda: [float(one) for one in reranker(query, candidates)], seconds=seconds)
    except TimeoutError:
        raise RerankFailed(f"The reranker took longer than {seconds:g} s.") from None
    error = outcome.exception()
    if error is not None:
        raise _told(error)
    scores = outcome.result()
    if len(scores) != len(candidates) or not all(map(math.isfinite, scores)):
        raise RerankFailed("The reranker did not give one finite score for each candidate.")
    return scores


def _told(error: BaseException) -> RerankFailed:
    """Only the name of a foreign error: its message may hold what people said."""
    return error if isinstance(error, RerankFailed) else RerankFailed(f"The reranker raised {type(error).__name__}.")
