"""A question made ready to be scored: its terms, and its vector where the embedding answers in time."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from memories import conf
from memories.exceptions import EmbeddingAnswerInvalid, EmbeddingError, EmbeddingRefused, EmbeddingTimeout
from memories.llm import embeddings
from memories.models import EmbeddingSpace
from memories.pipeline import patience, spaces
from memories.scoring import language, terms
from memories.scoring.language import Language
from memories.scoring.ranking import Query, query_texts

logger = logging.getLogger(__name__)

# Beyond the endpoint's own time: for what it does not bound, the look-up of its name.
GRACE_SECONDS = 0.25
# By id of the space: what this process knows of its endpoint.
_pauses: defaultdict[int, patience.Pause] = defaultdict(patience.Pause)


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked, in the forms that are scored, and the space whose vectors it is compared with (None: none yet)."""

    text: str
    queries: list[Query]
    space: EmbeddingSpace | None

    @property
    def terms(self) -> list[str]:
        """The words and characters that are looked for, each once, in their order."""
        return list(dict.fromkeys(terms.tokens(self.text)))

    @property
    def language(self) -> Language:
        return language.of(self.text)

    @property
    def embedding_model(self) -> str | None:
        """The model that its vectors are of; None when it is asked by words alone."""
        return self.space.model if self.space and self.queries[0].vector is not None else None


def ask(text: str) -> Question:
    """The question; without vectors when there is no space yet or its model does not answer in time.

    An endpoint costs MEMORYHUB_EMBEDDING_QUERY_TIMEOUT at most, and nothing while it is left alone after a failure.
    """
    space = spaces.serving()
    texts = query_texts(text)
    vectors = _vectors(texts, space) if space else None
    if vectors is None:
        # Found by words alone: an answer now is worth more than a better one later.
        return Question(text, [Query.of(one) for one in texts], space)
    return Question(text, [Query.of(*one) for one in zip(texts, vectors, strict=True)], space)


def _vectors(texts: Sequence[str], space: EmbeddingSpace) -> list[embeddings.Vectors] | None:
    known = embeddings.known_queries(texts, model=space.model)
    if known and _fit(known, space):
        return known
    if not spaces.can_embed(space):
        # Of another model than is configured, or found down by the embedders: nobody needs to wait to find the same.
        return None
    ticket = _pauses[space.pk].enter()
    if ticket is None:
        return None
    try:
        return _asked(texts, space, ticket)
    except EmbeddingError as error:
        logger.warning("A question is asked without its vector: %s", error.code)
        return None


def _asked(texts: Sequence[str], space: EmbeddingSpace, ticket: int) -> list[embeddings.Vectors]:
    """The vectors of the space's model; its failure is noted, but for that of a text which it will never take."""
    pause = _pauses[space.pk]
    try:
        vectors = _in_time(texts, space)
    except EmbeddingRefused:
        pause.answered(ticket)
        raise
    except EmbeddingError as error:
        pause.failed(ticket, stated=error.retry_after or 0.0)
        raise
    pause.answered(ticket)
    return vectors


def _in_time(texts: Sequence[str], space: EmbeddingSpace) -> list[embeddings.Vectors]:
    if space.model.startswith(embeddings.OPENAI_PREFIX):
        seconds = conf.embeddings().query_timeout + GRACE_SECONDS
        try:
            vectors = patience.run(lambda: embeddings.embed_queries(texts, model=space.model), seconds=seconds).result()
        except TimeoutError:
            raise EmbeddingTimeout from None
    else:
        vectors = embeddings.embed_queries(texts, model=space.model)
    if not _fit(vectors, space):
        raise EmbeddingAnswerInvalid("The embedding gave a query a vector of another dimension than its space has.")
    return vectors


def _fit(vectors: Sequence[embeddings.Vectors], space: EmbeddingSpace) -> bool:
    return all(len(vector) == space.dimensions for vector in vectors)
