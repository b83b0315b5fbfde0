"""Trajectories as tests make them, and people who have them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from memories.models import EndUser, Tenant, Trajectory, TrajectoryStep, Trust
from tests import factories
from tests.factories import NOW

Outcome, Kind = Trajectory.Outcome, TrajectoryStep.Kind
HOUR = timedelta(hours=1)
# A call of a tool: its name and its arguments.
Call = tuple[str, dict[str, Any]]

# What those who succeed in a kind of task do, and those who fail leave out.
GOOD: Sequence[Call] = (
    ("open_project", {"clean": True}),
    ("run_migrations", {"target": "latest"}),
    ("run_tests", {"suite": "all"}),
)
BAD: Sequence[Call] = (("open_project", {"clean": True}), ("skip_migrations", {}), ("push", {"force": True}))


def trajectory(
    person: EndUser,
    calls: Sequence[Call] = GOOD,
    *,
    succeeded: bool | None = True,
    family: str = "release service",
    now: datetime = NOW,
    said: str = "",
    **over: Any,
) -> Trajectory:
    """One with these calls; `said`: a message of its own before them. `succeeded=None`: nobody knows."""
    outcome = {True: Outcome.SUCCEEDED, False: Outcome.FAILED, None: Outcome.UNKNOWN}[succeeded]
    given = {"task": "Release the service", "trust": Trust.USER, "started_at": now, "ended_at": now + HOUR, **over}
    row = Trajectory.objects.create(
        tenant=person.tenant,
        end_user=person,
        family=family,
        outcome=outcome,
        created_at=now,
        updated_at=now,
        step_count=len(calls),
        **given,
    )
    steps = [TrajectoryStep(kind=Kind.MESSAGE, content=said)] if said else []
    for tool, arguments in calls:
        steps.append(TrajectoryStep(kind=Kind.TOOL_CALL, tool=tool, arguments=arguments))
        steps.append(TrajectoryStep(kind=Kind.TOOL_RESULT, tool=tool, content="done"))
    for place, step in enumerate(steps, start=1):
        step.tenant_id, step.trajectory, step.position = person.tenant_id, row, place
    TrajectoryStep.objects.bulk_create(steps)
    return row


def people(number: int = 2, owner: Tenant | None = None, **numbers: Any) -> list[EndUser]:
    """People of a tenant that has skills switched on."""
    owner = owner or factories.tenant(**{"skills": True, **numbers})
    return [factories.end_user(owner) for _ in range(number)]


def lessons(persons: Sequence[EndUser], **over: Any) -> list[Trajectory]:
    """Of each of these people two that succeeded and one that failed."""
    found = []
    for person in persons:
        found += [
            trajectory(person, **over),
            trajectory(person, **over),
            trajectory(person, BAD, succeeded=False, **over),
        ]
    return found
