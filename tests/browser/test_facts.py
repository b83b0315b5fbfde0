"""Facts in the browser: merged by what is said, undone, and many of them forgotten and brought back as one."""

import pytest
from playwright.sync_api import Page, expect

from memories.models import Fact, Operator
from tests import factories
from tests.admin.pages import list_of, page_of
from tests.browser.conftest import Open

pytestmark = pytest.mark.browser


@pytest.fixture
def facts(operator: Operator) -> list[Fact]:
    person = factories.end_user(display_name="华桂珍")
    texts = ("对花生过敏", "吃花生会起疹子", "喜欢绿茶", "住在杭州", "会弹钢琴", "周末骑自行车", "在学西班牙语")
    return [factories.fact(person, text, category="constraint") for text in texts]


def statuses(facts: list[Fact]) -> list[str]:
    return [Fact.objects.get(pk=fact.pk).status for fact in facts]


def choose_by_what_is_typed(page: Page, word: str) -> None:
    offered = page.locator(".fact-offered > li")
    expect(offered).to_have_count(6)
    page.get_by_label("Show facts that contain").fill(word)
    expect(offered.filter(visible=True)).to_have_count(1)
    offered.filter(visible=True).get_by_role("checkbox").check()
    page.get_by_label("Show facts that contain").press("Enter")
    page.get_by_role("button", name="Preview").click()


def test_two_facts_are_merged_and_the_merge_is_undone(open_page: Open, facts: list[Fact], operator: Operator) -> None:
    page = open_page(who=operator)
    page.goto(page_of(facts[0]))
    expect(page.locator(".decay-plot")).to_be_visible()
    page.get_by_role("link", name="Merge").click()
    choose_by_what_is_typed(page, "疹子")
    page.get_by_role("button", name="Use this text").last.click()
    expect(page.get_by_label("Text from now on")).to_have_value("吃花生会起疹子")
    page.get_by_role("button", name="Merge facts").click()
    expect(page.locator("#content-now")).to_have_text("吃花生会起疹子")
    assert statuses(facts[:2]) == ["active", "superseded"]
    page.get_by_role("button", name="Undo the merge").click()
    expect(page.locator("#content-now")).to_have_text("对花生过敏")
    assert statuses(facts[:2]) == ["active", "active"]


def test_many_are_forgotten_and_brought_back_as_one(open_page: Open, facts: list[Fact], operator: Operator) -> None:
    page = open_page(who=operator)
    page.goto(list_of(Fact))
    page.locator("#action-toggle").check()
    page.locator("select[name=action]").select_option("forget_many")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_text("7 facts would change")).to_be_visible()
    page.get_by_label("Reason").fill("她要求忘记")
    page.get_by_role("button", name="Forget them").click()
    expect(page.get_by_text("Undo all")).to_be_visible()
    assert set(statuses(facts)) == {"trashed"}
    page.get_by_role("button", name="Undo all").click()
    expect(page.get_by_text("Undone", exact=True)).to_be_visible()
    assert set(statuses(facts)) == {"active"}
