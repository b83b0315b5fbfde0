"""Powers of an operator: nobody gives to others, or takes from them, what they do not have themselves."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import Permission
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.exceptions import Conflict
from memories.models import ActorKind, Operator


@dataclass(frozen=True)
class PermissionSet:
    """Permissions such as memories.view_fact, and the ids of the tenants that they apply to (None: all)."""

    permissions: frozenset[str]
    tenants: frozenset[uuid.UUID] | None
    superuser: bool = False

    def cover(self, others: "PermissionSet") -> bool:
        """Whether none of the others goes beyond these."""
        may = self.superuser or (not others.superuser and others.permissions <= self.permissions)
        sees = self.tenants is None or (others.tenants is not None and others.tenants <= self.tenants)
        return may and sees


EVERYTHING = PermissionSet(frozenset(), None, superuser=True)


def powers_of(operator: Operator) -> PermissionSet:
    """The operator's powers, also of an inactive one: somebody can make them active again."""
    held = labels(Permission.objects.filter(Q(user=operator) | Q(group__user=operator)))
    # Not the tenants themselves: row level security hides those that whoever asks does not see.
    links = Operator.tenants.through._default_manager.filter(operator=operator)
    tenants = None if operator.all_tenants else frozenset(links.values_list("tenant", flat=True))
    return PermissionSet(held, tenants, operator.is_superuser)


def powers_given(
    operator: Operator | None,
    *,
    groups: Iterable[uuid.UUID | int],
    tenants: frozenset[uuid.UUID] | None,
    superuser: bool,
) -> PermissionSet:
    """The powers of somebody in these groups; an existing operator keeps permissions of their own."""
    own = Q(user=operator) if operator else Q(pk__in=[])
    return PermissionSet(labels(Permission.objects.filter(own | Q(group__in=groups))), tenants, superuser)


def powers_of_group(permissions: Iterable[str]) -> PermissionSet:
    """What a group gives, in every tenant: only operators of all tenants can change it."""
    return PermissionSet(frozenset(permissions), None)


def labels(permissions: QuerySet[Permission]) -> frozenset[str]:
    rows = permissions.order_by().values_list("content_type__app_label", "codename").distinct()
    return frozenset(f"{app}.{codename}" for app, codename in rows)


def powers_of_actor(actor: Actor, *, needs: str) -> PermissionSet:
    """The actor's powers: a command can do everything, a management key for operators all but make a superuser.

    Errors: PermissionDenied without the permission `needs`.
    """
    if actor.kind == ActorKind.KEY:
        return PermissionSet(labels(Permission.objects.all()), None)
    if not actor.is_operator:
        return EVERYTHING
    operator = Operator.objects.filter(pk=actor.id, is_active=True).first()
    held = powers_of(operator) if operator else None
    if held is None or not (held.superuser or needs in held.permissions):
        raise PermissionDenied
    return held


def check_covers(mine: PermissionSet, *those: PermissionSet) -> None:
    """Errors: Conflict when one of `those` goes beyond `mine`."""
    if not all(mine.cover(powers) for powers in those):
        raise Conflict(_("This needs permissions that you do not have. Ask an operator who has them."))
