"""A section of a profile by hand, on a phone in the dark: from the person to the section, edit, restore, give back."""

import pytest
from playwright.sync_api import expect

from memories.models import Operator, ProfileSection
from tests import factories
from tests.admin.pages import page_of
from tests.browser.axe import faults
from tests.browser.conftest import PHONE, Open
from tests.browser.test_pages import fits

pytestmark = pytest.mark.browser


def test_a_section_is_edited_restored_and_given_back(open_page: Open, operator: Operator) -> None:
    person = factories.end_user(display_name="华桂珍")
    run = factories.run(factories.session(person, [("user", "我在莱顿的物流公司做数据工程师。")]))
    factories.profile_revision(person, "在莱顿的物流公司做数据工程师。", extraction=run, verb="extract")
    factories.profile_section(person, summary="在莱顿的物流公司做数据工程师。", extraction=run)
    page = open_page(size=PHONE, scheme="dark", who=operator)
    page.goto(page_of(person))
    page.get_by_role("navigation", name="Views of this person").get_by_role("link", name="Profile").click()
    expect(page.get_by_role("link", name="turns 1–1").first).to_be_visible()
    page.get_by_role("link", name="History of Work").click()

    page.locator("summary", has_text="Edit").click()
    page.get_by_label("Corrected text").fill("在乌得勒支的物流公司做数据工程师。\n带四个人。")
    page.get_by_role("button", name="Save this section").click()
    expect(page.locator("#section-now")).to_contain_text("乌得勒支")
    expect(page.locator(".hub-diff del").first).to_have_text("莱顿")
    assert fits(page)

    page.locator("summary", has_text="Restore version 1").click()
    page.get_by_role("button", name="Restore version 1").click()
    expect(page.locator("#section-now")).to_have_text("在莱顿的物流公司做数据工程师。")
    assert faults(page) == []

    page.locator("summary", has_text="Give back to the jobs").click()
    page.get_by_role("button", name="Give this section back").click()
    expect(page.get_by_text("Work is released")).to_be_visible()
    row = ProfileSection.objects.get()
    assert (row.version, row.binding, row.extraction) == (4, False, run)
