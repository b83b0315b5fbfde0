"""The operator's main job, done by hand: sign in, find a person, open a fact, correct, forget and restore it."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from memories.audit import Actor
from memories.curation.facts.editing import correct_fact
from memories.models import AuditEvent, EndUser, Fact, Operator
from tests import factories
from tests.admin.pages import list_of, page_of
from tests.browser.conftest import PHONE, Open

pytestmark = pytest.mark.browser

TURNS = [
    ("user", "你好"),
    ("assistant", "您好，请问有什么可以帮您？"),
    ("user", "我对花生过敏，吃一点就会起疹子。"),
    ("assistant", "好的，我记住了。"),
]


@pytest.fixture
def fact(operator: Operator) -> Fact:
    person = factories.end_user(external_id="usr_1000", display_name="华桂珍", language="zh-CN")
    factories.end_user(display_name="Katherine Ruiz")
    session = factories.session(person, TURNS)
    fact = factories.fact(person, "对花生过敏", category="constraint", extraction=factories.run(session))
    factories.evidence(fact, session.turns.get(number=3), "我对花生过敏")
    return fact


def content(page: Page) -> str:
    return page.locator("#content-now").inner_text()


def verb(page: Page, name: str) -> None:
    page.locator("summary", has_text=name).first.click()


def sign_in(page: Page) -> None:
    page.goto("/admin/")
    page.get_by_label("Username").fill("ana")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_title(re.compile("Dashboard"))


def find(page: Page) -> None:
    page.goto(list_of(EndUser))
    page.locator("#searchbar").fill("桂珍")
    page.locator("#searchbar").press("Enter")
    expect(page.locator("#result_list tbody")).to_have_count(1)
    page.get_by_role("link", name="华桂珍").click()
    page.get_by_role("link", name="对花生过敏").click()


def read_the_evidence(page: Page) -> None:
    expect(page.locator("mark")).to_have_text("我对花生过敏")
    expect(page.get_by_text("您好，请问有什么可以帮您？")).to_be_hidden()
    page.locator("summary", has_text="The turn before").click()
    expect(page.get_by_text("您好，请问有什么可以帮您？")).to_be_visible()


def back_from_what_turns_say(page: Page) -> None:
    expect(page.get_by_role("heading", name="Turns that say it")).to_be_visible()
    page.get_by_role("link", name="Back to the fact").first.click()


def correct(page: Page) -> None:
    verb(page, "Correct")
    page.get_by_label("Corrected text").fill("对青霉素过敏")
    page.get_by_label("Reason").first.fill("医生来信")
    page.get_by_role("button", name="Correct this fact").click()
    expect(page.get_by_text("is corrected")).to_be_visible()
    back_from_what_turns_say(page)
    assert content(page) == "对青霉素过敏"
    expect(page.locator(".hub-diff ins").first).to_have_text("青霉素")


def forget(page: Page) -> None:
    verb(page, "Forget")
    page.locator(".hub-danger").get_by_label("Reason").fill("她要求忘记")
    page.get_by_role("button", name="Forget this fact").click()
    expect(page.get_by_text("is forgotten")).to_be_visible()
    back_from_what_turns_say(page)
    expect(page.locator("summary", has_text="Correct")).to_have_count(0)


def restore(page: Page) -> None:
    verb(page, "Restore")
    page.get_by_role("button", name="Restore this fact").click()
    expect(page.get_by_text("is restored")).to_be_visible()
    page.locator("summary", has_text="Restore version 2").click()
    page.get_by_role("button", name="Restore version 2").click()
    expect(page.get_by_text("is restored to version 2")).to_be_visible()


def test_an_operator_finds_corrects_forgets_and_restores_on_a_phone(
    open_page: Open, fact: Fact, operator: Operator
) -> None:
    page = open_page(size=PHONE)
    for step in (sign_in, find, read_the_evidence, correct, forget, restore):
        step(page)
    fact.refresh_from_db()
    assert (fact.content, fact.status, fact.version) == ("对青霉素过敏", "active", 5)
    acts = AuditEvent.objects.filter(object_id=fact.pk).order_by("id").values_list("verb", "actor_id")
    assert list(acts) == [(name, str(operator.pk)) for name in ("correct", "forget", "restore", "restore")]


def test_the_second_of_two_operators_loses_nothing_typed(
    open_page: Open, fact: Fact, operator: Operator, complaints: list[str]
) -> None:
    page = open_page(who=operator)
    page.goto(page_of(fact))
    verb(page, "Correct")
    page.get_by_label("Corrected text").fill("对青霉素过敏")
    page.get_by_label("Reason").first.fill("医生来信")
    other = Actor.operator(factories.operator())
    correct_fact(fact_id=fact.pk, tenant=None, content="对坚果过敏", reason="电话", actor=other, now=timezone.now())
    # Chromium logs an answer of 412 as an error of the page, now or a moment later; here it is the answer wanted.
    with page.expect_console_message(lambda message: "412" in message.text):
        page.get_by_role("button", name="Correct this fact").click()
    assert [complaint for complaint in complaints if "412" not in complaint] == []
    complaints.clear()
    expect(page.get_by_role("alert")).to_contain_text("Somebody else changed this in the meantime.")
    assert content(page) == "对坚果过敏"
    expect(page.get_by_label("Corrected text")).to_have_value("对青霉素过敏")
    page.get_by_role("button", name="Correct this fact").click()
    expect(page.get_by_text("is corrected")).to_be_visible()
    back_from_what_turns_say(page)
    assert content(page) == "对青霉素过敏"


def test_the_keyboard_alone_is_enough(open_page: Open, fact: Fact, operator: Operator) -> None:
    page = open_page(who=operator)
    page.goto(page_of(fact))
    summary = page.locator("summary", has_text="Correct")
    summary.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    outline = summary.evaluate("element => getComputedStyle(element).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Control+A")
    page.keyboard.type("Allergic to nuts")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("by hand")
    page.keyboard.press("Enter")
    expect(page.get_by_text("is corrected")).to_be_visible()
    back_from_what_turns_say(page)
    assert content(page) == "Allergic to nuts"
    # Where Enter begins a line it sends with Ctrl, as in the review queue.
    verb(page, "Correct")
    page.get_by_label("Corrected text").fill("Allergic to")
    page.get_by_label("Corrected text").press("End")
    page.keyboard.press("Enter")
    page.keyboard.type("hazelnuts")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("is corrected")).to_be_visible()
    back_from_what_turns_say(page)
    assert "hazelnuts" in content(page)
