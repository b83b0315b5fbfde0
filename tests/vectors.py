"""Vectors for tests, made at once instead of by an embedder."""

from collections.abc import Sequence

import numpy as np

from memories.embedding import memory_vectors
from memories.kinds import EMBEDDED
from memories.llm import embeddings
from memories.models import EmbeddingSpace, EndUser, Session, Turn, TurnVector
from memories.scoring import language
from tests.factories import NOW


def space(model: str = embeddings.USE, dimensions: int = 512) -> EmbeddingSpace:
    """The space that serves."""
    given = {"dimensions": dimensions, "state": EmbeddingSpace.SpaceState.SERVING, "created_at": NOW}
    return EmbeddingSpace.objects.get_or_create(model=model, defaults=given)[0]


_embed = embeddings.embed
_made: dict[tuple[str, str], embeddings.Vectors] = {}


def made_once(texts: Sequence[str], *, model: str) -> embeddings.Vectors:
    """As embeddings.embed, but what a test of this process asked for before is not made again."""
    new = [text for text in dict.fromkeys(texts) if (model, text) not in _made]
    for text, vector in zip(new, _embed(new, model=model) if new else (), strict=True):
        _made[model, text] = vector
    return np.array([_made[model, text] for text in texts])


def embed_all(person: EndUser, within: EmbeddingSpace | None = None) -> EmbeddingSpace:
    """Give every searchable text of the person its vector, with the real local model."""
    within = within or space()
    for session in Session.objects.filter(end_user=person):
        _embed_turns(session, within)
        Session.objects.filter(pk=session.pk).update(embedded_number=session.turn_count)
    for kind in EMBEDDED:
        embedded = memory_vectors.of(kind)
        for row in kind.rows.filter(end_user=person):
            given = _of(person, getattr(row, embedded.text), within) | {"text_digest": row.content_hash}
            rows = embedded.vectors._default_manager
            rows.update_or_create(**{embedded.reference: row}, space=within, defaults=given)
            kind.rows.filter(pk=row.pk).update(embedded_hash=row.content_hash)
    return within


def _embed_turns(session: Session, within: EmbeddingSpace) -> None:
    for turn in Turn.objects.filter(session=session).after(session.embedded_number):
        if turn.is_searchable:
            given = _of(session.end_user, turn.content, within)
            TurnVector.objects.create(turn=turn, session=session, number=turn.number, space=within, **given)


def _of(person: EndUser, text: str, within: EmbeddingSpace) -> dict[str, object]:
    vector = embeddings.embed([text], model=within.model)[0]
    return {
        "tenant_id": person.tenant_id,
        "end_user": person,
        "language": language.of(text),
        "vector": vector,
    }
