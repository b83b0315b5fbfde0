"""Every address of the admin, opened and sent a form as each role, equals the written matrix (matrix.toml).

A new page fails here until it is in the matrix; the message has the lines.
"""

import logging
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.http import HttpResponse
from django.template.response import SimpleTemplateResponse
from django.test import Client
from django.urls import reverse

from memories.admin.site import error_pages
from memories.admin.site.site import HubAdminSite
from memories.models.access import roles
from tests import factories
from tests.admin import walk
from tests.admin.conftest import signed_in
from tests.admin.test_tenant_scope import limited

pytestmark = pytest.mark.django_db
MATRIX = tomllib.loads((Path(__file__).parent / "matrix.toml").read_text(encoding="utf-8"))
METHODS = {"open": "GET", "send": "POST"}
# The pages of what belongs to no tenant, or to several.
OF_NO_TENANT = ("<", "auth/", "memories/backup", "memories/fact/bulk/", "memories/operator", "r/")
SIGNED_IN = ("staff", *roles.ROLES)


@pytest.fixture(autouse=True)
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is let in is decided before a page is drawn, which would take most of the time of some 1,500 requests."""

    def empty(response: SimpleTemplateResponse) -> SimpleTemplateResponse:
        response.content = b""
        return response

    monkeypatch.setattr(SimpleTemplateResponse, "render", empty)
    monkeypatch.setattr(error_pages, "_page", lambda _request, _heading, _text, status: HttpResponse(status=status))
    # Its frame alone counts what waits.
    monkeypatch.setattr(HubAdminSite, "each_context", lambda *_: {})
    # A line for each refusal.
    monkeypatch.setattr(logging.getLogger("django.request"), "disabled", True)


@pytest.fixture(autouse=True)
def read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    walk.reads_once(monkeypatch)


@pytest.fixture
def known() -> dict[str, Any]:
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


def test_who_is_limited_to_another_tenant_reaches_nothing_of_this_one(known: dict[str, Any]) -> None:
    """Neither by opening an address nor by sending a form to it, whatever they may otherwise."""
    own, elsewhere = (signed_in(limited(tenant)) for tenant in (known["tenant"], factories.tenant()))
    ours = [route for route in walk.routes() if "<" in route and MATRIX["open"][route] != "all"]
    ours = [route for route in ours if not route.startswith(OF_NO_TENANT) and "forget-filter" not in route]
    reached = []
    for route, method in product(ours, METHODS.values()):
        answer = walk.answer_to(elsewhere, method, walk.address(route, known))
        # Django answers for a tenant, whose page is a form of its own, by going back to the start.
        if answer.status_code not in walk.REFUSED and answer.headers.get("Location") != reverse("admin:index"):
            reached.append((method, route))
    assert not reached, "\n".join(map(str, reached))
    assert sum(walk.is_let_in(own, "GET", walk.address(route, known)) for route in ours) > 100


def test_what_is_hard_to_take_back_asks_for_the_password(known: dict[str, Any]) -> None:
    stale = signed_in(walk.role("superuser"), fresh=False)
    asked = []
    for route in walk.routes():
        answer = walk.answer_to(stale, "POST", walk.address(route, known))
        if getattr(answer, "template_name", "") == "memories/fresh_password.html":
            assert answer.status_code in (403, 400), route
            asked.append(route)
    assert asked == MATRIX["fresh"]["asked"], "\n".join(f"'{route}'," for route in asked)


def test_every_record_is_found(known: dict[str, Any]) -> None:
    """So that no page is refused for being another's, or for not being there."""
    every = signed_in(walk.role("superuser"))
    pages = [route for route in walk.routes() if route.endswith("/change/")]
    assert len(pages) > 10
    assert [route for route in pages if every.get(walk.address(route, known)).status_code != 200] == []
