"""Review by hand: approve what the assistant said, undo it, reject a conflict with a reason; how the pages look."""

import pytest
from playwright.sync_api import Page, expect

from memories.models import AuditEvent, EndUser, Operator, ReviewItem
from tests import factories
from tests.admin.pages import list_of, page_of
from tests.browser.axe import faults
from tests.browser.conftest import PHONE, Open
from tests.browser.test_pages import fits

pytestmark = pytest.mark.browser

TURNS = [
    ("user", "你好"),
    ("user", "医生说我其实是对青霉素过敏，不是花生。"),
    ("assistant", "好的，我记住了。"),
    ("assistant", "您对青霉素过敏，我会留意。"),
]


@pytest.fixture
def person(operator: Operator) -> EndUser:
    return factories.end_user(external_id="usr_1000", display_name="华桂珍", language="zh-CN")


@pytest.fixture
def conflict(person: EndUser) -> ReviewItem:
    session = factories.session(person, TURNS)
    run = factories.run(session)
    known = factories.fact(person, "对花生过敏", category="constraint", binding=True, trust="operator")
    over = {"category": "constraint", "status": "pending", "confidence": 0.8, "extraction": run}
    newcomer = factories.fact(person, "对青霉素过敏", **over)
    factories.evidence(newcomer, session.turns.get(number=2), "对青霉素过敏，不是花生")
    return factories.review_item(newcomer, known=known, kind="conflict", reason="operators_word", extraction=run)


@pytest.fixture
def quarantined(conflict: ReviewItem) -> ReviewItem:
    """Asked after the conflict."""
    person = factories.end_user(conflict.tenant, display_name="Katherine Ruiz")
    session = factories.session(person, [("user", "Hi"), ("assistant", "As a nurse you work nights.")])
    fact = factories.fact(person, "Works nights as a nurse", status="pending", trust="assistant")
    factories.evidence(fact, session.turns.get(number=2), "you work nights")
    return factories.review_item(fact)


def states(item: ReviewItem) -> tuple[str, str]:
    """Of the item, and of what it proposes."""
    found = ReviewItem.objects.select_related("fact").get(pk=item.pk)
    assert found.fact
    return found.state, found.fact.status


def reject(page: Page, reason: str) -> None:
    page.locator("summary", has_text="Keep known").click()
    page.locator(".hub-danger").get_by_label("Reason").fill(reason)
    page.locator(".hub-danger [type=submit]").click()


def test_an_operator_rejects_approves_and_undoes_on_a_phone(
    open_page: Open, conflict: ReviewItem, quarantined: ReviewItem, operator: Operator
) -> None:
    page = open_page(size=PHONE, who=operator)
    page.goto(list_of(ReviewItem))
    page.get_by_role("link", name="对青霉素过敏").first.click()
    expect(page.locator("#proposal del")).to_have_text("花生")
    expect(page.locator("#proposal ins")).to_have_text("青霉素")
    expect(page.locator("mark").first).to_have_text("对青霉素过敏，不是花生")
    reject(page, "她的医生来信说不是")
    expect(page.locator(".hub-decided")).to_contain_text("Rejected by ana")
    expect(page.locator(".hub-decided")).to_contain_text("她的医生来信说不是")
    page.get_by_role("link", name="Next pending item").click()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".hub-decided")).to_contain_text("Approved by ana")
    assert states(quarantined) == ("approved", "active")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone; back in the queue")).to_be_visible()
    assert (states(quarantined), states(conflict)) == (("open", "pending"), ("rejected", "rejected"))
    acts = AuditEvent.objects.filter(object_type="ReviewItem").order_by("id").values_list("verb", flat=True)
    assert list(acts) == ["reject", "approve", "undo"]


def test_the_keyboard_alone_is_enough(open_page: Open, conflict: ReviewItem, operator: Operator) -> None:
    page = open_page(who=operator)
    page.goto(page_of(conflict))
    page.get_by_role("button", name="Use new").focus()
    for _ in range(4):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent.trim()").endswith("Keep known")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("No letter of a doctor")
    page.keyboard.press("Enter")
    expect(page.locator(".hub-decided")).to_contain_text("Rejected by ana")


def test_on_a_phone_in_the_dark_pages_fit_and_their_text_stands_out(
    open_page: Open, conflict: ReviewItem, quarantined: ReviewItem, operator: Operator
) -> None:
    page = open_page(size=PHONE, scheme="dark", who=operator)
    page.goto(list_of(ReviewItem))
    assert fits(page)
    page.goto(page_of(conflict))
    for name in ("Keep known", "Merge…"):
        page.locator("summary", has_text=name).click()
        assert fits(page)
    assert faults(page) == []
