"""Texts to unit vectors: the one way to ask an embedding, whichever backend makes it."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from django.utils.module_loading import import_string

from memories import conf
from memories.exceptions import EmbeddingAnswerInvalid, EmbeddingError, EmbeddingMisconfigured
from memories.telemetry import traces

Kind = Literal["passage", "query"]
Vectors = npt.NDArray[np.float32]
Backend = Callable[[Sequence[str], Kind, str], Vectors]

# Longer texts are found by their beginning; the measured recipe embeds as much (docs/decisions/0006).
LONGEST_TEXT = 1_000
BATCH = 64
# Of queries, in each process: 4 MB of 512 dimensions.
CACHED_QUERIES = 2_048

USE = "use-multilingual-3"
E5 = "e5-small"
OPENAI_PREFIX = "openai:"
HASHED = "hashed"

# By dotted path, so that a process that never embeds never pays for importing numpy's models or openai.
_LOCAL_BACKEND = "memories.llm.backends.local_embeddings"
_OPENAI_BACKEND = "memories.llm.backends.openai_embeddings"
_HASHED_BACKEND = "memories.llm.backends.hashed_embeddings"


def current_model() -> str:
    """The id of the configured model: use-multilingual-3, use-multilingual-3+e5-small, openai:<name>[@<dimensions>]."""
    config = conf.embeddings()
    if config.mode == conf.EMBEDDINGS_OPENAI:
        return f"{OPENAI_PREFIX}{config.model}" + (f"@{config.dimensions}" if config.dimensions else "")
    return config.model


def is_available(model: str) -> bool:
    """Whether this environment can make vectors of the model: any local one, an endpoint's where one is configured."""
    mode = conf.embeddings().mode
    if model.startswith(OPENAI_PREFIX):
        return mode == conf.EMBEDDINGS_OPENAI
    return model in conf.LOCAL_EMBEDDINGS or (model == HASHED and mode == conf.EMBEDDINGS_HASHED)


def embed(texts: Sequence[str], *, kind: Kind = "passage", model: str | None = None) -> Vectors:
    """One vector of length 1 per text, float32 [len(texts), dimensions], of `model` (default: the configured one).

    Texts are cut to 1,000 characters; a blank one gets the vector of nothing said. Queries and passages have forms
    of their own where the model knows such. A sum of models gives their vectors side by side, each of length 1.
    Raises subclasses of EmbeddingError and nothing else. Opens no transaction. Thread-safe.
    """
    name = model or current_model()
    if not is_available(name):
        raise EmbeddingMisconfigured(f"The embedding model {name} is not configured here.")
    backend: Backend = import_string(f"{_backend(name)}.embed")
    inputs = [prepared(text) for text in texts]
    parts = [_part(backend, inputs[start : start + BATCH], kind, name) for start in range(0, len(inputs), BATCH)]
    return np.concatenate(parts) if parts else np.empty((0, 0), dtype=np.float32)


def _part(backend: Backend, texts: Sequence[str], kind: Kind, name: str) -> Vectors:
    if not name.startswith(OPENAI_PREFIX):
        return backend(texts, kind, name)
    # An endpoint's call takes as long as a model's.
    with traces.span("embedding call", model=name, kind=kind, texts=len(texts)):
        return backend(texts, kind, name)


def embed_queries(texts: Sequence[str], *, model: str) -> list[Vectors]:
    """The vectors of what one question is asked by, float32 [dimensions] each; one call for those not known yet."""
    keys = [_key(text, model) for text in texts]
    held = {key: _queries.get(key) for key in keys}
    new = [(key, text) for key, text in zip(keys, texts, strict=True) if held[key] is None]
    if new:
        made = embed([text for _, text in new], kind="query", model=model)
        for (key, _), vector in zip(new, made, strict=True):
            vector.setflags(write=False)
            _queries.put(key, vector)
            held[key] = vector
    return [vector for key in keys if (vector := held[key]) is not None]


def cached_queries(texts: Sequence[str], *, model: str) -> list[Vectors] | None:
    """Their vectors if all of them are kept in this process, else None."""
    held = [vector for text in texts if (vector := _queries.get(_key(text, model))) is not None]
    return held if len(held) == len(texts) else None


def _key(text: str, model: str) -> bytes:
    return hashlib.sha256(f"{model}\0{prepared(text)}".encode()).digest()


def needed() -> list[str]:
    """The models that web and workers load before their first text: the configured one, and beside an endpoint's the
    one that texts are judged with. Statements are judged under their person's lock, where nobody is to wait for it."""
    configured = current_model()
    return [USE, configured] if configured.startswith(OPENAI_PREFIX) else [configured]


def warm_needed() -> list[EmbeddingError]:
    """Load the models of `needed()`. Returns why some could not be loaded, for who is to say so."""
    errors = []
    for model in needed():
        try:
            preload(model)
        except EmbeddingError as error:
            errors.append(error)
    return errors


def preload(model: str | None = None) -> None:
    """Load the model now, so that no text waits for it; an endpoint's library when it is one."""
    name = model or current_model()
    load: Callable[[str], None] = import_string(f"{_backend(name)}.preload")
    load(name)


def prepared(text: str) -> str:
    """What of a text is embedded: no NUL, no half of a surrogate pair, no blanks around it, 1,000 characters."""
    return text.strip()[:LONGEST_TEXT].replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def checked(vectors: Vectors, *, count: int, dimensions: int | None = None) -> Vectors:
    """The vectors, each of length 1. EmbeddingAnswerInvalid: too few, of another dimension, not finite, of length 0."""
    if vectors.ndim != 2 or len(vectors) != count or vectors.shape[1] == 0:
        raise EmbeddingAnswerInvalid("The embedding gave another number of vectors than texts.")
    if dimensions and vectors.shape[1] != dimensions:
        raise EmbeddingAnswerInvalid("The embedding gave vectors of another dimension than was asked for.")
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or (lengths < 1e-9).any():
        raise EmbeddingAnswerInvalid("The embedding gave a vector that has no direction.")
    units: Vectors = (vectors / lengths).astype(np.float32)
    return units


def _backend(model: str) -> str:
    if model.startswith(OPENAI_PREFIX):
        return _OPENAI_BACKEND
    return _HASHED_BACKEND if model == HASHED else _LOCAL_BACKEND


class _Recent:
    """The last vectors asked for, for all threads of the process."""

    def __init__(self, size: int) -> None:
        self._rows: OrderedDict[bytes, npt.NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()
        self._size = size

    def get(self, key: bytes) -> npt.NDArray[np.float32] | None:
        with self._lock:
            if key in self._rows:
                self._rows.move_to_end(key)
            return self._rows.get(key)

    def put(self, key: bytes, vector: npt.NDArray[np.float32]) -> None:
        with self._lock:
            self._rows[key] = vector
            if len(self._rows) > self._size:
                self._rows.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._rows.clear()


_queries = _Recent(CACHED_QUERIES)
