"""Many items at once: what is chosen, the preview, the typed confirmation, what is told afterwards, and the undo."""

import re
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from django.urls import reverse

from memories.admin.review import bulk as review_bulk
from memories.admin.site import bulk
from memories.audit import Actor
from memories.curation.facts.forgetting import forget_fact
from memories.curation.review.decisions import reject_item
from memories.models import Batch, EndUser, ReviewItem
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import PAGE_BUDGET, queries_of, text_of
from tests.admin.test_reviews import conflict, quarantined
from tests.admin.test_tenant_scope import limited
from tests.factories import NOW

QUEUE = reverse("admin:memories_reviewitem_queue")
BULK = reverse("admin:memories_reviewitem_bulk")


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(factories.tenant(slug="acme-prod"))


@pytest.fixture
def items(person: EndUser) -> list[ReviewItem]:
    return [quarantined(person, "First"), conflict(person), quarantined(person, "Third")]


def choose(client: Client, items: Sequence[ReviewItem], verb: str = "approve", query: str = "", **more: Any) -> Any:
    return client.post(BULK + query, {"verb": verb, "item": [str(item.pk) for item in items], **more})


def confirm(client: Client, preview: Any, **said: Any) -> Any:
    """What the preview's form sends."""
    form = preview.context["form"]
    fields = {name: form[name].value() for name in ("batch", "verb")}
    return client.post(
        BULK, {**fields, "expected": form.fields["expected"].prepare_value(form["expected"].value()), **said}
    )


def states(items: Sequence[ReviewItem]) -> list[str]:
    found = dict(ReviewItem.objects.values_list("pk", "state"))
    return [found[item.pk] for item in items]


def test_a_preview_tells_what_would_change_and_changes_nothing(admin: Client, items: list[ReviewItem]) -> None:
    preview = choose(admin, items)
    told = {effect: [item for item, _ in group] for effect, group in preview.context["groups"]}
    assert told == {
        "It is served from now on.": [items[0], items[2]],
        "It is served from now on. It supersedes the existing fact, although an operator confirmed that one.": [
            items[1]
        ],
    }
    assert states(items) == ["open"] * 3
    assert not Batch.objects.exists()


@pytest.mark.parametrize(("verb", "state"), [("approve", "approved"), ("reject", "rejected")])
def test_confirmed_it_is_done_told_and_undone_in_one_go(
    admin: Client, items: list[ReviewItem], verb: str, state: str
) -> None:
    answer = confirm(admin, choose(admin, items, verb), reason="By phone")
    assert (answer.status_code, states(items)) == (302, [state] * 3)
    assert {item.note for item in ReviewItem.objects.all()} == {"By phone"}
    page = admin.get(answer["Location"])
    assert f"3 items are {state}" in text_of(page)
    # The key for the last decision leads to the whole batch.
    assert answer["Location"] in text_of(admin.get(QUEUE))
    assert admin.post(answer["Location"]).status_code == 302
    assert states(items) == ["open"] * 3
    assert "Try the rest again" not in text_of(admin.get(answer["Location"]))
    assert queries_of(admin, answer["Location"]) <= PAGE_BUDGET


def test_a_rejection_needs_no_reason_and_no_longer_one_than_fits(admin: Client, items: list[ReviewItem]) -> None:
    preview = choose(admin, items, "reject")
    answer = confirm(admin, preview, reason="x" * 2001)
    assert (answer.status_code, states(items)) == (400, ["open"] * 3)
    # What was sent is still all there.
    assert (confirm(admin, answer, reason="").status_code, states(items)) == (302, ["rejected"] * 3)


def test_after_a_mistake_the_preview_shows_and_sends_the_versions_of_now(
    admin: Client, items: list[ReviewItem]
) -> None:
    preview = choose(admin, items, "reject")
    assert ReviewItem.objects.filter(pk=items[0].pk).update(version=F("version") + 1)
    again = confirm(admin, preview, reason="x" * 2001)
    assert again.status_code == 400
    confirm(admin, preview, reason="No")
    assert states(items) == ["open", "rejected", "rejected"]
    # The batch is the same one: it goes on with what the first confirmation left.
    confirm(admin, again, reason="No")
    assert states(items) == ["rejected"] * 3


