"""Refused texts and keys; facts/refusals.py says what becomes of a statement that repeats one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from django.db import IntegrityError, models, transaction
from django.utils.translation import gettext_lazy as _

from memories.models.actors import ActorKind
from memories.models.columns import CODE, STAFF, VALUE, Column, Columns
from memories.models.folding import older_refusals, refusal_of_key, refusal_of_text
from memories.models.memories.facts import Fact
from memories.models.people.people import EndUser
from memories.models.people.tenants import OfParent

_HASH = "a keyed hash of what was refused: it means nothing to a reader"


@dataclass(frozen=True)
class RefusalKey:
    """What stands for a refused text, or for a refused (category, key): hashes of 32 bytes.

    `digest` is kept. `older` are those that were kept before it, under secret keys.
    """

    kind: str
    digest: bytes
    older: tuple[bytes, ...]

    @property
    def digests(self) -> tuple[bytes, ...]:
        """All under which a row may stand for it, the present one first."""
        return self.digest, *self.older


def refusal_key_of_text(content: str) -> RefusalKey:
    return RefusalKey(FactRefusal.RefusalKind.TEXT, refusal_of_text(content), older_refusals("text", content))


def refusal_key_of_key(category: str, key: str) -> RefusalKey:
    return RefusalKey(FactRefusal.RefusalKind.KEY, refusal_of_key(category, key), older_refusals("key", category, key))


def refusal_keys(content: str, *, category: str, key: str) -> list[RefusalKey]:
    """What stands for a statement: its text and, when it has one, its key."""
    text = refusal_key_of_text(content)
    return [text, refusal_key_of_key(category, key)] if key else [text]


class FactRefusalQuerySet(models.QuerySet["FactRefusal"]):
    def against(self, end_user: EndUser, marks: Iterable[RefusalKey]) -> Self:
        """The rows that refuse any of these, whichever key they were made under."""
        return self.filter(end_user=end_user, digest__in=list(_by_digest(marks)))

    def refused(self, end_user: EndUser, marks: Iterable[RefusalKey]) -> frozenset[RefusalKey]:
        """Those of the marks that are refused, by whomever."""
        return frozenset(self.found(end_user, marks).values())

    def found(self, end_user: EndUser, marks: Iterable[RefusalKey]) -> "dict[FactRefusal, RefusalKey]":
        """The rows that refuse any of these, and which. One that was made under a secret key is rewritten now."""
        by_digest = _by_digest(marks)
        rows = self.against(end_user, by_digest.values()) if by_digest else []
        found = {row: by_digest[bytes(row.digest)] for row in rows}
        for row, mark in found.items():
            if bytes(row.digest) != mark.digest:
                row.rewrite(mark.digest)
        return found


class FactRefusal(OfParent):
    """What was rejected or forgotten, and by whom: keyed hashes only, so that it outlives the fact itself."""

    class RefusalKind(models.TextChoices):
        TEXT = "text", _("Text")
        KEY = "key", _("Key")

    id = models.BigAutoField(primary_key=True)
    end_user = models.ForeignKey(EndUser, on_delete=models.CASCADE, related_name="refusals", db_index=False)
    kind = models.CharField(max_length=4, choices=RefusalKind.choices)
    digest = models.BinaryField(max_length=32)
    fact = models.ForeignKey(Fact, null=True, on_delete=models.SET_NULL, related_name="refusals")
    # Of a row of which nobody knows any more who made it, an operator did: it binds.
    actor_kind = models.CharField(max_length=8, choices=ActorKind.choices, default=ActorKind.OPERATOR)
    actor_id = models.CharField(max_length=36, blank=True)
    created_at = models.DateTimeField()
    columns = Columns(
        kind=CODE, fact=VALUE, actor_kind=CODE, created_at=VALUE, id=Column(omitted=_HASH),
        digest=Column(erased=True, omitted=_HASH), actor_id=STAFF,
    )  # fmt: skip

    objects = FactRefusalQuerySet.as_manager()

    class Meta:
        verbose_name = _("fact refusal")
        verbose_name_plural = _("fact refusals")
        constraints = [
            # Serves the gate's look-up of a candidate's hashes.
            models.UniqueConstraint(fields=["end_user", "kind", "digest", "tenant"], name="refusal_once"),
        ]

    def __str__(self) -> str:
        return f"Refusal {self.pk}"

    @property
    def by_key(self) -> bool:
        """Whether an application refused it; an operator's refusal is binding."""
        return self.actor_kind == ActorKind.KEY

    def rewrite(self, digest: bytes) -> None:
        """Keep this hash in the place of an older one. The row keeps its id, by which an undo finds it."""
        try:
            with transaction.atomic():
                FactRefusal.objects.filter(pk=self.pk).update(digest=digest)
        except IntegrityError:
            # The same was refused again meanwhile, under the pepper: both rows say so.
            return
        self.digest = digest


def _by_digest(marks: Iterable[RefusalKey]) -> Mapping[bytes, RefusalKey]:
    return {digest: mark for mark in marks for digest in mark.digests}
