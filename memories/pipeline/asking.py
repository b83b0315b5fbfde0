"""A question made ready to be scored: its terms, and its vector where the embedding answers."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from memories.exceptions import EmbeddingAnswerInvalid, EmbeddingError
from memories.llm import embeddings
from memories.models import EmbeddingSpace
from memories.scoring import language, terms
from memories.scoring.language import Language
from memories.scoring.ranking import Query, query_texts

logger = logging.getLogger(__name__)


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
    """The question; without vectors when there is no space yet or its model does not answer."""
    space = EmbeddingSpace.objects.serving().with_clock().first()
    texts = query_texts(text)
    return Question(text, _with_vectors(texts, space) if space else [Query.of(one) for one in texts], space)


def _with_vectors(texts: Sequence[str], space: EmbeddingSpace) -> list[Query]:
    if space.paused_until and space.paused_until > space.clock:
        # The embedders found the endpoint down: nobody who asks needs to wait to find the same.
        return [Query.of(one) for one in texts]
    try:
        return [Query.of(one, _vector(one, space)) for one in texts]
    except EmbeddingError as error:
        # Found by words alone: an answer now is worth more than a better one later.
        logger.warning("A question is asked without its vector: %s", error.code)
        return [Query.of(one) for one in texts]


def _vector(text: str, space: EmbeddingSpace) -> embeddings.Vectors:
    vector = embeddings.embed_query(text, model=space.model)
    if len(vector) != space.dimensions:
        raise EmbeddingAnswerInvalid("The embedding gave a query a vector of another dimension than its space has.")
    return vector
