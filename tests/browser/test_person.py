"""A person in a real browser: the timeline goes on where one is, a look at what an agent sees, and setting it right."""

from itertools import pairwise

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from memories.models import EndUser, Fact, Operator
from tests import factories
from tests.admin.pages import page_of
from tests.browser.axe import faults
from tests.browser.conftest import PHONE, Open
from tests.browser.test_pages import fits
from tests.vectors import embed_all

pytestmark = pytest.mark.browser
QUESTION = "Where does she live?"


def said(turns: int) -> list[tuple[str, str]]:
    return [("user", f"第{number}句：我住在莱顿。") for number in range(turns)]


@pytest.fixture
def person(transactional_db: None) -> EndUser:
    person = factories.end_user(external_id="usr_1000", display_name="华桂珍")
    session = factories.session(person, said(3), agent_id="coach")
    now = timezone.now()
    factories.fact(person, "She lives in Leiden", now=now)
    factories.fact(person, "Allergic to peanuts", now=now)
    factories.episode(session, "Told where she lives", now=now)
    factories.profile_section(person, summary="Runs a bakery.")
    embed_all(person)
    return person


def look(page: Page, name: str) -> None:
    page.get_by_label("User's question").fill(QUESTION)
    page.get_by_role("button", name=name).click()


def test_the_timeline_goes_on_where_one_is(open_page: Open, operator: Operator, person: EndUser) -> None:
    factories.session(person, said(117))
    page = open_page(who=operator)
    page.goto(f"{page_of(person)}?kind=turn")
    expect(page.locator(".hub-item-turn")).to_have_count(50)
    address = page.url
    for shown in (100, 120):
        page.get_by_role("link", name="Show earlier events").press("Enter")
        expect(page.locator(".hub-item-turn")).to_have_count(shown)
    # One day, and said once.
    expect(page.locator(".hub-day h2")).to_have_count(1)
    expect(page.locator("[data-older]")).to_have_count(0)
    assert page.url == address
    page.get_by_role("navigation", name="Kinds").get_by_role("link", name="Facts").click()
    expect(page.locator(".hub-item")).to_have_count(2)
    page.get_by_label("Up to").fill("2001-01-01")
    page.get_by_role("button", name="Go").click()
    expect(page.get_by_role("heading", name="Nothing of this kind")).to_be_visible()


def test_what_is_not_for_every_day_is_in_a_menu(open_page: Open, operator: Operator, person: EndUser) -> None:
    page = open_page(who=operator)
    page.goto(page_of(person))
    erase, menu = page.get_by_role("link", name="Erase…"), page.locator(".hub-menu > summary")
    expect(erase).to_be_hidden()
    menu.press("Enter")
    expect(erase).to_be_visible()
    page.keyboard.press("Escape")
    expect(erase).to_be_hidden()
    expect(menu).to_be_focused()
    menu.click()
    assert faults(page) == []
    page.get_by_role("heading", name="Details").click()
    expect(erase).to_be_hidden()


def test_what_an_agent_said_is_found_and_set_right(open_page: Open, operator: Operator, person: EndUser) -> None:
    page = open_page(who=operator)
    page.goto(page_of(person))
    page.get_by_role("link", name="What an agent sees").first.click()
    expect(page.locator(".hub-block pre")).to_contain_text("She lives in Leiden")
    page.get_by_label("Agent", exact=True).select_option("coach")
    look(page, "Show context")
    expect(page.locator(".hub-block pre")).to_contain_text("Recalled turns:")

    page.get_by_role("button", name="Why recalled?").click()
    hit = page.locator(".hub-hit", has_text="She lives in Leiden")
    expect(hit).to_contain_text("In context")
    hit.locator("summary", has_text="Correct").click()
    hit.locator("details[open]").get_by_label("Corrected text").fill("She lives in Utrecht")
    hit.locator("details[open]").get_by_label("Reason").fill("She said so on the phone")
    hit.locator("details[open]").get_by_role("button", name="Correct").click()
    expect(page.get_by_text("Saved; ranking updated.")).to_be_visible()
    expect(page.locator(".hub-block pre")).to_contain_text("She lives in Utrecht")
    expect(page.locator(".hub-hit", has_text="She lives in Utrecht")).to_contain_text("In context")
    assert page.url.endswith(reverse("admin:recalled"))
    fact = Fact.objects.get(content="She lives in Utrecht")
    assert (fact.binding, fact.last_recalled_at) == (True, None)


