"""A batch of turns to vectors: gather, embed without a transaction, write in a short one that rechecks."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import OperationalError, transaction
from django.db.models import F
from django.db.models.functions import Left
from psycopg.errors import LockNotAvailable

from memories.llm.embeddings import BATCH, LONGEST_TEXT
from memories.models import EmbeddingSpace, Session, Turn, TurnVector
from memories.models.conversations import trimmed
from memories.pipeline import spaces
from memories.pipeline.embedding import Round, Text, Vectors, embed_each, quick_commit, storable
from memories.scoring import language


@dataclass(frozen=True)
class Stretch:
    """Turns of one session, beyond the watermark up to `last`, of a person in this generation."""

    session: Session
    last: int
    generation: int
    turns: list[Any]


def embed_turns(space: EmbeddingSpace, done: Round, passing_over: Collection[uuid.UUID]) -> None:
    """Embed a batch of what was said last. Errors: EmbeddingError of the endpoint, with nothing written."""
    stretches = _gather(passing_over)
    turns = [turn for stretch in stretches for turn in stretch.turns]
    vectors = embed_each(space, [text_of(turn) for turn in turns])
    left = _write(space, stretches, vectors, done, wait=False)
    for stretch in left:
        # Alone: whoever waits for one session while holding others would be in the way of bulk posts.
        if _write(space, [stretch], vectors, done, wait=True):
            done.held.add(stretch.session.pk)


def text_of(turn: Any) -> Text:
    """Of a turn that was read with_text()."""
    return Text(turn.pk, turn.end_user_id, turn.text)


def with_text(turns: Any) -> Any:
    """Turns with as much of their `text` as is embedded, and without the rest."""
    found = turns.searchable().annotate(text=Left(trimmed("content"), LONGEST_TEXT)).order_by("session", "number")
    return found.only("tenant", "end_user", "session", "number")


def rows_of(space: EmbeddingSpace, turns: Sequence[Any], vectors: Vectors) -> list[TurnVector]:
    """A row for each turn that has a vector."""
    return [
        TurnVector(
            turn_id=turn.pk,
            space=space,
            tenant_id=turn.tenant_id,
            end_user_id=turn.end_user_id,
            session_id=turn.session_id,
            number=turn.number,
            language=language.of(turn.text),
            vector=storable(vector),
        )
        for turn in turns
        if (vector := vectors[turn.pk]) is not None
    ]


def present(turns: Sequence[Any]) -> set[uuid.UUID]:
    """Those of the turns that are still there and their person's, locked; one that somebody changes or deletes counts
    as absent."""
    rows = Turn.objects.filter(pk__in=[turn.pk for turn in turns]).order_by()
    locked = dict(rows.select_for_update(skip_locked=True, no_key=True).values_list("pk", "end_user"))
    return {turn.pk for turn in turns if locked.get(turn.pk) == turn.end_user_id}


def _gather(passing_over: Collection[uuid.UUID]) -> list[Stretch]:
    """At most BATCH turns of the sessions that were talked in last."""
    rows = Session.objects.unembedded().exclude(pk__in=passing_over).order_by("-last_turn_at")
    rows = rows.only("turn_count", "embedded_number", "end_user__generation").select_related("end_user")
    found: dict[uuid.UUID, Stretch] = {}
    room = BATCH
    for session in rows[:BATCH]:
        last = min(session.turn_count, session.embedded_number + room)
        found[session.pk] = Stretch(session, last, session.end_user.generation, [])
        room -= last - session.embedded_number
        if not room:
            break
    watermark = F("session__embedded_number")
    turns = Turn.objects.filter(session__in=found, number__gt=watermark, number__lte=watermark + BATCH)
    for turn in with_text(turns):
        if turn.number <= found[turn.session_id].last:
            found[turn.session_id].turns.append(turn)
    return list(found.values())


def _write(
    space: EmbeddingSpace, stretches: Sequence[Stretch], vectors: Vectors, done: Round, *, wait: bool
) -> list[Stretch]:
    """Write the vectors and move the watermarks; returned are the stretches whose session somebody else holds."""
    try:
        with transaction.atomic():
            quick_commit()
            if not spaces.may_write(space):
                return []
            free = _lock(stretches, wait=wait)
            _write_free(space, free, vectors, done)
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            return list(stretches)
        raise
    return [] if wait else [stretch for stretch in stretches if stretch not in free]


def _lock(stretches: Sequence[Stretch], *, wait: bool) -> list[Stretch]:
    """Stretches whose session is as it was: not gone, not embedded by another, its person not erased meanwhile."""
    rows = Session.objects.filter(pk__in=[stretch.session.pk for stretch in stretches]).order_by()
    rows = rows.only("embedded_number", "end_user__generation").select_related("end_user")
    locked = rows.select_for_update(of=("self",), skip_locked=not wait, no_key=True)
    now = {session.pk: (session.embedded_number, session.end_user.generation) for session in locked}
    return [
        stretch
        for stretch in stretches
        if now.get(stretch.session.pk) == (stretch.session.embedded_number, stretch.generation)
    ]


def _write_free(space: EmbeddingSpace, stretches: Sequence[Stretch], vectors: Vectors, done: Round) -> None:
    there = present([turn for stretch in stretches for turn in stretch.turns])
    written: list[Any] = []
    for stretch in stretches:
        last = stretch.last
        for turn in stretch.turns:
            if turn.pk not in there:
                # Gone, or held: the next look tells which.
                last = turn.number - 1
                break
            written.append(turn)
        done.moved += last - stretch.session.embedded_number
        stretch.session.embedded_number = last
    TurnVector.objects.bulk_create(rows_of(space, written, vectors), ignore_conflicts=True)
    Session.objects.bulk_update([stretch.session for stretch in stretches], ["embedded_number"])
    done.count(space, [vectors[turn.pk] for turn in written])
