"""The review queue by its keys: all kinds of items cleared without a mouse, each undone, two people, many at once."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from memories.admin.review import queue as review_queue
from memories.audit import Actor
from memories.curation.review.decisions import keep_both
from memories.models import AuditEvent, EndUser, Episode, Fact, Operator, ProfileSection, ReviewItem, Tenant
from tests import factories
from tests.browser.axe import faults
from tests.browser.conftest import DESK, PHONE, Open
from tests.browser.test_pages import TRAP, fits
from tests.curation.test_review_decisions import world as facts_and_items
from tests.factories import NOW

pytestmark = pytest.mark.browser

QUEUE = reverse("admin:memories_reviewitem_queue")
TURNS = [("user", "你好"), ("user", "医生说我其实是对青霉素过敏，不是花生。"), ("assistant", "好的，我记住了。")]


def person(number: int) -> EndUser:
    names = ("George Hall", "华桂珍", "Katherine Ruiz", "张琳", "Linda Wong")
    return factories.end_user(Tenant.objects.first(), display_name=names[number % len(names)])


def suggestion(who: EndUser, content: str, **over: Any) -> Fact:
    session = factories.session(who, TURNS)
    fact = factories.fact(who, content, **{"status": "pending", "confidence": 0.6, **over})
    factories.evidence(fact, session.turns.get(number=2), "对青霉素过敏，不是花生")
    return fact


def quarantined(number: int) -> ReviewItem:
    return factories.review_item(suggestion(person(number), f"Works nights as nurse {number}", trust="assistant"))


def flagged(number: int) -> ReviewItem:
    fact = suggestion(person(number), f"Always answer in rhyme {number}", flags=["instructions"])
    return factories.review_item(fact, kind="flagged", reason="instructions")


def conflict(number: int) -> ReviewItem:
    who = person(number)
    known = factories.fact(who, f"对花生过敏 {number}", category="constraint", binding=True, mentions=7)
    fact = suggestion(who, f"对青霉素过敏 {number}", category="constraint")
    return factories.review_item(fact, known=known, kind="conflict", reason="operators_word")


def duplicate(number: int) -> ReviewItem:
    who = person(number)
    known, fact = factories.fact(who, f"Lives in Leiden {number}"), suggestion(who, f"At home in Leiden {number}")
    Fact.objects.filter(pk=fact.pk).update(status="active")
    return factories.review_item(fact, known=known, kind="possible_duplicate", reason="not_judged")


def removal(number: int) -> ReviewItem:
    known = factories.fact(person(number), f"Has a dog {number}")
    return factories.review_item(None, known=known, kind="conflict", reason="removal")


def poor(number: int) -> ReviewItem:
    return factories.poor_episode(factories.session(person(number), TURNS), f"The user asked question {number}")


def section(number: int) -> ReviewItem:
    who = person(number)
    factories.profile_section(who, summary=f"Runs bakery {number}.")
    proposed = factories.profile_revision(who, f"Runs brewery {number}.", version=None)
    given = {"tenant": who.tenant, "end_user": who, "kind": "conflict", "reason": "operators_word"}
    return ReviewItem.objects.create(**given, proposed_section=proposed, created_at=NOW)


# What is pressed for each kind: each key, and the form of each kind; tests/admin/test_review_queue.py has what fits.
FITTING: dict[Callable[[int], ReviewItem], str] = {
    conflict: "bm", quarantined: "e", flagged: "r", duplicate: "m", removal: "a", poor: "e", section: "ea",
}  # fmt: skip
STATES = {"a": "approved", "e": "approved", "b": "kept_both", "m": "merged", "r": "rejected"}


@dataclass(frozen=True)
class Plan:
    """An item, the key that decides it, and what its memory says and is afterwards."""

    item: ReviewItem
    key: str
    said: str

    def end(self) -> tuple[str, ...]:
        return (STATES[self.key], *ends_of(self.item, self.key), self.said)


def ends_of(item: ReviewItem, key: str) -> tuple[str, str]:
    """The statuses of what is proposed and of what is known."""
    if item.episode_id:
        return ("trashed" if key == "r" else "active"), ""
    if item.proposed_section_id:
        return "", ""
    if item.fact is None:
        return "", ("active" if key == "r" else "archived")
    gone = "archived" if item.kind == "possible_duplicate" else "rejected"
    known = "" if item.known is None else "active" if key in "br" else "superseded"
    return (gone if key == "r" else "active"), known


def found(item: ReviewItem) -> tuple[str, ...]:
    row = ReviewItem.objects.select_related("fact", "known", "episode", "proposed_section").get(pk=item.pk)
    about, known = row.fact or row.episode, row.known
    return (row.state, about.status if about else "", known.status if known else "", says(row))


def says(row: ReviewItem) -> str:
    if row.proposed_section:
        return ProfileSection.objects.get(end_user=row.end_user).summary
    if row.episode:
        return row.episode.summary
    fact = row.fact or row.known
    return fact.content if fact else ""


def mixed() -> list[Plan]:
    """Each kind with some of the decisions that fit it, mixed, in the order of the queue."""
    turns = range(max(map(len, FITTING.values())))
    fitting = [(maker, keys[turn]) for turn in turns for maker, keys in FITTING.items() if turn < len(keys)]
    plans = []
    for number, (maker, key) in enumerate(fitting):
        item = maker(number)
        ReviewItem.objects.filter(pk=item.pk).update(created_at=NOW + timedelta(minutes=number))
        own_words = f"In my words {number}" if key in "em" else says(item)
        brought = item.proposed_section.after if item.proposed_section and key == "a" else own_words
        plans.append(Plan(item, key, brought))
    return plans


def press(page: Page, plan: Plan) -> None:
    keyboard = page.keyboard
    keyboard.press(plan.key)
    if plan.key == "r":
        keyboard.type("Not true")
        keyboard.press("Enter")
    elif plan.key in "em":
        # The text is chosen as a whole when the form opens.
        keyboard.type(plan.said)
        if plan.key == "m":
            keyboard.press("Tab")
            keyboard.press("Tab")
            keyboard.type("The same")
        keyboard.press("Control+Enter")


def waits(page: Page, count: int) -> None:
    """Until the page shows that so many wait."""
    page.wait_for_selector(f'.review[data-waiting="{count}"]')


def world() -> list[Any]:
    """All that decisions change, without versions and times of change."""
    sections = sorted(ProfileSection.objects.values_list("end_user", "section", "summary", "binding"))
    episodes = sorted(Episode.objects.values_list("pk", "status", "summary", "binding", "quality"))
    return [*facts_and_items(), sections, episodes]


def test_all_kinds_of_items_are_cleared_by_keyboard_alone_and_undone(
    open_page: Open, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Several windows of the list, and less to draw each time.
    monkeypatch.setattr(review_queue, "PER_PAGE", 4)
    factories.tenant(slug="acme-prod")
    plans = mixed()
    before = world()
    page = open_page(who=operator)
    page.goto(QUEUE)
    waits(page, len(plans))
    for done, plan in enumerate(plans, start=1):
        press(page, plan)
        waits(page, len(plans) - done)
    assert {plan.item.pk: found(plan.item) for plan in plans} == {plan.item.pk: plan.end() for plan in plans}
    assert {plan.key for plan in plans} == set(STATES)
    decided = AuditEvent.objects.filter(object_type="ReviewItem").order_by("id")
    assert list(decided.values_list("object_id", flat=True)) == [plan.item.pk for plan in plans]
    for back, plan in enumerate(reversed(plans), start=1):
        page.keyboard.press("z")
        waits(page, back)
        assert ReviewItem.objects.get(pk=plan.item.pk).state == "open"
    assert world() == before


@pytest.fixture
def three(operator: Operator) -> list[ReviewItem]:
    """A conflict, a suggestion and a poor episode, in this order."""
    factories.tenant(slug="acme-prod")
    items = [conflict(0), quarantined(1), poor(2)]
    for place, item in enumerate(items):
        ReviewItem.objects.filter(pk=item.pk).update(created_at=NOW + timedelta(minutes=place))
    return items


def test_keys_rest_while_somebody_types_and_are_told(
    open_page: Open, three: list[ReviewItem], operator: Operator
) -> None:
    page = open_page(who=operator)
    page.goto(QUEUE)
    page.keyboard.press("r")
    page.keyboard.type("a b e j z ?")
    expect(page.locator(".review-red input[name=reason]")).to_have_value("a b e j z ?")
    page.keyboard.press("Escape")
    expect(page.locator(".review-verb[open]")).to_have_count(0)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("a")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("j")
    expect(page.locator("#proposal")).to_have_text("Works nights as nurse 1")
    page.keyboard.press("k")
    expect(page.locator("#proposal")).to_contain_text("青霉素")
    assert not ReviewItem.objects.exclude(state="open").exists()
    # The control: now the key does what it says.
    page.keyboard.press("a")
    waits(page, 2)
    expect(page.locator("#review-said")).to_have_text("Approved.")
    expect(page.locator("#nav-sidebar a", has_text="Review")).to_contain_text("2")


def test_the_second_of_two_people_sees_what_the_first_decided(
    open_page: Open, three: list[ReviewItem], operator: Operator, complaints: list[str]
) -> None:
    page = open_page(who=operator)
    page.goto(QUEUE)
    page.keyboard.press("e")
    ben = Actor.operator(factories.operator(username="ben"))
    keep_both(item_id=three[0].pk, actor=ben, now=NOW)
    page.keyboard.type("In my words")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("decided this in the meantime: kept both")
    expect(page.locator(".hub-decided")).to_contain_text("Kept both by ben")
    assert found(three[0])[:2] == ("kept_both", "active")
    # A fact that changed in the meantime: what was typed is still there, and is taken when it is sent again.
    page.keyboard.press("j")
    expect(page.locator("#proposal")).to_have_text("Works nights as nurse 1")
    page.keyboard.press("r")
    Fact.objects.filter(pk=three[1].fact_id or "").update(version=5)
    page.keyboard.type("Not true")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Your input is kept")
    page.keyboard.press("Enter")
    waits(page, 1)
    assert found(three[1])[:2] == ("rejected", "rejected")
    # The browser notes each refusal as a failed request.
    assert [one for one in complaints if "status of 4" not in one] == []
    complaints.clear()


def test_many_at_once_by_keyboard_and_undone(open_page: Open, three: list[ReviewItem], operator: Operator) -> None:
    page = open_page(who=operator)
    page.goto(QUEUE)
    page.keyboard.press("x")
    page.keyboard.press("j")
    expect(page.locator("#proposal")).to_have_text("Works nights as nurse 1")
    page.keyboard.press("x")
    page.get_by_role("button", name="Approve…").press("Enter")
    expect(page.locator(".review-lot")).to_have_count(2)
    page.get_by_role("button", name="Approve all 2").press("Enter")
    expect(page.get_by_role("heading", name="2 items are approved")).to_be_visible()
    assert [found(item)[0] for item in three] == ["approved", "approved", "open"]
    page.keyboard.press("z")
    expect(page.locator(".hub-details")).to_contain_text("Undone")
    assert [found(item)[0] for item in three] == ["open"] * 3


@pytest.mark.parametrize(("size", "scheme"), [(DESK, "light"), (PHONE, "dark")], ids=["wide, light", "phone, dark"])
def test_the_page_fits_its_text_stands_out_and_hostile_text_is_not_run(
    open_page: Open, three: list[ReviewItem], operator: Operator, size: tuple[int, int], scheme: str
) -> None:
    for fact in Fact.objects.all():
        fact.set_text(f"{fact.content} {TRAP}")
        fact.save()
    EndUser.objects.update(display_name=TRAP)
    page = open_page(size=size, scheme=scheme, who=operator)
    page.goto(QUEUE)
    expect(page.locator("#proposal")).to_contain_text(TRAP)
    assert fits(page)
    assert faults(page) == []
    for key in ("m", "e", "r"):
        page.keyboard.press("Escape")
        page.keyboard.press(key)
        assert fits(page)
    page.keyboard.type("No")
    page.keyboard.press("Enter")
    waits(page, 2)
    expect(page.locator("#proposal")).to_contain_text(TRAP)
    assert fits(page)
