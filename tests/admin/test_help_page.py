"""Help: the jobs that an operator may do, with links to their pages, and the links below the menu."""

import re
import tomllib

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from memoryhub import VERSION
from tests.admin import walk
from tests.admin.conftest import signed_in
from tests.admin.pages import text_of

pytestmark = pytest.mark.django_db
JOBS = {
    "reviewer": ["Decide what waits for review", "Find out why the agent said that"],
    "dpo": ["Answer a request for access, correction or erasure", "See who changed what"],
    "auditor": ["See who changed what"],
}


@pytest.mark.parametrize("role", JOBS)
def test_a_role_is_told_its_jobs_and_may_open_their_pages(role: str) -> None:
    client = signed_in(walk.role(role))
    page = text_of(client.get(reverse("admin:help")))
    for job in JOBS[role]:
        assert f">{job}</dt>" in page
    assert ">Give a colleague access</dt>" not in page
    links = re.findall(r'<a class="hub-button" href="([^"]+)">', page)
    assert links
    assert {client.get(link).status_code for link in links} == {200}


def test_an_administrator_is_told_how_to_add_a_colleague(admin: Client) -> None:
    assert ">Give a colleague access</dt>" in text_of(admin.get(reverse("admin:help")))


def test_the_menu_ends_with_help_the_api_and_the_version(admin: Client) -> None:
    page = text_of(admin.get(reverse("admin:preferences")))
    foot = page[page.index('class="hub-foot"') :]
    assert f'href="{reverse("admin:help")}"' in foot
    assert f'href="{reverse("docs")}"' in foot
    assert f"Version {VERSION}" in foot


def test_the_version_without_a_package_is_that_of_a_build_without_a_tag() -> None:
    version = tomllib.loads((settings.BASE_DIR / "pyproject.toml").read_text())["tool"]["hatch"]["version"]
    assert version["raw-options"]["fallback_version"] == VERSION
