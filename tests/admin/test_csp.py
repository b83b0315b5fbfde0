"""What a browser may do with each answer, and that no page of ours asks for more."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from memories.admin.site.csp import policy_of
from tests.admin.pages import text_of
from tests.each import each

STRICT = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
TEMPLATES = sorted((Path(settings.BASE_DIR) / "templates").rglob("*.html"))
# A script without src, an attribute that runs, an address that runs.
INLINE = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>|<[^>]+\son[a-z]+\s*=|javascript:", re.IGNORECASE)


def directives(client: Client, address: str) -> dict[str, str]:
    sent = client.get(address).headers["Content-Security-Policy"]
    return {name: sources for name, _, sources in (part.partition(" ") for part in sent.split("; "))}


@pytest.mark.parametrize("address", ["/admin/login/", "/admin/", "/admin/nowhere/"])
def test_pages_load_from_here_alone(address: str, admin: Client) -> None:
    policy = directives(admin, address)
    assert policy["default-src"] == "'self'"
    assert policy["script-src"] == "'self' 'unsafe-eval'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["form-action"] == policy["base-uri"] == "'self'"
    assert "unsafe-inline" not in policy["script-src"]


def test_the_page_of_the_api_runs_no_made_up_code(client: Client) -> None:
    assert directives(client, "/api/docs/")["script-src"] == "'self'"
    assert not INLINE.search(text_of(client.get("/api/docs/")))


@pytest.mark.parametrize("address", ["/healthz", "/api/v1/turns", "/api/nowhere", "/", "/nowhere"])
def test_what_is_no_page_may_nothing(address: str, client: Client) -> None:
    sent = client.get(address).headers["Content-Security-Policy"]
    assert sorted(sent.split("; ")) == sorted(STRICT.split("; "))


def test_the_first_line_that_fits_holds() -> None:
    assert policy_of("/admin/memories/fact/")
    assert policy_of("/administrators/") is None


def test_no_template_holds_a_script_of_its_own() -> None:
    assert [str(path) for path in TEMPLATES if INLINE.search(path.read_text(encoding="utf-8"))] == []


@each("text", ["<script>1</script>", '<a onclick="go()">', '<a href="javascript:go()">', "<script defer>1</script>"])
def test_an_inline_script_would_be_found(text: str) -> None:
    assert INLINE.search(text)
    assert not INLINE.search('<script src="/a.js" defer></script><p data-only="1">one = 2</p>')
