"""Changes by people: each is a change set, which one mechanism takes back; batches are change sets made in one go."""

import uuid
from typing import Self

from django.db import models
from django.db.models import Func, IntegerField, Q
from django.db.models.lookups import LessThanOrEqual
from django.utils.translation import gettext_lazy as _

from memories.models.access.operators import Operator
from memories.models.actors import ActorKind
from memories.models.columns import CODE, INSIDE, MACHINE, STAFF, TEXT, VALUE, Column, Columns
from memories.models.ids import new_id
from memories.models.memories.episodes import Episode
from memories.models.memories.facts import Fact
from memories.models.memories.review import ReviewItem
from memories.models.people.people import EndUser
from memories.models.people.tenants import OfParent, Tenant


class Batch(models.Model):
    """What an operator did to many memories in one go."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    operator = models.ForeignKey(Operator, null=True, on_delete=models.SET_NULL, related_name="+", editable=False)
    verb = models.CharField(max_length=32, editable=False)
    # How many were asked for, done, and refused because somebody had changed them meanwhile.
    counts = models.JSONField(default=dict, editable=False)
    created_at = models.DateTimeField(editable=False)
    undone_at = models.DateTimeField(null=True, editable=False)
    columns = Columns(waived="a verb, counts and times")

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("batch")
        verbose_name_plural = _("batches")

    def __str__(self) -> str:
        return f"batch {self.pk}"


def _of_one(*names: str) -> LessThanOrEqual:
    return LessThanOrEqual(Func(*names, function="num_nonnulls", output_field=IntegerField()), 1)


class ChangeSet(models.Model):
    """One change by an operator or a command. The revisions of what it changed have its id.

    It is about an item, a fact, an episode or a person, and is deleted with that; one about several people is about
    none of these. A merge of two people is about who stays, and is deleted with either.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", editable=False)
    item = models.ForeignKey(ReviewItem, null=True, on_delete=models.CASCADE, related_name="+", editable=False)
    fact = models.ForeignKey(Fact, null=True, on_delete=models.CASCADE, related_name="change_sets", editable=False)
    episode = models.ForeignKey(Episode, null=True, on_delete=models.CASCADE, related_name="+", editable=False)
    end_user = models.ForeignKey(EndUser, null=True, on_delete=models.CASCADE, related_name="+", editable=False)
    merged = models.ForeignKey(
        EndUser, null=True, on_delete=models.CASCADE, related_name="+", editable=False, db_index=False
    )
    batch = models.ForeignKey(
        Batch, null=True, on_delete=models.SET_NULL, related_name="steps", editable=False, db_index=False
    )
    verb = models.CharField(max_length=20, editable=False)
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices, editable=False)
    actor_id = models.CharField(max_length=36, blank=True, editable=False)
    reason = models.TextField(blank=True, max_length=2000, editable=False)
    counts = models.JSONField(default=dict, editable=False)
    selected = models.JSONField(null=True, editable=False, help_text="Of a roll back: ids, an agent and times.")
    created_at = models.DateTimeField(editable=False)
    undone_at = models.DateTimeField(null=True, editable=False)
    reverted_by = models.UUIDField(null=True, editable=False, help_text="Id of the change set that took it back.")
    columns = Columns(
        id=VALUE, item=VALUE, fact=VALUE, episode=VALUE, verb=CODE, actor_kind=CODE, reason=TEXT, counts=CODE,
        created_at=VALUE, undone_at=VALUE,
        merged=Column(omitted="id of a row; all ids of the person are in `people`"), batch=MACHINE, actor_id=STAFF,
        reverted_by=MACHINE,
        selected=Column(waived=CODE.waived, omitted="what staff chose to roll back: ids, an agent and times"),
    )  # fmt: skip

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = _("change set")
        verbose_name_plural = _("change sets")
        constraints = [
            models.CheckConstraint(name="change_set_of_one", condition=_of_one("item", "fact", "episode", "end_user")),
            # Serves finding what a revert took back.
            models.UniqueConstraint(fields=["reverted_by", "tenant"], name="change_set_reverts_one"),
            # One merge at a time leads away from a person, also when two operators merge them.
            models.UniqueConstraint(
                fields=["merged", "tenant"],
                name="change_set_merged_once",
                condition=Q(undone_at=None, merged__isnull=False),
            ),
            # A batch that is sent twice changes each memory once. Serves finding the steps of a batch, too.
            models.UniqueConstraint(fields=["batch", "item", "tenant"], name="change_set_item_once"),
            models.UniqueConstraint(fields=["batch", "fact", "tenant"], name="change_set_fact_once"),
        ]
        indexes = [
            # Serves the erasure of who was merged; few were.
            models.Index(fields=["merged"], name="change_set_merged_idx", condition=Q(merged__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"change set {self.pk}"

    @property
    def about(self) -> "ReviewItem | Fact | Episode | EndUser | Tenant":
        """What it is about; the tenant when it is about several people."""
        return self.item or self.fact or self.episode or self.end_user or self.tenant


class ChangeQuerySet(models.QuerySet["Change"]):
    def of_summary(self, session: uuid.UUID) -> Self:
        """What rewrote the running summary of the session: whatever deletes the summary deletes these, too."""
        return self.filter(table=Change.Table.SUMMARY, uuid=session)


class Change(OfParent):
    """What a change set did to one row that has no revisions."""

    class Action(models.TextChoices):
        MADE = "made"
        # `before` is the row as it was.
        DELETED = "deleted"
        # `before` holds the changed fields as they were.
        CHANGED = "changed"
        # The row became another person's.
        MOVED = "moved"
        # The change set was about the row and left it at this version: a later one forbids the revert.
        LEFT = "left"
        # A roll back takes back what this revision did, as soon as nobody else's change came after it.
        TAKEN = "taken"

    class Table(models.TextChoices):
        FACT = "fact"
        EPISODE = "episode"
        SECTION = "section"
        EVIDENCE = "evidence"
        RELATION = "relation"
        REFUSAL = "refusal"
        PERSON = "person"
        KEY = "key"
        SESSION = "session"
        FILE = "file"
        DIARY = "diary"
        # `version` is what the change left it at; each change of an operator has one.
        TRIPLE = "triple"
        # Of an entity that became another name of one, or got another type.
        ENTITY = "entity"
        # Of groups: that somebody is a member, what they said there, and what was said there about them.
        MEMBER = "member"
        SAID = "said"
        SHARED = "shared"
        # Of a section, by its uuid; of a fact, by its number.
        REVISION = "revision"
        # The running summary of a session, by the session's id; `version` is version_of_summary() of what was written.
        SUMMARY = "summary"
        # Whose words a turn holds; `version` is version_of_author() of what was said of it.
        TURN = "turn"
        TRAJECTORY = "trajectory"

    id = models.BigAutoField(primary_key=True)
    change_set = models.ForeignKey(ChangeSet, on_delete=models.CASCADE, related_name="changes", editable=False)
    table = models.CharField(max_length=10, choices=Table.choices, editable=False)
    action = models.CharField(max_length=7, choices=Action.choices, editable=False)
    # The row's id.
    uuid = models.UUIDField(null=True, editable=False)
    number = models.BigIntegerField(null=True, editable=False)
    version = models.PositiveIntegerField(null=True, editable=False)
    before = models.JSONField(default=dict, editable=False)
    columns = Columns(
        table=CODE, action=CODE, uuid=VALUE, version=VALUE, before=TEXT, id=INSIDE, change_set=INSIDE,
        number=Column(omitted="a number that no exported row has"),
    )  # fmt: skip

    objects = ChangeQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("change")
        verbose_name_plural = _("changes")
        constraints = [models.CheckConstraint(name="change_of_one", condition=_of_one("uuid", "number"))]
        indexes = [
            # Serves the history of an episode.
            models.Index(fields=["uuid"], name="change_of_episode_idx", condition=Q(table="episode")),
            # Serves whatever deletes the summary of a session: what it said before goes with it.
            models.Index(fields=["uuid"], name="change_of_summary_idx", condition=Q(table="summary")),
            # Serve the question whether a roll back took a revision back: of facts, and of sections.
            models.Index(fields=["number"], name="change_taken_fact_idx", condition=Q(action="taken")),
            models.Index(fields=["uuid"], name="change_taken_section_idx", condition=Q(action="taken")),
        ]

    def __str__(self) -> str:
        return f"change {self.pk}"
