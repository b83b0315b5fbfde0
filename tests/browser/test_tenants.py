"""A tenant's numbers in a real browser: folded, opened by the keyboard, kept when refused, readable in the dark."""

import pytest
from playwright.sync_api import expect

from memories.models import Operator
from tests import factories
from tests.admin.pages import page_of
from tests.browser.axe import faults
from tests.browser.conftest import PHONE, Open
from tests.browser.test_pages import fits

pytestmark = pytest.mark.browser


def test_sections_are_folded_and_fit(open_page: Open, operator: Operator) -> None:
    tenant = factories.tenant(slug="acme-prod", half_lives={"goal": 14})
    page = open_page(size=PHONE, scheme="dark", who=operator)
    page.goto(page_of(tenant))
    opened = page.locator(".hub-number-group[open]")
    expect(opened).to_have_count(1)
    expect(opened.locator("h3")).to_have_text("Decay")
    for summary in page.locator(".hub-number-group:not([open]) > summary").all()[::-1]:
        summary.focus()
        page.keyboard.press("Enter")
    expect(opened).to_have_count(page.locator(".hub-number-group").count())
    assert fits(page)
    assert faults(page) == []


def test_a_number_is_refused_corrected_and_kept(open_page: Open, operator: Operator) -> None:
    tenant = factories.tenant(slug="acme-prod", served_confidence=0.9)
    page = open_page(who=operator)
    page.goto(page_of(tenant))
    page.locator("summary", has_text="Capture and debounce").click()
    page.get_by_label("Quiet time").fill("500")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.get_by_text("1 to correct")).to_be_visible()
    expect(page.get_by_label("Quiet time")).to_have_value("500")
    page.get_by_label("Quiet time").fill("5")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.get_by_text("Facts with a confidence of 0.7 to 0.9 are kept, and told to nobody.")).to_be_visible()
    tenant.refresh_from_db()
    assert tenant.numbers == {"debounce_seconds": 5, "served_confidence": 0.9}