def test_a_refused_verb_loses_neither_its_input_nor_the_question(
    open_page: Open, operator: Operator, person: EndUser, complaints: list[str]
) -> None:
    page = open_page(who=operator)
    page.goto(f"{reverse('admin:recalled')}?person={person.pk}")
    look(page, "Explain ranking")
    hit = page.locator(".hub-hit", has_text="She lives in Leiden")
    hit.locator("summary", has_text="Correct").click()
    hit.get_by_label("Corrected text").fill("")
    hit.locator("details[open]").get_by_label("Reason").fill("She said so")
    hit.get_by_role("button", name="Correct").click()
    expect(hit).to_contain_text("This field is required.")
    expect(hit.get_by_label("Corrected text")).to_be_focused()
    expect(hit.locator("details[open]").get_by_label("Reason")).to_have_value("She said so")
    assert page.url.split("?")[0].endswith(reverse("admin:recalled"))
    # What was missing is filled in, and the question is asked again.
    hit.get_by_label("Corrected text").fill("She lives in Utrecht")
    hit.get_by_role("button", name="Correct").click()
    expect(page.get_by_text("Saved; ranking updated.")).to_be_visible()
    expect(page.locator(".hub-hit", has_text="She lives in Utrecht")).to_contain_text("In context")
    # A browser notes every answer of 400.
    complaints[:] = [one for one in complaints if "status of 400" not in one]


def test_verbs_beside_a_hit_stay_together(open_page: Open, operator: Operator, person: EndUser) -> None:
    page = open_page(who=operator)
    page.goto(f"{reverse('admin:recalled')}?person={person.pk}")
    look(page, "Explain ranking")
    verbs = page.locator(".hub-hit", has_text="She lives in Leiden").locator("summary")
    expect(verbs).to_have_count(3)
    boxes = [box for verb in verbs.all() if (box := verb.bounding_box())]
    assert len(boxes) == 3
    assert len({box["y"] for box in boxes}) == 1
    gaps = [right["x"] - left["x"] - left["width"] for left, right in pairwise(boxes)]
    assert max(gaps) < 16


def test_all_of_it_on_a_phone_in_the_dark(open_page: Open, operator: Operator, person: EndUser) -> None:
    page = open_page(size=PHONE, scheme="dark", who=operator)
    page.goto(page_of(person))
    assert faults(page) == []
    assert fits(page)
    # Who it is takes little room before the view, and the rest of it opens.
    more = page.locator("#who-more")
    expect(more).to_be_hidden()
    box = page.locator(".hub-who").bounding_box()
    assert box
    assert box["height"] < 140
    page.get_by_role("button", name="Details").click()
    expect(more).to_be_visible()
    assert fits(page)
    # Each row of the timeline takes two lines, however much it says.
    line = 22
    for row in page.locator(".hub-item-turn > p:first-child").all()[:3]:
        assert (box := row.bounding_box())
        assert box["height"] < 3 * line
    for name in ("seen", "profile_all", "sessions"):
        page.goto(reverse(f"admin:memories_enduser_{name}", args=[person.pk]))
        assert fits(page), name
    page.goto(f"{reverse('admin:recalled')}?person={person.pk}")
    look(page, "Explain ranking")
    expect(page.locator(".hub-hit").first).to_be_visible()
    assert fits(page)
    assert faults(page) == []
