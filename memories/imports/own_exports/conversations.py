"""Rows of conversations: sessions with what waits of them, turns and whose words they hold, episodes."""

import uuid
from collections.abc import Sequence

from django.db.models import F
from django.db.models.functions import Greatest

from memories import content_policy
from memories.capture.ingest import PostedMessage, attribute
from memories.imports.own_exports.values import built, inner
from memories.imports.own_exports.ways import (
    Given,
    Here,
    Row,
    check,
    check_policy,
)
from memories.imports.raw_documents import RefusedDocumentError
from memories.models import (
    Episode,
    ImportedRow,
    Road,
    Role,
    Session,
    SessionQueue,
    Turn,
    WorkingMemory,
)
from memories.scoring import terms


def session(_here: Here, made: Session, _: Given) -> None:
    # Its turns raise these as they come.
    made.turn_count = made.token_count = made.round_count = 0


def beside_sessions(here: Here, rows: Sequence[Row]) -> None:
    queues, windows, policy = [], [], content_policy.in_force(here.tenant)
    for row in rows:
        queue, window = (inner(row.given, name) for name in ("queue", "working_memory"))
        known = {"tenant_id": here.tenant.pk, "session_id": row.made.pk}
        done = built(SessionQueue, {"extracted_number": queue.get("extracted_number", 0)}).extracted_number
        count = row.given.get("turn_count")
        waits = isinstance(count, int) and done < count
        since = here.now if waits else None
        queues.append(SessionQueue(**known, extracted_number=done, pending_user=waits, first_pending_at=since))
        own = built(WorkingMemory, {**window, "parked_at": None, "failure": ""})
        own.tenant_id, own.session_id, own.episode_number = here.tenant.pk, row.made.pk, own.left_number
        own.summary = policy.without(own.summary)[0] if policy else own.summary
        windows.append(own)
    SessionQueue.objects.bulk_create(queues)
    WorkingMemory.objects.bulk_create(windows)


def turn(_here: Here, made: Turn, _: Given) -> None:
    if isinstance(made.parts, dict) or isinstance(made.tool_calls, dict):
        raise RefusedDocumentError("/parts invalid")
    by = made.author
    attribute(made, PostedMessage(made.role, made.content, author=by))
    made.author = by
    made.terms = terms.pack(made.own_text) if made.is_searchable else None


def noted_turns(rows: Sequence[Row]) -> list[ImportedRow]:
    """Runs of numbers that follow each other, of each session."""
    found: list[ImportedRow] = []
    for turn in sorted((row.made for row in rows), key=lambda made: (made.session_id, made.number)):
        last = found[-1] if found else None
        if last and (last.row, last.last + 1) == (turn.session_id, turn.number):
            last.last = turn.number
        else:
            found.append(
                ImportedRow(kind=ImportedRow.Kind.TURNS, row=turn.session_id, first=turn.number, last=turn.number)
            )
    return found


def beside_turns(_here: Here, rows: Sequence[Row]) -> None:
    """Their sessions count them; a window has what has not left it."""
    by_session: dict[uuid.UUID, list[Turn]] = {}
    for row in rows:
        by_session.setdefault(row.made.session_id, []).append(row.made)
    for session, turns in by_session.items():
        own = Session.objects.filter(pk=session)
        first = min(turn.number for turn in turns)
        own.filter(turn_count=0).update(deleted_number=first - 1)
        own.update(
            turn_count=Greatest("turn_count", max(turn.number for turn in turns)),
            token_count=F("token_count") + sum(turn.token_count for turn in turns),
            round_count=F("round_count") + sum(turn.role == Role.USER for turn in turns),
        )
        window = WorkingMemory.objects.get(pk=session)
        left = [turn for turn in turns if turn.left_at or turn.number <= window.left_number]
        window.left_tokens += sum(turn.token_count for turn in left)
        window.left_rounds += sum(turn.role == Role.USER for turn in left)
        window.save(update_fields=["left_tokens", "left_rounds"])


def episode(here: Here, made: Episode, _: Given) -> None:
    if not made.summary or made.first_number > made.last_number:
        raise RefusedDocumentError("/summary invalid")
    check(here, made, *made.text.split("\n"), made.text)
    check_policy(here, Road.EPISODE, *made.texts)
    made.set_text(made.summary)


def beside_episodes(_here: Here, rows: Sequence[Row]) -> None:
    """Turns that they tell of need no other episode."""
    for row in rows:
        WorkingMemory.objects.filter(pk=row.made.session_id).update(
            episode_number=Greatest("episode_number", row.made.last_number), episodes_made=F("episodes_made") + 1
        )
