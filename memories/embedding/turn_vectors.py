"""Embeds a batch of turns: gather, embed and judge without a transaction, then check again and write in a short one."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models import Case, F, Q, TextField, Value, When
from django.db.models.functions import Left
from psycopg.errors import LockNotAvailable

from memories.embedding import spaces
from memories.embedding.batching import EmbeddableText, Round, Vectors, embed_each, quick_commit, storable
from memories.llm.embeddings import BATCH, LONGEST_TEXT
from memories.models import NOT_THE_PERSONS, EmbeddingSpace, Session, Turn, TurnVector
from memories.models.conversations.conversations import BLANKS, trimmed
from memories.scoring import code, language
from memories.text.injection import flagged_turns

# Turn → its row, if the model took its text.
Rows = Mapping[uuid.UUID, TurnVector]
# Turn → whether it is flagged.
Verdicts = Mapping[uuid.UUID, bool]
_MOVE = """
    UPDATE memories_session SET embedded_number = moved.number FROM unnest(%s::uuid[], %s::int[]) moved (id, number)
    WHERE memories_session.id = moved.id
"""
_UNJUDGED = (Q(role__in=flagged_turns.JUDGED) | NOT_THE_PERSONS) & Q(flagged=None)


@dataclass(frozen=True)
class TurnRange:
    """Turns of one session, beyond the watermark up to `last`, of a person in this generation."""

    session: Session
    last: int
    generation: int
    turns: list[Any] = field(default_factory=list)


def embed_turns(space: EmbeddingSpace, done: Round, passing_over: Collection[uuid.UUID]) -> None:
    """Embed a batch of the newest turns. Errors: EmbeddingError of the endpoint, with nothing written."""
    ranges = _gather(passing_over)
    turns = [turn for part in ranges for turn in part.turns]
    vectors = embed_each(space, [text_of(turn) for turn in turns])
    verdicts = _verdicts(turns)
    # Before the locks, for which posts to these sessions wait.
    rows = {row.turn_id: row for row in rows_of(space, turns, vectors)}
    for part in _write(space, ranges, rows, verdicts, done, wait=False):
        # One at a time: waiting for one session while holding others would block bulk posts.
        if _write(space, [part], rows, verdicts, done, wait=True):
            done.held.add(part.session.pk)


def _gather(passing_over: Collection[uuid.UUID]) -> list[TurnRange]:
    """At most BATCH turns of the sessions with the newest turns."""
    sessions = Session.objects.unembedded().exclude(pk__in=passing_over).order_by("-last_turn_at")
    sessions = sessions.only("turn_count", "embedded_number", "end_user__generation").select_related("end_user")
    found: dict[uuid.UUID, TurnRange] = {}
    left = BATCH
    for session in sessions[:BATCH]:
        last = min(session.turn_count, session.embedded_number + left)
        found[session.pk] = TurnRange(session, last, session.end_user.generation)
        left -= last - session.embedded_number
        if not left:
            break
    watermark = F("session__embedded_number")
    turns = Turn.objects.filter(session__in=found, number__gt=watermark, number__lte=watermark + BATCH)
    unjudged = Case(When(_UNJUDGED, then=F("content")), default=Value(""), output_field=TextField())
    for turn in with_text(turns).annotate(unjudged=unjudged):
        if turn.number <= found[turn.session_id].last:
            found[turn.session_id].turns.append(turn)
    return list(found.values())


def with_text(turns: Any) -> Any:
    """Turns with the part of their text that is embedded."""
    # Where a part of the text is its author's own, the whole of it is read.
    mixed = Case(When(own__isnull=False, then=F("content")), default=Value(""), output_field=TextField())
    found = turns.searchable().annotate(text=Left(trimmed("content"), LONGEST_TEXT), mixed=mixed)
    return found.order_by("session", "number").only("tenant", "end_user", "session", "number", "redacted_at", "own")


def text_of(turn: Any) -> EmbeddableText:
    """Of a turn that was read with_text(): what it tells beside the code in it."""
    text = turn.text
    if turn.own is not None:
        text = "\n\n".join(turn.mixed[start:end] for start, end in turn.own).strip(BLANKS)[:LONGEST_TEXT]
    return EmbeddableText(turn.pk, turn.end_user_id, code.prose(text))


def _verdicts(turns: Sequence[Any]) -> Verdicts:
    unjudged = [turn for turn in turns if turn.unjudged]
    found = flagged_turns.verdicts([turn.unjudged for turn in unjudged])
    return {turn.pk: verdict for turn, verdict in zip(unjudged, found, strict=True) if verdict is not None}


def _write(
    space: EmbeddingSpace,
    ranges: Sequence[TurnRange],
    rows: Rows,
    verdicts: Verdicts,
    done: Round,
    *,
    wait: bool,
) -> list[TurnRange]:
    """Write vectors and verdicts and move the watermarks. Returned are the ranges whose session somebody else holds."""
    try:
        with transaction.atomic():
            quick_commit()
            if not spaces.may_write(space):
                return []
            free = _lock(ranges, wait=wait)
            written = _write_vectors(space, free, rows, done)
            for flagged in (False, True):
                judged = [turn.pk for turn in written if verdicts.get(turn.pk) is flagged]
                if judged:
                    # An earlier verdict stays.
                    Turn.objects.filter(pk__in=judged, flagged=None).update(flagged=flagged)
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            return list(ranges)
        raise
    return [] if wait else [part for part in ranges if part not in free]


def _lock(ranges: Sequence[TurnRange], *, wait: bool) -> list[TurnRange]:
    """Ranges whose session is unchanged: not deleted, not embedded by another process, its person not erased."""
    rows = Session.objects.filter(pk__in=[part.session.pk for part in ranges]).order_by()
    rows = rows.only("embedded_number", "end_user__generation").select_related("end_user")
    locked = rows.select_for_update(of=("self",), skip_locked=not wait, no_key=True)
    now = {session.pk: (session.embedded_number, session.end_user.generation) for session in locked}
    return [part for part in ranges if now.get(part.session.pk) == (part.session.embedded_number, part.generation)]


def _write_vectors(space: EmbeddingSpace, ranges: Sequence[TurnRange], rows: Rows, done: Round) -> list[Any]:
    """Returned are the turns that still exist; they are locked."""
    existing = lock_existing([turn for part in ranges for turn in part.turns])
    written: list[Any] = []
    for part in ranges:
        last = part.last
        for turn in part.turns:
            if turn.pk not in existing:
                # Deleted, or locked by somebody: the next round finds out.
                last = turn.number - 1
                break
            written.append(turn)
        done.moved += last - part.session.embedded_number
        part.session.embedded_number = last
    TurnVector.objects.bulk_create([rows[turn.pk] for turn in written if turn.pk in rows], ignore_conflicts=True)
    with connection.cursor() as cursor:
        sessions = [part.session for part in ranges]
        cursor.execute(_MOVE, [[one.pk for one in sessions], [one.embedded_number for one in sessions]])
    done.count(space, [rows.get(turn.pk) for turn in written])
    return written


def lock_existing(turns: Sequence[Any]) -> set[uuid.UUID]:
    """Lock the turns that still exist, say the same, are of the conversation and belong to the same person. One that
    somebody else has locked is left out."""
    rows = Turn.objects.filter(pk__in=[turn.pk for turn in turns]).current().order_by()
    held = rows.select_for_update(skip_locked=True, no_key=True).values_list("pk", "end_user", "redacted_at")
    locked = {pk: (person, redacted_at) for pk, person, redacted_at in held}
    return {turn.pk for turn in turns if locked.get(turn.pk) == (turn.end_user_id, turn.redacted_at)}


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
