"""Change the embedding model while the hub serves: fill a second space, switch, clear the first.

Meanwhile the embedder goes on in the serving space. Its additions are filled in before the switch; the last of them
while it waits.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from memories.embedding import memory_vectors, spaces, store_vectors, turn_vectors
from memories.embedding.batching import embed_each, quick_commit
from memories.exceptions import EmbeddingError, EmbeddingMisconfigured, ReembedRunning, ReembedUnfinished
from memories.kinds import EMBEDDED, Kind
from memories.llm import embeddings
from memories.llm.embeddings import BATCH
from memories.models import EmbeddingSpace, Session, StoreItem, StoreItemVector, Turn, TurnVector
from memories.models.keyset import beyond

State = EmbeddingSpace.SpaceState
SESSIONS_AT_ONCE = 200
CLEARED_AT_ONCE = 5_000


@dataclass
class Rebuild:
    """The space being filled, how many texts it has, and those that its model refused."""

    space: EmbeddingSpace
    embedded: int = 0
    refused: set[uuid.UUID] = field(default_factory=set)


@contextmanager
def alone() -> Iterator[None]:
    """One process changes the model at a time. Errors: ReembedRunning."""
    if not spaces.try_lock(spaces.REEMBEDDING):
        raise ReembedRunning
    try:
        yield
    finally:
        spaces.unlock(spaces.REEMBEDDING)


def reembed(*, model: str, report: Callable[[int], None] = lambda _: None) -> Rebuild | None:
    """Fill a space of `model` and let it serve; None when it serves already. The caller holds alone().

    It continues where an earlier run was killed. `report` gets the number of texts embedded so far.
    Errors: ReembedUnfinished, with the old space still serving.
    """
    if not embeddings.is_available(model):
        raise EmbeddingMisconfigured(f"The embedding model {model} is not configured here.")
    serving = EmbeddingSpace.objects.serving().first()
    if serving and serving.model == model:
        return None
    try:
        rebuild = Rebuild(_building(model))
        _fill(rebuild, report)
        with spaces.switching():
            # Once more, while the embedder waits.
            _fill(rebuild, report)
            _switch(rebuild)
    except EmbeddingError as error:
        raise ReembedUnfinished(f"{error.detail} What is done is kept: run the command again.") from error
    return rebuild


def clear_retired() -> int:
    """Delete the vectors of retired spaces in batches; how many. The caller holds alone()."""
    total = 0
    for space in EmbeddingSpace.objects.filter(state=State.RETIRED):
        tables: tuple[Any, ...] = (TurnVector, StoreItemVector, *(memory_vectors.of(kind).vectors for kind in EMBEDDED))
        for model in tables:
            rows = model._default_manager.filter(space=space).order_by("pk")
            ids = list(rows.values_list("pk", flat=True)[:CLEARED_AT_ONCE])
            while ids:
                total += model._default_manager.filter(pk__in=ids).delete()[0]
                ids = list(rows.filter(pk__gt=ids[-1]).values_list("pk", flat=True)[:CLEARED_AT_ONCE])
    return total


def _building(model: str) -> EmbeddingSpace:
    """The space to fill; what an earlier change to yet another model left is dropped."""
    space = EmbeddingSpace.objects.building().first()
    dimensions = embeddings.embed(["word"], model=model).shape[1]
    if space and (space.model, space.dimensions) == (model, dimensions):
        return space
    EmbeddingSpace.objects.building().update(state=State.RETIRED)
    clear_retired()
    given = {"dimensions": dimensions, "state": State.BUILDING, "created_at": Now(), "refused": 0, "failures": 0}
    return EmbeddingSpace.objects.update_or_create(model=model, defaults=given)[0]


def _fill(rebuild: Rebuild, report: Callable[[int], None]) -> None:
    """Embed every text that the serving space has handled and the new one lacks."""
    for chunk in _chunks(Session.objects.filter(embedded_number__gt=0)):
        # Each batch begins behind the one before: a session may have so many turns that none looks through the others.
        behind = Q()
        while turns := _missing_turns(rebuild, chunk, behind):
            rebuild.embedded += _put_turns(rebuild, turns)
            report(rebuild.embedded)
            behind = beyond(("session", "number"), (turns[-1].session_id, turns[-1].number), "gt")
    for kind in EMBEDDED:
        for chunk in _chunks(kind.rows.filter(embedded_hash=F("content_hash"))):
            while rows := _missing(kind, rebuild, chunk):
                rebuild.embedded += _put(kind, rebuild, rows)
                report(rebuild.embedded)
    for chunk in _chunks(StoreItem.objects.filter(embedded_hash=F("content_hash"))):
        while items := _missing_items(rebuild, chunk):
            rebuild.embedded += _put_items(rebuild, items)
            report(rebuild.embedded)


def _chunks(rows: Any) -> Iterator[list[uuid.UUID]]:
    """Ids in order, so that new rows come last."""
    ids: list[uuid.UUID] = list(rows.order_by("pk").values_list("pk", flat=True)[:SESSIONS_AT_ONCE])
    while ids:
        yield ids
        ids = list(rows.order_by("pk").filter(pk__gt=ids[-1]).values_list("pk", flat=True)[:SESSIONS_AT_ONCE])


def _missing_turns(rebuild: Rebuild, sessions: Sequence[uuid.UUID], behind: Q) -> list[Any]:
    present = TurnVector.objects.filter(turn=OuterRef("pk"), space=rebuild.space)
    turns = Turn.objects.filter(behind, session__in=sessions, number__lte=F("session__embedded_number"))
    rows = turn_vectors.with_text(turns.filter(~Exists(present)).exclude(pk__in=rebuild.refused))
    return list(rows[:BATCH])


def _put_turns(rebuild: Rebuild, turns: Sequence[Any]) -> int:
    vectors = embed_each(rebuild.space, [turn_vectors.text_of(turn) for turn in turns])
    rebuild.refused |= {key for key, vector in vectors.items() if vector is None}
    with transaction.atomic():
        quick_commit()
        existing = turn_vectors.lock_existing(turns)
        rows = turn_vectors.rows_of(rebuild.space, [turn for turn in turns if turn.pk in existing], vectors)
        TurnVector.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def _missing(kind: Kind, rebuild: Rebuild, ids: Sequence[uuid.UUID]) -> list[Any]:
    embedded = memory_vectors.of(kind)
    same = {embedded.reference: OuterRef("pk"), "text_digest": OuterRef("content_hash")}
    present = embedded.vectors._default_manager.filter(space=rebuild.space, **same)
    rows = kind.rows.filter(pk__in=ids, embedded_hash=F("content_hash"))
    rows = rows.filter(~Exists(present)).exclude(pk__in=rebuild.refused)
    return list(memory_vectors.with_text(kind, rows)[:BATCH])


def _put(kind: Kind, rebuild: Rebuild, rows: Sequence[Any]) -> int:
    vectors = embed_each(rebuild.space, [memory_vectors.text_of(kind, row) for row in rows])
    rebuild.refused |= {key for key, vector in vectors.items() if vector is None}
    with transaction.atomic():
        quick_commit()
        same = memory_vectors.unchanged(kind, rows)
        memory_vectors.write(kind, rebuild.space, same, vectors)
    return len(same)


def _missing_items(rebuild: Rebuild, ids: Sequence[uuid.UUID]) -> list[StoreItem]:
    present = StoreItemVector.objects.filter(
        space=rebuild.space, item=OuterRef("pk"), text_digest=OuterRef("content_hash")
    )
    rows = StoreItem.objects.filter(pk__in=ids, embedded_hash=F("content_hash")).filter(~Exists(present))
    return store_vectors.with_text(rows.exclude(pk__in=rebuild.refused))


def _put_items(rebuild: Rebuild, items: Sequence[StoreItem]) -> int:
    vectors = store_vectors.embed(rebuild.space, items)
    rebuild.refused |= {pk for pk, found in vectors.items() if all(vector is None for vector in found)}
    with transaction.atomic():
        quick_commit()
        return store_vectors.write(rebuild.space, store_vectors.unchanged(items), vectors)


@transaction.atomic
def _switch(rebuild: Rebuild) -> None:
    EmbeddingSpace.objects.serving().update(state=State.RETIRED)
    ready = EmbeddingSpace.objects.filter(pk=rebuild.space.pk)
    ready.update(state=State.SERVING, refused=len(rebuild.refused), failures=0, failure="", paused_until=None)
