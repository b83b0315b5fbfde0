"""Every address of the admin, opened and sent a form as each role, equals the written matrix (matrix.toml).

A new page fails here until it is in the matrix; the message has the lines.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission
from django.template.response import SimpleTemplateResponse
from django.test import Client

from memories.admin.site.site import HubAdminSite
from memories.models.access import roles
from tests.admin import walk
from tests.admin.conftest import signed_in

pytestmark = pytest.mark.django_db
MATRIX = tomllib.loads((Path(__file__).parent / "matrix.toml").read_text(encoding="utf-8"))
METHODS = {"open": "GET", "send": "POST"}
SIGNED_IN = ("staff", *roles.ROLES)


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is let in is decided before a page is drawn, which would take most of the time of some 1,500 requests."""

    def empty(response: SimpleTemplateResponse) -> SimpleTemplateResponse:
        response.content = b""
        return response

    monkeypatch.setattr(SimpleTemplateResponse, "render", empty)
    # Its frame alone counts what waits.
    monkeypatch.setattr(HubAdminSite, "each_context", lambda *_: {})


@pytest.fixture(autouse=True)
def permissions_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No role changes during a walk: what one request does is undone before the next."""
    plain, found = ModelBackend.get_all_permissions, dict[Any, set[str]]()

    def known(backend: ModelBackend, user: Any, obj: Any = None) -> set[str]:
        if user.pk is None or obj is not None:
            return plain(backend, user, obj)
        if user.pk not in found:
            found[user.pk] = plain(backend, user)
        return found[user.pk]

    monkeypatch.setattr(ModelBackend, "get_all_permissions", known)


@pytest.fixture
def known() -> dict[str, Any]:
    roles.grant(apps)
    return walk.records()


@pytest.fixture
def browsers(known: dict[str, Any]) -> dict[str, Client]:
    return {"anonymous": Client(), **{name: signed_in(walk.role(name)) for name in SIGNED_IN}}


def told(names: list[str]) -> str:
    """The names as the matrix writes them."""
    text = " ".join(names).replace(" ".join(SIGNED_IN), "all")
    return text or "none"


def differences(act: str, browsers: dict[str, Client], known: dict[str, Any], routes: list[str]) -> Iterator[str]:
    """Lines as the matrix should have them, where it has others."""
    for route in routes:
        where = walk.address(route, known)
        found = told([name for name, client in browsers.items() if walk.is_let_in(client, METHODS[act], where)])
        if MATRIX[act].get(route) != found:
            yield f"'{route}' = '{found}'"


@pytest.mark.parametrize("act", METHODS)
def test_each_role_is_let_in_where_the_matrix_says(act: str, browsers: dict[str, Client], known: Any) -> None:
    found = list(differences(act, browsers, known, walk.routes()))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("act", METHODS)
def test_the_matrix_names_no_address_that_is_gone(act: str) -> None:
    assert sorted(MATRIX[act]) == walk.routes()


def test_the_walk_sees_a_role_that_may_more_and_one_that_may_less(browsers: dict[str, Client], known: Any) -> None:
    route = "memories/tenant/"
    auditor, dpo = Group.objects.get(name="auditor"), Group.objects.get(name="dpo")
    permission = Permission.objects.get(codename="view_tenant")
    auditor.permissions.add(permission)
    dpo.permissions.remove(permission)
    assert list(differences("open", browsers, known, [route])) == [f"'{route}' = 'operator auditor administrator'"]


def test_every_record_is_found(known: dict[str, Any]) -> None:
    """So that no page is refused for being another's, or for not being there."""
    every = signed_in(walk.role("superuser"))
    pages = [route for route in walk.routes() if route.endswith("/change/")]
    assert len(pages) > 10
    assert [route for route in pages if every.get(walk.address(route, known)).status_code != 200] == []
