"""Trajectories: posted, listed, extended, and how they came out."""

from collections.abc import Mapping
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from memories.api.v1.fields import (
    AgentId,
    CleanText,
    ExactText,
    Flag,
    Identifier,
    Moment,
    OneOf,
    OrNull,
    PageQuery,
    Strict,
    Timestamp,
    Whole,
    Words,
    json_size,
)
from memories.api.v1.filters import where
from memories.capture.trajectories import PostedStep, PostedTrajectory
from memories.exceptions import Fault, MessageTooLarge
from memories.models import Trajectory, TrajectoryStep, Trust
from memories.models.conversations.trajectories import (
    LONGEST_ARGUMENTS,
    LONGEST_CONTENT,
    LONGEST_FAMILY,
    LONGEST_REASON,
    LONGEST_SKILL,
    LONGEST_TASK,
    LONGEST_TOOL,
    MOST_SKILLS,
)
from memories.text.outcomes import APPLICATION, Outcome

MAX_STEPS = 1_000
MAX_STEP_BYTES = 1024 * 1024
# Of exit codes, as the database holds them.
_LOWEST, _HIGHEST = -(2**31), 2**31 - 1
_RESULTS = Trajectory.Outcome.values
# Who else than the application may be named as the one who says so: as it states them, the hub does not look itself.
_SOURCES = Trajectory.OutcomeSource.values


class _OutcomeObject(Strict):
    """How the task came out, and who says so."""

    result = OneOf(_RESULTS)
    source = OneOf(  # type: ignore[assignment]
        _SOURCES,
        required=False,
        default=APPLICATION,
        help_text="Who says so: the application itself, its tests, or the person. A weaker one replaces no stronger.",
    )
    reason = ExactText(required=False, allow_blank=True, max_length=LONGEST_REASON, help_text="Why, in words.")


_OUTCOME_SCHEMA: dict[str, Any] = {
    "oneOf": [
        {"type": "string", "enum": _RESULTS},
        {
            "type": "object",
            "required": ["result"],
            "properties": {
                "result": {"type": "string", "enum": _RESULTS},
                "source": {"type": "string", "enum": _SOURCES, "default": APPLICATION},
                "reason": {"type": "string", "maxLength": LONGEST_REASON},
            },
        },
    ]
}


@extend_schema_field(_OUTCOME_SCHEMA)
class OutcomeField(serializers.Field[Any, Any, Any, Any]):
    """A result, or an object that also says who says so and why."""

    is_free: ClassVar[bool] = True
    default_error_messages = {"invalid": f"Give one of: {', '.join(_RESULTS)}; or an object with a `result`."}

    def to_internal_value(self, data: Any) -> Outcome:
        if isinstance(data, str) and data in _RESULTS:
            return Outcome(data, APPLICATION)
        if not isinstance(data, Mapping):
            self.fail("invalid")
        given = _OutcomeObject().run_validation(dict(data))
        return Outcome(given["result"], given["source"], given.get("reason", ""))

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field({"oneOf": [{"type": "object", "additionalProperties": True}, {"type": "string"}]})
class Arguments(serializers.Field[Any, Any, Any, Any]):
    """What a tool was given: an object, or a text."""

    is_free: ClassVar[bool] = True
    default_error_messages = {"invalid": "Give an object, or a string."}

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict | str):
            self.fail("invalid")
        return data

    def to_representation(self, value: Any) -> Any:
        return value


