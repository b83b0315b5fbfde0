"""Embeds texts of many people at once.

A text that the model refuses does not fail the others, and an endpoint that fails does not count as a refusal.
"""

import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter

import numpy as np
import numpy.typing as npt
from django.db import connection
from django.db.models import F
from pgvector import HalfVector

from memories.embedding import spaces
from memories.exceptions import EmbeddingAnswerInvalid, EmbeddingRefused
from memories.llm import embeddings
from memories.models import EmbeddingSpace

Vector = npt.NDArray[np.float32]
Vectors = dict[uuid.UUID, Vector | None]
CALLS_AT_ONCE = 4
LOCK_TIMEOUT = "2s"
_HARMLESS = "word"


@dataclass(frozen=True)
class EmbeddableText:
    """A text to embed, with the id of its turn, fact or episode."""

    key: uuid.UUID
    end_user_id: uuid.UUID
    text: str


@dataclass
class Round:
    """The outcome of one batch.

    `moved`: how far watermarks moved, in texts. `held`: sessions that somebody else kept locked. `failure`: the code
    of the endpoint's error.
    """

    embedded: int = 0
    refused: int = 0
    moved: int = 0
    held: set[uuid.UUID] = field(default_factory=set)
    failure: str = ""

    def count(self, space: EmbeddingSpace, vectors: Sequence[object | None]) -> None:
        """Add what was written, in the same transaction; None for a text that has no vector."""
        refused = sum(vector is None for vector in vectors)
        self.embedded += len(vectors) - refused
        self.refused += refused
        if refused:
            EmbeddingSpace.objects.filter(pk=space.pk).update(refused=F("refused") + refused)


def embed_each(space: EmbeddingSpace, texts: Sequence[EmbeddableText]) -> Vectors:
    """A vector for each key, None for a text that the model will never take. Errors: EmbeddingError of the endpoint.

    A call to an endpoint holds texts of one person. A local model gets all at once, which is twice as fast.
    """
    if not texts:
        return {}
    if space.model.startswith(embeddings.OPENAI_PREFIX):
        ordered = sorted(texts, key=attrgetter("end_user_id"))
        groups = [list(own) for _, own in groupby(ordered, key=attrgetter("end_user_id"))]
        found: Vectors = {}
        with ThreadPoolExecutor(min(CALLS_AT_ONCE, len(groups))) as pool:
            for part in pool.map(lambda own: _embed(space, own), groups):
                found |= part
    else:
        found = _embed(space, texts)
    spaces.note_answer(space)
    return found


def _embed(space: EmbeddingSpace, texts: Sequence[EmbeddableText]) -> Vectors:
    try:
        return _call(space, texts)
    except (EmbeddingRefused, EmbeddingAnswerInvalid) as error:
        found = _halves(space, texts)
        if not any(vector is not None for vector in found.values()):
            # It took none of them: a harmless word shows whether the endpoint is at fault, and then this raises.
            try:
                _call(space, [EmbeddableText(texts[0].key, texts[0].end_user_id, _HARMLESS)])
            except EmbeddingRefused:
                raise EmbeddingAnswerInvalid("The embedding endpoint refuses every text.") from error
        return found


def _halves(space: EmbeddingSpace, texts: Sequence[EmbeddableText]) -> Vectors:
    """Search for the refused texts by halving."""
    if len(texts) == 1:
        return {texts[0].key: None}
    found: Vectors = {}
    middle = len(texts) // 2
    for half in (texts[:middle], texts[middle:]):
        try:
            found |= _call(space, half)
        except (EmbeddingRefused, EmbeddingAnswerInvalid):
            found |= _halves(space, half)
    return found


def _call(space: EmbeddingSpace, texts: Sequence[EmbeddableText]) -> Vectors:
    """One call. Vectors of another dimension belong to another space, whatever the model's name."""
    vectors = embeddings.embed([text.text for text in texts], model=space.model)
    embeddings.checked(vectors, count=len(texts), dimensions=space.dimensions)
    return {text.key: vector for text, vector in zip(texts, vectors, strict=True)}


def storable(vector: Vector) -> HalfVector:
    """In half precision, as a row holds it."""
    return _Half(vector)


class _Half(HalfVector):
    def __init__(self, vector: Vector) -> None:
        super().__init__(vector)
        # Now, not when a statement takes it: others wait for the rows that are locked by then.
        numbers = self.to_list()
        # Five digits distinguish all numbers of half precision. Four times as fast as str() of each.
        self._text = f"[{','.join(['%.5g'] * len(numbers))}]" % tuple(numbers)

    def to_text(self) -> str:
        return self._text


def quick_commit() -> None:
    """Let this transaction commit before it is on disk, and wait for locks only shortly.

    What a crash loses is embedded again.
    """
    with connection.cursor() as cursor:
        # One command: with row level security it shares a pipeline, which takes no second one.
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', %s, true)", [LOCK_TIMEOUT]
        )
