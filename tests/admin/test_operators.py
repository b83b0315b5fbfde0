"""Operators and groups: their pages, what each offers to whom, and that every change goes through a verb."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse

from memories.models import AuditEvent, Operator, Tenant
from memories.models.access import roles
from tests import factories
from tests.admin import walk
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of, text_of

pytestmark = pytest.mark.django_db
PASSWORDS = {"password": "correct horse battery", "again": "correct horse battery"}


@pytest.fixture(autouse=True)
def groups() -> None:
    walk.grant_roles()


def limited(*tenants: Tenant) -> Client:
    """A browser of an administrator of these tenants alone."""
    operator = factories.operator(username="limited", is_superuser=False, all_tenants=False)
    operator.groups.set(Group.objects.filter(name="administrator"))
    operator.tenants.set(tenants)
    return signed_in(operator)


def seen(client: Client, operator: Operator) -> str:
    return str(re.findall(r'name="expected" value="(\w+)"', text_of(client.get(page_of(operator))))[0])


def change(client: Client, operator: Operator, **over: Any) -> Any:
    form = {"username": operator.username, "time_zone": "UTC", "is_active": "on", "all_tenants": "on", **over}
    form.setdefault("expected", seen(client, operator))
    return client.post(page_of(operator, "update"), {name: value for name, value in form.items() if value != ""})


def test_an_operator_is_added(admin: Client, administrator: Operator) -> None:
    tenant, reviewer = factories.tenant(), Group.objects.get(name="reviewer")
    form = {"username": "lin", "time_zone": "UTC", "ways_in": "later", "groups": [reviewer.pk]}
    response = admin.post(f"{list_of(Operator)}add/", {**form, "tenants": [tenant.pk]})
    operator = Operator.objects.get(username="lin")
    assert response["Location"] == page_of(operator)
    assert not operator.has_usable_password()
    assert (operator.is_superuser, operator.all_tenants, operator.is_staff) == (False, False, True)
    assert operator.is_active
    assert [*operator.groups.all(), *operator.tenants.all()] == [reviewer, tenant]
    event = AuditEvent.objects.get(object_id=operator.pk)
    assert (event.verb, event.object_type, event.actor_id) == ("add", "Operator", str(administrator.pk))


def test_a_bad_form_adds_nobody(admin: Client) -> None:
    faults: list[dict[str, Any]] = [
        {"username": ""}, {"username": "a b!"}, {"ways_in": ""}, {"ways_in": "provider"}, {"time_zone": "Mars/Olympus"},
        {"groups": ["x"]}, {"email": "nonsense"},
    ]  # fmt: skip
    for fault in faults:
        form = {"username": "lin", "time_zone": "UTC", "ways_in": "invitation", **fault}
        assert admin.post(f"{list_of(Operator)}add/", form).status_code == 400, fault
    assert Operator.objects.count() == 1


def test_a_taken_name_is_said_and_nothing_typed_is_lost(admin: Client, administrator: Operator) -> None:
    form = {"username": administrator.username, "email": "lin@example.com", "time_zone": "UTC", "ways_in": "later"}
    response = admin.post(f"{list_of(Operator)}add/", form)
    assert response.status_code == 409
    assert "An operator with this name already exists." in text_of(response)
    assert "lin@example.com" in text_of(response)


def test_an_operator_is_changed_and_deactivated(admin: Client) -> None:
    operator = factories.operator(is_superuser=False)
    group = Group.objects.get(name="reviewer")
    response = change(admin, operator, is_active="", time_zone="Asia/Shanghai", groups=[group.pk])
    assert response.status_code == 302
    operator.refresh_from_db()
    assert (operator.is_active, operator.time_zone) == (False, "Asia/Shanghai")
    assert list(operator.groups.all()) == [group]
    assert AuditEvent.objects.get(object_id=operator.pk).verb == "update"


def test_who_is_deactivated_is_signed_out_at_once(admin: Client) -> None:
    operator = factories.operator()
    browser = signed_in(operator)
    assert browser.get(reverse("admin:index")).status_code == 200
    change(admin, operator, is_active="")
    assert browser.get(reverse("admin:index")).status_code == 302


def test_an_overtaken_change_is_shown_again_with_what_was_typed(admin: Client) -> None:
    operator = factories.operator()
    before = seen(admin, operator)
    change(admin, operator, first_name="First")
    late = change(admin, operator, first_name="Second", expected=before)
    assert late.status_code == 412
    assert 'value="Second"' in text_of(late)
    assert Operator.objects.get(pk=operator.pk).first_name == "First"
    fresh = re.findall(r'name="expected" value="(\w+)"', text_of(late))[0]
    assert change(admin, operator, first_name="Second", expected=fresh).status_code == 302


def test_a_new_password_is_audited_and_ends_their_sessions(admin: Client) -> None:
    operator = factories.operator()
    browser = signed_in(operator)
    form = {"password": "a new long secret", "again": "a new long secret"}
    assert admin.post(page_of(operator, "password"), form).status_code == 302
    operator.refresh_from_db()
    assert operator.check_password("a new long secret")
    assert AuditEvent.objects.get(object_id=operator.pk).verb == "set_password"
    assert browser.get(reverse("admin:index")).status_code == 302


def test_ones_own_password_is_changed_through_the_verb(administrator: Operator) -> None:
    administrator.set_password("the old long secret")
    administrator.save()
    browser, elsewhere = signed_in(administrator), signed_in(administrator)
    form = {"old_password": "the old long secret", "new_password1": "a new long one", "new_password2": "a new long one"}
    assert browser.post(reverse("admin:password_change"), form).status_code == 302
    assert AuditEvent.objects.get().verb == "set_password"
    assert browser.get(reverse("admin:index")).status_code == 200
    assert elsewhere.get(reverse("admin:index")).status_code == 302


def test_no_hash_is_shown(admin: Client) -> None:
    operator = factories.operator()
    digest = operator.password.rsplit("$", 1)[-1]
    assert digest not in text_of(admin.get(page_of(operator)))


def test_a_limited_administrator_sees_and_offers_their_own_alone() -> None:
    own, other = factories.tenant(slug="mine"), factories.tenant(slug="not-yours")
    client = limited(own)
    factories.operator(username="sees-all", is_superuser=False)
    elsewhere = factories.operator(username="elsewhere", is_superuser=False, all_tenants=False)
    elsewhere.tenants.set([own, other])
    beside = factories.operator(username="beside", is_superuser=False, all_tenants=False)
    beside.tenants.set([own])
    page = text_of(client.get(list_of(Operator)))
    assert ("beside" in page, "limited" in page, "sees-all" in page, "elsewhere" in page) == (True, True, False, False)
    assert (client.get(page_of(beside)).status_code, client.get(page_of(elsewhere)).status_code) == (200, 404)
    offered = text_of(client.get(page_of(beside)))
    assert "mine" in offered
    for hidden in ("not-yours", 'name="is_superuser"', 'name="all_tenants"'):
        assert hidden not in offered
        assert hidden not in text_of(client.get(f"{list_of(Operator)}add/"))


def test_a_forged_form_gives_no_more() -> None:
    own, other = factories.tenant(), factories.tenant()
    client = limited(own)
    beside = factories.operator(username="beside", is_superuser=False, all_tenants=False)
    beside.tenants.set([own])
    for more in ({"all_tenants": "on"}, {"all_tenants": "", "tenants": [other.pk]}, {"is_superuser": "on"}):
        # Behind the wall of the database a tenant that is not theirs is no choice of the form either.
        assert change(client, beside, **more).status_code in (409, 400)
    beside.refresh_from_db()
    assert ([*beside.tenants.all()], beside.all_tenants, beside.is_superuser) == ([own], False, False)
    add = {"username": "lin", "time_zone": "UTC", "ways_in": "later", "tenants": [other.pk]}
    assert client.post(f"{list_of(Operator)}add/", add).status_code == 400
    assert not Operator.objects.filter(username="lin").exists()


def test_who_may_more_is_only_shown() -> None:
    administrator = factories.operator(is_superuser=False)
    administrator.groups.set(Group.objects.filter(name="administrator"))
    superuser, client = factories.operator(), signed_in(administrator)
    page = text_of(client.get(page_of(superuser)))
    assert "has more permissions than you" in page
    assert 'name="username"' not in page
    form = {"password": "a new long secret", "again": "a new long secret"}
    assert client.post(page_of(superuser, "password"), form).status_code == 409


def test_changes_ask_for_a_fresh_password() -> None:
    stale = signed_in(factories.operator(), fresh=False)
    operator, group = factories.operator(), Group.objects.get(name="reviewer")
    for address in (page_of(operator, "update"), page_of(operator, "password"), page_of(group, "update")):
        assert stale.post(address, {"username": "x"}).status_code == 403
    for model in (Operator, Group):
        assert "fresh-password" in stale.get(f"{list_of(model)}add/")["Location"]


def test_a_group_is_added_and_changed(admin: Client) -> None:
    response = admin.post(f"{list_of(Group)}add/", {"name": "Readers", "permissions": ["memories.view_fact"]})
    group = Group.objects.get(name="Readers")
    assert response["Location"] == page_of(group)
    assert [one.codename for one in group.permissions.all()] == ["view_fact"]
    assert "memories.view_fact" in text_of(admin.get(page_of(group)))
    form = {"name": "Keys", "permissions": ["memories.view_apikey"], "expected": "memories.view_fact"}
    assert admin.post(page_of(group, "update"), form).status_code == 302
    assert [one.codename for one in group.permissions.all()] == ["view_apikey"]
    assert admin.post(page_of(group, "update"), {**form, "name": "Late"}).status_code == 412
    assert [event.verb for event in AuditEvent.objects.order_by("pk")] == ["add", "update"]


def test_what_has_no_box_stays_with_the_group(admin: Client) -> None:
    group = Group.objects.create(name="old")
    group.permissions.set(Permission.objects.filter(codename__in=("delete_fact", "view_fact")))
    assert "memories.delete_fact" not in re.findall(r'value="(memories\.\w+)"', text_of(admin.get(page_of(group))))
    form = {
        "name": "old",
        "permissions": ["memories.view_tenant"],
        "expected": "memories.delete_fact memories.view_fact",
    }
    assert admin.post(page_of(group, "update"), form).status_code == 302
    assert {one.codename for one in group.permissions.all()} == {"delete_fact", "view_tenant"}


def test_a_role_keeps_its_name(admin: Client) -> None:
    group = Group.objects.get(name="auditor")
    form = {"name": "other", "permissions": list(roles.ROLES["auditor"]), "expected": " ".join(roles.ROLES["auditor"])}
    assert admin.post(page_of(group, "update"), form).status_code == 302
    assert Group.objects.get(pk=group.pk).name == "auditor"


def test_a_group_has_a_box_for_all_that_it_can_have(admin: Client) -> None:
    """What has none would be taken away when somebody saves the page."""
    page = text_of(admin.get(page_of(Group.objects.get(name="administrator"))))
    assert sorted(re.findall(r'name="permissions" value="([\w.]+)"', page)) == sorted(roles.GIVEN)


def test_error_reports_hide_what_forms_with_passwords_post(admin: Client) -> None:
    operator, group = factories.operator(username="chen"), Group.objects.get(name="administrator")
    for address in (page_of(operator, "password"), reverse("admin:memories_operator_add")):
        request = admin.post(address, PASSWORDS).wsgi_request
        assert getattr(request, "sensitive_post_parameters", None) == "__ALL__", address
    plain = admin.post(page_of(group, "update"), {}).wsgi_request
    assert not hasattr(plain, "sensitive_post_parameters")
