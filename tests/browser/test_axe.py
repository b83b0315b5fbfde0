"""Pages for everybody: axe-core finds nothing serious on any of them, and the API's page works under its policy."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from memories.models import Operator
from tests import factories
from tests.browser.axe import faults
from tests.browser.conftest import Open

pytestmark = pytest.mark.browser


def test_a_page_that_shuts_people_out_is_found(open_page: Open) -> None:
    page = open_page()
    page.goto(reverse("admin:login"))
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<button><i></i></button>')")
    assert any(fault.startswith("button-name: ") for fault in faults(page))


def test_the_page_of_the_api_works_under_its_policy(open_page: Open) -> None:
    page = open_page()
    page.goto("/api/docs/")
    page.get_by_role("link", name="turns", exact=True).click()
    expect(page.get_by_text("/api/v1/turns").first).to_be_visible()


def test_an_operator_chooses_a_language(open_page: Open, operator: Operator) -> None:
    factories.tenant()
    page = open_page(who=operator)
    page.goto(reverse("admin:preferences"))
    page.get_by_label("Language").select_option("zh-hans")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("html[lang='zh-hans']")).to_be_attached()
    assert faults(page) == []


def test_of_a_lists_rows_one_of_each_shape_is_looked_at(open_page: Open) -> None:
    page = open_page()
    page.goto(reverse("admin:login"))
    rows = (
        "<tbody><tr><td><button></button></td></tr></tbody>" * 2 + "<tbody><tr><th><button></button></th></tr></tbody>"
    )
    page.evaluate(
        "html => document.body.insertAdjacentHTML('beforeend', html)", f"<table id='result_list'>{rows}</table>"
    )
    assert sum(fault.startswith("button-name: ") for fault in faults(page)) == 2
