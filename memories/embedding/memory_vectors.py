"""Embeds a batch of memories of a kind (memories/kinds/). One whose text changes meanwhile waits for the next batch."""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import F

from memories.embedding import spaces
from memories.embedding.batching import EmbeddableText, Round, Vectors, embed_each, quick_commit, storable
from memories.kinds.kind import Embedded, Kind
from memories.llm.embeddings import BATCH
from memories.models import EmbeddingSpace
from memories.scoring import language

_OWNER = ("content_hash", "tenant", "end_user", "end_user__generation")


def waiting(kind: Kind) -> Any:
    """What has no vector of its text, the newest first, and so by the partial index."""
    return kind.rows.unembedded().order_by(f"-{of(kind).since}")


def of(kind: Kind) -> Embedded:
    """How a kind is embedded, of which each row has one vector."""
    assert kind.embedded  # noqa: S101  (only those of EMBEDDED come here)
    return kind.embedded


def embed_changed(kind: Kind, space: EmbeddingSpace, done: Round) -> None:
    """Embed a batch of the newest changes. Errors: EmbeddingError of the endpoint, with nothing written."""
    rows = list(with_text(kind, waiting(kind))[:BATCH])
    vectors = embed_each(space, [text_of(kind, row) for row in rows])
    with transaction.atomic():
        quick_commit()
        if spaces.may_write(space):
            same = unchanged(kind, rows)
            write(kind, space, same, vectors)
            kind.rows.filter(pk__in=[row.pk for row in same]).update(embedded_hash=F("content_hash"))
            done.moved += len(same)
            done.count(space, [vectors[row.pk] for row in same])


def with_text(kind: Kind, rows: Any) -> Any:
    """Rows with only the columns that are embedded and written."""
    return rows.select_related("end_user").only(*of(kind).columns, *_OWNER)


def text_of(kind: Kind, row: Any) -> EmbeddableText:
    return EmbeddableText(row.pk, row.end_user_id, _text(kind, row))


def unchanged(kind: Kind, rows: Sequence[Any]) -> list[Any]:
    """Lock those whose text and person's generation are the same. One that somebody else has locked is left out."""

    def version(row: Any) -> tuple[bytes, int]:
        return bytes(row.content_hash), row.end_user.generation

    stored = with_text(kind, kind.rows.filter(pk__in=[row.pk for row in rows])).order_by()
    locked = stored.select_for_update(of=("self",), skip_locked=True, no_key=True)
    now = {row.pk: version(row) for row in locked}
    return [row for row in rows if now.get(row.pk) == version(row)]


def write(kind: Kind, space: EmbeddingSpace, rows: Sequence[Any], vectors: Vectors) -> None:
    """Write the vectors of rows over older ones, and delete older ones of texts that the model refused."""
    table: Any = of(kind).vectors
    reference = of(kind).reference
    table.objects.bulk_create(
        [
            table(
                **{f"{reference}_id": row.pk},
                space=space,
                tenant_id=row.tenant_id,
                end_user_id=row.end_user_id,
                text_digest=row.content_hash,
                language=language.of(_text(kind, row)),
                vector=storable(vector),
            )
            for row in rows
            if (vector := vectors[row.pk]) is not None
        ],
        update_conflicts=True,
        unique_fields=[reference, "space", "tenant"],
        update_fields=["text_digest", "language", "vector"],
    )
    refused = [row.pk for row in rows if vectors[row.pk] is None]
    if refused:
        table.objects.filter(space=space, **{f"{reference}__in": refused}).delete()


def _text(kind: Kind, row: Any) -> str:
    return str(getattr(row, of(kind).text))
