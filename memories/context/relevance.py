"""What of the memories that were ranked for a query a context tells: those that have to do with it; pure.

Whether anything does is judged by `evidence`. How many turns do depends on the question: one that a single turn answers
needs few, one about many occasions many. Both cost little where little is related, and nothing where nothing is.
"""

import numpy as np
from numpy.typing import NDArray

RELEVANT, BUDGET = "relevant", "budget"
FILLS = (RELEVANT, BUDGET)

# A turn is told while it scores at least so much, and at least SHARE of the third best score, MORE for each turn before
# it: the longer the list, the more each further turn must say. Not of the best: that may be the question itself, asked
# before. Of LoCoMo's questions these lose the evidence of 1 in 100 beside all that fills 2,000 tokens.
FLOOR, SHARE, MORE, REFERENCE = 0.15, 0.12, 0.0034, 3
# Of somebody of whom no more than so many tokens are there, all is told: what has to do with what cannot be told yet.
LITTLE = 1_000
# Tokens of a fact's line, about.
FACT = 20


def related(scores: NDArray[np.float32]) -> int:
    """How many of these have to do with the query, of scores from the highest to the lowest."""
    if not len(scores):
        return 0
    reference = float(scores[min(REFERENCE, len(scores)) - 1])
    least = np.maximum(FLOOR, (SHARE + MORE * np.arange(len(scores))) * reference)
    below = scores < least
    return int(below.argmax()) if below.any() else len(scores)
