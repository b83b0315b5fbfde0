"""Names of the actors of revisions and audit events. Actors without a name are shown by their kind."""

from collections.abc import Iterable
from typing import Protocol

from memories.db import tenancy
from memories.models import ActorKind, APIKey, ManagementKey, Operator


class Signed(Protocol):
    """A row that names its actor."""

    @property
    def actor_kind(self) -> str: ...

    @property
    def actor_id(self) -> str: ...


def names_of(rows: Iterable[Signed]) -> dict[str, str]:
    """Actor id → name of the operator or key, in three queries at most."""
    signed = list(rows)
    ids = {kind: {row.actor_id for row in signed if row.actor_kind == kind and row.actor_id} for kind in ActorKind}
    operators = Operator.objects.filter(pk__in=ids[ActorKind.OPERATOR])
    keys = APIKey.objects.filter(pk__in=ids[ActorKind.KEY])
    names = {str(operator.pk): operator.username for operator in operators} | {str(key.pk): str(key) for key in keys}
    if others := ids[ActorKind.KEY] - names.keys():
        # One that manages all tenants is none of the operator's, and named where it changed theirs.
        with tenancy.everything():
            names |= {str(key.pk): str(key) for key in ManagementKey.objects.filter(pk__in=others)}
    return names
