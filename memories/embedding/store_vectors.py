"""Embeds a batch of the store's items, each by all of its texts. One that is written meanwhile waits for the next."""

import uuid
from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from memories.embedding import spaces
from memories.embedding.batching import EmbeddableText, Round, Vectors, embed_each, quick_commit, storable
from memories.llm.embeddings import BATCH
from memories.models import EmbeddingSpace, StoreItem, StoreItemVector
from memories.text import value_texts

# The tenant's own items are embedded together.
_NOBODY = uuid.UUID(int=0)
_COLUMNS = ("tenant", "end_user", "value", "index_paths", "content_hash", "end_user__generation")


def embed_changed(space: EmbeddingSpace, done: Round) -> None:
    """Embed a batch of the newest changes. Errors: EmbeddingError of the endpoint, with nothing written."""
    waiting = with_text(StoreItem.objects.unembedded().order_by("-updated_at"))
    vectors = embed(space, waiting)
    with transaction.atomic():
        quick_commit()
        if spaces.may_write(space):
            same = unchanged(waiting)
            write(space, same, vectors)
            StoreItem.objects.filter(pk__in=[row.pk for row in same]).update(embedded_hash=F("content_hash"))
            done.moved += len(same)
            done.count(space, [one for row in same for one in vectors[row.pk]])


def with_text(rows: QuerySet[StoreItem]) -> list[StoreItem]:
    """The first rows, with the columns that are embedded and written."""
    return list(rows.select_related("end_user").only(*_COLUMNS)[:BATCH])


def embed(space: EmbeddingSpace, rows: Sequence[StoreItem]) -> dict[uuid.UUID, list[Any]]:
    """Id of each item → the vectors of its texts, None for one that the model will never take."""
    made: dict[uuid.UUID, list[uuid.UUID]] = {}
    texts: list[EmbeddableText] = []
    for row in rows:
        own = [
            EmbeddableText(uuid.uuid4(), row.end_user_id or _NOBODY, text)
            for text in value_texts.of_value(row.value, row.index_paths)
        ]
        made[row.pk] = [one.key for one in own]
        texts += own
    found: Vectors = embed_each(space, texts)
    return {pk: [found[key] for key in keys] for pk, keys in made.items()}


def unchanged(rows: Sequence[StoreItem]) -> list[StoreItem]:
    """Lock those whose texts and person's generation are the same. One that somebody else has locked is left out."""

    def version(row: StoreItem) -> tuple[bytes, int]:
        return bytes(row.content_hash or b""), row.end_user.generation if row.end_user else 0

    stored = StoreItem.objects.filter(pk__in=[row.pk for row in rows]).select_related("end_user").only(*_COLUMNS)
    locked = stored.order_by().select_for_update(of=("self",), skip_locked=True, no_key=True)
    now = {row.pk: version(row) for row in locked}
    return [row for row in rows if now.get(row.pk) == version(row)]


def write(space: EmbeddingSpace, rows: Sequence[StoreItem], vectors: dict[uuid.UUID, list[Any]]) -> int:
    """Write the vectors of items in place of older ones; how many."""
    StoreItemVector.objects.filter(space=space, item__in=[row.pk for row in rows]).delete()
    made = [
        StoreItemVector(
            item_id=row.pk,
            space=space,
            tenant_id=row.tenant_id,
            place=place,
            text_digest=row.content_hash,
            vector=storable(vector),
        )
        for row in rows
        for place, vector in enumerate(vectors[row.pk])
        if vector is not None
    ]
    StoreItemVector.objects.bulk_create(made, ignore_conflicts=True)
    return len(made)
