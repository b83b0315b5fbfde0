"""How alike texts are in what they mean, by the embedding that comes along, if the hub uses one of its own."""

from collections.abc import Sequence

from memories import conf
from memories.exceptions import EmbeddingError
from memories.llm import embeddings
from memories.llm.embeddings import USE, Vectors


def vectors(texts: Sequence[str]) -> Vectors | None:
    """A vector of length 1 for each text. None where embeddings are an endpoint's or switched off: nothing of a batch
    waits for a call, and no process holds a model for this alone."""
    try:
        if embeddings.current_model() not in conf.LOCAL_EMBEDDINGS:
            return None
        return embeddings.embed(texts, model=USE)
    except EmbeddingError:
        return None
