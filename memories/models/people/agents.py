"""Agents of a tenant, as far as they have spoken with somebody: their switches, and guidance of their own."""

from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, TEXT, Column, Columns
from memories.models.ids import new_id
from memories.models.people.tenants import Tenant

LONGEST_GUIDANCE = 4000


class AgentQuerySet(models.QuerySet["Agent"]):
    def silenced(self) -> Self:
        """Agents whose sessions are not extracted."""
        return self.filter(extraction=False)

    def as_made(self) -> Self:
        """Agents of whom nobody has set anything."""
        return self.filter(extraction=True, recall=True, guidance="")

    def guidance_for(self, tenant: Tenant, agent_id: str) -> str:
        """What operators tell the model about this agent's sessions: the tenant's guidance, then the agent's."""
        own = (
            self.filter(tenant=tenant, agent_id=agent_id).values_list("guidance", flat=True).first() if agent_id else ""
        )
        return "\n".join(text for text in (tenant.extraction_guidance, own) if text)


class Agent(models.Model):
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="agents", db_index=False
    )
    agent_id = models.CharField(
        _("agent"), max_length=255, editable=False, help_text=_("As the API calls it, lower-cased.")
    )
    extraction = models.BooleanField(
        _("extraction"),
        default=True,
        help_text=_("Off: turns of its sessions are stored and wait. They are extracted once it is on again."),
    )
    recall = models.BooleanField(_("recall"), default=True, help_text=_("Off: its contexts and searches are empty."))
    guidance = models.TextField(
        _("extraction guidance"),
        blank=True,
        max_length=LONGEST_GUIDANCE,
        help_text=_("Instructions to the model for this agent's sessions. They follow those of the tenant."),
    )
    # A key cannot undo what an operator set. Empty where nobody is recorded: then what is set counts as an operator's.
    extraction_off_by = models.CharField(
        max_length=8, blank=True, choices=ActorKind.choices, editable=False, help_text="Who switched extraction off."
    )
    recall_off_by = models.CharField(
        max_length=8, blank=True, choices=ActorKind.choices, editable=False, help_text="Who switched recall off."
    )
    guidance_by = models.CharField(
        max_length=8, blank=True, choices=ActorKind.choices, editable=False, help_text="Who wrote the guidance last."
    )
    created_at = models.DateTimeField(editable=False)
    columns = Columns(
        omitted="agents of the application: the person's are in `sessions`", agent_id=TEXT,
        guidance=Column(waived="guidance for the model, written by staff or the application"),
        extraction_off_by=CODE, recall_off_by=CODE, guidance_by=CODE,
    )  # fmt: skip

    objects = AgentQuerySet.as_manager()

    class Meta:
        ordering = ["tenant", "agent_id"]
        verbose_name = _("agent")
        verbose_name_plural = _("agents")
        constraints = [
            # Serves every look at one agent, and makes it one row under races.
            models.UniqueConstraint(fields=["tenant", "agent_id"], name="agent_once"),
        ]

    def __str__(self) -> str:
        return f"Agent {self.id}"
