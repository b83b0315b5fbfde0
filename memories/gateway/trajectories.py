"""Calls of tools that pass through the gateway: where the tenant wants it, they become one trajectory of their session.

It is made of the turns that were stored just now, in their transaction: what is sent again with every request is stored
once. The person's words stay turns; of them only what was asked for, before the first call, is the task.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from memories import conf
from memories.capture import trajectories
from memories.capture.ingest import Receipt
from memories.capture.trajectories import PostedStep, PostedTrajectory
from memories.curation.statements.write_trust import write_trust_of
from memories.exceptions import NotFound, PersonRestricted, TooManySecrets, TooManySteps, TooManyTrajectories
from memories.models import APIKey, Role, Session, Trajectory, TrajectoryStep, Turn

Kind = TrajectoryStep.Kind


def extend(receipt: Receipt, key: APIKey, *, now: datetime) -> None:
    """Add what was stored just now. In the transaction that stored it; what does not fit any more is left out, and the
    turns stay."""
    session = receipt.session
    if session is None or not conf.rules(session.tenant).gateway_trajectories:
        return
    numbers = [turn.number for turn in receipt.turns if not turn.duplicate]
    new = list(Turn.objects.filter(session=session, number__in=numbers).order_by("number")) if numbers else []
    steps = [step for turn in new for step in _steps(turn)]
    rows = Trajectory.objects.of_session(session).filter(road=Trajectory.Road.GATEWAY)
    row = rows.order_by("-created_at", "-id").first()
    if row is None and not any(step.kind in (Kind.TOOL_CALL, Kind.TOOL_RESULT) for step in steps):
        return
    try:
        if row is None:
            _begin(session, steps, key, first=numbers[0], now=now)
        elif steps:
            trajectories.append_steps(tenant=session.tenant, trajectory_id=row.pk, posted=steps, now=now)
    except (NotFound, PersonRestricted, TooManySecrets, TooManySteps, TooManyTrajectories):
        return


def _begin(session: Session, steps: Sequence[PostedStep], key: APIKey, *, first: int, now: datetime) -> None:
    asked = Turn.objects.filter(session=session).said().current().order_by("-number")
    # What asked for the first call: it came with it or before.
    task = asked.filter(number__lte=first).first() or asked.last()
    posted = PostedTrajectory(
        task=task.own_text if task else "",
        agent_id=session.agent_id,
        session_id=session.external_id,
        steps=steps,
        started_at=task.sent_at if task else now,
        road=Trajectory.Road.GATEWAY,
    )
    trajectories.store_trajectory(
        tenant=session.tenant,
        user_id=session.end_user.external_id,
        posted=posted,
        now=now,
        trust=write_trust_of(writes_as=key.writes_as, stated_by=None).trust,
    )


def _steps(turn: Turn) -> Iterator[PostedStep]:
    """What the agent said and called in a turn, or what a tool answered."""
    if turn.role == Role.TOOL:
        yield PostedStep(Kind.TOOL_RESULT, call_id=turn.tool_call_id, content=turn.content, at=turn.sent_at)
    if turn.role != Role.ASSISTANT:
        return
    if turn.content.strip():
        yield PostedStep(Kind.MESSAGE, content=turn.content, at=turn.sent_at)
    for call in turn.tool_calls or []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield PostedStep(
                Kind.TOOL_CALL,
                tool=_text(function.get("name")),
                call_id=_text(call.get("id")),
                arguments=function.get("arguments"),
                at=turn.sent_at,
            )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)
