"""Who made a revision or left a line in the audit trail, as operators read it."""

from collections.abc import Iterable
from typing import Protocol

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.models import ActorKind, APIKey, Operator


class Signed(Protocol):
    """Something that somebody did."""

    @property
    def actor_kind(self) -> str: ...

    @property
    def actor_id(self) -> str: ...


# Actors without a name of their own, or whose row is gone.
_UNNAMED: dict[str, Promise] = {
    ActorKind.RUN: _("an extraction"),
    ActorKind.KEY: _("an application"),
    ActorKind.OPERATOR: _("an operator"),
    ActorKind.COMMAND: _("a command"),
    ActorKind.DECAY: _("a decay pass"),
    ActorKind.LINK: _("a link"),
}


def unnamed(kind: str) -> str:
    """Who it was when only the kind of actor is known."""
    return str(_UNNAMED[kind])


def names_of(rows: Iterable[Signed]) -> dict[str, str]:
    """Names for the ids of operators and keys; two queries."""
    made = list(rows)
    ids = {kind: {row.actor_id for row in made if row.actor_kind == kind and row.actor_id} for kind in ActorKind}
    operators = Operator.objects.filter(pk__in=ids[ActorKind.OPERATOR])
    keys = APIKey.objects.filter(pk__in=ids[ActorKind.KEY])
    return {str(operator.pk): operator.username for operator in operators} | {str(key.pk): str(key) for key in keys}
