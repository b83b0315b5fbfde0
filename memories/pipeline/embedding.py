"""Texts of many people to vectors: no bad text takes the others with it, and none is blamed for a bad endpoint."""

import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import numpy.typing as npt
from django.db import connection
from django.db.models import F
from pgvector import HalfVector

from memories.exceptions import EmbeddingAnswerInvalid, EmbeddingRefused
from memories.llm import embeddings
from memories.models import EmbeddingSpace
from memories.pipeline import spaces

Vector = npt.NDArray[np.float32]
Vectors = dict[uuid.UUID, Vector | None]
CALLS_AT_ONCE = 4
LOCK_PATIENCE = "2s"
_HARMLESS = "word"


@dataclass(frozen=True)
class Text:
    """A text to embed, by the id of its turn, fact or episode, and whose it is."""

    key: uuid.UUID
    end_user_id: uuid.UUID
    text: str


@dataclass
class Round:
    """What one batch came to: texts embedded and refused, places that watermarks moved, the sessions that somebody
    else held all the time, and the code of the endpoint's failure."""

    embedded: int = 0
    refused: int = 0
    moved: int = 0
    held: set[uuid.UUID] = field(default_factory=set)
    failure: str = ""

    def count(self, space: EmbeddingSpace, vectors: Sequence[Vector | None]) -> None:
        """Add what was written, in the same transaction."""
        refused = sum(vector is None for vector in vectors)
        self.embedded += len(vectors) - refused
        self.refused += refused
        if refused:
            EmbeddingSpace.objects.filter(pk=space.pk).update(refused=F("refused") + refused)


def embed_each(space: EmbeddingSpace, texts: Sequence[Text]) -> Vectors:
    """A vector for each key, None for a text that the model will never take. Errors: EmbeddingError of the endpoint.

    A call to an endpoint holds texts of one person; in this process they go together, which is twice as fast.
    """
    if not texts:
        return {}
    local = not space.model.startswith(embeddings.OPENAI_PREFIX)
    found = _embed(space, texts) if local else _embed_by_person(space, texts)
    spaces.note_answer(space)
    return found


def storable(vector: Vector) -> HalfVector:
    """In half precision, as a row holds it."""
    return _Half(vector)


class _Half(HalfVector):
    def to_text(self) -> str:
        """Five digits tell all numbers of half precision apart; four times as fast as str() of each."""
        numbers = self.to_list()
        return f"[{','.join(['%.5g'] * len(numbers))}]" % tuple(numbers)


def quick_commit() -> None:
    """This transaction need not reach the disk at once: what a crash loses is embedded again. It waits for no lock
    for long."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL synchronous_commit = off; SET LOCAL lock_timeout = '{LOCK_PATIENCE}'")


def _embed_by_person(space: EmbeddingSpace, texts: Sequence[Text]) -> Vectors:
    ordered = sorted(texts, key=lambda text: text.end_user_id)
    groups = [list(own) for _, own in groupby(ordered, key=lambda text: text.end_user_id)]
    found: Vectors = {}
    with ThreadPoolExecutor(min(CALLS_AT_ONCE, len(groups))) as pool:
        for part in pool.map(lambda own: _embed(space, own), groups):
            found |= part
    return found


def _embed(space: EmbeddingSpace, texts: Sequence[Text]) -> Vectors:
    try:
        return _all(space, texts)
    except (EmbeddingRefused, EmbeddingAnswerInvalid) as error:
        found = _halves(space, texts)
        if not any(vector is not None for vector in found.values()):
            # All of them? Then a word that nobody can object to tells whether it is the endpoint: this raises.
            _check(space, error)
        return found


def _halves(space: EmbeddingSpace, texts: Sequence[Text]) -> Vectors:
    if len(texts) == 1:
        return {texts[0].key: None}
    found: Vectors = {}
    middle = len(texts) // 2
    for half in (texts[:middle], texts[middle:]):
        try:
            found |= _all(space, half)
        except (EmbeddingRefused, EmbeddingAnswerInvalid):
            found |= _halves(space, half)
    return found


def _all(space: EmbeddingSpace, texts: Sequence[Text]) -> Vectors:
    """One call. A vector of another dimension belongs to another space, whatever the model is called."""
    vectors = embeddings.embed([text.text for text in texts], model=space.model)
    embeddings.checked(vectors, count=len(texts), dimensions=space.dimensions)
    return {text.key: vector for text, vector in zip(texts, vectors, strict=True)}


def _check(space: EmbeddingSpace, error: EmbeddingRefused | EmbeddingAnswerInvalid) -> None:
    try:
        vectors = embeddings.embed([_HARMLESS], model=space.model)
        embeddings.checked(vectors, count=1, dimensions=space.dimensions)
    except EmbeddingRefused:
        raise EmbeddingAnswerInvalid("The embedding endpoint refuses every text.") from error
