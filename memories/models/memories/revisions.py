"""What changed in a fact or in a section of the profile, who or what changed it, and why."""

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, INSIDE, REWORDED, STAFF, TEXT, VALUE, Columns
from memories.models.conversations.runs import ExtractionRun
from memories.models.ids import new_id
from memories.models.memories.facts import Fact
from memories.models.memories.profile import ProfileSection, Section
from memories.models.people.people import EndUser
from memories.models.people.tenants import OfParent
from memories.trust import Trust


class FactRevision(OfParent):
    """One version of a fact: what changed, who or what changed it, and why."""

    id = models.BigAutoField(primary_key=True)
    fact = models.ForeignKey(Fact, on_delete=models.CASCADE, related_name="revisions", db_index=False)
    version = models.PositiveIntegerField()
    verb = models.CharField(max_length=20)
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=36, blank=True)
    before = models.JSONField(default=dict, help_text="The changed fields as they were.")
    after = models.JSONField(default=dict, help_text="The whole state after the change.")
    reason = models.TextField(blank=True, max_length=2000)
    change_set = models.UUIDField(
        null=True, editable=False, help_text="Shared by the revisions of one decision: what is undone together."
    )
    created_at = models.DateTimeField()
    columns = Columns(
        version=VALUE, verb=CODE, actor_kind=CODE, reason=TEXT, change_set=VALUE, created_at=VALUE, id=INSIDE,
        fact=INSIDE, actor_id=STAFF, before=REWORDED, after=REWORDED,
    )  # fmt: skip

    class Meta:
        ordering = ["-version"]
        verbose_name = _("fact revision")
        verbose_name_plural = _("fact revisions")
        constraints = [
            # Serves a fact's history, and makes two changes of one version impossible.
            models.UniqueConstraint(fields=["fact", "version", "tenant"], name="revision_once"),
        ]
        indexes = [
            # Serves undoing a decision.
            models.Index(fields=["change_set"], name="revision_change_set_idx", condition=~models.Q(change_set=None)),
            # Serves rolling back what runs or a key made.
            models.Index(fields=["actor_id"], name="revision_actor_idx"),
        ]

    def __str__(self) -> str:
        return f"Revision {self.version} of fact {self.fact_id}"


class ProfileRevisionQuerySet(models.QuerySet["ProfileRevision"]):
    def of(self, row: "ProfileRevision | ProfileSection") -> Self:
        """Versions and proposals of this section, or of the section that this is a version of."""
        return self.filter(end_user=row.end_user_id, agent_id=row.agent_id, section=row.section)


class ProfileRevision(OfParent):
    """One version of a section of a person's profile, or one that a model proposed and that waits for review."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="profile_revisions", db_index=False)
    agent_id = models.CharField(max_length=255, blank=True, help_text="As of a section.")
    section = models.CharField(max_length=20, choices=Section.choices)
    version = models.PositiveIntegerField(null=True, help_text="Of the section; empty: proposed and never written.")
    verb = models.CharField(max_length=20)
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=36, blank=True)
    before = models.TextField(blank=True)
    after = models.TextField(blank=True)
    binding_before = models.BooleanField(default=False)
    extraction = models.ForeignKey(ExtractionRun, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    trust = models.CharField(max_length=9, choices=Trust.choices, default=Trust.USER, help_text="Of the text after it.")
    evidence = ArrayField(
        models.PositiveIntegerField(), default=list, blank=True, help_text="Of the text after it; as of a section."
    )
    reason = models.TextField(blank=True, max_length=2000)
    change_set = models.UUIDField(null=True, editable=False)
    created_at = models.DateTimeField()
    columns = Columns(
        id=VALUE, agent_id=TEXT, section=CODE, version=VALUE, verb=CODE, actor_kind=CODE, before=TEXT, after=TEXT,
        binding_before=VALUE, extraction=VALUE, trust=CODE, evidence=VALUE, reason=TEXT, change_set=VALUE,
        created_at=VALUE, actor_id=STAFF,
    )  # fmt: skip

    objects = ProfileRevisionQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("profile revision")
        verbose_name_plural = _("profile revisions")
        indexes = [
            # Serves the history of a person's section.
            models.Index(fields=["end_user", "section", "-created_at"], name="profile_revision_idx"),
            # Serves undoing a decision.
            models.Index(fields=["change_set"], name="profile_change_set_idx", condition=~models.Q(change_set=None)),
        ]

    def __str__(self) -> str:
        return f"Revision {self.id} of a profile section"
