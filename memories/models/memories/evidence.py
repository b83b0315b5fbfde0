"""What a fact rests on, and how it relates to other facts."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from memories.models.columns import CODE, INSIDE, OWN_TEXT, OWN_VALUE, VALUE, Columns
from memories.models.conversations.conversations import Session, Turn
from memories.models.memories.facts import Fact
from memories.models.people.tenants import OfParent


class FactEvidence(OfParent):
    """A turn that a fact rests on; once retention deleted that turn, where it was, without its words."""

    id = models.BigAutoField(primary_key=True)
    fact = models.ForeignKey(Fact, on_delete=models.CASCADE, related_name="evidence", db_index=False)
    turn = models.ForeignKey(Turn, null=True, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="+")
    turn_number = models.PositiveIntegerField()
    quote = models.TextField(blank=True)
    created_at = models.DateTimeField()
    columns = Columns(
        turn=OWN_VALUE, session=OWN_VALUE, turn_number=OWN_VALUE, quote=OWN_TEXT, created_at=VALUE, id=INSIDE,
        fact=INSIDE,
    )  # fmt: skip

    class Meta:
        ordering = ["created_at", "turn_number"]
        verbose_name = _("fact evidence")
        verbose_name_plural = _("fact evidence")
        constraints = [
            # Serves reading a fact's evidence; the same turn is cited once.
            models.UniqueConstraint(fields=["fact", "turn", "tenant"], name="evidence_once"),
        ]

    def __str__(self) -> str:
        return f"Evidence {self.pk}"


class RelationType(models.TextChoices):
    """How a fact stands to another one; that it supersedes one is told by `Fact.superseded_by`."""

    RELATED_TO = "related_to", _("Related to")
    SUPERSEDES = "supersedes", _("Supersedes")
    CONTRADICTS = "contradicts", _("Contradicts")
    DERIVED_FROM = "derived_from", _("Derived from")


class FactRelation(OfParent):
    """A fact's relation to another fact of the same person; never `supersedes`."""

    id = models.BigAutoField(primary_key=True)
    fact = models.ForeignKey(Fact, on_delete=models.CASCADE, related_name="relations", db_index=False)
    target = models.ForeignKey(Fact, on_delete=models.CASCADE, related_name="told_by")
    type = models.CharField(max_length=12, choices=RelationType.choices)
    created_at = models.DateTimeField()
    columns = Columns(
        target=VALUE, type=CODE, created_at=VALUE, id=INSIDE, fact=INSIDE,
    )  # fmt: skip

    class Meta:
        ordering = ["id"]
        verbose_name = _("fact relation")
        verbose_name_plural = _("fact relations")
        constraints = [
            # Serves reading a fact's relations; each is told once.
            models.UniqueConstraint(fields=["fact", "target", "type", "tenant"], name="relation_once"),
            models.CheckConstraint(condition=~models.Q(fact=models.F("target")), name="relation_to_another"),
        ]

    def __str__(self) -> str:
        return f"Relation {self.pk}"
