"""The review queue by its keys: fifty mixed items cleared without a mouse, each undone, two people, many at once."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle, islice
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page

from memories.models import AuditEvent, EndUser, Episode, Fact, Operator, ProfileSection, ReviewItem
from tests import factories
from tests.browser.conftest import Open
from tests.curation.test_review_decisions import world as facts_and_items
from tests.factories import NOW

pytestmark = pytest.mark.browser

QUEUE = reverse("admin:memories_reviewitem_queue")
TURNS = [("user", "你好"), ("user", "医生说我其实是对青霉素过敏，不是花生。"), ("assistant", "好的，我记住了。")]
TEXTS = (
    ".hub-content", ".hub-content ins", ".hub-content del", ".hub-why", ".review-verbs .hub-primary",
    ".review-red > summary", ".review-meta", ".review-here a[data-row] > span", "a[data-row] > strong", "mark",
    ".review-hint", ".review-effects > summary", ".review-all a",
)  # fmt: skip


def person(number: int) -> EndUser:
    names = ("George Hall", "华桂珍", "Katherine Ruiz", "张琳", "Linda Wong")
    return factories.end_user(factories.Tenant.objects.first(), display_name=names[number % len(names)])


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


MAKERS: tuple[Callable[[int], ReviewItem], ...] = (
    conflict, quarantined, flagged, duplicate, removal, poor, section,
)  # fmt: skip
# What is pressed for each kind, in turn.
FITTING: dict[Callable[[int], ReviewItem], str] = {
    conflict: "aberm", quarantined: "arera", flagged: "rarer", duplicate: "bmara", removal: "ar", poor: "area",
    section: "aer",
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


def fifty() -> list[Plan]:
    """Mixed kinds in the order of the queue, each with a decision that fits it."""
    keys = {maker: cycle(FITTING[maker]) for maker in MAKERS}
    plans = []
    for number, maker in enumerate(islice(cycle(MAKERS), 50)):
        item, key = maker(number), next(keys[maker])
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


def test_fifty_mixed_items_are_cleared_by_keyboard_alone_and_undone(open_page: Open, operator: Operator) -> None:
    factories.tenant(slug="acme-prod")
    plans = fifty()
    before = world()
    page = open_page(who=operator)
    page.goto(QUEUE)
    waits(page, 50)
    for done, plan in enumerate(plans, start=1):
        press(page, plan)
        waits(page, 50 - done)
    assert {plan.item.pk: found(plan.item) for plan in plans} == {plan.item.pk: plan.end() for plan in plans}
    assert {plan.key for plan in plans} == set(STATES)
    decided = AuditEvent.objects.filter(object_type="ReviewItem").order_by("id")
    assert list(decided.values_list("object_id", flat=True)) == [plan.item.pk for plan in plans]
    for back, plan in enumerate(reversed(plans), start=1):
        page.keyboard.press("z")
        waits(page, back)
        assert ReviewItem.objects.get(pk=plan.item.pk).state == "open"
    assert world() == before
