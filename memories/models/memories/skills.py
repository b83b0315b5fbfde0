"""Skills: procedures that trajectories taught, each text with the trajectories that it rests on, and their trials.

A skill is served as a file `/skills/NAME/SKILL.md`. All of its words are texts of a version; a text without a
trajectory behind it exists only where an operator wrote it.
"""

from typing import Self

from django.db import models
from django.db.models import Exists, Max, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, COUNTS, SETTING, STAFF, TEXT, VALUE, Columns
from memories.models.conversations.trajectories import LONGEST_FAMILY, Trajectory
from memories.models.ids import new_id
from memories.models.leases import Leased, LeasedQuerySet
from memories.models.memories.groups import MemoryGroup
from memories.models.people.people import EndUser
from memories.models.people.tenants import OfParent, Tenant

# The format of agents allows so many, lower-case letters, digits and hyphens.
LONGEST_NAME = 64
LONGEST_TEXT = 400
_SHARED = "of nobody alone: what rests on one person's trajectories goes with these"


class SkillQuerySet(models.QuerySet["Skill"]):
    def of(self, tenant: Tenant) -> Self:
        """The skills of a tenant: every read starts here."""
        return self.filter(tenant=tenant)

    def serving(self) -> Self:
        return self.filter(status=Skill.Status.SERVING)

    def served_to(self, tenant: Tenant, person: EndUser | None, agent_id: str) -> Self:
        """Those that this agent is given when it works for this person; `None`: nobody is known by that id."""
        served = Q(scope=Skill.Scope.TENANT) | Q(scope=Skill.Scope.AGENT, agent_id=agent_id)
        if person is not None:
            members = {"group__members__end_user": person, "group__members__tenant": tenant}
            served |= Q(scope=Skill.Scope.GROUP, group__trashed_at=None, **members)
        return self.of(tenant).serving().filter(served)


