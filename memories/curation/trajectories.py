"""Trajectories that somebody deletes, alone or with their session, and what a turn no longer says."""

import json
import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from memories import audit
from memories.audit import Actor
from memories.capture.trajectories import locked_trajectory
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.invisible import strip_invisible
from memories.models import Session, Tenant, Trajectory, TrajectoryStep, Turn
from memories.models.conversations.trajectories import LONGEST_CONTENT, LONGEST_TASK
from memories.skills import founding

_SHORTEST = 12
# A passage, and whether it goes from within longer texts, too.
_Passages = list[tuple[str, bool]]


def delete_trajectory(
    *, trajectory_id: uuid.UUID, tenant: Tenant, actor: Actor, now: datetime, write_trust: WriteTrust = AS_USER
) -> None:
    """Delete a trajectory with its steps, for good. Errors: NotFound, PersonRestricted for a key, ReviewNeeded where
    the `write_trust` may not end it."""
    with transaction.atomic():
        row = locked_trajectory(trajectory_id, tenant, restricted=actor.is_operator)
        guarding.check_outranks(row.trust, write_trust)
        counts = {"steps": row.step_count}
        audit.record(actor=actor, verb="delete", target=row, now=now, counts=counts)
        _delete(Trajectory.objects.filter(pk=row.pk), now=now)


def delete_of_session(session: Session, *, now: datetime) -> int:
    """Delete what was done in the session; how many. In the transaction that locked its person."""
    return _delete(Trajectory.objects.of_session(session), now=now)


def texts_of(turn: Turn) -> list[str]:
    """What a turn says, as steps repeat it: its text, and what its calls of tools were given."""
    calls = [call.get("function") for call in turn.tool_calls or [] if isinstance(call, dict)]
    given = [one.get("arguments") for one in calls if isinstance(one, dict)]
    return [text for text in (turn.content, *_strings(given)) if text.strip()]


def redact_in_session(session: Session, passages: Iterable[str], *, mark: str, chosen: bool, now: datetime) -> None:
    """Put the mark in place of these passages in what was done in the session. In the transaction that locked its
    person. `chosen`: somebody named them; else a short one goes only where it is all of a text, as others say "ok"."""
    texts = sorted({one for passage in passages for one in _as_stored(passage)}, key=len, reverse=True)
    gone = [(one, chosen or len(one) >= _SHORTEST) for one in texts]
    rows = list(Trajectory.objects.of_session(session).order_by("pk")) if gone else []
    for row in rows:
        before = row.task, row.outcome_reason
        row.task, row.outcome_reason = (_without(text, gone, mark) for text in before)
        if before != (row.task, row.outcome_reason):
            row.save(update_fields=["task", "outcome_reason"])
    steps = TrajectoryStep.objects.filter(trajectory__in=[row.pk for row in rows]).order_by("pk")
    for step in steps.iterator(chunk_size=200) if rows else ():
        said = step.content, step.arguments
        step.content, step.arguments = (_without(value, gone, mark) for value in said)
        if said != (step.content, step.arguments):
            step.save(update_fields=["content", "arguments"])
    founding.forget([row.pk for row in rows], now=now, passages=[passage for passage, within in gone if within])


def _delete(rows: QuerySet[Trajectory], *, now: datetime) -> int:
    ids = list(rows.order_by("pk").values_list("pk", flat=True))
    founding.forget(ids, now=now)
    steps = TrajectoryStep.objects.filter(trajectory__in=ids)
    steps._raw_delete(steps.db)
    Trajectory.objects.filter(pk__in=ids).delete()
    return len(ids)


def _as_stored(passage: str) -> Iterator[str]:
    """The passage as a trajectory can have it: without what nobody sees, and cut."""
    clean = strip_invisible(passage)
    if clean.strip():
        yield clean
        yield from (clean[:most] for most in (LONGEST_CONTENT, LONGEST_TASK) if len(clean) > most)


def _strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value, and in those that are written as texts."""
    if isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)
    elif isinstance(value, str):
        yield value
        if value.lstrip().startswith(("{", "[")):
            try:
                yield from _strings(json.loads(value))
            except (ValueError, RecursionError):
                return


def _without(value: Any, passages: _Passages, mark: str) -> Any:
    if isinstance(value, dict):
        return {name: _without(one, passages, mark) for name, one in value.items()}
    if isinstance(value, list):
        return [_without(one, passages, mark) for one in value]
    if not isinstance(value, str):
        return value
    for passage, within in passages:
        value = value.replace(passage, mark) if within else mark if value == passage else value
    return value
