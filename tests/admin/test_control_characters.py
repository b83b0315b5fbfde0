"""A control character in an address of the admin, wherever a text may stand in it, is never an error of the server."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib import admin as django_admin
from django.db import DataError
from django.db.models import Model
from django.test import Client, RequestFactory
from django.urls import reverse

from tests import factories
from tests.admin import walk
from tests.admin.pages import list_of, page_of

pytestmark = pytest.mark.django_db
SOURCES = Path(__file__).parents[2] / "memories"
# Whatever a page reads of its query by name, and what the lists of Django read.
READ = re.compile(r"""GET(?:\.get|\.getlist|\.pop)?[(\[]\s*"(\w+)\"""")
NUL = "a\x00b"
OF_LISTS = ("q", "o", "p", "all", "e", "_popup", "_to_field", "_facets", "_changelist_filters")


@pytest.fixture(autouse=True)
def answered(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a browser sees it: an error is an answer."""
    admin.raise_request_exception = False
    walk.reads_once(monkeypatch)


def names_read() -> set[str]:
    return {name for path in SOURCES.rglob("*.py") for name in READ.findall(path.read_text("utf-8"))}


def filters() -> Iterator[tuple[type[Model], str]]:
    """The parameters of each list."""
    request: Any = RequestFactory().get("/")
    request.user = factories.operator()
    for model, page in django_admin.site._registry.items():
        yield from ((model, name) for name in OF_LISTS)
        for spec in page.get_changelist_instance(request).filter_specs:
            yield from ((model, str(name)) for name in spec.expected_parameters())


def broken(admin: Client, addresses: list[str]) -> list[str]:
    return [where for where in addresses if walk.answer_to(admin, "GET", where).status_code >= 500]


def test_in_a_path(admin: Client) -> None:
    index, routes = reverse("admin:index"), [route for route in walk.routes() if "<" in route]
    assert len(routes) > 100
    assert broken(admin, [index + re.sub(r"<\w+>", "%00", route) for route in routes]) == []


def test_in_a_query(admin: Client) -> None:
    known, names = walk.records(), sorted(names_read())
    assert {"agent", "person", "tenant"} <= set(names)
    query = urlencode(dict.fromkeys(names, NUL))
    assert broken(admin, [f"{walk.address(route, known)}?{query}" for route in walk.routes()]) == []


def test_in_a_filter(admin: Client) -> None:
    tried = list(filters())
    assert len(tried) > 200
    assert broken(admin, [f"{list_of(model)}?{urlencode({name: NUL})}" for model, name in tried]) == []


def test_what_the_database_cannot_hold_is_the_sender_s_fault(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert admin.get("/admin/sign-in/oidc/%00/login/").status_code == 400

    # Another error of a query is ours.
    def fails(*_: object, **__: object) -> None:
        raise DataError("division by zero")

    monkeypatch.setattr("memories.admin.facts.pages.FactPage.gather", fails)
    assert admin.get(page_of(factories.fact(factories.end_user()))).status_code == 500
