"""What texts passed through the gateway lately, as keyed hashes: by it the hub knows words that come back."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.columns import CODE, TEXT, Columns
from memories.models.conversations.conversations import Author
from memories.models.ids import new_id
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant


class SeenText(models.Model):
    """A text that was in a request or an answer: whose it was, and hashes that tell nothing without the pepper."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="seen_texts", db_index=False)
    # No foreign keys: a session may go before it, and a turn need not be stored.
    session_id = models.UUIDField(null=True, editable=False, help_text="The conversation, where it is kept.")
    turn_id = models.UUIDField(null=True, editable=False, help_text="Of a person's text that is kept.")
    key_id = models.UUIDField(editable=False, help_text="Of the API key that it came with.")
    author = models.CharField(max_length=11, choices=Author.choices)
    hashes = models.BinaryField(help_text="Of the whole text and of its sentences, 8 bytes each.")
    # Of the first and the last characters, of texts that may be in a frame.
    head = models.BigIntegerField(null=True, editable=False)
    tail = models.BigIntegerField(null=True, editable=False)
    instructions = models.BinaryField(
        null=True,
        editable=False,
        help_text="Of a person's text: hashes of the system prompt's lines, 8 bytes each.",
    )
    has_tools = models.BooleanField(default=False, help_text="Whether the request offered tools.")
    seen_at = models.DateTimeField(_("time"))
    columns = Columns(
        omitted="keyed hashes of texts that passed, deleted after a week: they mean nothing to a reader",
        author=CODE, hashes=TEXT, instructions=TEXT,
    )  # fmt: skip

    class Meta:
        default_permissions = ()
        verbose_name = _("seen text")
        verbose_name_plural = _("seen texts")
        indexes = [
            # Serves each request.
            models.Index(fields=["end_user", "-seen_at"], name="seen_text_newest_idx"),
            # Serves the look for frames: what is alike at its beginning, or at its end.
            models.Index(fields=["key_id", "head"], name="seen_text_head_idx", condition=Q(head__isnull=False)),
            models.Index(fields=["key_id", "tail"], name="seen_text_tail_idx", condition=Q(tail__isnull=False)),
            # Serves the sweep.
            models.Index(fields=["seen_at"], name="seen_text_oldest_idx"),
        ]

    def __str__(self) -> str:
        return f"Seen text {self.id}"
