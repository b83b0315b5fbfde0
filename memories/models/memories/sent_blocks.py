"""The blocks of memory that the gateway put into requests, so that later requests of a conversation carry the same."""

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.columns import CODE, MACHINE, TEXT, VALUE, Column, Columns
from memories.models.ids import new_id
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant

_HASHES = "keyed hashes of where it stood: they mean nothing to a reader"
_HASH = "a keyed hash of what was refused: it means nothing to a reader"


class SentBlock(models.Model):
    """A block as an endpoint was sent it, and where it stood.

    One without a text says that nothing stood there. Nothing of a conversation is in it: of its messages there is a
    keyed hash, which is its place.
    """

    class Kind(models.TextChoices):
        # For the whole session.
        STABLE = "stable", _("With the system prompt")
        VOLATILE = "volatile", _("Before a message")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    end_user = models.ForeignKey(
        EndUser, verbose_name=_("end user"), on_delete=models.CASCADE, related_name="sent_blocks", db_index=False
    )
    agent_id = models.CharField(_("agent"), max_length=255, blank=True, editable=False)
    session = models.BinaryField(max_length=16, editable=False, help_text="Keyed hash of agent and session.")
    place = models.BinaryField(
        max_length=16,
        editable=False,
        help_text="Keyed hash of the messages up to the one before which it stands; of a stable block its session.",
    )
    kind = models.CharField(_("kind"), max_length=8, choices=Kind.choices, editable=False)
    text = models.TextField(_("text"), blank=True, editable=False)
    items = models.JSONField(default=list, editable=False, help_text="kind and id of each memory in it.")
    # A deletion of any of these deletes this row.
    rests_on = ArrayField(models.UUIDField(), default=list, editable=False, help_text="The ids of these memories.")
    seal = models.BigIntegerField(default=0, editable=False, help_text="Hash of what these memories said.")
    ended = models.BigIntegerField(default=0, editable=False, help_text="Hash of what did not hold any more then.")
    token_count = models.PositiveIntegerField(_("tokens"), default=0, editable=False)
    sent_at = models.DateTimeField(_("time"), editable=False)
    columns = Columns(
        id=VALUE, sent_at=VALUE, agent_id=TEXT, kind=CODE, text=TEXT, items=TEXT, token_count=VALUE,
        session=Column(erased=True, omitted=_HASHES), place=Column(erased=True, omitted=_HASHES),
        rests_on=Column(omitted="ids of exported rows"), seal=MACHINE, ended=MACHINE,
    )  # fmt: skip

    class Meta:
        ordering = ["-sent_at", "-id"]
        default_permissions = ()
        verbose_name = _("sent block")
        verbose_name_plural = _("sent blocks")
        constraints = [
            # Serves each request, and lets one of two requests at once say what stands at a place.
            models.UniqueConstraint(fields=["end_user", "place", "session", "tenant"], name="sent_block_once"),
        ]
        indexes = [
            # Serves the bounds of a session, and conversations that an endpoint keeps.
            models.Index(fields=["end_user", "session"], name="sent_block_session_idx"),
            # Serves the sweep.
            models.Index(fields=["sent_at"], name="sent_block_oldest_idx"),
            # Serves deletions.
            GinIndex(fields=["rests_on"], name="sent_block_rests_on_idx", condition=~Q(rests_on=[])),
        ]

    def __str__(self) -> str:
        return f"Sent block {self.id}"
