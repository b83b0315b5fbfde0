"""The temporal graph of a person: entities, and triples of them that hold for a time."""

from datetime import datetime
from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, DERIVED, MACHINE, STAFF, TEXT, VALUE, Columns
from memories.models.conversations.conversations import Turn
from memories.models.ids import new_id
from memories.models.memories.facts import Fact, FactQuerySet
from memories.models.people.people import EndUser
from memories.models.people.tenants import Tenant
from memories.trust import Trust

LONGEST_ENTITY = 500
LONGEST_PREDICATE = 100
LONGEST_TYPE = 40


class TripleStatus(models.TextChoices):
    ACTIVE = "active", _("Active")
    PENDING = "pending", _("Pending")
    TRASHED = "trashed", _("In the trash")


class GraphEntity(models.Model):
    """Something that triples of a person are about. Another name of it is an entity that is merged into it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    end_user = models.ForeignKey(
        EndUser, verbose_name=_("end user"), on_delete=models.CASCADE, related_name="entities", db_index=False
    )
    name = models.CharField(_("name"), max_length=LONGEST_ENTITY)
    digest = models.BinaryField(max_length=32, editable=False, help_text="SHA-256 of the folded name.")
    type = models.CharField(_("type"), max_length=LONGEST_TYPE, blank=True, help_text="Such as person or place.")
    merged_into = models.ForeignKey(
        "self",
        verbose_name=_("another name of"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="aliases",
        db_index=False,
        editable=False,
    )
    created_at = models.DateTimeField(_("created"), editable=False)
    columns = Columns(
        id=VALUE, name=TEXT, type=TEXT, merged_into=VALUE, created_at=VALUE, digest=DERIVED,
    )  # fmt: skip

    class Meta:
        default_permissions = ()
        ordering = ["name", "id"]
        verbose_name = _("entity")
        verbose_name_plural = _("entities")
        constraints = [
            # Serves every look-up by name.
            models.UniqueConstraint(fields=["end_user", "digest", "tenant"], name="graph_entity_once"),
            models.CheckConstraint(condition=~Q(merged_into=F("id")), name="graph_entity_of_another"),
        ]
        indexes = [
            models.Index(fields=["merged_into"], name="graph_entity_alias_idx", condition=Q(merged_into__isnull=False)),
        ]

    def __str__(self) -> str:
        # Nothing personal: Django's admin log keeps this text for ever.
        return f"Entity {self.id}"


class GraphTripleQuerySet(models.QuerySet["GraphTriple"]):
    def of(self, tenant: Tenant, end_user: EndUser) -> Self:
        """The triples of one person: every read of the graph starts here."""
        return self.filter(tenant=tenant, end_user=end_user)

    def shown(self, facts: FactQuerySet, *, agent_id: str, sees_all: bool = False) -> Self:
        """Those that are served: stated ones for this agent, and those of `facts`, the facts that may be seen."""
        stated = Q(fact=None) if sees_all else Q(fact=None, agent_id__in={"", agent_id})
        return self.filter(stated | Q(fact__in=facts.order_by().values("pk")), status=TripleStatus.ACTIVE)

    def open(self) -> Self:
        return self.filter(valid_to=None)

    def held_at(self, moment: datetime) -> Self:
        """Those that hold then: from their start on, and before their end."""
        began = Q(valid_from=None) | Q(valid_from__lte=moment)
        return self.filter(began & (Q(valid_to=None) | Q(valid_to__gt=moment)))

    def ended(self, moment: datetime) -> Self:
        return self.filter(valid_to__lte=moment)

    def discarded(self, *, now: datetime) -> Self:
        """What is in the trash since then, or longer."""
        return self.filter(status=TripleStatus.TRASHED, trashed_at__lte=now)


class GraphTriple(models.Model):
    """That a subject stands in a relation to an object, from `valid_from` until before `valid_to`.

    One with a fact follows that fact: graph/following.py writes it, and nobody else. Its `place` is 0 if it is the
    fact's key and value, else that among the fact's triples, from 1. The row goes with its fact, and forgets its turn,
    by the database itself.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    tenant = models.ForeignKey(
        Tenant, verbose_name=_("tenant"), on_delete=models.CASCADE, related_name="+", db_index=False
    )
    end_user = models.ForeignKey(
        EndUser, verbose_name=_("end user"), on_delete=models.CASCADE, related_name="triples", db_index=False
    )
    agent_id = models.CharField(_("agent"), max_length=255, blank=True, help_text="Empty: the person's own.")
    subject = models.ForeignKey(
        GraphEntity, verbose_name=_("subject"), on_delete=models.CASCADE, related_name="outgoing", db_index=False
    )
    predicate = models.CharField(_("predicate"), max_length=LONGEST_PREDICATE, help_text="Such as works_at.")
    object = models.ForeignKey(
        GraphEntity, verbose_name=_("object"), on_delete=models.CASCADE, related_name="incoming", db_index=False
    )
    valid_from = models.DateTimeField(_("valid from"), null=True, blank=True, help_text="Empty: not known.")
    valid_to = models.DateTimeField(_("valid until"), null=True, blank=True, help_text="Empty: it still holds.")
    dated_at = models.DateTimeField(editable=False, help_text="valid_from; without one when it was stored.")
    confidence = models.FloatField(_("confidence"), validators=[MinValueValidator(0.0), MaxValueValidator(1.0)])
    status = models.CharField(
        _("status"), max_length=7, choices=TripleStatus.choices, default=TripleStatus.ACTIVE, editable=False
    )
    flags = ArrayField(models.CharField(max_length=40), verbose_name=_("flags"), default=list, editable=False)
    trust = models.CharField(_("trust"), max_length=9, choices=Trust.choices, editable=False)
    extractor = models.CharField(max_length=120, editable=False, help_text="As of a fact.")
    actor_kind = models.CharField(_("written by"), max_length=8, choices=ActorKind.choices, blank=True, editable=False)
    actor_id = models.CharField(max_length=36, blank=True, editable=False)
    fact = models.ForeignKey(
        Fact,
        verbose_name=_("fact"),
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="graph",
        db_index=False,
        db_constraint=False,
        editable=False,
    )
    place = models.PositiveSmallIntegerField(default=0, editable=False)
    turn = models.ForeignKey(
        Turn,
        verbose_name=_("turn"),
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
        editable=False,
    )
    version = models.PositiveIntegerField(default=1, editable=False)
    created_at = models.DateTimeField(_("created"), editable=False)
    updated_at = models.DateTimeField(_("changed"), editable=False)
    trashed_at = models.DateTimeField(null=True, editable=False)
    columns = Columns(
        id=VALUE, agent_id=TEXT, subject=VALUE, predicate=TEXT, object=VALUE, valid_from=VALUE, valid_to=VALUE,
        confidence=VALUE, status=CODE, flags=CODE, trust=CODE, extractor=CODE, actor_kind=CODE, fact=VALUE,
        turn=VALUE, version=VALUE, created_at=VALUE, updated_at=VALUE, trashed_at=VALUE, dated_at=MACHINE,
        actor_id=STAFF, place=MACHINE,
    )  # fmt: skip

    objects = GraphTripleQuerySet.as_manager()

    class Meta:
        default_permissions = ("view", "change")
        ordering = ["-created_at", "-id"]
        verbose_name = _("triple")
        verbose_name_plural = _("triples")
        constraints = [
            # One open row for what is stated, also under races; a fact has one row of each place.
            models.UniqueConstraint(
                fields=["end_user", "agent_id", "subject", "predicate", "object", "tenant"],
                name="graph_triple_open_once",
                condition=Q(valid_to=None, fact=None) & ~Q(status="trashed"),
            ),
            models.UniqueConstraint(fields=["fact", "place", "tenant"], name="graph_triple_of_fact"),
            models.CheckConstraint(
                condition=Q(valid_from=None) | Q(valid_to=None) | Q(valid_to__gte=F("valid_from")),
                name="graph_triple_not_inverted",
            ),
            models.CheckConstraint(condition=Q(confidence__range=(0, 1)), name="graph_triple_confidence"),
        ]
        indexes = [
            # Serve the triples of an entity, and the deletion of entities.
            models.Index(fields=["subject", "dated_at", "id"], name="graph_triple_subject_idx"),
            models.Index(fields=["object", "dated_at", "id"], name="graph_triple_object_idx"),
            # Serves the timeline of a person.
            models.Index(fields=["end_user", "dated_at", "id"], name="graph_triple_timeline_idx"),
            # Serves the admin's list.
            models.Index(fields=["tenant", "-created_at", "-id"], name="graph_triple_newest_idx"),
            # Serves the deletion of turns.
            models.Index(fields=["turn"], name="graph_triple_turn_idx", condition=Q(turn__isnull=False)),
            # Serves what is deleted from the trash.
            models.Index(
                fields=["tenant", "trashed_at", "id"], name="graph_triple_trash_idx", condition=Q(status="trashed")
            ),
        ]

    def __str__(self) -> str:
        # Nothing personal: Django's admin log keeps this text for ever.
        return f"Triple {self.id}"

    @property
    def sentence(self) -> str:
        """What it says, by the names of its entities: `Max works at Acme`."""
        subject, object_ = (one.merged_into or one for one in (self.subject, self.object))
        return f"{subject.name} {self.predicate.replace('_', ' ')} {object_.name}"

    def state(self, now: datetime) -> str:
        """`active`, `historical` or `future`."""
        return state_of(self.valid_from, self.valid_to, now)


def state_of(valid_from: datetime | None, valid_to: datetime | None, now: datetime) -> str:
    """Whether what holds for this time holds now, did, or will."""
    if valid_to and valid_to <= now:
        return "historical"
    return "future" if valid_from and valid_from > now else "active"
