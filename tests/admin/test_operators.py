"""Operators and groups: Django's forms, with what was done in the audit trail."""

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.test import Client

from memories.models import AuditEvent, Operator
from tests import factories
from tests.admin.pages import LIST_BUDGET, list_of, page_of, queries_of, text_of


def change(client: Client, operator: Operator, **over: Any) -> Any:
    form = {"username": operator.username, "time_zone": "UTC", "is_active": "on", "is_staff": "on"}
    return client.post(page_of(operator), {**form, "first_name": "", "last_name": "", "email": "", **over})


def test_an_operator_is_added(admin: Client, administrator: Operator) -> None:
    password = {"password1": "correct horse battery", "password2": "correct horse battery"}
    form = {"username": "lin", "usable_password": "true", **password}
    response = admin.post(f"{list_of(Operator)}add/", form)
    assert response.status_code == 302
    operator = Operator.objects.get(username="lin")
    assert operator.check_password("correct horse battery")
    assert not operator.is_superuser
    event = AuditEvent.objects.get(object_id=operator.pk)
    assert (event.verb, event.object_type, event.actor_id) == ("add", "Operator", str(administrator.pk))


def test_an_operator_is_changed_and_deactivated(admin: Client) -> None:
    operator = factories.operator(is_superuser=False)
    group = Group.objects.create(name="Reviewers")
    response = change(admin, operator, is_active="", time_zone="Asia/Shanghai", groups=[group.pk])
    assert response.status_code == 302
    operator.refresh_from_db()
    assert (operator.is_active, operator.time_zone) == (False, "Asia/Shanghai")
    assert list(operator.groups.all()) == [group]
    assert AuditEvent.objects.get(object_id=operator.pk).verb == "update"


def test_a_bad_zone_is_refused(admin: Client) -> None:
    operator = factories.operator()
    response = change(admin, operator, time_zone="Mars/Olympus")
    assert response.status_code == 200
    assert "This is not a time zone" in text_of(response)


def test_a_new_password_is_audited(admin: Client) -> None:
    operator = factories.operator()
    address = page_of(operator).replace("/change/", "/password/")
    assert admin.get(address).status_code == 200
    password = {"password1": "a new long secret", "password2": "a new long secret", "usable_password": "true"}
    assert admin.post(address, password).status_code == 302
    operator.refresh_from_db()
    assert operator.check_password("a new long secret")
    assert AuditEvent.objects.get(object_id=operator.pk).verb == "update"


def test_no_hash_is_shown(admin: Client) -> None:
    operator = factories.operator()
    digest = operator.password.rsplit("$", 1)[-1]
    assert digest not in text_of(admin.get(page_of(operator)))


def test_a_group_is_added_with_permissions(admin: Client) -> None:
    permission = Permission.objects.get(codename="view_fact")
    response = admin.post(f"{list_of(Group)}add/", {"name": "Readers", "permissions": [permission.pk]})
    assert response.status_code == 302
    group = Group.objects.get(name="Readers")
    assert list(group.permissions.all()) == [permission]
    event = AuditEvent.objects.get()
    assert (event.object_type, event.object_id.int) == ("Group", group.pk)


def test_the_list_takes_few_queries(admin: Client) -> None:
    few = queries_of(admin, list_of(Operator))
    for _ in range(30):
        factories.operator()
    assert queries_of(admin, list_of(Operator)) == few <= LIST_BUDGET
