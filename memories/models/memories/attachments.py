"""Attachments of turns, and the passages that were read from them. A document is nobody's own word: facts are never
extracted from a passage.

The file itself is kept until a worker has read it, and no longer.
"""

import hashlib
from typing import Self

from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from memories.models.columns import (
    CODE,
    DERIVED,
    KEY,
    MACHINE,
    NUMBER,
    OWN_TEXT,
    OWN_VALUE,
    SPACE,
    TEXT,
    VALUE,
    Column,
    Columns,
)
from memories.models.conversations.conversations import Author, Session, Turn
from memories.models.ids import new_id
from memories.models.leases import Leased, LeasedQuerySet
from memories.models.memories.embeddings import Vector
from memories.models.people.people import EndUser
from memories.models.people.tenants import OfParent, Tenant
from memories.scoring import terms

LONGEST_NAME = 255
LONGEST_PLACE = 300
PICTURE = "picture"
# Media type → how it is read (memories/attachments/program.py), or that a model describes it.
KINDS = {
    "application/pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/plain": "text",
    **dict.fromkeys(("image/png", "image/jpeg", "image/webp", "image/gif"), PICTURE),
}
# Passages that have no vector of their text.
UNEMBEDDED = Q(embedded_hash=None) | ~Q(embedded_hash=F("content_hash"))


class AttachmentState(models.TextChoices):
    PENDING = "pending", _("Waiting")
    READ = "read", _("Read")
    FAILED = "failed", _("Failed")
    REFUSED = "refused", _("Refused")


class AttachmentReason(models.TextChoices):
    """Why nothing was read of a file, or not all of it."""

    UNSUPPORTED = "unsupported", _("The hub does not read files of this type.")
    TOO_LARGE = "too_large", _("The file is larger than the tenant allows.")
    OFF = "off", _("The tenant takes no attachments.")
    NO_VISION_MODEL = "no_vision_model", _("No vision model: the language model is not marked as one that sees.")
    ENCRYPTED = "encrypted", _("The file is encrypted.")
    DAMAGED = "damaged", _("The file is damaged, or of another type than it says.")
    NO_TEXT = "no_text", _("The file has no text: it may be a scan.")
    TOO_SLOW = "too_slow", _("Reading took too long, so it was stopped.")
    TOO_COSTLY = "too_costly", _("Reading took more memory than it may have, so it was stopped.")
    TOO_MANY_SECRETS = "too_many_secrets", _("The text mentions passwords and keys too often to be checked.")
    WORKER_LOST = "worker_lost", _("The worker ended in each attempt.")
    MODEL_FAILED = "model_failed", _("The language model did not describe the picture.")
    # Of a file that was read.
    CUT = "cut", _("The file is long: only its beginning was read.")


class AttachmentQuerySet(LeasedQuerySet["Attachment"]):
    def pending(self) -> Self:
        return self.filter(state=AttachmentState.PENDING)

    def due(self) -> Self:
        """What a worker may read now; files of people under restriction wait."""
        restricted = EndUser.objects.filter(pk=OuterRef("end_user"), restricted_at__isnull=False)
        return self.pending().free().filter(~Exists(restricted))


class Attachment(Leased):
    """A file that came with a turn."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    end_user = models.ForeignKey(
        EndUser, verbose_name=_("end user"), on_delete=models.CASCADE, related_name="attachments", db_index=False
    )
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="attachments", db_index=False)
    # PostgreSQL deletes it with its turn, as it does vectors.
    turn = models.ForeignKey(
        Turn, on_delete=models.DO_NOTHING, related_name="attachments", db_index=False, db_constraint=False
    )
    name = models.CharField(_("name"), max_length=LONGEST_NAME, blank=True, editable=False)
    media_type = models.CharField(_("type"), max_length=127, editable=False, help_text="As it was posted.")
    size = models.PositiveBigIntegerField(_("size"), editable=False, help_text="Bytes of the file.")
    sha256 = models.BinaryField(max_length=32, editable=False, help_text="Of the file.")
    content = models.BinaryField(null=True, editable=False, help_text="The file, until it was read.")
    state = models.CharField(
        _("status"), max_length=7, choices=AttachmentState.choices, default=AttachmentState.PENDING, editable=False
    )
    reason = models.CharField(_("reason"), max_length=20, blank=True, choices=AttachmentReason.choices, editable=False)
    pages = models.PositiveIntegerField(_("pages"), null=True, editable=False, help_text="Where the file has pages.")
    key_id = models.UUIDField(null=True, editable=False, help_text="Of the API key that posted it.")
    created_at = models.DateTimeField(_("time"), editable=False)
    read_at = models.DateTimeField(null=True, editable=False, help_text="When a worker was done with it.")
    columns = Columns(
        id=OWN_VALUE, session=OWN_VALUE, turn=OWN_VALUE, name=OWN_TEXT, media_type=OWN_TEXT, size=OWN_VALUE,
        state=CODE, reason=CODE, pages=VALUE, created_at=OWN_VALUE, read_at=VALUE, key_id=KEY,
        sha256=DERIVED, content=Column(erased=True, omitted="the file itself, which is gone once its text was read"),
        lease_token=MACHINE, lease_until=MACHINE, attempts=MACHINE, failure=CODE,
    )  # fmt: skip

    IN_WORK = Q(state=AttachmentState.PENDING)

    objects = AttachmentQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        default_permissions = ("view", "change")
        verbose_name = _("attachment")
        verbose_name_plural = _("attachments")
        constraints = [
            models.CheckConstraint(
                condition=Q(content=None) | Q(state=AttachmentState.PENDING), name="attachment_file_goes_once_read"
            ),
        ]
        indexes = [
            # Serves the cascade from the turn, and the page of a session.
            models.Index(fields=["turn"], name="attachment_turn_idx"),
            models.Index(fields=["session"], name="attachment_session_idx"),
            # Serves lists of a person, and an erasure.
            models.Index(fields=["end_user", "-created_at", "-id"], name="attachment_newest_idx"),
            # Serves the list of the admin.
            models.Index(fields=["tenant", "-created_at", "-id"], name="attachment_tenant_idx"),
            # Serves workers; nearly empty.
            models.Index(
                fields=["created_at"], name="attachment_pending_idx", condition=Q(state=AttachmentState.PENDING)
            ),
        ]

    def __str__(self) -> str:
        return f"Attachment {self.id}"


class PassageQuerySet(models.QuerySet["Passage"]):
    def of(self, tenant: Tenant, end_user: EndUser) -> Self:
        """The passages of one person's files: every read starts here."""
        return self.filter(tenant=tenant, end_user=end_user)

    def unembedded(self) -> Self:
        """Passages whose text no embedder has looked at."""
        return self.filter(UNEMBEDDED)