class NewStepSerializer(Strict):
    """A step to store: what the agent says, a call of a tool, its result, or a note."""

    kind = OneOf(TrajectoryStep.Kind.values)
    tool = ExactText(required=False, allow_blank=True, allow_null=True, max_length=LONGEST_TOOL)
    call_id = Identifier(
        required=False,
        allow_null=True,
        help_text="Of a call, and of its result. A trajectory stores each of the two once.",
    )
    arguments = Arguments(
        required=False, allow_null=True, help_text=f"Cut beyond {LONGEST_ARGUMENTS:,} characters of JSON."
    )
    content = ExactText(
        required=False, allow_blank=True, allow_null=True, help_text=f"Cut beyond {LONGEST_CONTENT:,} characters."
    )
    exit_code = Whole(
        required=False,
        allow_null=True,
        min_value=_LOWEST,
        max_value=_HIGHEST,
        help_text="Of a command. Absent: as the result's text tells.",
    )
    is_error = Flag(required=False)
    at = Moment(required=False, allow_null=True, help_text="Your own time; never decides the order.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["kind"] == TrajectoryStep.Kind.TOOL_CALL and not (attrs.get("tool") or "").strip():
            raise ValidationError({"tool": ["Name the tool that was called."]}, code="blank")
        return attrs


class _Additions(Strict):
    steps = serializers.ListField(child=NewStepSerializer(), required=False, max_length=MAX_STEPS)
    outcome = OutcomeField(
        required=False, allow_null=True, help_text="How it came out. Absent: as the last test run, or the person, says."
    )
    skills = Words(
        child=ExactText(max_length=LONGEST_SKILL),
        required=False,
        max_length=MOST_SKILLS,
        help_text="Names of skills that the agent followed.",
    )
    ended_at = Moment(
        required=False, allow_null=True, help_text="When it was done: what the person says from then on is about it."
    )

    def validate_steps(self, steps: list[dict[str, Any]]) -> list[PostedStep]:
        for at, step in enumerate(steps):
            arguments = step.get("arguments")
            size = len((step.get("content") or "").encode()) + (json_size(arguments) if arguments else 0)
            if size > MAX_STEP_BYTES:
                detail = "A step can have at most 1 MB: its text and its arguments together."
                raise MessageTooLarge(faults=[Fault(f"/steps/{at}", MessageTooLarge.code, detail)])
        return [_step(step) for step in steps]


class NewTrajectorySerializer(_Additions):
    user_id = Identifier()
    agent_id = AgentId(help_text="Lower-cased; null for none.")
    session_id = Identifier(
        required=False, allow_null=True, help_text="Of the conversation that it was done in, as turns have it."
    )
    external_id = Identifier(required=False, allow_null=True, help_text="Your own id; the person has it once.")
    task = CleanText(max_length=LONGEST_TASK, help_text="What was to be done.")
    family = CleanText(
        required=False,
        allow_blank=True,
        allow_null=True,
        max_length=LONGEST_FAMILY,
        help_text="Your label for tasks of this kind.",
    )
    started_at = Moment(required=False, allow_null=True)


class StepsSerializer(_Additions):
    """Steps to add; at least one."""

    def validate(self, attrs: Any) -> Any:
        if not attrs.get("steps"):
            raise ValidationError({"steps": ["Give at least one step."]}, code="empty")
        return attrs


class TrajectoryChangesSerializer(_Additions):
    """How it came out, said later."""

    steps = None  # type: ignore[assignment]

    def validate(self, attrs: Any) -> Any:
        if not attrs:
            raise ValidationError("Name at least one field to change.", code="empty")
        return attrs


class TrajectoriesQuery(PageQuery):
    user_id = Identifier()
    agent_id = where("agent_id", AgentId(help_text="Only this agent's."))
    session_id = where("session_id", Identifier(required=False, help_text="Only those of this conversation."))
    family = where(
        "family", ExactText(required=False, max_length=LONGEST_FAMILY, help_text="Only those with exactly this label.")
    )
    outcome = where("outcome", OneOf(_RESULTS, required=False, help_text="Only those that came out so."))


class StepsQuery(PageQuery):
    pass


class OutcomeSerializer(serializers.Serializer[Any]):
    """How a task came out, and who says so."""

    result = serializers.ChoiceField(_RESULTS, source="outcome")
    source = OrNull(source="outcome_source", help_text="`application`, `tests` or `person`; null: nobody.")  # type: ignore[assignment]
    reason = OrNull(source="outcome_reason")


class TrajectorySerializer(serializers.Serializer[Any]):
    """What an agent did for a task, without its steps."""

    id = serializers.UUIDField()
    agent_id = OrNull()
    session_id = OrNull(help_text="Your own id of the conversation.")
    external_id = OrNull()
    task = serializers.CharField()
    family = OrNull()
    outcome = OutcomeSerializer(source="*")
    skills = serializers.ListField(child=serializers.CharField(), source="skills_named")
    step_count = serializers.IntegerField()
    trust = serializers.ChoiceField(Trust.values, help_text="Of whoever posted it.")
    started_at = Timestamp()
    ended_at = Timestamp(allow_null=True)
    created_at = Timestamp()
    updated_at = Timestamp(help_text="When a step or an outcome came last.")


class StepSerializer(serializers.Serializer[Any]):
    """A step of a trajectory."""

    position = serializers.IntegerField(help_text="From 1, without gaps.")
    kind = serializers.ChoiceField(TrajectoryStep.Kind.values)
    tool = OrNull()
    call_id = OrNull()
    arguments = Arguments(allow_null=True)
    content = serializers.CharField()
    exit_code = serializers.IntegerField(allow_null=True)
    is_error = serializers.BooleanField()
    cut = serializers.IntegerField(help_text="Characters that were cut, as it was too long.")
    at = Timestamp(allow_null=True)


class TrajectoryReceiptSerializer(serializers.Serializer[Any]):
    """What became of a post."""

    trajectory = TrajectorySerializer(allow_null=True, help_text="null when capture is switched off.")
    duplicate = serializers.BooleanField(help_text="The person had it already; nothing was stored.")
    accepted = serializers.IntegerField(help_text="Steps that were stored.")
    duplicates = serializers.IntegerField(help_text="Steps that it had already.")
    redactions = serializers.IntegerField(help_text="Secrets that were cut out before anything was stored.")
    cut = serializers.IntegerField(help_text="Steps that were too long, and were cut.")


def trajectory_of(given: dict[str, Any]) -> PostedTrajectory:
    """What a checked body says."""
    return PostedTrajectory(
        task=given["task"],
        agent_id=given.get("agent_id") or "",
        session_id=given.get("session_id") or "",
        external_id=given.get("external_id") or "",
        family=given.get("family") or "",
        outcome=given.get("outcome"),
        skills=given.get("skills", ()),
        steps=given.get("steps", ()),
        started_at=given.get("started_at"),
        ended_at=given.get("ended_at"),
    )


def _step(given: dict[str, Any]) -> PostedStep:
    return PostedStep(
        kind=given["kind"],
        tool=given.get("tool") or "",
        call_id=given.get("call_id") or "",
        arguments=given.get("arguments"),
        content=given.get("content") or "",
        exit_code=given.get("exit_code"),
        is_error=given.get("is_error", False),
        at=given.get("at"),
    )
