"""A batch of facts or episodes to vectors; one whose text changed meanwhile waits for the next one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from django.db import transaction
from django.db.models import F

from memories.llm.embeddings import BATCH
from memories.models import EmbeddingSpace, Episode, EpisodeVector, Fact, FactVector
from memories.pipeline import spaces
from memories.pipeline.embedding import Round, Text, Vectors, embed_each, quick_commit, storable
from memories.scoring import language

_WHOSE = ("content_hash", "tenant", "end_user", "end_user__generation")


@dataclass(frozen=True)
class Kind:
    """Memories whose text may change: their table, that of their vectors with the name of the reference, the columns
    that make up the text and what reads it of a row."""

    rows: Any
    vectors: Any
    name: str
    columns: tuple[str, ...]
    said: Callable[[Any], str]


FACTS = Kind(Fact, FactVector, "fact", ("content",), attrgetter("content"))
EPISODES = Kind(
    Episode,
    EpisodeVector,
    "episode",
    ("summary", "key_topics", "actions_taken", "outcomes"),
    attrgetter("text"),
)
KINDS = (FACTS, EPISODES)


def embed_changed(kind: Kind, space: EmbeddingSpace, done: Round) -> None:
    """Embed a batch of those that changed last. Errors: EmbeddingError of the endpoint, with nothing written."""
    waiting = list(with_text(kind, kind.rows.objects.unembedded()).order_by("-updated_at")[:BATCH])
    vectors = embed_each(space, [text_of(kind, row) for row in waiting])
    with transaction.atomic():
        quick_commit()
        if spaces.may_write(space):
            same = unchanged(kind, waiting)
            write(kind, space, same, vectors)
            kind.rows.objects.filter(pk__in=[row.pk for row in same]).update(embedded_hash=F("content_hash"))
            done.moved += len(same)
            done.count(space, [vectors[row.pk] for row in same])


def with_text(kind: Kind, rows: Any) -> Any:
    """As much of rows as is embedded and written."""
    return rows.select_related("end_user").only(*kind.columns, *_WHOSE)


def text_of(kind: Kind, row: Any) -> Text:
    return Text(row.pk, row.end_user_id, kind.said(row))


def unchanged(kind: Kind, rows: Sequence[Any]) -> list[Any]:
    """Those that still have their text, of persons that were not erased; locked. One that somebody holds has not."""
    still = with_text(kind, kind.rows.objects.filter(pk__in=[row.pk for row in rows])).order_by()
    locked = still.select_for_update(of=("self",), skip_locked=True, no_key=True)
    now = {row.pk: _version(row) for row in locked}
    return [row for row in rows if now.get(row.pk) == _version(row)]


def write(kind: Kind, space: EmbeddingSpace, rows: Sequence[Any], vectors: Vectors) -> None:
    """Write the vectors of rows, in the place of older ones; the old one of a row that has none now goes."""
    kind.vectors.objects.bulk_create(
        [
            kind.vectors(
                **{f"{kind.name}_id": row.pk},
                space=space,
                tenant_id=row.tenant_id,
                end_user_id=row.end_user_id,
                text_digest=row.content_hash,
                language=language.of(kind.said(row)),
                vector=storable(vector),
            )
            for row in rows
            if (vector := vectors[row.pk]) is not None
        ],
        update_conflicts=True,
        unique_fields=[kind.name, "space"],
        update_fields=["text_digest", "language", "vector"],
    )
    refused = [row.pk for row in rows if vectors[row.pk] is None]
    if refused:
        kind.vectors.objects.filter(space=space, **{f"{kind.name}__in": refused}).delete()


def _version(row: Any) -> tuple[bytes, int]:
    return bytes(row.content_hash), row.end_user.generation
