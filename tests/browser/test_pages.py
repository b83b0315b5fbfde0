"""Every page in a real browser: wide and on a phone, light and dark, and with hostile text in it."""

import re
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from memories.models import APIKey, Operator
from tests import factories
from tests.admin.pages import list_of, page_of
from tests.browser.axe import faults
from tests.browser.conftest import DESK, PHONE, Open
from tests.browser.world import made, pages
from tests.hostile import STRINGS

pytestmark = pytest.mark.browser

# One text with several of them.
TRAP = " ".join(STRINGS[index] for index in (5, 2, 35, 38))
# What no text of people can make: an attribute that runs or fetches. Ours have no handlers, and lead nowhere else.
STRUCK = """
() => [...document.querySelectorAll("*")].flatMap(element => [...element.attributes].filter(({name, value}) =>
  /^on|^@/i.test(name) || (/^(href|src|srcdoc|action|formaction|data|style|x-|hx-)/i.test(name)
    && /e\\.test|alert\\(|^\\s*(javascript|vbscript):|^data:text/i.test(value))
).map(({name}) => `${element.tagName} ${name}`))
"""
# The boxes and dots to tick that are white: drawn by the browser in its light scheme, or by a style sheet.
WHITE_BOXES = """
() => {
  const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const bright = colour => {
    pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
    return alpha > 200 && Math.min(red, green, blue) > 200;
  };
  return [...document.querySelectorAll("input:is([type=checkbox], [type=radio]):not(:checked)")].filter(box => {
    const {appearance, colorScheme, backgroundColor, opacity} = getComputedStyle(box);
    if (!box.checkVisibility() || opacity === "0") return false;
    return appearance === "none" ? bright(backgroundColor) : colorScheme !== "dark";
  }).map(box => `a white box: ${box.name || box.id}`);
}
"""
# The same page in another language: the words alone, as its scripts ran already.
OTHER_WORDS = """
html => {
  const other = new DOMParser().parseFromString(html, "text/html");
  document.documentElement.lang = other.documentElement.lang;
  document.body.replaceWith(other.body);
}
"""
SCRIPT = re.compile(r'<script[^>]* src="([^"]+)"')
# The same on all pages, and axe-core takes as long for it as for many of them: it looks at it on the first page behind
# the sign-in, which is the dashboard.
FRAME, DASHBOARD = "#nav-sidebar", "memories/dashboard.html"
# Of a list.
ROWS = "#result_list"
# The processes of the tests share the pages, which take longer than any other file: each part has every such page.
PARTS = 2


@pytest.fixture
def world(operator: Operator) -> dict[str, Any]:
    return made(operator)


