"""/trajectories: what agents did for a task, step by step, and how it came out."""

from typing import Any
from uuid import UUID

from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound, NamedRow
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.fields import page_of
from memories.api.v1.filters import selected
from memories.api.v1.trajectories.serializers import (
    NewTrajectorySerializer,
    StepSerializer,
    StepsQuery,
    StepsSerializer,
    TrajectoriesQuery,
    TrajectoryChangesSerializer,
    TrajectoryReceiptSerializer,
    TrajectorySerializer,
    trajectory_of,
)
from memories.capture.trajectories import TrajectoryReceipt, append_steps, store_trajectory
from memories.curation.statements import guarding
from memories.curation.trajectories import delete_trajectory
from memories.models import Scope, Trajectory

_NAMED = NamedRow("trajectory_id", Trajectory, "agent_id")
_LONG = ("content", "arguments")


class TrajectoriesView(Endpoint):
    @operation(
        "listTrajectories",
        "List a person's trajectories, newest first",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[TrajectoriesQuery],
        answers={200: page_of(TrajectorySerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(TrajectoriesQuery)
        person = lookups.readable_person(tenant=self.tenant, user_id=given["user_id"])
        rows = Trajectory.objects.of(self.tenant, person) if person else Trajectory.objects.none()
        rows = selected(rows, TrajectoriesQuery, given)
        return self.listed(rows, TrajectorySerializer, given=given, long=("task", "outcome_reason"))

    @operation(
        "postTrajectory",
        "Store what an agent did for a task",
        description="Steps can come with it, or later. One whose `external_id` the person has already is answered as "
        "it is stored. Without an `outcome`, the exit code of the last test run says how it came out, else the "
        "person's next words in the session. Secrets are cut out; nothing of it becomes a fact.",
        scope=Scope.INGEST,
        bound=Bound.NAMED,
        request=NewTrajectorySerializer,
        answers={202: TrajectoryReceiptSerializer},
        problems=(409, 410, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(NewTrajectorySerializer)
        receipt = store_trajectory(
            tenant=self.tenant,
            user_id=given["user_id"],
            posted=trajectory_of(given),
            now=self.now,
            trust=self.write_trust().trust,
        )
        return _answer(self, receipt)


class TrajectoryView(Endpoint):
    @operation(
        "getTrajectory",
        "Get a trajectory, without its steps",
        scope=Scope.READ,
        bound=_NAMED,
        answers={200: TrajectorySerializer},
        problems=(404, 423),
    )
    def get(self, request: Request, trajectory_id: UUID) -> Response:
        return Response(self.shown(_readable(self, trajectory_id), TrajectorySerializer))

    @operation(
        "changeTrajectory",
        "State how a task came out",
        description="A weaker source replaces no stronger one: `application`, then `tests`, then `person`. A key "
        "that writes as an agent gets 409 `review_needed` where one that writes as the user stored it.",
        scope=Scope.INGEST,
        bound=_NAMED,
        request=TrajectoryChangesSerializer,
        answers={200: TrajectorySerializer},
        problems=(404, 409, 423),
    )
    def patch(self, request: Request, trajectory_id: UUID) -> Response:
        receipt = _appended(self, trajectory_id, self.body(TrajectoryChangesSerializer))
        row = receipt.trajectory or _readable(self, trajectory_id)
        return Response(self.shown(row, TrajectorySerializer))

    @operation(
        "deleteTrajectory",
        "Delete a trajectory with its steps, for good",
        scope=Scope.WRITE,
        bound=_NAMED,
        answers={204: None},
        problems=(404, 409, 423),
    )
    def delete(self, request: Request, trajectory_id: UUID) -> Response:
        delete_trajectory(
            trajectory_id=trajectory_id,
            tenant=self.tenant,
            actor=self.actor,
            now=self.now,
            write_trust=self.write_trust(),
        )
        return Response(status=204)


class TrajectoryStepsView(Endpoint):
    @operation(
        "listTrajectorySteps",
        "List the steps of a trajectory in their order",
        scope=Scope.READ,
        bound=_NAMED,
        parameters=[StepsQuery],
        answers={200: page_of(StepSerializer)},
        problems=(404, 423),
    )
    def get(self, request: Request, trajectory_id: UUID) -> Response:
        given = self.query(StepsQuery)
        steps = _readable(self, trajectory_id).steps.all()
        return self.listed(steps, StepSerializer, given=given, ordering=["position"], long=_LONG)

    @operation(
        "postTrajectorySteps",
        "Add steps to a trajectory",
        description="A call, or a result, whose `call_id` it has already is not stored again.",
        scope=Scope.INGEST,
        bound=_NAMED,
        request=StepsSerializer,
        answers={202: TrajectoryReceiptSerializer},
        problems=(404, 409, 423),
        idempotent=True,
    )
    def post(self, request: Request, trajectory_id: UUID) -> Response:
        return _answer(self, _appended(self, trajectory_id, self.body(StepsSerializer)))


def _readable(view: Endpoint, trajectory_id: UUID) -> Trajectory:
    """Errors: NotFound, PersonRestricted."""
    found = lookups.found(Trajectory.objects.select_related("end_user"), tenant=view.tenant, pk=trajectory_id)
    lookups.require_unrestricted(found.end_user)
    return found


def _appended(view: Endpoint, trajectory_id: UUID, given: dict[str, Any]) -> TrajectoryReceipt:
    if given.get("outcome"):
        guarding.check_outranks(_readable(view, trajectory_id).trust, view.write_trust())
    return append_steps(
        tenant=view.tenant,
        trajectory_id=trajectory_id,
        posted=given.get("steps", ()),
        outcome=given.get("outcome"),
        skills=given.get("skills", ()),
        ended_at=given.get("ended_at"),
        now=view.now,
    )


def _answer(view: Endpoint, receipt: TrajectoryReceipt) -> Response:
    row = receipt.trajectory
    if row:
        view.subjects.add(row.end_user_id)
    answer = {
        "trajectory": view.shown(row, TrajectorySerializer) if row else None,
        "duplicate": receipt.duplicate,
        "accepted": receipt.accepted,
        "duplicates": receipt.duplicates,
        "redactions": receipt.redactions,
        "cut": receipt.cut,
    }
    return Response(answer, status=202)


URLS = (
    path("trajectories", TrajectoriesView.as_view()),
    path("trajectories/<uuid:trajectory_id>", TrajectoryView.as_view()),
    path("trajectories/<uuid:trajectory_id>/steps", TrajectoryStepsView.as_view()),
)
