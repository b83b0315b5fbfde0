"""Groups of people, such as a team or a household, and the facts that their members share.

A fact rests on evidence: one row for each member who said it. Without any it does not exist.
"""

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import Case, Exists, OuterRef, Q, When
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, DERIVED, KEY, OWN_VALUE, TEXT, VALUE, Column, Columns
from memories.models.folding import text_digest
from memories.models.ids import new_id
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant
from memories.trust import Trust

LONGEST_NAME = 100
LONGEST_GROUP_FACT = 1_000


class MemoryGroupQuerySet(models.QuerySet["MemoryGroup"]):
    def present(self) -> Self:
        """What is not in the trash."""
        return self.filter(trashed_at=None)


class MemoryGroup(models.Model):
    """A group of a tenant's people. In the trash it keeps its members and facts, and nobody is told of it."""

    class Kind(models.TextChoices):
        TEAM = "team", _("Team")
        PROJECT = "project", _("Project")
        HOUSEHOLD = "household", _("Household")
        OTHER = "other", _("Other")

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    name = models.CharField(
        _("name"), max_length=LONGEST_NAME, blank=True, help_text="Empty after its only member was erased."
    )
    kind = models.CharField(_("kind"), max_length=9, choices=Kind.choices, default=Kind.TEAM)
    created_at = models.DateTimeField(_("created"), editable=False)
    trashed_at = models.DateTimeField(null=True, editable=False, help_text="Since when it is deleted.")
    columns = Columns(
        id=VALUE, name=TEXT, kind=CODE, created_at=VALUE, trashed_at=VALUE,
    )  # fmt: skip

    objects = MemoryGroupQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        default_permissions = ("view", "change")
        verbose_name = _("group of people")
        verbose_name_plural = _("groups of people")
        indexes = [
            # Serves the lists.
            models.Index(fields=["tenant", "-created_at", "-id"], name="memory_group_newest_idx"),
            # Serves the nightly pass: only what is due.
            models.Index(
                fields=["tenant", "trashed_at"], name="memory_group_trash_idx", condition=Q(trashed_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"Group {self.id}"


class GroupMember(models.Model):
    """That a person belongs to a group, as long as the row is there."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    group = models.ForeignKey(MemoryGroup, on_delete=models.CASCADE, related_name="members", db_index=False)
    end_user = models.ForeignKey(
        EndUser, verbose_name=_("end user"), on_delete=models.CASCADE, related_name="memberships", db_index=False
    )
    may_write = models.BooleanField(_("may write"), default=True, help_text="Whether what they say becomes a fact.")
    created_at = models.DateTimeField(_("since"), editable=False)
    columns = Columns(
        id=VALUE, may_write=VALUE, created_at=VALUE, group=Column(omitted="the group is inside of it"),
    )  # fmt: skip

    class Meta:
        ordering = ["created_at", "id"]
        default_permissions = ()
        verbose_name = _("member of a group")
        verbose_name_plural = _("members of groups")
        constraints = [
            models.UniqueConstraint(fields=["group", "tenant", "end_user"], name="group_member_once"),
        ]
        indexes = [
            # Serves the groups of a person, in every context.
            models.Index(fields=["end_user", "tenant"], name="group_member_person_idx"),
        ]

    def __str__(self) -> str:
        return f"Member {self.end_user_id} of group {self.group_id}"


class GroupFactQuerySet(models.QuerySet["GroupFact"]):
    def of(self, tenant: Tenant, group: MemoryGroup) -> Self:
        """The facts of one group: every read of a group starts here."""
        return self.filter(tenant=tenant, group=group)

    def present(self) -> Self:
        """What is not in the trash."""
        return self.filter(trashed_at=None)

    def served(self) -> Self:
        """What the members' agents are told: somebody whose data may be used said it, and it is about nobody else."""
        evidence = GroupEvidence.objects.filter(
            fact=OuterRef("pk"), end_user__restricted_at=None, end_user__merged_into__restricted_at=None
        )
        return self.present().filter(
            Exists(evidence), about__restricted_at=None, about__merged_into__restricted_at=None
        )

    def served_to(self, person: EndUser) -> Self:
        """The facts of the groups of which the person is a member now. Who has left a group gets none of its facts."""
        return self.served().filter(
            tenant=person.tenant_id,
            group__trashed_at=None,
            group__members__end_user=person,
            group__members__tenant=person.tenant_id,
        )

    def said_by(self, person: EndUser) -> Self:
        """With `is_own`: whether it is about the person, or about nobody and one of those who said it is the person."""
        said = GroupEvidence.objects.filter(fact=OuterRef("pk"), end_user=person)
        return self.annotate(is_own=Case(When(about=None, then=Exists(said)), default=Q(about=person)))

    def discarded(self, *, now: datetime) -> Self:
        """What is in the trash since then, or longer, by itself or with its group."""
        return self.filter(Q(trashed_at__lte=now) | Q(group__trashed_at__lte=now))


class GroupFact(models.Model):
    """One statement that a group shares, once however many of its members say it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    group = models.ForeignKey(MemoryGroup, on_delete=models.CASCADE, related_name="facts", db_index=False)
    about = models.ForeignKey(
        EndUser,
        verbose_name=_("about"),
        null=True,
        on_delete=models.CASCADE,
        related_name="group_facts",
        db_index=False,
        help_text="The person whom it is about: it goes with them, whoever said it.",
    )
    content = models.TextField(_("text"), editable=False)
    content_hash = models.BinaryField(editable=False)
    created_at = models.DateTimeField(_("first said"), editable=False)
    said_at = models.DateTimeField(_("last said"), editable=False)
    trashed_at = models.DateTimeField(null=True, editable=False, help_text="Since when it is deleted.")
    change_set = models.UUIDField(
        null=True, editable=False, help_text="That deleted it with other memories, such as a roll back."
    )
    columns = Columns(
        id=VALUE, group=VALUE, content=TEXT, created_at=VALUE, said_at=VALUE, trashed_at=VALUE, change_set=VALUE,
        about=Column(omitted="told by `about_you`; anybody else is theirs"), content_hash=DERIVED,
    )  # fmt: skip

    objects = GroupFactQuerySet.as_manager()

    class Meta:
        ordering = ["-said_at", "-id"]
        default_permissions = ()
        verbose_name = _("fact of a group")
        verbose_name_plural = _("facts of groups")
        constraints = [
            # Two members who say the same at once make one fact.
            models.UniqueConstraint(
                fields=["group", "tenant", "content_hash", "about"],
                name="group_fact_once",
                condition=Q(trashed_at=None),
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=Q(change_set=None) | Q(trashed_at__isnull=False), name="group_fact_change_set_deletes"
            ),
        ]
        indexes = [
            # Serves lists and contexts.
            models.Index(fields=["group", "-said_at", "-id"], name="group_fact_newest_idx"),
            # Serves an erasure of whom it is about.
            models.Index(fields=["about"], name="group_fact_about_idx", condition=Q(about__isnull=False)),
            # Serves the nightly pass: only what is due.
            models.Index(
                fields=["tenant", "trashed_at", "id"],
                name="group_fact_trash_idx",
                condition=Q(trashed_at__isnull=False),
            ),
            # Serves the undo of a change set.
            models.Index(
                fields=["change_set"], name="group_fact_change_set_idx", condition=Q(change_set__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"Fact {self.id} of group {self.group_id}"

    def set_text(self, content: str) -> None:
        """Set the text and what follows from it."""
        self.content, self.content_hash = content, text_digest(content)


class GroupEvidence(models.Model):
    """That a member said a fact: when, through which agent, and who wrote it down. It stays when they leave."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    fact = models.ForeignKey(GroupFact, on_delete=models.CASCADE, related_name="evidence", db_index=False)
    end_user = models.ForeignKey(
        EndUser, verbose_name=_("end user"), on_delete=models.CASCADE, related_name="said_in_groups", db_index=False
    )
    agent_id = models.CharField(_("agent"), max_length=255, blank=True, editable=False)
    actor_kind = models.CharField(_("written by"), max_length=8, choices=ActorKind.choices, editable=False)
    actor_id = models.CharField(max_length=36, blank=True, editable=False)
    trust = models.CharField(_("trust"), max_length=9, choices=Trust.choices, editable=False)
    created_at = models.DateTimeField(_("first said"), editable=False)
    said_at = models.DateTimeField(_("last said"), editable=False)
    columns = Columns(
        id=OWN_VALUE, agent_id=TEXT, actor_kind=CODE, trust=CODE, created_at=OWN_VALUE, said_at=OWN_VALUE,
        fact=Column(omitted="the fact is inside of it"), actor_id=Column(waived=CODE.waived, omitted=KEY.omitted),
    )  # fmt: skip

    class Meta:
        ordering = ["created_at", "id"]
        default_permissions = ()
        verbose_name = _("evidence of a group's fact")
        verbose_name_plural = _("evidence of groups' facts")
        constraints = [
            models.UniqueConstraint(fields=["fact", "tenant", "end_user"], name="group_evidence_once"),
        ]
        indexes = [
            # Serves erasures, exports and merges.
            models.Index(fields=["end_user"], name="group_evidence_person_idx"),
            # Serves rolling back what a key wrote.
            models.Index(fields=["actor_id"], name="group_evidence_actor_idx"),
        ]

    def __str__(self) -> str:
        return f"Evidence {self.id} of fact {self.fact_id}"
