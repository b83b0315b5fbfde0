"""The queue's page without a browser: the list and its filters, one item, decisions and what comes next, who may."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.admin.review import queue as review_queue
from memories.models import EndUser, Fact, Operator, ProfileSection, ReviewItem
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of, text_of
from tests.admin.test_reviews import conflict, proposed, quarantined
from tests.admin.test_tenant_scope import limited
from tests.factories import NOW

QUEUE = reverse("admin:memories_reviewitem_queue")
FRAGMENT = {"X-Fragment": "1"}


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(factories.tenant(slug="acme-prod"), display_name="华桂珍")


@pytest.fixture
def items(person: EndUser) -> list[ReviewItem]:
    """A suggestion, a conflict and another suggestion, in this order."""
    made = [quarantined(person, "First"), conflict(person), quarantined(person, "Third")]
    for place, item in enumerate(made):
        item.created_at = NOW + timedelta(minutes=place)
        item.save()
    return made


def decide(client: Client, item: ReviewItem, verb: str, *, query: str = "", fragment: bool = True, **said: Any) -> Any:
    shown = ReviewItem.objects.select_related("fact", "known", "episode").get(pk=item.pk)
    pairs = (("fact", shown.fact), ("known", shown.known), ("episode", shown.episode))
    seen = {f"{name}_version": about.version for name, about in pairs if about}
    address = reverse("admin:memories_reviewitem_decide", args=[item.pk, verb]) + query
    return client.post(address, {"version": shown.version, **seen, **said}, headers=FRAGMENT if fragment else {})


def listed(page: Any) -> list[ReviewItem]:
    return list(page.context["window"].items)


def offered(page: Any) -> set[str]:
    return set(re.findall(r'action="\S*/queue/[0-9a-f-]+/(\w+)/\S*"', text_of(page))) - {"take", "note"}


class TestTheList:
    def test_shows_what_waits_oldest_first_and_the_first_of_it(self, admin: Client, items: list[ReviewItem]) -> None:
        ReviewItem.objects.filter(pk=items[2].pk).update(state="settled")
        page = admin.get(QUEUE)
        assert listed(page) == items[:2]
        assert page.context["item"] == items[0]
        for shown in ("2 waiting", "华桂珍", "Unconfirmed", "First", "90 %", "对青霉素过敏"):
            assert shown in text_of(page)

    def test_is_filtered(self, admin: Client, items: list[ReviewItem]) -> None:
        for query, places, told in (
            ("?kind=conflict", [1], "1 of 3 waiting"),
            ("?reason=assistant_trust", [0, 2], "2 of 3 waiting"),
            (f"?tenant={items[0].tenant_id}", [0, 1, 2], "3 of 3 waiting"),
            ("?kind=held", [], "0 of 3 waiting"),
            ("?kind=nonsense&reason=x&tenant=y&item=z&start=1", [0, 1, 2], "3 waiting"),
        ):
            page = admin.get(QUEUE + query)
            assert listed(page) == [items[place] for place in places], query
            assert told in text_of(page), query

    def test_filters_tell_how_many_would_be_left(self, admin: Client, items: list[ReviewItem]) -> None:
        quarantined(factories.end_user(factories.tenant(slug="other")), "Elsewhere")
        facets = {facet.name: facet.options for facet in admin.get(f"{QUEUE}?kind=quarantined").context["facets"]}
        told = {name: {one.label: one.count for one in options} for name, options in facets.items()}
        assert told["kind"] == {"Unconfirmed": 3, "Conflict": 1}
        assert told["tenant"] == {"acme-prod": 2, "other": 1}
        assert [one.label for one in facets["kind"] if one.chosen] == ["Unconfirmed"]
        # One reason is left: nothing to choose.
        assert "reason" not in told

    def test_goes_on_window_by_window(self, admin: Client, person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(review_queue, "PER_PAGE", 2)
        # All at one moment: ids decide.
        items = sorted((quarantined(person, f"Fact {n}") for n in range(5)), key=lambda item: item.pk)
        first = admin.get(QUEUE)
        second = admin.get(QUEUE + first.context["later"])
        last = admin.get(QUEUE + second.context["later"])
        assert [listed(page) for page in (first, second, last)] == [items[:2], items[2:4], items[4:]]
        assert (first.context["earlier"], last.context["later"]) == ("", "")
        assert listed(admin.get(QUEUE + last.context["earlier"])) == items[2:4]
        # A decided item still says where the list was.
        ReviewItem.objects.filter(pk=items[2].pk).update(state="approved")
        assert listed(admin.get(QUEUE + first.context["later"])) == items[3:]

    def test_an_item_beyond_the_window_begins_it(
        self, admin: Client, items: list[ReviewItem], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(review_queue, "PER_PAGE", 1)
        page = admin.get(f"{QUEUE}?item={items[2].pk}")
        assert (listed(page), page.context["item"]) == ([items[2]], items[2])
        assert page.context["previous"] == items[1]

    def test_teaches_when_nothing_waits(self, admin: Client, person: EndUser) -> None:
        assert "Nothing is pending" in text_of(admin.get(QUEUE))
        quarantined(person)
        page = text_of(admin.get(f"{QUEUE}?kind=held"))
        assert "Nothing of this kind is pending" in page
        assert "Show the one that waits" in page

    def test_is_where_review_leads(self, admin: Client, items: list[ReviewItem]) -> None:
        assert f'href="{QUEUE}"' in text_of(admin.get(reverse("admin:index")))
        assert f"{QUEUE}?item={items[1].pk}" in text_of(admin.get(page_of(items[1])))


class TestTheItem:
    def test_shows_the_difference_the_evidence_and_what_is_known(self, admin: Client, items: list[ReviewItem]) -> None:
        factories.fact(items[1].end_user, "Is vegetarian", category="constraint")
        page = text_of(admin.get(f"{QUEUE}?item={items[1].pk}"))
        for shown in (
            "<del>花生</del><ins>青霉素</ins>",
            "<mark>对青霉素过敏</mark>",
            "The turn before",
            "confirmed by operator",
            "confidence 80 %",
            "Is vegetarian",
            'aria-keyshortcuts="A"',
        ):
            assert shown in page

    @pytest.mark.parametrize(
        ("over", "verbs"),
        [
            ({}, {"approve", "edit", "keep_both", "merge", "reject"}),
            ({"known": None}, {"approve", "edit", "reject"}),
            ({"fact": None, "reason": "removal"}, {"approve", "reject"}),
            ({"state": "approved"}, set()),
        ],
    )
    def test_offers_what_fits(
        self, admin: Client, items: list[ReviewItem], over: dict[str, Any], verbs: set[str]
    ) -> None:
        ReviewItem.objects.filter(pk=items[1].pk).update(**over)
        assert offered(admin.get(f"{QUEUE}?item={items[1].pk}")) == verbs

    def test_a_section_can_be_edited_too(self, admin: Client, person: EndUser) -> None:
        item = proposed(person, "Runs a brewery.")
        assert offered(admin.get(QUEUE)) == {"approve", "edit", "reject"}
        assert decide(admin, item, "edit", section="Runs two.").status_code == 200
        assert ProfileSection.objects.get(end_user=person).summary == "Runs two."


class TestDeciding:
    def test_the_next_item_is_there_at_once(self, admin: Client, items: list[ReviewItem]) -> None:
        page = decide(admin, items[0], "approve")
        assert (page.status_code, page.headers["X-Fragment"], page.context["item"]) == (200, "queue", items[1])
        assert "<html" not in text_of(page)
        assert (page.context["done"], page.context["waiting"]) == ("Approved.", 2)
        # At the end it begins anew with what was passed over.
        assert decide(admin, items[2], "reject", reason="No").context["item"] == items[1]
        assert decide(admin, items[1], "keep_both").context["chosen"] is None

    def test_filters_stay(self, admin: Client, items: list[ReviewItem]) -> None:
        page = decide(admin, items[0], "approve", query="?kind=quarantined")
        assert (page.context["item"], listed(page)) == (items[2], [items[2]])

    def test_without_a_script_it_leads_to_the_next_page(self, admin: Client, items: list[ReviewItem]) -> None:
        answer = decide(admin, items[0], "approve", query="?kind=quarantined", fragment=False)
        assert (answer.status_code, answer["Location"]) == (302, f"{QUEUE}?kind=quarantined&item={items[2].pk}")
        page = admin.get(answer["Location"])
        assert [str(message) for message in page.context["messages"]] == ["Approved."]

    def test_the_last_decision_and_the_one_before_are_taken_back(self, admin: Client, items: list[ReviewItem]) -> None:
        for item in items[:2]:
            decide(admin, item, "approve")
        for item in reversed(items[:2]):
            latest = admin.get(QUEUE).context["latest"]
            assert latest.item == item
            page = decide(admin, item, "undo")
            assert page.context["item"] == item
            assert page.context["item"].state == "open"
        assert admin.get(QUEUE).context["latest"] is None

    def test_a_colleagues_and_an_old_decision_are_not_the_keys_to_take_back(
        self, admin: Client, items: list[ReviewItem], administrator: Operator
    ) -> None:
        decide(signed_in(factories.operator()), items[0], "approve")
        assert admin.get(QUEUE).context["latest"] is None
        decide(admin, items[1], "approve")
        assert admin.get(QUEUE).context["latest"].item == items[1]
        ReviewItem.objects.update(decided_at=timezone.now() - timedelta(days=2))
        assert admin.get(QUEUE).context["latest"] is None

    def test_an_edit_says_what_the_operator_wrote(self, admin: Client, items: list[ReviewItem]) -> None:
        assert decide(admin, items[0], "edit", content="").status_code == 400
        text = "First of all. My password is hunter2hunter2"
        page = decide(admin, items[0], "edit", content=text, category="goal")
        assert "A secret was removed" in page.context["done"]
        fact = Fact.objects.get(review_items=items[0])
        assert (fact.category, fact.binding, fact.status) == ("goal", True, "active")
        assert fact.content.startswith("First of all.")

    def test_looking_at_a_verb_decides_nothing(self, admin: Client, items: list[ReviewItem]) -> None:
        address = reverse("admin:memories_reviewitem_decide", args=[items[1].pk, "approve"])
        assert admin.get(address)["Location"] == f"{QUEUE}?item={items[1].pk}"
        assert admin.post(f"{address[:-8]}nonsense/")["Location"].startswith(QUEUE)
        assert admin.post(QUEUE).status_code == 405
        assert not ReviewItem.objects.exclude(state="open").exists()


class TestWhoMay:
    def test_look_alone(self, staff_who_may: Callable[..., Client], items: list[ReviewItem]) -> None:
        looker = staff_who_may("view_reviewitem")
        page = looker.get(QUEUE)
        assert (page.status_code, offered(page)) == (200, set())
        assert "review-tick" not in text_of(page)

    def test_an_operator_sees_and_counts_their_tenants_alone(self, person: EndUser, items: list[ReviewItem]) -> None:
        elsewhere = quarantined(factories.end_user(factories.tenant(slug="other")), "Elsewhere")
        client = signed_in(limited(elsewhere.tenant))
        page = client.get(f"{QUEUE}?item={items[0].pk}&start={items[0].pk}")
        assert (listed(page), page.context["item"], page.context["waiting"]) == ([elsewhere], elsewhere, 1)
        assert "acme-prod" not in text_of(page)
        assert decide(client, items[0], "approve").status_code == 404
        assert decide(client, elsewhere, "approve").status_code == 200
        assert client.get(page_of(elsewhere)).context["waiting"] == 0


def test_the_list_of_all_still_is_there(admin: Client, items: list[ReviewItem]) -> None:
    assert f"{list_of(ReviewItem)}?state=all" in text_of(admin.get(QUEUE))
