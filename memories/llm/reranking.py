"""What a reranker is: a function that is told a question and the memories that were found, and scores them anew."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, cast

from django.utils.module_loading import import_string

from memories import conf


class Candidate(NamedTuple):
    """A memory that was found: kind is one of those of a search; score is the hub's own, higher is better."""

    kind: str
    id: str
    text: str
    score: float


# As many scores as candidates, in their order, higher is better. It runs in a thread of its own and may raise anything.
Reranker = Callable[[str, Sequence[Candidate]], Iterable[float]]


def configured() -> Reranker | None:
    """The function that MEMORYHUB_RERANKER names; None without one. ImportError when there is none of that name."""
    path = conf.reranking().path
    return cast("Reranker", import_string(path)) if path else None
