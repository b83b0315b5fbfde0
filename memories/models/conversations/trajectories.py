"""Trajectories: what an agent did for a task, step by step, and how it came out.

They are stored as turns are: as they happened, secrets cut out. Nothing in them is a statement of the person.
"""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.columns import CODE, INSIDE, TEXT, VALUE, Columns
from memories.models.conversations.conversations import Session
from memories.models.ids import new_id
from memories.models.people.people import EndUser
from memories.models.people.tenants import OfParent, Tenant
from memories.trust import Trust

# In characters; a longer task, label or name is refused.
LONGEST_TASK = 8_000
LONGEST_FAMILY = 100
LONGEST_REASON = 2_000
LONGEST_TOOL = 200
LONGEST_SKILL = 100
MOST_SKILLS = 20
# In characters; what is longer is cut, and the answer says how many were.
LONGEST_CONTENT = 20_000
LONGEST_ARGUMENTS = 20_000


class TrajectoryQuerySet(models.QuerySet["Trajectory"]):
    def of(self, tenant: Tenant, end_user: EndUser) -> Self:
        """The trajectories of one person: every read starts here."""
        return self.filter(tenant=tenant, end_user=end_user)

    def of_session(self, session: Session) -> Self:
        """Those that name the session; it need not have been there when they came."""
        return self.filter(
            tenant=session.tenant_id,
            end_user=session.end_user_id,
            agent_id=session.agent_id,
            session_id=session.external_id,
        )

    def changed_before(self, moment: datetime) -> Self:
        return self.filter(updated_at__lt=moment)


class Trajectory(models.Model):
    """One task and what an agent did for it."""

    class Road(models.TextChoices):
        """By which way its steps come."""

        API = "api", _("API")
        # One for each session, which grows with it.
        GATEWAY = "gateway", _("Gateway")

    class Outcome(models.TextChoices):
        SUCCEEDED = "succeeded", _("Succeeded")
        FAILED = "failed", _("Failed")
        UNKNOWN = "unknown", _("Unknown")

    class OutcomeSource(models.TextChoices):
        """Who says so, the strongest first; empty: nobody."""

        APPLICATION = "application", _("The application")
        TESTS = "tests", _("The last test run")
        PERSON = "person", _("The person’s thanks or correction")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    end_user = models.ForeignKey(
        EndUser, verbose_name=_("end user"), on_delete=models.CASCADE, related_name="trajectories", db_index=False
    )
    agent_id = models.CharField(
        _("agent"), max_length=255, blank=True, editable=False, help_text="Lower-cased; empty: no agent was named."
    )
    # Not a reference: the session's turns may come later, or never.
    session_id = models.CharField(
        _("session"), max_length=255, blank=True, editable=False, help_text="The caller's own id, as of a session."
    )
    external_id = models.CharField(
        max_length=255, blank=True, editable=False, help_text="The caller's own id; stored once for each person."
    )
    road = models.CharField(_("road"), max_length=7, choices=Road.choices, default=Road.API, editable=False)
    trust = models.CharField(
        _("trust"), max_length=9, choices=Trust.choices, editable=False, help_text="Of whoever posted it."
    )
    task = models.TextField(_("task"), editable=False, help_text="What was to be done.")
    family = models.CharField(
        _("kind of task"), max_length=LONGEST_FAMILY, blank=True, editable=False, help_text="The application's label."
    )
    outcome = models.CharField(
        _("outcome"), max_length=9, choices=Outcome.choices, default=Outcome.UNKNOWN, editable=False
    )
    outcome_source = models.CharField(
        _("outcome according to"), max_length=11, choices=OutcomeSource.choices, blank=True, editable=False
    )
    outcome_reason = models.TextField(_("reason"), blank=True, editable=False)
    skills_named = models.JSONField(
        _("skills followed"), default=list, editable=False, help_text="Names of skills that the agent says it followed."
    )
    step_count = models.PositiveIntegerField(_("steps"), default=0, editable=False)
    started_at = models.DateTimeField(_("started"), editable=False)
    ended_at = models.DateTimeField(_("ended"), null=True, editable=False)
    created_at = models.DateTimeField(_("stored"), editable=False)
    updated_at = models.DateTimeField(
        _("changed"), editable=False, help_text="When a step or an outcome came last; retention counts from here."
    )
    columns = Columns(
        id=VALUE, agent_id=TEXT, session_id=TEXT, external_id=TEXT, road=CODE, trust=CODE, task=TEXT, family=TEXT,
        outcome=CODE, outcome_source=CODE, outcome_reason=TEXT, skills_named=TEXT, step_count=VALUE, started_at=VALUE,
        ended_at=VALUE, created_at=VALUE, updated_at=VALUE,
    )  # fmt: skip

    objects = TrajectoryQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        default_permissions = ("view",)
        verbose_name = _("trajectory")
        verbose_name_plural = _("trajectories")
        constraints = [
            # Makes it impossible that a repeated request stores it twice.
            models.UniqueConstraint(
                fields=["end_user", "external_id", "tenant"], name="trajectory_once", condition=~Q(external_id="")
            ),
        ]
        indexes = [
            # Serves a person's list, newest first, and an erasure.
            models.Index(fields=["end_user", "-created_at", "-id"], name="trajectory_newest_idx"),
            # Serves the gateway, which goes on with the session's, and the person's thanks in a session.
            models.Index(fields=["end_user", "session_id"], name="trajectory_session_idx", condition=~Q(session_id="")),
            # Serves the admin's list of a tenant.
            models.Index(fields=["tenant", "-created_at", "-id"], name="trajectory_of_tenant_idx"),
            # Serves retention.
            models.Index(fields=["tenant", "updated_at", "id"], name="trajectory_old_idx"),
        ]

    def __str__(self) -> str:
        return f"Trajectory {self.id}"


