"""The dashboard in a real browser: its charts are seen and read, and it shows the figures anew by itself."""

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from memories.models import Operator
from tests import factories
from tests.browser.axe import faults
from tests.browser.conftest import PHONE, Open

pytestmark = pytest.mark.browser

REFRESH = "document.getElementById('figures').dispatchEvent(new Event('hub:refresh'))"


def test_it_shows_the_figures_anew(open_page: Open, operator: Operator) -> None:
    person = factories.end_user()
    factories.fact(person, "One", now=timezone.now())
    page = open_page(who=operator)
    page.goto(reverse("admin:index"))
    tile = page.get_by_role("link", name="Facts active")
    expect(tile).to_contain_text("1")
    expect(page.get_by_role("table", name="New facts per day").get_by_role("row")).to_have_count(31)
    expect(page.locator(".hub-bar-served")).to_have_count(1)
    page.get_by_text("7 days", exact=True).click()
    expect(page.get_by_role("table", name="New facts per day").get_by_role("row")).to_have_count(8)
    page.get_by_role("radio", name="7 days").press("ArrowRight")
    expect(page.get_by_role("table", name="New facts per day").get_by_role("row")).to_have_count(31)
    expect(page.get_by_role("radio", name="30 days")).to_be_focused()
    factories.fact(person, "Two", now=timezone.now())
    page.evaluate(REFRESH)
    expect(tile.locator("strong")).to_have_text("2")
    # What somebody is about to press stays where it is.
    tile.focus()
    factories.fact(person, "Three", now=timezone.now())
    page.evaluate(REFRESH)
    expect(tile.locator("strong")).to_have_text("2")
    page.evaluate("document.activeElement.blur()")
    page.context.clear_cookies()
    page.evaluate(REFRESH)
    expect(page.get_by_text("no longer updated")).to_be_visible()


def test_everybody_can_read_it_in_the_dark(open_page: Open, operator: Operator) -> None:
    person, now = factories.end_user(), timezone.now()
    for number, status in enumerate(["active", "pending", "rejected", "superseded"]):
        fact = factories.fact(person, f"Fact {number}", status=status, now=now)
    factories.review_item(fact, created_at=now)
    factories.run(factories.session(person), status="failed", failure="model_timeout", started_at=now, prompt_tokens=9)
    page = open_page(size=PHONE, scheme="dark", who=operator)
    page.goto(reverse("admin:index"))
    expect(page.get_by_role("heading", name="New facts per day")).to_be_visible()
    assert faults(page) == []
