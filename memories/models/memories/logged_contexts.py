"""The log of contexts: what each request for memory was given."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.columns import MACHINE, TEXT, VALUE, Column, Columns
from memories.models.ids import new_id
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant


class LoggedContext(models.Model):
    """A context that an agent was given: which memories were in it, and, where the tenant wants it, the texts."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    end_user = models.ForeignKey(
        EndUser, verbose_name=_("end user"), on_delete=models.CASCADE, related_name="logged_contexts", db_index=False
    )
    agent_id = models.CharField(_("agent"), max_length=255, blank=True, editable=False)
    # No foreign keys: keys and sessions may go before the log does.
    session_id = models.UUIDField(null=True, editable=False, help_text="The conversation, if it was named and known.")
    key_id = models.UUIDField(null=True, editable=False, help_text="Of the API key that asked.")
    asked = models.BooleanField(default=False, editable=False, help_text="Whether there was a query.")
    query = models.TextField(blank=True, editable=False, help_text="Empty unless the tenant keeps texts.")
    memory = models.TextField(blank=True, editable=False, help_text="The block as served, if the tenant keeps texts.")
    items = models.JSONField(default=list, editable=False, help_text="kind, id and score of each memory in it.")
    left_out = models.PositiveIntegerField(default=0, editable=False, help_text="Memories beyond budget and limits.")
    # An erasure, or a deletion, of any of these changes this row.
    rests_on = ArrayField(
        models.UUIDField(),
        default=list,
        editable=False,
        help_text="Memories that go with other people, too; where texts are kept, all memories.",
    )
    token_count = models.PositiveIntegerField(default=0, editable=False)
    max_tokens = models.PositiveIntegerField(default=0, editable=False)
    as_of = models.DateTimeField(null=True, editable=False, help_text="The moment in the past that was asked for.")
    revision = models.CharField(max_length=32, blank=True, editable=False, help_text="As the answer had it.")
    took_ms = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(_("time"), editable=False)
    columns = Columns(
        id=VALUE, created_at=VALUE, agent_id=TEXT, session_id=VALUE, asked=VALUE, query=TEXT, memory=TEXT,
        items=TEXT, left_out=VALUE, token_count=VALUE, max_tokens=VALUE, as_of=VALUE,
        key_id=Column(omitted="the key of the application that asked"),
        rests_on=Column(omitted="ids of exported rows"), revision=Column(erased=True, omitted=MACHINE.omitted),
        took_ms=MACHINE,
    )  # fmt: skip

    class Meta:
        ordering = ["-created_at", "-id"]
        default_permissions = ("view",)
        verbose_name = _("logged context")
        verbose_name_plural = _("logged contexts")
        indexes = [
            # Serves the timeline of a person.
            models.Index(fields=["end_user", "-created_at", "-id"], name="logged_context_newest_idx"),
            # Serves the list, and retention.
            models.Index(fields=["-created_at", "-id"], name="logged_context_time_idx"),
            # Serves deletions; empty but for texts and for public facts.
            GinIndex(fields=["rests_on"], name="logged_context_rests_on_idx", condition=~Q(rests_on=[])),
        ]

    def __str__(self) -> str:
        return f"Logged context {self.id}"
