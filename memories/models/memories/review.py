"""Review items: what an operator should decide."""

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, INSIDE, STAFF, TEXT, VALUE, Column, Columns
from memories.models.conversations.runs import ExtractionRun
from memories.models.ids import new_id
from memories.models.memories.episodes import Episode
from memories.models.memories.facts import Fact
from memories.models.memories.revisions import ProfileRevision
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant


class ReviewQuerySet(models.QuerySet["ReviewItem"]):
    def waiting(self) -> Self:
        """Items that nobody has decided."""
        return self.filter(state=ReviewItem.State.OPEN)


class ReviewItem(models.Model):
    class Kind(models.TextChoices):
        QUARANTINED = "quarantined", _("Unconfirmed")
        CONFLICT = "conflict", _("Conflict")
        DUPLICATE = "possible_duplicate", _("Possible duplicate")
        FLAGGED = "flagged", _("Flagged")
        HELD = "held", _("Held")
        EPISODE = "poor_episode", _("Poor episode")
        PATTERN = "pattern", _("Pattern")

    class Reason(models.TextChoices):
        """Why a person has to decide it; each belongs to one kind."""

        # Quarantined: the assistant or a tool said it, or simple rules found it.
        ASSISTANT_TRUST = "assistant_trust", _("Only the assistant stated it")
        TOOL_TRUST = "tool_trust", _("Only a tool stated it")
        SUGGESTED = "suggested", _("Found by simple rules")
        # In the user's words, and asked, supposed, denied, quoted or said of somebody else.
        NOT_AS_SAID = "not_as_said", _("The user may not have said it like this")
        # Conflict.
        LESS_SURE = "less_sure", _("Less certain than the existing fact")
        OUTRANKED = "outranked", _("Contradicts a more trusted source")
        OPERATORS_WORD = "operators_word", _("Contradicts what was confirmed")
        REFUSED_BEFORE = "refused_before", _("Repeated after it was rejected")
        NEAR_REFUSED = "near_refused", _("Similar to a rejected fact")
        REMOVAL = "removal", _("May be no longer true")
        PROPOSED = "proposed", _("An agent proposes other words")
        FORGET_ASKED = "forget_asked", _("An agent asks to forget it")
        OTHER_PERSON = "other_person", _("Differs between the merged end users")
        IMPORTED = "imported", _("Imported; contradicts an existing fact")
        # Possible duplicate: no model was there to judge.
        NOT_JUDGED = "not_judged", _("Similar to an existing fact")
        # Flagged and held.
        INSTRUCTIONS = "instructions", _("Looks like an instruction to a model")
        CLAIMS_RIGHTS = "claims_rights", _("Claims money or rights")
        POSSIBLE_SECRET = "possible_secret", _("May contain a secret")
        # Poor episode.
        POOR_QUALITY = "poor_quality", _("Says too little about the conversation")
        # Pattern: a reflection found it in several episodes.
        HABIT = "habit", _("A habit, found in several episodes")
        CHANGE_OF_MIND = "change_of_mind", _("A change of mind, found in several episodes")
        RECURRING_PROBLEM = "recurring_problem", _("A problem that comes again, found in several episodes")

    class State(models.TextChoices):
        OPEN = "open", _("Pending")
        APPROVED = "approved", _("Approved")
        REJECTED = "rejected", _("Rejected")
        KEPT_BOTH = "kept_both", _("Kept both")
        MERGED = "merged", _("Merged")
        # Decided by something else: the person said it, or somebody changed the fact itself.
        SETTLED = "settled", _("Settled")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="review_items", db_index=False)
    kind = models.CharField(_("kind"), max_length=18, choices=Kind.choices)
    reason = models.CharField(max_length=20, choices=Reason.choices)
    fact = models.ForeignKey(
        Fact, null=True, on_delete=models.CASCADE, related_name="review_items", help_text="What is proposed."
    )
    known = models.ForeignKey(
        Fact, null=True, on_delete=models.CASCADE, related_name="+", help_text="What it stands against."
    )
    proposed_section = models.ForeignKey(
        ProfileRevision, null=True, on_delete=models.CASCADE, related_name="+", help_text="Of the profile, instead."
    )
    episode = models.ForeignKey(
        Episode, null=True, on_delete=models.CASCADE, related_name="review_items", help_text="A poor one, instead."
    )
    extraction = models.ForeignKey(ExtractionRun, null=True, on_delete=models.SET_NULL, related_name="+")
    state = models.CharField(max_length=9, choices=State.choices, default=State.OPEN)
    version = models.PositiveIntegerField(default=1)
    change_set = models.UUIDField(null=True, editable=False, help_text="The revisions that the decision made.")
    decided_by = models.CharField(max_length=36, blank=True, help_text="Id of the operator.")
    note = models.TextField(blank=True, max_length=2000, help_text="Why it was decided so.")
    taken_by = models.CharField(max_length=36, blank=True, help_text="Id of the operator who has it on their desk.")
    taken_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    lost_at = models.DateTimeField(
        null=True, editable=False, help_text="Of a pattern: when a part of what showed it was deleted or taken back."
    )
    columns = Columns(
        id=VALUE, kind=CODE, reason=CODE, fact=VALUE, known=VALUE, proposed_section=VALUE, episode=VALUE,
        extraction=VALUE, state=CODE, version=VALUE, change_set=VALUE, note=TEXT, created_at=VALUE,
        decided_at=VALUE, lost_at=VALUE, decided_by=STAFF, taken_by=STAFF, taken_at=Column(omitted=STAFF.omitted),
    )  # fmt: skip

    objects = ReviewQuerySet.as_manager()

    class Meta:
        ordering = ["created_at", "id"]
        verbose_name = _("review item")
        verbose_name_plural = _("review items")
        constraints = [
            # The same question waits once, also when two batches raise it. Serves finding a fact's open items, too.
            models.UniqueConstraint(
                fields=["fact", "known", "kind", "tenant"],
                name="review_open_once",
                condition=Q(state="open", proposed_section=None, episode=None),
                nulls_distinct=False,
            ),
            models.UniqueConstraint(
                fields=["episode", "tenant"],
                name="review_episode_once",
                condition=Q(state="open", episode__isnull=False),
            ),
        ]
        indexes = [
            # Serves the list of what waits, the oldest first.
            models.Index(fields=["tenant", "created_at"], name="review_waiting_idx", condition=Q(state="open")),
            # Serves the queue of all tenants, a window at a time.
            models.Index(fields=["created_at", "id"], name="review_queue_idx", condition=Q(state="open")),
            # Serves an operator's last decision, which an undo takes back.
            models.Index(
                fields=["decided_by", "-decided_at"], name="review_of_decider_idx", condition=~Q(decided_by="")
            ),
            # Serves the decisions of the last days, counted by operator.
            models.Index(fields=["decided_at"], name="review_decided_idx", condition=~Q(decided_by="")),
            # Serves the list of all and a person's items.
            models.Index(fields=["end_user", "-created_at"], name="review_of_end_user_idx"),
        ]

    def __str__(self) -> str:
        return f"Review item {self.id} ({self.kind})"


class ReviewNote(models.Model):
    """What an operator noted on an item for colleagues."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", editable=False, db_index=False)
    item = models.ForeignKey(ReviewItem, on_delete=models.CASCADE, related_name="notes", editable=False)
    text = models.TextField(max_length=2000)
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices, editable=False)
    actor_id = models.CharField(max_length=36, blank=True, editable=False)
    created_at = models.DateTimeField(editable=False)
    columns = Columns(
        text=TEXT, actor_kind=CODE, created_at=VALUE, id=INSIDE, item=INSIDE, actor_id=STAFF,
    )  # fmt: skip

    class Meta:
        ordering = ["created_at", "id"]
        verbose_name = _("review note")
        verbose_name_plural = _("review notes")

    def __str__(self) -> str:
        return f"Review note {self.id}"
