"""Episodes: what happened in a stretch of a conversation, in short."""

from collections.abc import Mapping
from datetime import datetime
from enum import nonmember
from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories import conf
from memories.models.columns import CODE, DERIVED, TEXT, VALUE, Columns
from memories.models.conversations.conversations import Session
from memories.models.folding import text_digest
from memories.models.ids import new_id
from memories.models.memories import visibility
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant
from memories.scoring import terms
from memories.scoring.decay import DecayInput, decay_score, forget_at

UNIT = [MinValueValidator(0.0), MaxValueValidator(1.0)]
LONGEST_SUMMARY = 200
# The extractor of those made without a model: sentences that were said, word for word.
EXTRACTIVE = "extractive-v1"


class EpisodeStatus(models.TextChoices):
    ACTIVE = "active", _("Active")
    # Too poor to be served before somebody has looked at it.
    PENDING = "pending", _("Pending")
    TRASHED = "trashed", _("In the trash")
    LIVE = nonmember((ACTIVE[0], PENDING[0]))


# Episodes that search may find and that have no vector of their present text.
UNEMBEDDED = ~Q(status=EpisodeStatus.TRASHED) & (Q(embedded_hash=None) | ~Q(embedded_hash=F("content_hash")))


class EpisodeQuerySet(models.QuerySet["Episode"]):
    def of(self, tenant: Tenant, end_user: EndUser) -> Self:
        """The episodes of one person: every read of memories starts here."""
        return self.filter(tenant=tenant, end_user=end_user)

    def active(self, *, now: datetime) -> Self:
        return self.filter(visibility.active(now))

    def faded(self, *, now: datetime) -> Self:
        """What the decay pass takes (rules.md, 7.3)."""
        return self.active(now=now).filter(forget_at__lte=now).exclude(Q(pinned=True) | Q(binding=True))

    def expired(self, *, now: datetime) -> Self:
        """What it takes besides."""
        return self.filter(status=EpisodeStatus.ACTIVE, expires_at__lte=now)

    def discarded(self, *, now: datetime) -> Self:
        """What is in the trash since then, or longer."""
        return self.filter(status=EpisodeStatus.TRASHED, trashed_at__lte=now)

    def unembedded(self) -> Self:
        """Episodes whose present text no embedder has looked at."""
        return self.filter(UNEMBEDDED)


TOPICS = "key_topics"
# The columns that hold words beside the summary, each with its name on pages; with the summary they are what an episode
# is found, guarded, edited and corrected by. A model gives each (llm/prompts/episode_summary.py).
LISTS: Mapping[str, Promise] = {TOPICS: _("Topics"), "actions_taken": _("Actions"), "outcomes": _("Outcomes")}
TEXTS = ("summary", *LISTS)


