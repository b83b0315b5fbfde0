"""The drawing of a person's graph: the slider moves it through time, a click and the keyboard open what is drawn."""

from datetime import UTC, datetime

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from memories.models import Operator
from tests import factories
from tests.admin.pages import page_of
from tests.browser.conftest import Open
from tests.hostile import STRINGS

pytestmark = pytest.mark.browser
# What is drawn, and where an element of it is on the page; the library keeps its drawing with the element.
DRAWN = """
() => {
  const lines = document.getElementById("graph-drawing")._cyreg.cy.edges(":visible");
  return lines.map(line => line.target().data("name")).sort();
}
"""
PLACE = """
name => {
  const drawing = document.getElementById("graph-drawing");
  const {x, y} = drawing._cyreg.cy.nodes().filter(node => node.data("name") === name).renderedPosition();
  return {x, y};
}
"""


def held(page: Page) -> list[str]:
    page.wait_for_function("() => document.getElementById('graph-drawing')._cyreg?.cy.edges().nonempty()")
    return list(page.evaluate(DRAWN))


def test_the_graph_moves_through_time_and_opens_what_it_shows(open_page: Open, operator: Operator) -> None:
    person = factories.end_user(factories.tenant(slug="acme-prod"), external_id="usr_1000", display_name="Liv")
    spans = {"Leiden": (2020, 2024), "Utrecht": (2024, None), STRINGS[4]: (2022, None)}
    made = {
        name: factories.triple(
            person, "user", "home_city", name,
            valid_from=datetime(began, 1, 1, tzinfo=UTC), valid_to=datetime(ended, 1, 1, tzinfo=UTC) if ended else None,
        )
        for name, (began, ended) in spans.items()
    }  # fmt: skip
    page = open_page(who=operator)
    page.goto(reverse("admin:memories_enduser_graph", args=[person.pk]))
    hostile = " ".join(STRINGS[4].split())
    assert held(page) == sorted([hostile, "Utrecht"])
    # The change before today is the move of 2024, the one before it the beginning of 2022.
    page.get_by_role("button", name="The change before").click()
    page.get_by_role("button", name="The change before").click()
    expect(page.locator("#graph-day")).to_have_value("2022-01-01")
    assert held(page) == sorted([hostile, "Leiden"])
    expect(page.locator("#holds")).to_contain_text("home city · Leiden")
    expect(page.locator("#holds")).not_to_contain_text("home city · Utrecht")
    page.get_by_label("Day").focus()
    page.keyboard.press("Home")
    expect(page.locator("#graph-day")).to_have_value("2020-01-01")
    assert held(page) == ["Leiden"]
    # A click on an entity opens it, as it was on that day.
    page.locator("#graph-drawing").click(position=page.evaluate(PLACE, "Leiden"))
    expect(page).to_have_url(f"{page.url.split('/admin/')[0]}{page_of(made['Leiden'].object)}?as_of=2020-01-01")
    page.get_by_role("link", name="Draw its neighbours").click()
    assert held(page) == ["Leiden"]
    page.locator("#graph-drawing").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".graph-status")).to_have_text("Leiden, entity: triples 1")
    page.keyboard.press("Enter")
    expect(page.locator(".hub-content")).to_have_text("Leiden")