def fits(page: Page) -> bool:
    """Nothing makes the page itself scroll sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


@pytest.mark.parametrize("part", range(PARTS))
def test_all_pages_open_and_fit_and_are_for_everybody(
    open_page: Open, world: dict[str, Any], operator: Operator, part: int
) -> None:
    """No dialog, no foreign request and no complaint of the browser, either: `open_page` sees to that.

    Wide, light and English; then the page becomes a phone's and dark, and then its words Chinese: that takes a fraction
    of loading it again. Lists share their template, so axe-core looks at one of them as a whole, and at the rows of the
    others. Scripts meet Chinese on one page of each set of them, which is loaded so.
    """
    Operator.objects.filter(pk=operator.pk).update(language="zh-hans")
    in_chinese = list(pages(operator, world, part=part, parts=PARTS))
    assert len(in_chinese) > 80 // PARTS
    Operator.objects.filter(pk=operator.pk).update(language="en")
    page = open_page(who=operator)
    wrong: list[str] = []
    looked_at: set[str] = set()
    white = 0
    assert (in_chinese[0][2] == DASHBOARD) == (part == 0)
    for address, html, template in [*([] if part else [(reverse("admin:login"), "", "")]), *in_chinese]:
        page.set_viewport_size({"width": DESK[0], "height": DESK[1]})
        page.emulate_media(color_scheme="light")
        is_shown(page, address, dark=False)
        known = FRAME if part or DASHBOARD in looked_at else ""
        within = ROWS if template in looked_at and page.locator(ROWS).count() else ""
        found = [f"wide: {fault}" for fault in (*faults(page, within=within, without=known), *seen(page))]
        white += len(page.evaluate(WHITE_BOXES))
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        page.emulate_media(color_scheme="dark")
        # As the frame does when a page is loaded.
        page.evaluate("document.documentElement.classList.add('dark')")
        if template not in looked_at:
            found += [f"a phone: {fault}" for fault in faults(page, without=known)]
        found += [f"a phone: {fault}" for fault in (*seen(page), *page.evaluate(WHITE_BOXES))]
        if html:
            page.evaluate(OTHER_WORDS, html)
            assert page.locator("html").get_attribute("lang") == "zh-hans"
            found += [f"Chinese: {fault}" for fault in seen(page)]
        wrong += [f"{address}: {fault}" for fault in found]
        looked_at.add(template)
    # Where pages are light they are white, so the look would find them.
    assert white
    Operator.objects.filter(pk=operator.pk).update(language="zh-hans")
    page = open_page(size=PHONE, scheme="dark", who=operator)
    one_of_each = {frozenset(SCRIPT.findall(html)): address for address, html, _ in in_chinese}
    assert len(one_of_each) > 3
    for address in one_of_each.values():
        is_shown(page, address, dark=True)
        assert page.locator("html").get_attribute("lang") == "zh-hans"
        wrong += [f"loaded in Chinese: {address}: {fault}" for fault in seen(page)]
    assert not wrong, "\n".join(wrong)


def is_shown(page: Page, address: str, *, dark: bool) -> None:
    answer = page.goto(address)
    assert answer
    assert answer.status == 200
    expect(page.locator("h1").first).to_be_visible()
    assert page.evaluate("document.documentElement.classList.contains('dark')") == dark


def seen(page: Page) -> list[str]:
    return [*page.evaluate(STRUCK), *([] if fits(page) else ["scrolls sideways"])]


def test_hostile_text_is_shown_and_not_run(open_page: Open, world: dict[str, Any], operator: Operator) -> None:
    page = open_page(who=operator)
    page.goto(page_of(world["fact"]))
    expect(page.locator("#content-now")).to_contain_text(STRINGS[2])
    page.goto(page_of(world["episode"]))
    expect(page.locator("#content-now")).to_contain_text(STRINGS[4])
    page.goto(page_of(world["enduser"]))
    expect(page.locator("main, body").first).to_contain_text(STRINGS[2])


def test_what_would_run_is_noticed(open_page: Open, complaints: list[str]) -> None:
    page = open_page()
    page.goto(reverse("admin:login"))
    assert page.evaluate(STRUCK) == []
    page.evaluate("text => document.body.insertAdjacentHTML('beforeend', text)", "\n".join(STRINGS[4:11]))
    assert len(page.evaluate(STRUCK)) >= 4
    page.wait_for_timeout(200)
    assert complaints
    complaints.clear()


def test_other_words_that_do_not_fit_are_noticed(open_page: Open) -> None:
    page = open_page(size=PHONE)
    page.goto(reverse("admin:login"))
    assert fits(page)
    page.evaluate(
        OTHER_WORDS, f"<html lang='zh-hans'><body><p class='whitespace-nowrap'>{'字' * 100}</p></body></html>"
    )
    assert not fits(page)


def test_a_new_key_is_shown_once_and_copied(open_page: Open, operator: Operator) -> None:
    factories.tenant(slug="acme-prod")
    page = open_page(who=operator)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{list_of(APIKey)}add/")
    page.get_by_label("Tenant").select_option(label="acme-prod")
    page.get_by_label("Name").fill("support-bot")
    page.get_by_role("button", name="Create key").click()
    plaintext = page.locator("#plaintext").input_value()
    assert plaintext.startswith("mh_")
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_text("Copied", exact=True)).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == plaintext
    page.get_by_role("link", name="I have copied it").click()
    expect(page.get_by_text("Keys cannot be edited")).to_be_visible()
    assert plaintext not in page.content()


def test_a_request_to_elsewhere_would_be_noticed(open_page: Open, complaints: list[str]) -> None:
    page = open_page()
    page.goto(reverse("admin:login"))
    page.evaluate("new Image().src = 'https://example.test/pixel.png'")
    page.wait_for_timeout(200)
    assert complaints
    complaints.clear()