class Passage(OfParent):
    """A piece of a file's text, with its place there. It is written once."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    end_user = models.ForeignKey(
        EndUser, on_delete=models.CASCADE, related_name="passages", db_index=False, editable=False
    )
    # PostgreSQL deletes it with its file.
    attachment = models.ForeignKey(
        Attachment, on_delete=models.DO_NOTHING, related_name="passages", db_index=False, db_constraint=False
    )
    number = models.PositiveIntegerField(editable=False, help_text="From 1, in the order of the text.")
    page = models.PositiveIntegerField(null=True, editable=False, help_text="From 1, where the file has pages.")
    place = models.CharField(
        max_length=LONGEST_PLACE, blank=True, editable=False, help_text="The headings above it, outermost first."
    )
    start = models.PositiveIntegerField(editable=False, help_text="Where it begins in the text, in characters.")
    content = models.TextField(_("text"), editable=False)
    author = models.CharField(
        max_length=11, choices=Author.choices, editable=False, help_text="A document’s or a model’s; never a person’s."
    )
    flagged = models.BooleanField(default=False, editable=False, help_text="It speaks to a model.")
    content_hash = models.BinaryField(max_length=32, editable=False, help_text="Of place and text.")
    terms = models.BinaryField(editable=False, help_text="Stems of its words, for search.")
    embedded_hash = models.BinaryField(
        max_length=32, null=True, editable=False, help_text="content_hash of the text that was embedded."
    )
    created_at = models.DateTimeField(editable=False, help_text="Of its file.")
    columns = Columns(
        id=OWN_VALUE, attachment=OWN_VALUE, number=OWN_VALUE, page=OWN_VALUE, place=OWN_TEXT, start=OWN_VALUE,
        content=OWN_TEXT, author=CODE, created_at=OWN_VALUE,
        flagged=Column(omitted="a judgement of exported text, made by the hub for itself"),
        content_hash=DERIVED, terms=DERIVED, embedded_hash=DERIVED,
    )  # fmt: skip

    objects = PassageQuerySet.as_manager()

    class Meta:
        ordering = ["attachment", "number"]
        default_permissions = ()
        verbose_name = _("passage")
        verbose_name_plural = _("passages")
        constraints = [
            # Serves reading a file in order, and the cascade from it.
            models.UniqueConstraint(fields=["attachment", "number", "tenant"], name="passage_once"),
            models.CheckConstraint(
                condition=Q(author__in=[Author.APPLICATION, Author.MODEL]), name="passage_is_nobodys_word"
            ),
        ]
        indexes = [
            # Serves a search, a count and an erasure.
            models.Index(fields=["end_user", "-created_at", "-id"], name="passage_newest_idx"),
            # Serves the embedder once a second; nearly empty.
            models.Index(fields=["-created_at"], name="passage_unembedded_idx", condition=UNEMBEDDED),
        ]

    def __str__(self) -> str:
        return f"Passage {self.id}"

    def set_text(self, content: str, *, place: str = "") -> None:
        """Set the text and what follows from it."""
        self.content, self.place = content, place
        self.content_hash, self.terms = hashlib.sha256(self.text.encode()).digest(), terms.pack(self.text)

    @property
    def text(self) -> str:
        """What is searched and embedded."""
        return f"{self.place}\n{self.content}" if self.place else self.content


class PassageVector(Vector):
    passage = models.ForeignKey(
        Passage, on_delete=models.DO_NOTHING, related_name="vectors", db_index=False, db_constraint=False
    )
    text_digest = models.BinaryField(max_length=32, help_text="The passage's content_hash when it was made.")
    columns = Columns(
        passage=VALUE, language=TEXT, id=NUMBER, space=SPACE, vector=DERIVED, text_digest=DERIVED,
    )  # fmt: skip

    class Meta:
        verbose_name = _("passage vector")
        verbose_name_plural = _("passage vectors")
        constraints = [
            # One vector per passage and space. Serves the cascade from the passage, too.
            models.UniqueConstraint(fields=["passage", "space", "tenant"], name="passage_vector_once"),
        ]
        indexes = [
            # Serves a search, an erasure and a merge.
            models.Index(fields=["end_user", "space"], name="passage_vector_person_idx"),
        ]

    def __str__(self) -> str:
        return f"Vector of passage {self.passage_id}"


def digest_of(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
