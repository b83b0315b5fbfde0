"""The privacy officer's way in a real browser: the board, two people for an erasure, an export, the receipt."""

import io
import zipfile

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from memories.models import EndUser, ExportState, Operator, PrivacyCase, PrivacyExport
from memories.privacy import running
from tests import factories
from tests.admin.cases import case_of
from tests.admin.pages import page_of
from tests.browser.axe import faults
from tests.browser.conftest import DESK, PHONE, Open
from tests.browser.test_pages import fits

pytestmark = pytest.mark.browser


@pytest.fixture
def second(transactional_db: None) -> Operator:
    return factories.operator(username="ben", password="correct horse battery")


def a_person() -> EndUser:
    person = factories.end_user(external_id="user-8812", display_name="Anna Bergström")
    session = factories.session(person, [("user", "I am allergic to nuts"), ("assistant", "Noted")])
    fact = factories.fact(person, "Is allergic to nuts")
    factories.evidence(fact, session.turns.get(number=1), "allergic to nuts")
    factories.episode(session, "They spoke of nuts")
    return person


def wrong(page: Page) -> list[str]:
    # Until they are there, icons are words in a faint colour.
    page.wait_for_load_state()
    page.evaluate("document.fonts.ready.then(() => true)")
    return [*faults(page), *([] if fits(page) else ["scrolls sideways"])]


@pytest.mark.parametrize(("size", "scheme"), [(DESK, "light"), (PHONE, "dark")], ids=["wide, light", "phone, dark"])
def test_the_board_tells_what_is_urgent(
    open_page: Open, operator: Operator, size: tuple[int, int], scheme: str
) -> None:
    person = a_person()
    for days in (12, 5, 1, -3):
        case_of(person, days=days)
    case_of(person, "failed")
    case_of(person, "completed")
    page = open_page(size=size, scheme=scheme, who=operator)
    page.goto(reverse("admin:memories_privacycase_board"))
    expect(page.get_by_text("overdue by 3 days")).to_be_visible()
    # What holds nothing takes no room on a phone.
    expect(page.get_by_role("heading", name="Counted")).to_be_visible(visible=size == DESK)
    folded = page.get_by_role("heading", name="Closed in the last 30 days")
    folded.click()
    expect(page.locator(".case-closed .case-card")).to_be_visible()
    assert wrong(page) == []


def test_an_erasure_takes_two_people_and_leaves_a_receipt(
    open_page: Open, operator: Operator, second: Operator, complaints: list[str]
) -> None:
    person = a_person()
    first = open_page(who=operator)
    first.goto(page_of(person))
    first.locator(".hub-menu > summary").click()
    first.get_by_role("link", name="Erase…").click()
    first.get_by_label("Reference").fill("ZD-88213")
    first.get_by_role("button", name="Open the case").click()
    first.get_by_label("Called or wrote back to a known address").check()
    first.get_by_role("button", name="Record the check").click()
    first.get_by_label("Refuse: requests for this id").check()
    first.get_by_role("button", name="Count the data").click()
    expect(first.get_by_text("You opened this case.")).to_be_visible()
    expect(first.get_by_role("button", name="Approve and erase for good")).to_have_count(0)
    # The keyboard goes on at the step that is next.
    assert first.evaluate("document.activeElement.id") == "next"
    page = open_page(size=PHONE, who=second)
    page.goto(reverse("admin:memories_privacycase_board"))
    page.get_by_role("link", name="Erasure", exact=True).last.click()
    assert wrong(page) == []
    _approve(page, "user-8813")
    expect(page.get_by_text("The id does not match")).to_be_visible()
    complaints.clear()
    expect(page.get_by_label("Type the external id")).to_be_focused()
    _approve(page, "user-8812")
    expect(page.get_by_text("Waits for a worker to take it.")).to_be_visible()
    case = PrivacyCase.objects.get()
    running.carry_out(case_id=case.pk, now=timezone.now())
    # Nobody loads the page again: it does so by itself.
    expect(page.get_by_text("Completed", exact=True)).to_be_visible()
    page.get_by_role("link", name="Read and print").click()
    expect(page.get_by_role("heading", name="What is not covered, and until when")).to_be_visible()
    assert wrong(page) == []
    assert not any(word in page.content() for word in ("user-8812", "Bergström"))
    assert not EndUser.objects.exists()


def test_an_export_is_made_and_taken_once(open_page: Open, operator: Operator) -> None:
    case = case_of(a_person(), "verified", type="portability")
    page = open_page(size=PHONE, scheme="dark", who=operator)
    page.goto(page_of(case))
    page.get_by_role("button", name="Create file").click()
    expect(page.get_by_text("The file is being created.")).to_be_visible()
    running.carry_out(case_id=case.pk, now=timezone.now())
    expect(page.get_by_text("Ready", exact=True)).to_be_visible()
    page.get_by_role("button", name="Create one-time link").click()
    link = page.get_by_label("Link for the requester").input_value()
    assert wrong(page) == []
    # Whoever asked has no account here.
    theirs = open_page(size=PHONE)
    theirs.goto(link)
    with theirs.expect_download() as taken:
        theirs.get_by_role("button", name="Download").click()
    with zipfile.ZipFile(io.BytesIO(taken.value.path().read_bytes())) as file:
        assert "data.json" in file.namelist()
    page.get_by_role("link", name="I have copied it").click()
    expect(page.get_by_text("Downloaded", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Create one-time link")).to_have_count(0)
    assert PrivacyExport.objects.get().state == ExportState.TAKEN


def _approve(page: Page, typed: str) -> None:
    page.get_by_label("Type the external id").fill(typed)
    page.get_by_role("button", name="Approve and erase for good").click()
