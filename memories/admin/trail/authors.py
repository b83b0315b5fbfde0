"""Names of the actors of revisions and audit events."""

from collections.abc import Iterable
from typing import Protocol

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.models import ActorKind, APIKey, Operator


class Signed(Protocol):
    """A row that names its actor."""

    @property
    def actor_kind(self) -> str: ...

    @property
    def actor_id(self) -> str: ...


# Actors without a name, or whose row is deleted.
_UNNAMED: dict[str, Promise] = {
    ActorKind.RUN: _("an extraction"),
    ActorKind.KEY: _("an application"),
    ActorKind.OPERATOR: _("an operator"),
    ActorKind.COMMAND: _("a command"),
    ActorKind.DECAY: _("a decay pass"),
    ActorKind.LINK: _("a link"),
}


def unnamed(kind: str) -> str:
    """The actor if only its kind is known."""
    return str(_UNNAMED[kind])


def names_of(rows: Iterable[Signed]) -> dict[str, str]:
    """Actor id → name of the operator or key, in two queries."""
    signed = list(rows)
    ids = {kind: {row.actor_id for row in signed if row.actor_kind == kind and row.actor_id} for kind in ActorKind}
    operators = Operator.objects.filter(pk__in=ids[ActorKind.OPERATOR])
    keys = APIKey.objects.filter(pk__in=ids[ActorKind.KEY])
    return {str(operator.pk): operator.username for operator in operators} | {str(key.pk): str(key) for key in keys}