def test_more_than_some_are_confirmed_by_typing_how_many(
    admin: Client, items: list[ReviewItem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "TYPED_ABOVE", 3)
    assert "typed" not in choose(admin, items).context["form"].fields
    monkeypatch.setattr(bulk, "TYPED_ABOVE", 2)
    preview = choose(admin, items)
    assert [confirm(admin, preview, typed=typed).status_code for typed in ("", "2", "x")] == [400] * 3
    assert states(items) == ["open"] * 3
    assert confirm(admin, preview, typed="3").status_code == 302
    assert states(items) == ["approved"] * 3


@pytest.mark.parametrize(("query", "places"), [("", [0, 1, 2]), ("?kind=quarantined", [0, 2])])
def test_all_that_fits_the_filters(admin: Client, items: list[ReviewItem], query: str, places: list[int]) -> None:
    preview = choose(admin, items[1:2], query=query, all="1")
    confirm(admin, preview)
    assert states(items) == ["approved" if place in places else "open" for place in range(3)]


def test_there_is_a_cap_and_the_oldest_come_first(
    admin: Client, items: list[ReviewItem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review_bulk, "MOST", 2)
    preview = choose(admin, [], all="1")
    assert preview.context["count"] == 2
    assert "At most 2 at a time" in text_of(preview)
    confirm(admin, preview)
    assert states(items) == ["approved", "approved", "open"]


def test_what_is_decided_meanwhile_is_left_out_and_told(admin: Client, items: list[ReviewItem]) -> None:
    preview = choose(admin, items)
    ben = Actor.operator(factories.operator())
    reject_item(item_id=items[0].pk, actor=ben, now=NOW, reason="No")
    answer = confirm(admin, preview)
    assert states(items) == ["rejected", "approved", "approved"]
    page = text_of(admin.get(answer["Location"]))
    assert re.search(r"Skipped: decided or changed in the meantime</dt><dd>1<", page)
    # What somebody goes on with stays when the rest is undone.
    assert items[1].fact_id
    forget_fact(fact_id=items[1].fact_id, tenant=None, actor=ben, now=NOW)
    admin.post(answer["Location"])
    assert states(items) == ["rejected", "approved", "open"]
    page = text_of(admin.get(answer["Location"]))
    assert re.search(r"Kept: changed later</dt><dd>1<", page)
    assert "Try the rest again" in page


def test_sent_twice_it_is_done_once(admin: Client, items: list[ReviewItem]) -> None:
    preview = choose(admin, items)
    places = {confirm(admin, preview)["Location"] for _ in range(2)}
    assert len(places) == 1
    assert Batch.objects.get().counts == {"asked": 3, "done": 3, "refused": 0}


def test_nothing_chosen_leads_back(admin: Client, items: list[ReviewItem]) -> None:
    for answer in (choose(admin, []), choose(admin, [], verb="erase"), admin.get(BULK)):
        assert (answer.status_code, answer["Location"]) == (302, QUEUE)
    settled = items[0]
    ReviewItem.objects.filter(pk=settled.pk).update(state="settled")
    assert choose(admin, [settled])["Location"].startswith(QUEUE)


def test_nonsense_is_refused(admin: Client, items: list[ReviewItem]) -> None:
    pk = items[0].pk
    for seen in ("", "x", "\n", f"{pk}", f"{pk}:1 x:2", f"{pk}:x"):
        given = {"batch": uuid.uuid4(), "verb": "approve", "expected": seen}
        assert admin.post(BULK, given).status_code == 400, seen
    assert not Batch.objects.exists()


class TestWhoMay:
    def test_an_operator_reaches_their_tenants_alone(self, admin: Client, items: list[ReviewItem]) -> None:
        elsewhere = quarantined(factories.end_user(factories.tenant(slug="other")), "Elsewhere")
        client = signed_in(limited(elsewhere.tenant))
        for preview in (choose(client, [*items, elsewhere]), choose(client, [], all="1")):
            assert preview.context["count"] == 1
        # Also when the list itself is made up.
        mixed = choose(admin, [*items, elsewhere])
        confirm(client, mixed)
        assert states([*items, elsewhere]) == ["open"] * 3 + ["approved"]
        whole = confirm(admin, choose(admin, items))["Location"]
        assert (client.get(whole).status_code, client.post(whole).status_code) == (404, 404)
        assert states(items) == ["approved"] * 3
