"""Operators and groups. An operator gives others at most the permissions and tenants that they have themselves."""

import uuid
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.curation.access.powers import (
    PermissionSet,
    check_covers,
    labels,
    powers_given,
    powers_of,
    powers_of_actor,
    powers_of_group,
)
from memories.curation.marks import mark
from memories.exceptions import Conflict, Fault, InvalidInput, NotFound, PreconditionFailed
from memories.models import Operator, Tenant
from memories.time_zones import is_zone

CHANGE_OPERATOR, CHANGE_GROUP = "memories.change_operator", "auth.change_group"
# Versions stay below: they are hashes, and nine digits fit an ETag.
_VERSIONS = 999_999_999
_COLUMNS = ("username", "first_name", "last_name", "email", "time_zone", "is_active", "is_superuser", "all_tenants")


@dataclass(frozen=True)
class OperatorDraft:
    """The record of an operator as it shall be; groups and tenants by their ids."""

    username: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    time_zone: str = "UTC"
    is_active: bool = True
    is_superuser: bool = False
    all_tenants: bool = True
    groups: frozenset[int] = frozenset()
    tenants: frozenset[uuid.UUID] = frozenset()


def draft_of(operator: Operator) -> OperatorDraft:
    """The record of the operator as it is now."""
    plain = {name: getattr(operator, name) for name in _COLUMNS}
    groups = frozenset(group.pk for group in operator.groups.all())
    return OperatorDraft(**plain, groups=groups, tenants=frozenset(tenant.pk for tenant in operator.tenants.all()))


def state_of(draft: OperatorDraft) -> str:
    """A mark of this state, by which update_operator() checks that nobody has changed it since."""
    return mark({**asdict(draft), "groups": sorted(draft.groups), "tenants": sorted(map(str, draft.tenants))})


def add_operator(*, draft: OperatorDraft, password: str | None, actor: Actor, now: datetime) -> Operator:
    """Make an operator; without a password they need an invitation, or sign in through the identity provider.

    Errors: Conflict, PermissionDenied.
    """
    with transaction.atomic():
        _lock_all()
        mine = powers_of_actor(actor, needs=CHANGE_OPERATOR)
        check_covers(mine, _wanted(None, draft))
        _check_name(draft, None)
        operator = Operator(is_staff=True, date_joined=now)
        operator.set_password(password)
        _write(operator, draft)
        audit.record(verb="add", target=operator, actor=actor, now=now)
    return operator


def update_operator(
    *, operator_id: uuid.UUID, draft: OperatorDraft, actor: Actor, now: datetime, expected: str | None = None
) -> Operator:
    """Give an operator this record; `expected` is the mark of the one that the draft was made from.

    Errors: NotFound; PreconditionFailed when somebody changed it since; Conflict when it needs more powers than the
    actor has, the name is taken, or nobody would be left who can change operators; PermissionDenied.
    """
    with transaction.atomic():
        operator = locked(operator_id)
        previous = draft_of(operator)
        if expected is not None and expected != state_of(previous):
            raise PreconditionFailed
        mine = powers_of_actor(actor, needs=CHANGE_OPERATOR)
        check_covers(mine, powers_of(operator), _wanted(operator, draft))
        _check_name(draft, operator)
        changed = [name for name, value in asdict(draft).items() if value != getattr(previous, name)]
        before = _has_administrator()
        _write(operator, draft)
        _check_administrator_is_left(before=before)
        if not operator.is_active or "email" in changed:
            # A link that went to the former address, or to somebody who is to stay out, must not work later.
            operator.invitation = operator.invited_until = None
            operator.save(update_fields=["invitation", "invited_until"])
        audit.record(verb="update", target=operator, actor=actor, now=now, counts=dict.fromkeys(changed, 1))
    return operator


def put_operator(
    *,
    username: str,
    settings: Mapping[str, Any],
    expected_version: int | None,
    only_new: bool,
    actor: Actor,
    now: datetime,
) -> tuple[Operator, bool]:
    """Make the operator if there is none of this name, and give them this record; what it leaves out is the default.
    The second value: whether they were made. A record that is theirs already leaves no trace.

    `roles` are names of groups; `tenants` slugs, or None for all. Nobody becomes a superuser by it, or stops being one.

    Errors: InvalidInput with the places; PreconditionFailed; those of update_operator().
    """
    try:
        return _put(username, settings, expected_version, only_new=only_new, actor=actor, now=now)
    except IntegrityError:
        # Somebody made them at this moment; the second time they are there.
        return _put(username, settings, expected_version, only_new=only_new, actor=actor, now=now)


