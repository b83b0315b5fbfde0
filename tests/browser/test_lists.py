"""Lists in a real browser: tabs, saved filters, the palette by keyboard, and nothing of a search left behind."""

import pytest
from playwright.sync_api import expect

from memories.models import APIKey, EndUser, Fact, MemoryGroup, Operator
from tests import factories
from tests.admin.pages import list_of, page_of
from tests.browser.conftest import PHONE, Open
from tests.browser.test_pages import fits

pytestmark = pytest.mark.browser


def test_the_palette_finds_a_person_by_keyboard_alone(open_page: Open, operator: Operator) -> None:
    tenant = factories.tenant(slug="acme")
    for number in range(3):
        factories.end_user(tenant, external_id=f"customer-{number}")
    wanted = EndUser.objects.get(external_id="customer-1")
    page = open_page(who=operator)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(list_of(Fact))
    page.keyboard.press("Control+k")
    expect(page.locator("[data-palette-hit]").first).to_be_visible()
    page.keyboard.type("customer-")
    # Three people, and the ways to the searches.
    expect(page.locator("[data-palette-hit]")).to_have_count(5)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{page_of(wanted)}")
    assert not [url for url in asked if "customer-" in url]
    assert "customer-" not in page.evaluate("JSON.stringify([localStorage, sessionStorage])")


def test_an_answer_that_comes_late_keeps_what_the_arrows_chose(open_page: Open, operator: Operator) -> None:
    tenant = factories.tenant(slug="acme")
    for number in range(3):
        factories.end_user(tenant, external_id=f"customer-{number}")
    page = open_page(who=operator, own=True)
    page.clock.install()
    page.goto(list_of(Fact))
    page.keyboard.press("Control+k")
    page.keyboard.type("customer")
    page.clock.run_for(1_000)
    # Three people, and the ways to the searches.
    expect(page.locator("[data-palette-hit]")).to_have_count(5)
    page.keyboard.type("-")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("[data-palette-hit][data-chosen]")
    expect(chosen).to_contain_text("customer-1")
    with page.expect_response(lambda response: response.request.method == "POST"):
        page.clock.run_for(1_000)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{page_of(EndUser.objects.get(external_id='customer-1'))}")


def test_closed_the_palette_forgets(open_page: Open, operator: Operator) -> None:
    page = open_page(size=PHONE, who=operator)
    page.goto(list_of(Fact))
    page.keyboard.press("Control+k")
    page.keyboard.type("tenants")
    expect(page.locator("[data-palette-hit]").first).to_contain_text("Tenants")
    page.keyboard.press("Escape")
    expect(page.locator("#palette")).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(page.locator("#palette [name=words]")).to_have_value("")


def test_a_filter_is_saved_used_and_forgotten(open_page: Open, operator: Operator) -> None:
    person = factories.end_user()
    factories.fact(person, "Likes tea", pinned=True, category="preference")
    factories.fact(person, "Likes rain", category="preference")
    page = open_page(size=PHONE, who=operator)
    page.goto(f"{list_of(Fact)}?tab=pinned&category__exact=preference")
    page.locator("summary", has_text="Save filter").click()
    page.get_by_label("Name").fill("Pinned likes")
    page.get_by_role("button", name="Save", exact=True).click()
    own = page.get_by_role("link", name="Pinned likes 1")
    expect(own).to_have_attribute("aria-current", "page")
    expect(own).to_be_in_viewport()
    assert fits(page)
    page.get_by_role("button", name="Forget the saved filter").click()
    expect(own).to_have_count(0)


def test_a_list_is_downloaded(open_page: Open, operator: Operator) -> None:
    factories.fact(factories.end_user(), "=1+1")
    page = open_page(who=operator)
    page.goto(list_of(Fact))
    with page.expect_download() as started:
        page.get_by_role("button", name="Export").click()
    assert "'=1+1" in started.value.path().read_text(encoding="utf-8-sig")


def test_a_key_is_rotated(open_page: Open, operator: Operator) -> None:
    key, _ = factories.api_key(factories.tenant(slug="acme-prod"), name="support-bot")
    page = open_page(who=operator)
    page.goto(page_of(key))
    page.locator("summary", has_text="Rotate").click()
    page.get_by_role("button", name="Rotate this key").click()
    assert page.locator("#plaintext").input_value().startswith("mh_")
    page.get_by_role("link", name="I have copied it").click()
    expect(page.get_by_text("Replaces")).to_be_visible()
    assert APIKey.objects.count() == 2


def test_a_list_without_tabs_has_cards_on_a_phone_too(open_page: Open, operator: Operator) -> None:
    factories.memory_group(factories.end_user())
    page = open_page(size=PHONE, who=operator)
    page.goto(list_of(MemoryGroup))
    card = page.locator("#result_list tr.data-row").bounding_box()
    assert card
    assert card["height"] < 120, "a line for each value takes 200"
