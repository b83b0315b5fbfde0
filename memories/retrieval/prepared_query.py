"""A query prepared for scoring: its terms, and its vector where the embedding answers in time."""

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from memories import conf
from memories.embedding import deadlines, spaces
from memories.exceptions import EmbeddingAnswerInvalid, EmbeddingError, EmbeddingRefused, EmbeddingTimeout
from memories.llm import embeddings
from memories.models import EmbeddingSpace
from memories.scoring import language, terms
from memories.scoring.language import Language
from memories.scoring.ranking import Query, query_texts

logger = logging.getLogger(__name__)

# Added to the endpoint's own timeout, which does not cover the look-up of its name.
GRACE_SECONDS = 0.25
# By id of the space: how this process found its endpoint.
_pauses: defaultdict[int, deadlines.Pause] = defaultdict(deadlines.Pause)


@dataclass(frozen=True, eq=False)
class PreparedQuery:
    """A query in the forms that are scored, and the space of its vectors (None: there is none yet)."""

    text: str
    queries: list[Query]
    space: EmbeddingSpace | None

    @property
    def terms(self) -> list[str]:
        """The words and characters of what it is about, each once, in their order."""
        return list(dict.fromkeys(terms.tokens(query_texts(self.text)[0])))

    @property
    def language(self) -> Language:
        return language.of(self.text)

    @property
    def embedding_model(self) -> str | None:
        """The model of its vectors; None for a query by words alone."""
        return self.space.model if self.space and self.queries[0].vector is not None else None


def prepare(text: str, *, asked: datetime | None = None) -> PreparedQuery:
    """The query; by words alone when there is no space yet or its model does not answer in time.

    `asked`: when, in the time zone of who asks; None: dates relative to that day are not read.
    An endpoint costs at most MEMORYHUB_EMBEDDING_QUERY_TIMEOUT, and nothing during a pause after a failure.
    """
    return prepare_in(spaces.serving(), text, asked=asked)


def prepare_in(space: EmbeddingSpace | None, text: str, *, asked: datetime | None = None) -> PreparedQuery:
    """The same in a space that is known."""
    texts = query_texts(text)
    found = vectors(texts, space) if space else None
    if found is None:
        return PreparedQuery(text, [Query.of(one, asked=asked) for one in texts], space)
    return PreparedQuery(text, [Query.of(*one, asked=asked) for one in zip(texts, found, strict=True)], space)


def vectors(texts: Sequence[str], space: EmbeddingSpace) -> list[embeddings.Vectors] | None:
    """The vectors of what one question is asked by; None where they do not come in time."""
    cached = embeddings.cached_queries(texts, model=space.model)
    if cached and _fit(cached, space):
        return cached
    return _answered(lambda: embeddings.embed_queries(texts, model=space.model), space)


def passages(texts: Sequence[str], space: EmbeddingSpace) -> list[embeddings.Vectors] | None:
    """The vectors of texts that have none stored yet; None where they do not come in the time that a query has."""
    return _answered(lambda: list(embeddings.embed(texts, model=space.model)), space)


def _answered(call: Callable[[], list[embeddings.Vectors]], space: EmbeddingSpace) -> list[embeddings.Vectors] | None:
    """What the model of the space answers in time, if it is to be asked at all."""
    if not spaces.can_embed(space):
        # Its model is not the configured one, or the embedders found its endpoint down: no query needs to try it.
        return None
    pause = _pauses[space.pk]
    ticket = pause.enter()
    if ticket is None:
        return None
    try:
        found = _in_time(call, space)
    except EmbeddingError as error:
        if isinstance(error, EmbeddingRefused):
            # The model will never take this text; the endpoint works.
            pause.answered(ticket)
        else:
            pause.failed(ticket, stated=error.retry_after or 0.0)
        logger.warning("A question is asked without its vector: %s", error.code)
        return None
    pause.answered(ticket)
    return found


def _in_time(call: Callable[[], list[embeddings.Vectors]], space: EmbeddingSpace) -> list[embeddings.Vectors]:
    if space.model.startswith(embeddings.OPENAI_PREFIX):
        seconds = conf.embeddings().query_timeout + GRACE_SECONDS
        try:
            found = deadlines.run(call, seconds=seconds).result()
        except TimeoutError:
            raise EmbeddingTimeout from None
    else:
        found = call()
    if not _fit(found, space):
        raise EmbeddingAnswerInvalid("The embedding gave a query a vector of another dimension than its space has.")
    return found


def _fit(vectors: Sequence[embeddings.Vectors], space: EmbeddingSpace) -> bool:
    return all(len(vector) == space.dimensions for vector in vectors)
