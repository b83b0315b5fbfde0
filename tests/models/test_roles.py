"""The groups that the migration makes: each has what the table says, and no permission is there twice."""

import pytest
from django.apps import apps
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Group, Permission

from memories.models.access import roles

pytestmark = pytest.mark.django_db


def held() -> dict[str, set[str]]:
    rows = Group.objects.values_list("name", "permissions__content_type__app_label", "permissions__codename")
    found: dict[str, set[str]] = {}
    for name, app, codename in rows:
        found.setdefault(name, set()).add(f"{app}.{codename}")
    return found


def test_they_are_made_from_nothing_and_once() -> None:
    Group.objects.all().delete()
    Permission.objects.all().delete()
    roles.grant(apps)
    roles.grant(apps)
    made = Permission.objects.count()
    assert held() == {name: set(labels) for name, labels in roles.ROLES.items()}
    create_permissions(apps.get_app_config("memories"), verbosity=0)
    every = Permission.objects.filter(content_type__app_label="memories")
    assert every.count() > made
    assert every.values("codename").distinct().count() == every.count()


def test_what_a_group_was_given_besides_stays() -> None:
    roles.grant(apps)
    more = Permission.objects.get(codename="view_tenant")
    Group.objects.get(name="reviewer").permissions.add(more)
    roles.grant(apps)
    assert "memories.view_tenant" in held()["reviewer"]
