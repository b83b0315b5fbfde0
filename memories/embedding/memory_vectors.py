"""Embeds a batch of facts, episodes or diary entries. One whose text changes meanwhile waits for the next batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from django.db import transaction
from django.db.models import F

from memories.embedding import spaces
from memories.embedding.batching import EmbeddableText, Round, Vectors, embed_each, quick_commit, storable
from memories.llm.embeddings import BATCH
from memories.models import DiaryEntry, DiaryVector, EmbeddingSpace, Episode, EpisodeVector, Fact, FactVector
from memories.scoring import language

_OWNER = ("content_hash", "tenant", "end_user", "end_user__generation")


@dataclass(frozen=True)
class MemoryKind:
    """A kind of memories: their table, the table of their vectors with its reference's name, the columns of the text,
    what reads the text from a row, and since when it says so."""

    rows: Any
    vectors: Any
    name: str
    columns: tuple[str, ...]
    text: Callable[[Any], str]
    since: str = "updated_at"

    def waiting(self) -> Any:
        """What has no vector of its text, the newest first, and so by the partial index."""
        return self.rows.objects.unembedded().order_by(f"-{self.since}")


FACTS = MemoryKind(Fact, FactVector, "fact", ("content",), attrgetter("content"))
EPISODES = MemoryKind(
    Episode,
    EpisodeVector,
    "episode",
    ("summary", "key_topics", "actions_taken", "outcomes"),
    attrgetter("text"),
)
DIARY = MemoryKind(DiaryEntry, DiaryVector, "entry", ("topic", "content"), attrgetter("text"), since="created_at")
KINDS = (FACTS, EPISODES, DIARY)


def embed_changed(kind: MemoryKind, space: EmbeddingSpace, done: Round) -> None:
    """Embed a batch of the newest changes. Errors: EmbeddingError of the endpoint, with nothing written."""
    waiting = list(with_text(kind, kind.waiting())[:BATCH])
    vectors = embed_each(space, [text_of(kind, row) for row in waiting])
    with transaction.atomic():
        quick_commit()
        if spaces.may_write(space):
            same = unchanged(kind, waiting)
            write(kind, space, same, vectors)
            kind.rows.objects.filter(pk__in=[row.pk for row in same]).update(embedded_hash=F("content_hash"))
            done.moved += len(same)
            done.count(space, [vectors[row.pk] for row in same])


def with_text(kind: MemoryKind, rows: Any) -> Any:
    """Rows with only the columns that are embedded and written."""
    return rows.select_related("end_user").only(*kind.columns, *_OWNER)


def text_of(kind: MemoryKind, row: Any) -> EmbeddableText:
    return EmbeddableText(row.pk, row.end_user_id, kind.text(row))


def unchanged(kind: MemoryKind, rows: Sequence[Any]) -> list[Any]:
    """Lock those whose text and person's generation are the same. One that somebody else has locked is left out."""

    def version(row: Any) -> tuple[bytes, int]:
        return bytes(row.content_hash), row.end_user.generation

    stored = with_text(kind, kind.rows.objects.filter(pk__in=[row.pk for row in rows])).order_by()
    locked = stored.select_for_update(of=("self",), skip_locked=True, no_key=True)
    now = {row.pk: version(row) for row in locked}
    return [row for row in rows if now.get(row.pk) == version(row)]


def write(kind: MemoryKind, space: EmbeddingSpace, rows: Sequence[Any], vectors: Vectors) -> None:
    """Write the vectors of rows over older ones, and delete older ones of texts that the model refused."""
    kind.vectors.objects.bulk_create(
        [
            kind.vectors(
                **{f"{kind.name}_id": row.pk},
                space=space,
                tenant_id=row.tenant_id,
                end_user_id=row.end_user_id,
                text_digest=row.content_hash,
                language=language.of(kind.text(row)),
                vector=storable(vector),
            )
            for row in rows
            if (vector := vectors[row.pk]) is not None
        ],
        update_conflicts=True,
        unique_fields=[kind.name, "space", "tenant"],
        update_fields=["text_digest", "language", "vector"],
    )
    refused = [row.pk for row in rows if vectors[row.pk] is None]
    if refused:
        kind.vectors.objects.filter(space=space, **{f"{kind.name}__in": refused}).delete()