class Episode(models.Model):
    """The summary of turns `first_number`..`last_number` of a session, made once."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="episodes", db_index=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="episodes", db_index=False)
    first_number = models.PositiveIntegerField(help_text="First turn of the range.")
    last_number = models.PositiveIntegerField(help_text="Last turn of the range.")
    fed_turns = models.PositiveIntegerField(help_text="Turns of the range that it summarises.")
    summary = models.TextField(max_length=LONGEST_SUMMARY)
    key_topics = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    actions_taken = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    outcomes = ArrayField(models.CharField(max_length=200), default=list, blank=True)
    importance = models.FloatField(validators=UNIT)
    quality = models.FloatField(validators=UNIT, help_text="The lower of what the model says and what code finds.")
    flaws = ArrayField(models.CharField(max_length=40), default=list, blank=True, help_text="What code finds wrong.")
    extractor = models.CharField(max_length=120, help_text="llm:<model>, extractive-v1, operator, api.")
    prompt_version = models.CharField(max_length=40, blank=True)
    status = models.CharField(_("status"), max_length=7, choices=EpisodeStatus.choices, default=EpisodeStatus.ACTIVE)
    pinned = models.BooleanField(default=False)
    binding = models.BooleanField(default=False, help_text="An operator's word: it does not fade.")
    version = models.PositiveIntegerField(default=1)
    started_at = models.DateTimeField(help_text="When its first turn was said.")
    ended_at = models.DateTimeField(help_text="When its last turn was said.")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    last_recalled_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    trashed_at = models.DateTimeField(null=True, blank=True)
    decay_score = models.FloatField()
    forget_at = models.DateTimeField(null=True, blank=True, help_text="When it will have faded; empty: never.")
    content_hash = models.BinaryField(max_length=32, editable=False, help_text="SHA-256 of the folded text.")
    terms = models.BinaryField(null=True, editable=False, help_text="Hashes of the text's words with their counts.")
    embedded_hash = models.BinaryField(
        max_length=32, null=True, editable=False, help_text="The content_hash that the serving space has a vector of."
    )
    columns = Columns(
        id=VALUE, session=VALUE, first_number=VALUE, last_number=VALUE, fed_turns=VALUE, summary=TEXT,
        key_topics=TEXT, actions_taken=TEXT, outcomes=TEXT, importance=VALUE, quality=VALUE, flaws=CODE,
        extractor=CODE, prompt_version=CODE, status=CODE, pinned=VALUE, binding=VALUE, version=VALUE,
        started_at=VALUE, ended_at=VALUE, created_at=VALUE, updated_at=VALUE, last_recalled_at=VALUE,
        expires_at=VALUE, trashed_at=VALUE, decay_score=VALUE, forget_at=VALUE, content_hash=DERIVED, terms=DERIVED,
        embedded_hash=DERIVED,
    )  # fmt: skip

    objects = EpisodeQuerySet.as_manager()

    class Meta:
        ordering = ["-ended_at", "-id"]
        verbose_name = _("episode")
        verbose_name_plural = _("episodes")
        constraints = [
            # Each range once, also after retries and under races. Serves reading a session's episodes in order.
            models.UniqueConstraint(fields=["session", "first_number", "tenant"], name="episode_range_once"),
            models.CheckConstraint(condition=Q(first_number__lte=F("last_number")), name="episode_range_in_order"),
            models.CheckConstraint(condition=~Q(summary=""), name="episode_summary_not_empty"),
        ]
        indexes = [
            # Serves GET /episodes, contexts and searches of one person.
            models.Index(fields=["end_user", "status", "-ended_at", "-id"], name="episode_of_end_user_idx"),
            # Serves the admin's list of a tenant.
            models.Index(fields=["tenant", "-ended_at"], name="episode_of_tenant_idx"),
            # Serve the decay pass: only what is due.
            models.Index(
                fields=["tenant", "forget_at", "id"],
                name="episode_forget_at_idx",
                condition=Q(status="active") & Q(forget_at__isnull=False),
            ),
            models.Index(
                fields=["tenant", "expires_at", "id"],
                name="episode_expires_idx",
                condition=Q(status="active") & Q(expires_at__isnull=False),
            ),
            models.Index(
                fields=["tenant", "trashed_at", "id"], name="episode_trash_idx", condition=Q(status="trashed")
            ),
            # Serves the embedder once a second.
            models.Index(fields=["-updated_at"], name="episode_unembedded_idx", condition=UNEMBEDDED),
        ]

    def __str__(self) -> str:
        return f"Episode {self.id}"

    @property
    def lists(self) -> list[tuple[Promise, list[str]]]:
        """The lists that hold something, with their names on pages."""
        return [(label, found) for name, label in LISTS.items() if (found := getattr(self, name))]

    @property
    def texts(self) -> list[str]:
        """The summary and all texts of its lists."""
        return [self.summary, *(text for _label, found in self.lists for text in found)]

    @property
    def text(self) -> str:
        """What it is found by."""
        return "\n".join(self.texts)

    def covers(self, number: int) -> bool:
        """Whether the turn with this number of its session is in its range."""
        return self.first_number <= number <= self.last_number

    @property
    def protected(self) -> bool:
        """It does not fade."""
        return self.binding or self.pinned

    @property
    def last_reinforced(self) -> datetime:
        """Since when it fades: its making or its last recall. An imported history has ended long ago, and must not be
        forgotten at once."""
        return max(self.created_at, self.last_recalled_at or self.created_at)

    def refresh_decay(self, *, now: datetime, rules: conf.Rules) -> None:
        """Set decay_score and forget_at from the base values and the tenant's numbers; save with them."""
        self.forget_at, self.decay_score = None, self.importance
        if self.protected:
            return
        memory = DecayInput(self.importance, self.last_reinforced)
        self.decay_score = decay_score(memory, rules, now=now)
        self.forget_at = forget_at(memory, rules, below=rules.forget_episodes_below)

    def set_text(self, summary: str) -> None:
        """Take this summary, with the hash and the terms of all that it is found by; set the lists before."""
        self.summary = summary
        self.content_hash = text_digest(self.text)
        self.terms = terms.pack(self.text)