def deactivate_operator(*, operator_id: uuid.UUID, actor: Actor, now: datetime) -> Operator:
    """Sign the operator out, for good unless somebody lets them in again. Errors: as update_operator()."""
    with transaction.atomic():
        operator = locked(operator_id)
        if not operator.is_active:
            return operator
        draft = replace(draft_of(operator), is_active=False)
        return update_operator(operator_id=operator_id, draft=draft, actor=actor, now=now)


def version_of(operator: Operator) -> int:
    """A number that changes with each change of the record; it tells nothing of their order."""
    return 1 + int(state_of(draft_of(operator)), 16) % _VERSIONS


def check_username(username: str) -> None:
    """Errors: InvalidInput."""
    field: Any = Operator._meta.get_field("username")
    try:
        field.clean(username, None)
    except ValidationError:
        raise InvalidInput.at(
            "username", _("A username has 1 to 150 letters, digits and the characters @ . + - _.")
        ) from None


def set_password(*, operator_id: uuid.UUID, password: str, actor: Actor, now: datetime) -> Operator:
    """Give an operator, or oneself, a new password; other browsers of theirs are signed out.

    Errors: as update_operator().
    """
    with transaction.atomic():
        operator = locked(operator_id)
        if actor.id != str(operator.pk):
            check_covers(powers_of_actor(actor, needs=CHANGE_OPERATOR), powers_of(operator))
        operator.set_password(password)
        operator.invitation = operator.invited_until = None
        operator.save(update_fields=["password", "invitation", "invited_until"])
        audit.record(verb="set_password", target=operator, actor=actor, now=now)
    return operator


def set_preferences(
    *,
    operator: Operator,
    language: str,
    time_zone: str,
    actor: Actor,
    now: datetime,
    mail_cases: bool,
    mail_queues: bool,
) -> None:
    """Set the language ("": the browser's) and the IANA time zone of the pages for this operator, and of what they want
    mail."""
    with transaction.atomic():
        Operator.objects.filter(pk=operator.pk).update(
            language=language, time_zone=time_zone, mail_cases=mail_cases, mail_queues=mail_queues
        )
        audit.record(verb="set_preferences", target=operator, actor=actor, now=now)


def save_group(
    *,
    group_id: int | None,
    name: str,
    permissions: Collection[str],
    actor: Actor,
    now: datetime,
    expected: Collection[str] | None = None,
) -> Group:
    """Make a group (`group_id` None) or give it this name and exactly these permissions; `expected`: those it had.

    Errors: as update_operator().
    """
    with transaction.atomic():
        _lock_all()
        mine = powers_of_actor(actor, needs=CHANGE_GROUP)
        group = Group.objects.select_for_update().filter(pk=group_id).first() if group_id else Group()
        if group is None:
            raise NotFound
        held = labels(group.permissions.all()) if group_id else frozenset()
        if expected is not None and set(expected) != held:
            raise PreconditionFailed
        check_covers(mine, powers_of_group(held), powers_of_group(permissions))
        if Group.objects.filter(name=name).exclude(pk=group.pk).exists():
            raise Conflict(_("A role with this name already exists."))
        before = _has_administrator()
        group.name = name
        group.save()
        group.permissions.set(_permissions(permissions))
        _check_administrator_is_left(before=before)
        verb, counts = "update" if group_id else "add", {"permissions": len(permissions)}
        # A group's id is a small number: the trail's ids are UUIDs.
        audit.record(
            actor=actor, verb=verb, target=group, object_id=uuid.UUID(int=group.pk), tenant=None, now=now, counts=counts
        )
    return group


