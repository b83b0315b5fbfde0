"""Profiles that a tenant defines by a JSON Schema of its own. What they say of people are facts, by their keys."""

import json
from collections.abc import Mapping
from typing import Any, Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import Columns
from memories.models.ids import new_id
from memories.models.people.tenants import Tenant


class ProfileSchemaQuerySet(models.QuerySet["ProfileSchema"]):
    def present(self) -> Self:
        return self.filter(deleted_at=None)

    def for_agent(self, agent_id: str) -> Self:
        """Those for every agent, and those for this one."""
        return self.filter(Q(agent_id="") | Q(agent_id=agent_id))


class ProfileSchema(models.Model):
    """A profile by its name. A deleted one stays as a row: its `lives` keep old values out of a later field."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    name = models.CharField(_("name"), max_length=24)
    agent_id = models.CharField(_("agent"), max_length=255, blank=True, help_text="Empty: for every agent.")
    # As text: JSON in the database keeps no order, and the fields have one.
    definition = models.TextField(_("schema"), help_text="JSON, as profiles/checking.py writes it.")
    lives = models.JSONField(
        default=dict, editable=False, help_text="Path of a field → how often it was removed before: part of its key."
    )
    in_context = models.BooleanField(_("in every context"), default=False)
    version = models.PositiveIntegerField(_("version"), default=1)
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices)
    actor_id = models.CharField(max_length=36, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField(_("changed"))
    deleted_at = models.DateTimeField(null=True, editable=False)
    columns = Columns(waived="settings of an application, written by staff")

    objects = ProfileSchemaQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        default_permissions = ()
        verbose_name = _("profile schema")
        verbose_name_plural = _("profile schemas")
        constraints = [
            # Two who save at once: the second one finds it. Serves reading a tenant's, too.
            models.UniqueConstraint(fields=["tenant", "name"], name="profile_schema_once"),
        ]

    def __str__(self) -> str:
        return f"Profile schema {self.id}"

    @property
    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.definition)
        return found

    @schema.setter
    def schema(self, schema: Mapping[str, Any]) -> None:
        self.definition = json.dumps(schema, ensure_ascii=False)
