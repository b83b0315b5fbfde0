"""The diary of an agent: notes that it writes for itself about a person. An entry is written once and never changed."""

import hashlib
from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, DERIVED, KEY, NUMBER, SPACE, TEXT, VALUE, Column, Columns
from memories.models.ids import new_id
from memories.models.memories.embeddings import Vector
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant
from memories.scoring import terms
from memories.trust import Trust

LONGEST_ENTRY = 20_000
LONGEST_TOPIC = 100
# Entries that have no vector of their text.
UNEMBEDDED = Q(embedded_hash=None) | ~Q(embedded_hash=F("content_hash"))


class DiaryEntryQuerySet(models.QuerySet["DiaryEntry"]):
    def of(self, tenant: Tenant, end_user: EndUser) -> Self:
        """The entries about one person: every read starts here."""
        return self.filter(tenant=tenant, end_user=end_user)

    def present(self) -> Self:
        """What is not in the trash."""
        return self.filter(trashed_at=None)

    def saying(self, words: str) -> Self:
        """Entries whose text or topic has each of these words, in any case; a word may be a part of a longer one."""
        found = self
        for word in words.split():
            found = found.filter(Q(content__icontains=word) | Q(topic__icontains=word))
        return found

    def unembedded(self) -> Self:
        """Entries whose text no embedder has looked at."""
        return self.filter(UNEMBEDDED)

    def discarded(self, *, now: datetime) -> Self:
        """What is in the trash since then, or longer."""
        return self.filter(trashed_at__lte=now)


class DiaryEntry(models.Model):
    """One note of an agent for itself."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    end_user = models.ForeignKey(
        EndUser, verbose_name=_("end user"), on_delete=models.CASCADE, related_name="diary", db_index=False
    )
    agent_id = models.CharField(
        _("agent"),
        max_length=255,
        blank=True,
        editable=False,
        help_text="Whose diary it is; empty: of requests that name no agent.",
    )
    topic = models.CharField(_("topic"), max_length=LONGEST_TOPIC, blank=True, editable=False)
    content = models.TextField(_("text"), editable=False)
    content_hash = models.BinaryField(max_length=32, default=b"", editable=False, help_text="Of topic and text.")
    terms = models.BinaryField(null=True, editable=False, help_text="Stems of its words, for search.")
    embedded_hash = models.BinaryField(
        max_length=32, null=True, editable=False, help_text="content_hash of the text that was embedded."
    )
    actor_kind = models.CharField(_("written by"), max_length=8, choices=ActorKind.choices, editable=False)
    actor_id = models.CharField(max_length=36, blank=True, editable=False)
    trust = models.CharField(_("trust"), max_length=9, choices=Trust.choices, editable=False)
    created_at = models.DateTimeField(_("time"), editable=False)
    trashed_at = models.DateTimeField(null=True, editable=False, help_text="Since when it is deleted.")
    change_set = models.UUIDField(
        null=True, editable=False, help_text="That deleted it with other memories, such as a roll back."
    )
    columns = Columns(
        id=VALUE, agent_id=TEXT, topic=TEXT, content=TEXT, actor_kind=CODE, trust=CODE, created_at=VALUE,
        trashed_at=VALUE, change_set=VALUE, content_hash=DERIVED, terms=DERIVED, embedded_hash=DERIVED,
        actor_id=Column(waived=CODE.waived, omitted=KEY.omitted),
    )  # fmt: skip

    objects = DiaryEntryQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        default_permissions = ("view", "change")
        verbose_name = _("diary entry")
        verbose_name_plural = _("diary entries")
        constraints = [
            models.CheckConstraint(
                condition=Q(change_set=None) | Q(trashed_at__isnull=False), name="diary_entry_change_set_deletes"
            ),
        ]
        indexes = [
            # Serves every read of an agent's diary, newest first, and the count of a person's entries.
            models.Index(
                fields=["end_user", "tenant", "agent_id", "-created_at", "-id"], name="diary_entry_newest_idx"
            ),
            # Serves the list.
            models.Index(fields=["-created_at", "-id"], name="diary_entry_time_idx"),
            # Serves the embedder once a second; nearly empty.
            models.Index(fields=["-created_at"], name="diary_entry_unembedded_idx", condition=UNEMBEDDED),
            # Serves retention.
            models.Index(fields=["tenant", "created_at", "id"], name="diary_entry_old_idx"),
            # Serves rolling back what a key wrote.
            models.Index(fields=["actor_id"], name="diary_entry_actor_idx"),
            # Serves the nightly pass: only what is due.
            models.Index(
                fields=["tenant", "trashed_at", "id"],
                name="diary_entry_trash_idx",
                condition=Q(trashed_at__isnull=False),
            ),
            # Serves the undo of a change set.
            models.Index(
                fields=["change_set"], name="diary_entry_change_set_idx", condition=Q(change_set__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"Diary entry {self.id}"

    def set_text(self, content: str, *, topic: str = "") -> None:
        """Set the text and what follows from it."""
        self.content, self.topic = content, topic
        self.content_hash, self.terms = hashlib.sha256(self.text.encode()).digest(), terms.pack(self.text)

    @property
    def text(self) -> str:
        """What is searched and embedded."""
        return f"{self.topic}\n{self.content}" if self.topic else self.content


class DiaryVector(Vector):
    entry = models.ForeignKey(
        DiaryEntry, on_delete=models.DO_NOTHING, related_name="vectors", db_index=False, db_constraint=False
    )
    text_digest = models.BinaryField(max_length=32, help_text="The entry's content_hash when it was made.")
    columns = Columns(
        entry=VALUE, language=TEXT, id=NUMBER, space=SPACE, vector=DERIVED, text_digest=DERIVED,
    )  # fmt: skip

    class Meta:
        verbose_name = _("diary vector")
        verbose_name_plural = _("diary vectors")
        constraints = [
            # One vector per entry and space. Serves the cascade from the entry, too.
            models.UniqueConstraint(fields=["entry", "space", "tenant"], name="diary_vector_once"),
        ]
        indexes = [
            # Serves an erasure and a merge.
            models.Index(fields=["end_user", "space"], name="diary_vector_of_end_user_idx"),
        ]

    def __str__(self) -> str:
        return f"Vector of diary entry {self.entry_id}"