def _put(
    username: str,
    settings: Mapping[str, Any],
    expected_version: int | None,
    *,
    only_new: bool,
    actor: Actor,
    now: datetime,
) -> tuple[Operator, bool]:
    check_username(username)
    with transaction.atomic():
        _lock_all()
        operator = Operator.objects.filter(username=username).first()
        if only_new and operator:
            raise PreconditionFailed(_("An operator with this name already exists."))
        if expected_version is not None and (operator is None or expected_version != version_of(operator)):
            raise PreconditionFailed
        before = draft_of(operator) if operator else OperatorDraft(username)
        draft = replace(_draft_from(settings, username), is_superuser=before.is_superuser)
        if operator is None:
            return add_operator(draft=draft, password=None, actor=actor, now=now), True
        if draft != before:
            operator = update_operator(operator_id=operator.pk, draft=draft, actor=actor, now=now)
        return operator, False


def _draft_from(settings: Mapping[str, Any], username: str) -> OperatorDraft:
    """Errors: InvalidInput with all places."""
    given = {name: value for name, value in settings.items() if name not in ("roles", "tenants")}
    roles, tenants = settings.get("roles") or [], settings.get("tenants")
    groups = dict(Group.objects.filter(name__in=roles).values_list("name", "pk"))
    known = dict(Tenant.objects.filter(slug__in=tenants or []).values_list("slug", "pk"))
    faults = [
        Fault(f"roles/{at}", "not_found", _("There is no such role."))
        for at, one in enumerate(roles)
        if one not in groups
    ]
    faults += [
        Fault(f"tenants/{at}", "not_found", _("There is no such tenant."))
        for at, one in enumerate(tenants or [])
        if one not in known
    ]
    draft = OperatorDraft(
        username,
        **given,
        all_tenants=tenants is None,
        groups=frozenset(groups.values()),
        tenants=frozenset(known.values()),
    )
    if not is_zone(draft.time_zone):
        faults.append(
            Fault("time_zone", "invalid", _("This is not a time zone. Use a name such as Asia/Shanghai or UTC."))
        )
    if faults:
        raise InvalidInput(faults=faults)
    return draft


def _lock_all() -> None:
    """Serialise all changes of operators and groups; operators are few, and this is rare.

    Two who take the last rights from each other at the same moment do it one after the other.
    """
    list(Operator.objects.select_for_update(of=("self",)).order_by("pk").values_list("pk"))


def locked(operator_id: uuid.UUID) -> Operator:
    """The operator, for a change: in a transaction, which all other such changes wait for. Errors: NotFound."""
    _lock_all()
    operator = Operator.objects.filter(pk=operator_id).first()
    if operator is None:
        raise NotFound
    return operator


def _wanted(operator: Operator | None, draft: OperatorDraft) -> PermissionSet:
    tenants = None if draft.all_tenants else draft.tenants
    return powers_given(operator, groups=draft.groups, tenants=tenants, superuser=draft.is_superuser)


def _check_name(draft: OperatorDraft, operator: Operator | None) -> None:
    others = Operator.objects.exclude(pk=operator.pk) if operator else Operator.objects.all()
    if others.filter(username=draft.username).exists():
        raise Conflict(_("An operator with this name already exists."))


def _write(operator: Operator, draft: OperatorDraft) -> None:
    for name in _COLUMNS:
        setattr(operator, name, getattr(draft, name))
    # Not the password nor the last sign-in, which may be others by now.
    operator.save(update_fields=None if operator._state.adding else _COLUMNS)
    operator.groups.set(Group.objects.filter(pk__in=draft.groups))
    operator.tenants.set(Tenant.objects.filter(pk__in=draft.tenants))


def _has_administrator() -> bool:
    """Whether there is an active operator who can change operators of all tenants."""
    app, codename = CHANGE_OPERATOR.split(".")
    permitted = Permission.objects.filter(content_type__app_label=app, codename=codename)
    may = Q(is_superuser=True) | Q(groups__permissions__in=permitted) | Q(user_permissions__in=permitted)
    return Operator.objects.filter(may, is_active=True, is_staff=True, all_tenants=True).exists()


def _check_administrator_is_left(*, before: bool) -> None:
    """Errors: Conflict when there was an administrator `before` and there is none now."""
    if before and not _has_administrator():
        raise Conflict(
            _("At least one operator must keep the permission to change operators. Give it to another operator first.")
        )


def _permissions(names: Collection[str]) -> list[Permission]:
    every = Permission.objects.select_related("content_type")
    return [one for one in every if f"{one.content_type.app_label}.{one.codename}" in names]
