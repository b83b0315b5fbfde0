"""Who may give what to whom, what is noted of it, and that somebody who may is always left."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied

from memories.audit import Actor
from memories.curation.access.operators import (
    OperatorDraft,
    add_operator,
    draft_of,
    save_group,
    set_password,
    state_of,
    update_operator,
)
from memories.curation.access.powers import powers_of
from memories.exceptions import Conflict, MemoryHubError, NotFound, PreconditionFailed
from memories.models import AuditEvent, Operator, Tenant
from memories.models.access import roles
from tests import factories
from tests.database import at_once
from tests.factories import COMMAND, NOW

pytestmark = pytest.mark.django_db


def group(name: str) -> int:
    return int(Group.objects.get(name=name).pk)


def made(role: str | None = "administrator", *tenants: Tenant, **over: Any) -> Operator:
    """An operator with this role (None: a superuser), of these tenants (none: of all)."""
    roles.grant(apps)
    operator = factories.operator(is_superuser=role is None, all_tenants=not tenants, **over)
    operator.groups.set(Group.objects.filter(name=role))
    operator.tenants.set(tenants)
    return operator


def update(by: Operator, whom: Operator, **changes: Any) -> Operator:
    draft = replace(draft_of(whom), **changes)
    return update_operator(operator_id=whom.pk, draft=draft, actor=Actor.operator(by), now=NOW)


def add(by: Operator | None, **said: Any) -> Operator:
    actor = Actor.operator(by) if by else COMMAND
    draft = OperatorDraft(**{"username": "lin", **said})
    return add_operator(draft=draft, password="correct horse", actor=actor, now=NOW)


def test_an_operator_is_added_with_roles_and_tenants() -> None:
    admin, tenant = made(), factories.tenant()
    lin = add(admin, groups=frozenset({group("reviewer")}), all_tenants=False, tenants=frozenset({tenant.pk}))
    lin.refresh_from_db()
    assert (lin.is_active, lin.is_staff, lin.is_superuser, lin.all_tenants) == (True, True, False, False)
    assert lin.check_password("correct horse")
    assert [*lin.groups.all(), *lin.tenants.all()] == [Group.objects.get(name="reviewer"), tenant]
    event = AuditEvent.objects.get()
    assert (event.verb, event.object_id, event.actor_id, event.tenant_uuid) == ("add", lin.pk, str(admin.pk), None)


def test_the_trail_names_what_changed_and_not_to_what() -> None:
    lin = made("reviewer")
    update(made(), lin, is_active=False, groups=frozenset({group("auditor")}), email="lin@example.com")
    assert AuditEvent.objects.get().counts == {"email": 1, "is_active": 1, "groups": 1}


def test_what_is_not_said_of_an_operator_stays() -> None:
    admin, lin = made(), made("reviewer")
    stale = Operator.objects.get(pk=lin.pk)
    set_password(operator_id=lin.pk, password="a newer one", actor=Actor.operator(admin), now=NOW)
    update(admin, stale, first_name="Lin")
    lin.refresh_from_db()
    assert lin.first_name == "Lin"
    assert lin.check_password("a newer one")


BEYOND: list[tuple[str, Callable[[Tenant, Tenant], tuple[Operator, Operator, dict[str, Any]]]]] = [
    ("a superuser made by an administrator", lambda a, b: (made(), made("reviewer"), {"is_superuser": True})),
    ("a superuser changed by an administrator", lambda a, b: (made(), made(None), {"email": "x@example.com"})),
    ("all tenants given by a limited one", lambda a, b: (made("administrator", a), made("reviewer", a),
                                                         {"all_tenants": True})),
    ("another tenant given by a limited one", lambda a, b: (made("administrator", a), made("reviewer", a),
                                                            {"tenants": frozenset({a.pk, b.pk})})),
    ("who sees more changed by a limited one", lambda a, b: (made("administrator", a), made("reviewer", a, b),
                                                             {"tenants": frozenset({a.pk})})),
    ("who sees all changed by a limited one", lambda a, b: (made("administrator", a), made("reviewer"),
                                                            {"is_active": False})),
    ("a limited superuser sees no further", lambda a, b: (limited_superuser(a), made("reviewer", a),
                                                          {"tenants": frozenset({b.pk})})),
]  # fmt: skip


def limited_superuser(tenant: Tenant) -> Operator:
    operator = made(None)
    operator.all_tenants = False
    operator.save()
    operator.tenants.set([tenant])
    return operator


@pytest.mark.parametrize(("what", "case"), BEYOND, ids=[what for what, _ in BEYOND])
def test_nobody_gives_or_takes_more_than_they_have(what: str, case: Any) -> None:
    by, whom, changes = case(factories.tenant(), factories.tenant())
    before = draft_of(whom)
    with pytest.raises(Conflict):
        update(by, whom, **changes)
    assert draft_of(Operator.objects.get(pk=whom.pk)) == before
    assert not AuditEvent.objects.exists()
    # Nor does somebody take their account over.
    if powers_of(by).cover(powers_of(whom)):
        return
    with pytest.raises(Conflict):
        set_password(operator_id=whom.pk, password="mine now", actor=Actor.operator(by), now=NOW)


def test_a_limited_administrator_gives_what_they_have() -> None:
    tenant = factories.tenant()
    by, whom = made("administrator", tenant), made("reviewer", tenant)
    update(by, whom, groups=frozenset({group("operator")}))
    assert draft_of(whom).groups == {group("operator")}


def test_a_permission_of_ones_own_counts_too() -> None:
    """An administrator with a role cut down cannot hand out what the full role has."""
    by, whom = made("reviewer"), made("reviewer")
    with pytest.raises(PermissionDenied):
        update(by, whom, email="x@example.com")
    by.user_permissions.add(*roles_permissions("memories.change_operator"))
    update(by, whom, email="x@example.com")
    with pytest.raises(Conflict):
        update(by, whom, groups=frozenset({group("operator")}))


def roles_permissions(*names: str) -> list[Any]:
    from memories.curation.access.operators import _permissions

    return _permissions(names)


def test_nobody_raises_themselves() -> None:
    tenant, other = factories.tenant(), factories.tenant()
    by = made("administrator", tenant)
    for more in ({"is_superuser": True}, {"all_tenants": True}, {"tenants": frozenset({other.pk})}):
        with pytest.raises(Conflict):
            update(by, by, **more)


def test_who_was_dismissed_meanwhile_changes_nothing() -> None:
    by, whom = made(), made("reviewer")
    Operator.objects.filter(pk=by.pk).update(is_active=False)
    with pytest.raises(PermissionDenied):
        update(by, whom, email="x@example.com")
    with pytest.raises(PermissionDenied):
        add(by)


def test_a_change_that_somebody_overtook_is_refused() -> None:
    admin, lin = made(), made("reviewer")
    seen = state_of(draft_of(lin))
    update(admin, lin, email="first@example.com")
    late: dict[str, Any] = {"operator_id": lin.pk, "draft": replace(draft_of(lin), email="second@example.com")}
    with pytest.raises(PreconditionFailed):
        update_operator(**late, expected=seen, actor=Actor.operator(admin), now=NOW)
    again = state_of(draft_of(Operator.objects.get(pk=lin.pk)))
    update_operator(**late, expected=again, actor=Actor.operator(admin), now=NOW)
    assert Operator.objects.get(pk=lin.pk).email == "second@example.com"


@pytest.mark.parametrize("change", [{"is_active": False}, {"groups": frozenset()}, {"all_tenants": False}])
def test_the_last_who_may_change_operators_stays(change: dict[str, Any]) -> None:
    last = made()
    made("operator")
    with pytest.raises(Conflict, match="At least one operator must keep"):
        update(last, last, **change)
    assert draft_of(Operator.objects.get(pk=last.pk)) == draft_of(last)
    made(None)
    update(last, last, **change)


def test_names_are_unique_and_unknown_operators_are_not_found() -> None:
    admin = made(username="lin")
    with pytest.raises(Conflict, match="name"):
        add(admin)
    with pytest.raises(Conflict, match="name"):
        update(admin, made("reviewer"), username="lin")
    with pytest.raises(NotFound):
        set_password(operator_id=factories.tenant().pk, password="x", actor=COMMAND, now=NOW)


def test_without_a_password_nobody_signs_in_with_one() -> None:
    draft = OperatorDraft(username="lin")
    assert not add_operator(draft=draft, password=None, actor=COMMAND, now=NOW).has_usable_password()


def test_ones_own_password_needs_no_permission() -> None:
    lin = made("auditor")
    set_password(operator_id=lin.pk, password="newer", actor=Actor.operator(lin), now=NOW)
    assert Operator.objects.get(pk=lin.pk).check_password("newer")
    assert AuditEvent.objects.get().verb == "set_password"


def save(by: Operator, **said: Any) -> Group:
    given = {"group_id": None, "name": "Readers", "permissions": ["memories.view_fact"], **said}
    return save_group(**given, actor=Actor.operator(by), now=NOW)


def test_a_group_is_made_and_changed() -> None:
    admin = made()
    readers = save(admin)
    save(admin, group_id=readers.pk, name="Keys", permissions=["memories.view_apikey"])
    assert [one.codename for one in readers.permissions.all()] == ["view_apikey"]
    assert Group.objects.get(pk=readers.pk).name == "Keys"
    assert [event.object_id.int for event in AuditEvent.objects.all()] == [readers.pk] * 2


def test_a_group_is_not_made_or_changed_beyond_ones_own() -> None:
    admin, limited = made(), made("administrator", factories.tenant())
    for by, permissions in ((admin, ["auth.delete_group"]), (limited, ["memories.view_fact"])):
        with pytest.raises(Conflict):
            save(by, permissions=permissions)
    with pytest.raises(PermissionDenied):
        save(made("operator"))
    with pytest.raises(Conflict, match="name"):
        save(admin, name="reviewer")
    with pytest.raises(NotFound):
        save(admin, group_id=10**6)
    with pytest.raises(PreconditionFailed):
        save(admin, group_id=group("auditor"), name="auditor", expected=[])
    with pytest.raises(Conflict, match="At least one operator must keep"):
        save(admin, group_id=group("administrator"), name="administrator", permissions=[])


@pytest.mark.django_db(transaction=True)
def test_two_who_dismiss_each_other_at_once_do_not_both_succeed() -> None:
    first, second = made(username="first"), made(username="second")
    drafts = [replace(draft_of(whom), is_active=False) for whom in (second, first)]

    def dismiss(number: int) -> Operator:
        by, whom = ((first, second), (second, first))[number]
        return update_operator(operator_id=whom.pk, draft=drafts[number], actor=Actor.operator(by), now=NOW)

    outcomes = at_once(2, dismiss)
    assert sum(isinstance(outcome, Operator) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, MemoryHubError | PermissionDenied) for outcome in outcomes) == 1
    assert Operator.objects.filter(is_active=True).count() == 1
