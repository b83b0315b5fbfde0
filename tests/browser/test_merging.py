"""Two people merged and parted in a real browser: by the keyboard alone, on a phone in the dark."""

import pytest
from playwright.sync_api import Page, expect

from memories.models import EndUser, Operator
from tests import factories
from tests.admin.pages import page_of
from tests.browser.axe import faults
from tests.browser.conftest import PHONE, Open
from tests.browser.test_pages import fits

pytestmark = pytest.mark.browser


def type_and_enter(page: Page, label: str, text: str) -> None:
    page.get_by_label(label).fill(text)
    page.get_by_label(label).press("Enter")


def test_merged_and_parted_by_the_keyboard(open_page: Open, operator: Operator) -> None:
    ours = factories.end_user(external_id="app-1", display_name="Anna")
    theirs = factories.end_user(ours.tenant, external_id="whatsapp:+31-6-1234")
    for person in (ours, theirs):
        factories.session(person, session_id="main")
        factories.profile_section(person, "work_context", person.external_id)
    page = open_page(size=PHONE, scheme="dark", who=operator)
    page.goto(page_of(ours))
    page.locator(".hub-menu > summary").press("Enter")
    page.get_by_role("link", name="Merge…").press("Enter")
    expect(page.get_by_label("External id of the other end user")).to_be_visible()
    # Its script suggests what is typed from then on.
    page.wait_for_load_state()
    page.get_by_label("External id of the other end user").fill("Ann")
    expect(page.locator("datalist option")).to_have_attribute("value", ours.external_id)
    type_and_enter(page, "External id of the other end user", theirs.external_id)
    expect(page.get_by_text("Sessions with the same id · 1")).to_be_visible()
    assert fits(page)
    assert faults(page) == []
    page.get_by_role("button", name="The other one stays").press("Enter")
    expect(page.get_by_text("The id that goes: app-1")).to_be_visible()
    page.get_by_role("button", name="The other one stays").press("Enter")
    expect(page.get_by_text("The id that goes: whatsapp:+31-6-1234")).to_be_visible()
    type_and_enter(page, "Type the id of the end user to be merged", theirs.external_id)
    expect(page.get_by_text("End users merged.")).to_be_visible()
    assert EndUser.objects.get(pk=theirs.pk).merged_into_id == ours.pk
    assert fits(page)
    page.get_by_role("button", name="Undo the merge").press("Enter")
    expect(page.get_by_text("Undo merge")).to_be_visible()
    assert EndUser.objects.get(pk=theirs.pk).merged_into_id is None


def test_an_id_is_changed(open_page: Open, operator: Operator) -> None:
    person = factories.end_user(external_id="old-1")
    page = open_page(size=PHONE, who=operator)
    page.goto(page_of(person))
    page.locator(".hub-menu > summary").press("Enter")
    page.get_by_role("link", name="Change id…").press("Enter")
    expect(page.get_by_label("New id")).to_be_visible()
    assert fits(page)
    type_and_enter(page, "New id", "new-1")
    expect(page.get_by_text("is changed")).to_be_visible()
    assert set(EndUser.objects.values_list("external_id", flat=True)) == {"new-1", "old-1"}