class TrajectoryStep(OfParent):
    """One step: what was said, a call of a tool, its result, or a note."""

    class Kind(models.TextChoices):
        MESSAGE = "message", _("Message")
        TOOL_CALL = "tool_call", _("Tool call")
        TOOL_RESULT = "tool_result", _("Tool result")
        NOTE = "note", _("Note")

    id = models.BigAutoField(primary_key=True)
    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="steps", db_index=False)
    position = models.PositiveIntegerField(_("number"), help_text="From 1, without gaps.")
    kind = models.CharField(_("kind"), max_length=11, choices=Kind.choices)
    tool = models.CharField(_("tool"), max_length=LONGEST_TOOL, blank=True)
    call_id = models.CharField(
        max_length=255, blank=True, help_text="Of a call and of its result, which a trajectory has once each."
    )
    arguments = models.JSONField(
        _("arguments"), null=True, help_text="As the model gave them; a string where they were no JSON or were cut."
    )
    content = models.TextField(_("text"), blank=True)
    exit_code = models.IntegerField(_("exit code"), null=True)
    is_error = models.BooleanField(_("failed"), default=False)
    cut = models.PositiveIntegerField(default=0, help_text="Characters of the text and the arguments that were cut.")
    at = models.DateTimeField(_("time"), null=True, help_text="As the caller says.")
    columns = Columns(
        position=VALUE, kind=CODE, tool=TEXT, call_id=TEXT, arguments=TEXT, content=TEXT, exit_code=VALUE,
        is_error=VALUE, cut=VALUE, at=VALUE, id=INSIDE, trajectory=INSIDE,
    )  # fmt: skip

    class Meta:
        ordering = ["position"]
        default_permissions = ()
        verbose_name = _("step of a trajectory")
        verbose_name_plural = _("steps of trajectories")
        constraints = [
            # Serves the steps in their order, and makes two steps of one number impossible.
            models.UniqueConstraint(fields=["trajectory", "position", "tenant"], name="trajectory_step_once"),
            # Makes it impossible that a call or a result that is sent again is stored again.
            models.UniqueConstraint(
                fields=["trajectory", "call_id", "kind", "tenant"],
                name="trajectory_call_once",
                condition=~Q(call_id=""),
            ),
        ]

    def __str__(self) -> str:
        return f"Step {self.position} of trajectory {self.trajectory_id}"
