"""The profile: six running summaries of a person; agents can have six of their own."""

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, TEXT, VALUE, Columns
from memories.models.conversations.runs import ExtractionRun
from memories.models.ids import new_id
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant
from memories.trust import Trust


class Section(models.TextChoices):
    WORK_CONTEXT = "work_context", _("Work")
    PERSONAL_CONTEXT = "personal_context", _("Personal")
    TOP_OF_MIND = "top_of_mind", _("Current focus")
    RECENT_MONTHS = "recent_months", _("Recent")
    EARLIER_CONTEXT = "earlier_context", _("Earlier")
    LONG_TERM_BACKGROUND = "long_term_background", _("Background")


class ProfileSectionQuerySet(models.QuerySet["ProfileSection"]):
    def written(self) -> Self:
        """Sections that say something; an emptied one stays as a row, so that its versions and its owner do."""
        return self.exclude(summary="")

    def served_to(self, agent_id: str) -> Self:
        """The sections in this agent's contexts: the person's own, then the agent's."""
        return self.filter(agent_id__in=["", agent_id]).order_by("agent_id", "section")


class ProfileSection(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="profile", db_index=False)
    agent_id = models.CharField(max_length=255, blank=True, help_text="Whose it is alone; empty: the person's own.")
    section = models.CharField(max_length=20, choices=Section.choices)
    summary = models.TextField(max_length=4000)
    binding = models.BooleanField(default=False, help_text="An operator wrote it: no job changes it.")
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices)
    extraction = models.ForeignKey(ExtractionRun, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    prompt_version = models.CharField(max_length=40, blank=True)
    trust = models.CharField(
        max_length=9, choices=Trust.choices, default=Trust.USER, help_text="Of those whose words the text is made of."
    )
    evidence = ArrayField(
        models.PositiveIntegerField(),
        default=list,
        blank=True,
        help_text="Numbers of the turns that support the text, of the session that the run read.",
    )
    version = models.PositiveIntegerField(default=1)
    updated_at = models.DateTimeField()
    document = models.JSONField(
        null=True, editable=False, help_text="What the memory document that it came with says of its times."
    )
    columns = Columns(
        id=VALUE, agent_id=TEXT, section=CODE, summary=TEXT, binding=VALUE, actor_kind=CODE, extraction=VALUE,
        prompt_version=CODE, trust=CODE, evidence=VALUE, version=VALUE, updated_at=VALUE, document=TEXT,
    )  # fmt: skip

    objects = ProfileSectionQuerySet.as_manager()

    class Meta:
        ordering = ["end_user", "agent_id", "section"]
        verbose_name = _("profile section")
        verbose_name_plural = _("profile sections")
        constraints = [
            # Serves every read of a profile.
            models.UniqueConstraint(fields=["end_user", "tenant", "agent_id", "section"], name="profile_section_once"),
        ]

    def __str__(self) -> str:
        return f"Profile section {self.section} ({self.id})"
