"""The menu of whoever is signed in."""

import pytest
from django.conf import LazySettings
from django.test import Client
from django.urls import reverse

from tests.admin.pages import text_of


@pytest.mark.parametrize(("wanted", "is_there"), [("off", False), ("optional", True)])
def test_it_leads_to_the_second_factor_where_there_is_one(
    admin: Client, settings: LazySettings, wanted: str, is_there: bool
) -> None:
    settings.MEMORYHUB_SECOND_FACTOR = wanted
    page = text_of(admin.get(reverse("admin:index")))
    assert reverse("admin:preferences") in page
    assert (reverse("mfa_index") in page) == is_there


def test_the_page_of_an_app_lists_its_pages(admin: Client) -> None:
    """Other pages need no such list: they have the menu."""
    page = admin.get(reverse("admin:app_list", args=["memories"]))
    [app] = page.context["app_list"]
    assert reverse("admin:memories_fact_changelist") in [model["admin_url"] for model in app["models"]]
    assert page.context["available_apps"] == []
