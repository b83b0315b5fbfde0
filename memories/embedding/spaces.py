"""Embedding spaces: which one serves, pauses after failures of its endpoint, and the locks of a switch."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now

from memories.exceptions import EmbeddingError, EmbeddingRefused
from memories.llm import embeddings
from memories.models import EmbeddingSpace, hand_written

State = EmbeddingSpace.SpaceState
_COLUMNS = hand_written.columns_of(EmbeddingSpace)
# By hand, because an agent waits for it before every reply: what of_row() reads, and where the space is.
SELECTED, IS_SERVING = f"{hand_written.selected('space', _COLUMNS)}, statement_timestamp()", "space.state = 'serving'"
_SERVING = f"SELECT {SELECTED} FROM memories_embeddingspace space WHERE {IS_SERVING}"  # noqa: S608  (our own columns)

LONGEST_PAUSE_SECONDS = 30.0
# A Retry-After of the endpoint may be longer, up to this.
LONGEST_STATED_PAUSE_SECONDS = 300.0

# Advisory locks of PostgreSQL, as (class, number). They end with the connection of their holder.
_CLASS = 0x6D68
EMBEDDING = 1
REEMBEDDING = 2
SWITCHING = 3


def serving() -> EmbeddingSpace | None:
    """The space of queries; None before the first text was embedded."""
    row = hand_written.first(_SERVING)
    return of_row(iter(row)) if row else None


def of_row(values: Iterator[Any]) -> EmbeddingSpace | None:
    """The space of the next SELECTED values; None where there is none beside them."""
    space = hand_written.read(EmbeddingSpace, _COLUMNS, values)
    space.clock = next(values)
    return space if space.pk else None


def can_embed(space: EmbeddingSpace) -> bool:
    """Whether its model is configured and not paused; `space` was read with_clock()."""
    paused = space.paused_until is not None and space.paused_until > space.clock
    return embeddings.is_available(space.model) and not paused


def first_space() -> EmbeddingSpace:
    """The serving space, made for the configured model when there is none. Errors: EmbeddingError."""
    model = embeddings.current_model()
    dimensions = embeddings.embed(["word"], model=model).shape[1]
    given = {"dimensions": dimensions, "state": State.SERVING, "created_at": Now()}
    # Another process, with another model, may have been first.
    with suppress(IntegrityError):
        EmbeddingSpace.objects.update_or_create(model=model, defaults=given)
    return EmbeddingSpace.objects.serving().with_clock().get()


def pause_after(failures: int) -> float:
    """Seconds without calls after so many failures in a row: 1, 2, 4 … 30."""
    return min(LONGEST_PAUSE_SECONDS, 2.0 ** min(failures - 1, 10))


@transaction.atomic
def note_failure(space: EmbeddingSpace, error: EmbeddingError) -> None:
    """Pause all calls to the endpoint. A refused text is no failure of the endpoint."""
    if isinstance(error, EmbeddingRefused):
        return
    row = EmbeddingSpace.objects.with_clock().select_for_update(no_key=True).get(pk=space.pk)
    row.failures, row.failure = row.failures + 1, error.code
    stated = min(error.retry_after or 0.0, LONGEST_STATED_PAUSE_SECONDS)
    until = row.clock + timedelta(seconds=max(pause_after(row.failures), stated))
    row.paused_until = max(until, row.paused_until or until)
    row.save(update_fields=["failures", "failure", "paused_until"])


def note_answer(space: EmbeddingSpace) -> None:
    """The endpoint works: end its pause."""
    if space.failures:
        EmbeddingSpace.objects.filter(pk=space.pk).update(failures=0, failure="", paused_until=None)


def try_lock(number: int) -> bool:
    """Take an advisory lock until unlock() or the end of the connection; False when another connection has it."""
    return _locked("pg_try_advisory_lock", number)


def unlock(number: int) -> None:
    _locked("pg_advisory_unlock", number)


def may_write(space: EmbeddingSpace) -> bool:
    """Whether this transaction may write vectors of the space: no switch is running, and none has happened."""
    if not _locked("pg_try_advisory_xact_lock_shared", SWITCHING):
        return False
    return EmbeddingSpace.objects.serving().filter(pk=space.pk).exists()


@contextmanager
def switching() -> Iterator[None]:
    """Wait until nobody writes vectors of the serving space, and keep writers out."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s, %s)", [_CLASS, SWITCHING])
    try:
        yield
    finally:
        unlock(SWITCHING)


def _locked(function: str, number: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s, %s)", [_CLASS, number])  # one of the names above
        (done,) = cursor.fetchone()
    return bool(done)