class Skill(models.Model):
    """One procedure with its history. Which of its versions is served, to whom, and to which share of sessions."""

    class Scope(models.TextChoices):
        TENANT = "tenant", _("All agents")
        GROUP = "group", _("Members of a group")
        AGENT = "agent", _("One agent")

    class Status(models.TextChoices):
        # Nothing of it was ever served.
        PROPOSED = "proposed", _("Proposed")
        SERVING = "serving", _("In use")
        WITHDRAWN = "withdrawn", _("Withdrawn")
        REJECTED = "rejected", _("Rejected")

    class Reason(models.TextChoices):
        """Why it was withdrawn."""

        BELOW = "below", _("Sessions with it succeed less often than without it")
        NO_EVIDENCE = "no_evidence", _("What it rested on is gone")
        OPERATOR = "operator", _("An operator withdrew it")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    name = models.CharField(_("name"), max_length=LONGEST_NAME, help_text="Of its folder, too.")
    family = models.CharField(_("kind of task"), max_length=LONGEST_FAMILY, blank=True)
    scope = models.CharField(_("served to"), max_length=6, choices=Scope.choices)
    group = models.ForeignKey(
        MemoryGroup, verbose_name=_("group"), null=True, on_delete=models.SET_NULL, related_name="+", db_index=False
    )
    agent_id = models.CharField(_("agent"), max_length=255, blank=True)
    status = models.CharField(_("status"), max_length=9, choices=Status.choices, default=Status.PROPOSED)
    reason = models.CharField(_("reason"), max_length=11, choices=Reason.choices, blank=True)
    share = models.PositiveSmallIntegerField(
        _("share of sessions"), default=100, help_text="Percent that are given it; the others are the comparison."
    )
    served = models.PositiveIntegerField(null=True, help_text="Number of the version that is served, or was last.")
    version = models.PositiveIntegerField(default=1, help_text="Rises with each decision and change.")
    created_at = models.DateTimeField(_("proposed"), editable=False)
    changed_at = models.DateTimeField(_("changed"), editable=False)
    waits_since = models.DateTimeField(null=True, help_text="Since when an operator is to decide about it.")
    columns = Columns(
        omitted=_SHARED, name=SETTING, family=SETTING, agent_id=SETTING, scope=CODE, status=CODE, reason=CODE,
    )  # fmt: skip

    objects = SkillQuerySet.as_manager()

    class Meta:
        ordering = ["-changed_at", "-id"]
        default_permissions = ("view", "change")
        verbose_name = _("skill")
        verbose_name_plural = _("skills")
        constraints = [
            # The name is that of a folder, which an agent sees once.
            models.UniqueConstraint(fields=["tenant", "name"], name="skill_name_once"),
            models.CheckConstraint(condition=Q(share__lte=100), name="skill_share_is_percent"),
        ]
        indexes = [
            # Serves the admin's list.
            models.Index(fields=["tenant", "-changed_at", "-id"], name="skill_newest_idx"),
            # Serves the pass, which proposes nothing twice for a kind of task.
            models.Index(fields=["tenant", "family"], name="skill_family_idx"),
            # Serves the deletion of a group.
            models.Index(fields=["group"], name="skill_group_idx", condition=Q(group__isnull=False)),
            # Serves what waits for operators.
            models.Index(fields=["waits_since"], name="skill_waits_idx", condition=Q(waits_since__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"Skill {self.id}"

    @property
    def path(self) -> str:
        return f"/skills/{self.name}/SKILL.md"

    @property
    def next_number(self) -> int:
        """Of a further version; whoever asks has locked the skill."""
        return (self.versions.aggregate(last=Max("number"))["last"] or 0) + 1


class SkillVersion(OfParent):
    """A text of a skill as it was proposed, edited or left by an erasure, and what became of it."""

    class State(models.TextChoices):
        PROPOSED = "proposed", _("Waits for review")
        SERVED = "served", _("In use")
        # It was served until another one was, or until it was withdrawn.
        FORMER = "former", _("No longer in use")
        REJECTED = "rejected", _("Rejected")
        # A newer proposal took its place before anybody decided.
        REPLACED = "replaced", _("Replaced")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    skill = models.ForeignKey(Skill, on_delete=models.CASCADE, related_name="versions", db_index=False)
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=8, choices=State.choices, default=State.PROPOSED)
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices, help_text="Who made it.")
    actor_id = models.CharField(max_length=36, blank=True)
    extractor = models.CharField(max_length=120, blank=True, help_text="llm:<model> or rules.")
    prompt_version = models.CharField(max_length=40, blank=True)
    base_total = models.PositiveIntegerField(
        default=0, help_text="Trajectories of this kind of task with a known outcome, before it was served."
    )
    base_succeeded = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(editable=False)
    reviewed_by = models.CharField(max_length=36, blank=True, help_text="Id of the operator.")
    reviewed_at = models.DateTimeField(null=True)
    replaced = models.PositiveIntegerField(null=True, help_text="The version that was served until it was.")
    served_from = models.DateTimeField(null=True)
    served_until = models.DateTimeField(null=True)
    columns = Columns(
        omitted=_SHARED, state=CODE, actor_kind=CODE, actor_id=STAFF, extractor=CODE, prompt_version=CODE,
        reviewed_by=STAFF,
    )  # fmt: skip

    class Meta:
        ordering = ["-number"]
        default_permissions = ()
        verbose_name = _("version of a skill")
        verbose_name_plural = _("versions of skills")
        constraints = [
            models.UniqueConstraint(fields=["skill", "tenant", "number"], name="skill_version_once"),
        ]

    def __str__(self) -> str:
        return f"Version {self.number} of skill {self.skill_id}"


class SkillTextQuerySet(models.QuerySet["SkillText"]):
    def standing(self) -> Self:
        """Those that may be shown: an operator wrote it, or somebody's trajectory is behind it."""
        return self.filter(Q(is_own=True) | Exists(SkillEvidence.objects.filter(text=OuterRef("pk"))))

    def unfounded(self) -> Self:
        """Those whose trajectories are gone."""
        return self.filter(~Exists(SkillEvidence.objects.filter(text=OuterRef("pk"))), is_own=False)


class SkillText(OfParent):
    """One text of a version: its title, when it is of use, or a line of it."""

    class Section(models.TextChoices):
        TITLE = "title", _("Title")
        WHEN = "when", _("When to use")
        STEP = "step", _("Step")
        CHECK = "check", _("Check")
        PITFALL = "pitfall", _("Pitfall")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    of_version = models.ForeignKey(SkillVersion, on_delete=models.CASCADE, related_name="texts", db_index=False)
    section = models.CharField(_("section"), max_length=7, choices=Section.choices)
    position = models.PositiveIntegerField(help_text="In the version, from 1.")
    text = models.TextField(_("text"))
    is_own = models.BooleanField(default=False, help_text="An operator wrote it, from nobody's trajectory.")
    columns = Columns(omitted=_SHARED, section=CODE, text=TEXT)

    objects = SkillTextQuerySet.as_manager()

    class Meta:
        ordering = ["position"]
        default_permissions = ()
        verbose_name = _("text of a skill")
        verbose_name_plural = _("texts of skills")
        constraints = [
            models.UniqueConstraint(fields=["of_version", "tenant", "position"], name="skill_text_once"),
        ]

    def __str__(self) -> str:
        return f"Text {self.position} of version {self.of_version_id}"


class SkillEvidence(OfParent):
    """That a text rests on a trajectory."""

    id = models.BigAutoField(primary_key=True)
    text = models.ForeignKey(SkillText, on_delete=models.CASCADE, related_name="evidence", db_index=False)
    trajectory = models.ForeignKey(Trajectory, on_delete=models.CASCADE, related_name="taught", db_index=False)
    columns = Columns(omitted="which texts of skills that others read rest on the exported trajectory")

    class Meta:
        default_permissions = ()
        verbose_name = _("evidence of a skill")
        verbose_name_plural = _("evidence of skills")
        constraints = [
            # Serves whether a text stands, too.
            models.UniqueConstraint(fields=["text", "tenant", "trajectory"], name="skill_evidence_once"),
        ]
        indexes = [
            # Serves the deletion of a trajectory.
            models.Index(fields=["trajectory"], name="skill_evidence_trajectory_idx"),
        ]

    def __str__(self) -> str:
        return f"Evidence {self.id} of text {self.text_id}"


class SkillTrial(models.Model):
    """That a session was given a version of a skill, or was kept without it to compare, and how it came out."""

    class Arm(models.TextChoices):
        SERVED = "served", _("With it")
        CONTROL = "control", _("Without it")

    class Via(models.TextChoices):
        FILES = "files", _("Files")
        API = "api", _("API")
        CONTEXT = "context", _("Context")
        MCP = "mcp", "MCP"
        # A trajectory says that its agent followed the skill.
        STATED = "stated", _("Stated by the agent")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    of_version = models.ForeignKey(SkillVersion, on_delete=models.CASCADE, related_name="trials", db_index=False)
    end_user = models.ForeignKey(
        EndUser, verbose_name=_("end user"), on_delete=models.CASCADE, related_name="skill_trials", db_index=False
    )
    agent_id = models.CharField(_("agent"), max_length=255, blank=True)
    session_id = models.CharField(_("session"), max_length=255, blank=True, help_text="The caller's own; or none.")
    arm = models.CharField(_("comparison"), max_length=7, choices=Arm.choices)
    via = models.CharField(_("by way of"), max_length=7, choices=Via.choices)
    outcome = models.CharField(
        _("outcome"), max_length=9, choices=Trajectory.Outcome.choices, default=Trajectory.Outcome.UNKNOWN
    )
    # What it counts by; the trial stays when the trajectory goes.
    trajectory = models.ForeignKey(
        Trajectory, null=True, on_delete=models.SET_NULL, related_name="trials", db_index=False
    )
    noted_at = models.DateTimeField(_("first given"), editable=False)
    read_at = models.DateTimeField(_("read"), null=True, help_text="When its text was first given.")
    ended_at = models.DateTimeField(_("ended"), null=True, help_text="When an outcome came.")
    columns = Columns(
        id=VALUE, agent_id=TEXT, session_id=TEXT, arm=CODE, via=CODE, outcome=CODE, trajectory=VALUE, noted_at=VALUE,
        read_at=VALUE, ended_at=VALUE, of_version=VALUE,
    )  # fmt: skip

    class Meta:
        ordering = ["-noted_at", "-id"]
        default_permissions = ()
        verbose_name = _("trial of a skill")
        verbose_name_plural = _("trials of skills")
        constraints = [
            # A session is one trial; where none is named, the next trajectory ends it and another one can begin.
            models.UniqueConstraint(
                fields=["of_version", "tenant", "end_user", "agent_id", "session_id"],
                name="skill_trial_once",
                condition=~Q(session_id="") | Q(ended_at=None),
            ),
        ]
        indexes = [
            # Serves the end of a trajectory, erasures and exports.
            models.Index(fields=["end_user", "session_id"], name="skill_trial_person_idx"),
            # Serves the figures of a version.
            models.Index(fields=["of_version", "arm", "outcome"], name="skill_trial_version_idx"),
            # Serves the deletion of a trajectory.
            models.Index(
                fields=["trajectory"], name="skill_trial_trajectory_idx", condition=Q(trajectory__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"Trial {self.id}"


class SkillPassQuerySet(LeasedQuerySet["SkillPass"]):
    def running(self) -> Self:
        """Those that a worker has or is to take."""
        return self.filter(state=SkillPass.State.RUNNING)


class SkillPass(Leased):
    """One look at the trajectories of a kind of task; the row is the queue: whoever holds its lease works on it."""

    class State(models.TextChoices):
        RUNNING = "running", _("Running")
        PROPOSED = "proposed", _("Proposed")
        # Nothing that may be shared was found in several of them.
        NOTHING = "nothing", _("Nothing found")
        FAILED = "failed", _("Failed")

    IN_WORK = Q(state=State.RUNNING)

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    family = models.CharField(_("kind of task"), max_length=LONGEST_FAMILY)
    state = models.CharField(_("status"), max_length=8, choices=State.choices, default=State.RUNNING)
    read = models.PositiveIntegerField(default=0, help_text="How many trajectories with a known outcome there were.")
    refused = models.JSONField(default=dict, help_text="Reason → how many texts were cut for it.")
    extractor = models.CharField(max_length=120, blank=True, help_text="llm:<model> or rules.")
    calls = models.PositiveIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    columns = Columns(omitted=_SHARED, family=SETTING, state=CODE, refused=COUNTS, extractor=CODE, failure=CODE)

    objects = SkillPassQuerySet.as_manager()

    class Meta:
        ordering = ["-started_at", "-id"]
        default_permissions = ()
        verbose_name = _("pass for skills")
        verbose_name_plural = _("passes for skills")
        constraints = [
            # One at a time: two would propose the same.
            models.UniqueConstraint(
                fields=["tenant", "family"], name="skill_pass_open_once", condition=Q(state="running")
            ),
        ]
        indexes = [
            # Serves when a kind of task was last looked at.
            models.Index(fields=["tenant", "family", "-started_at"], name="skill_pass_newest_idx"),
            # Serves the worker.
            models.Index(fields=["lease_until"], name="skill_pass_running_idx", condition=Q(state="running")),
        ]

    def __str__(self) -> str:
        return f"Pass {self.id} for skills"
