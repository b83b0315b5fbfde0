"""The review pages: what waits, each item with its decisions and their undo, who may decide, and hostile text."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories.admin.review import wording as review_wording
from memories.audit import Actor
from memories.curation.review.decisions import keep_both
from memories.facts.review_items import KIND_OF
from memories.models import EndUser, Fact, Operator, ReviewItem
from tests import factories
from tests.admin.pages import list_of, page_of, text_of
from tests.factories import NOW

LIST = ReviewItem
FORMS = {
    "approve": "(?:Approve|Use new|No longer true)",
    "keep_both": "Keep both",
    "merge": "Merge",
    "reject": "(?:Reject it|Keep known|Still true)",
}


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(factories.tenant(slug="acme-prod"), display_name="华桂珍")


@pytest.fixture
def item(person: EndUser) -> ReviewItem:
    return conflict(person)


def conflict(person: EndUser, new: str = "对青霉素过敏", known: str = "对花生过敏", **over: Any) -> ReviewItem:
    session = factories.session(person, [("assistant", "你好"), ("user", f"医生说我{new}。")])
    newcomer = factories.fact(person, new, category="constraint", status="pending", confidence=0.8)
    factories.evidence(newcomer, session.turns.get(number=2), new)
    stands = factories.fact(person, known, category="constraint", binding=True)
    given = {"kind": "conflict", "reason": "operators_word", "extraction": factories.run(session), **over}
    return factories.review_item(newcomer, known=stands, **given)


def quarantined(person: EndUser, content: str = "Works nights", **over: Any) -> ReviewItem:
    return factories.review_item(factories.fact(person, content, status="pending", trust="assistant"), **over)


def send(client: Client, item: ReviewItem, verb: str, **over: Any) -> Any:
    shown = ReviewItem.objects.select_related("fact", "known").get(pk=item.pk)
    seen = {
        "version": shown.version,
        "fact_version": shown.fact.version if shown.fact else "",
        "known_version": shown.known.version if shown.known else "",
    }
    return client.post(page_of(item, verb), {**seen, **over})


def offered(page: Any) -> set[str]:
    return {
        verb
        for verb, label in FORMS.items()
        if re.search(rf"</span>{label}\s*</button>|>{label}(?:</button>|<kbd)", page)
    }


class TestTheList:
    def test_shows_what_waits_oldest_first(self, admin: Client, person: EndUser) -> None:
        young = quarantined(person, "Young")
        old = quarantined(person, "Old", created_at=NOW - timedelta(days=2))
        quarantined(person, "Decided", state="approved")
        page = admin.get(list_of(LIST))
        assert list(page.context["cl"].result_list) == [old, young]
        for shown in (
            "Old",
            "Only the assistant stated it",
            "Unconfirmed",
            "Knowledge",
            "acme-prod",
            "华桂珍",
            "title=",
        ):
            assert shown in text_of(page)

    def test_is_filtered(self, admin: Client, person: EndUser) -> None:
        conflict(person)
        quarantined(person)
        quarantined(person, "Gone", state="rejected")
        for query, contents in {
            "": {"Works nights", "对青霉素过敏"},
            "kind__exact=conflict": {"对青霉素过敏"},
            "state=rejected": {"Gone"},
            "state=all": {"Works nights", "对青霉素过敏", "Gone"},
            f"tenant__id__exact={person.tenant_id}": {"Works nights", "对青霉素过敏"},
            f"end_user__id__exact={factories.end_user().pk}": set[str](),
        }.items():
            found = admin.get(f"{list_of(LIST)}?{query}").context["cl"].result_list
            assert {row.fact.content for row in found} == contents, query

    def test_names_a_section_and_what_should_go(self, admin: Client, person: EndUser) -> None:
        known = factories.fact(person, "Has a dog")
        factories.review_item(None, known=known, kind="conflict", reason="removal")
        proposed(person, "Bakes bread")
        page = text_of(admin.get(list_of(LIST)))
        for shown in ("Has a dog", "Bakes bread", "Profile: Work"):
            assert shown in page

    def test_is_in_the_sidebar_with_the_number_that_waits(
        self, admin: Client, staff_who_may: Callable[..., Client], person: EndUser
    ) -> None:
        quarantined(person, "Decided", state="approved")
        for number in range(3):
            quarantined(person, f"Fact {number}")
        index = reverse("admin:index")
        assert re.search(r"Review\s*</span>.*?\D3\s*</span>", text_of(admin.get(index)), re.DOTALL)
        assert list_of(LIST) not in re.sub(r'class="hub-card.*?>', "", text_of(staff_who_may("view_fact").get(index)))


class TestThePage:
    def test_says_what_waits_and_why_with_both_texts_and_the_evidence(self, admin: Client, item: ReviewItem) -> None:
        page = text_of(admin.get(page_of(item)))
        for shown in (
            "<del>花生</del><ins>青霉素</ins>",
            str(review_wording.WHY["operators_word"]),
            "<mark>对青霉素过敏</mark>",
            "The turn before",
            "80 %",
            "90 %",
            "although an operator confirmed that one",
            "华桂珍",
        ):
            assert shown in page

    @pytest.mark.parametrize(
        ("over", "verbs"),
        [
            ({}, {"approve", "keep_both", "merge", "reject"}),
            ({"known": None}, {"approve", "reject"}),
            ({"fact": None, "reason": "removal"}, {"approve", "reject"}),
            ({"state": "approved"}, set()),
        ],
    )
    def test_offers_what_makes_sense(
        self, admin: Client, item: ReviewItem, over: dict[str, Any], verbs: set[str]
    ) -> None:
        ReviewItem.objects.filter(pk=item.pk).update(**over)
        assert offered(text_of(admin.get(page_of(item)))) == verbs

    def test_leads_to_the_items_before_and_after(self, admin: Client, person: EndUser) -> None:
        items = [quarantined(person, f"Fact {n}", created_at=NOW + timedelta(hours=n)) for n in range(3)]
        shown = admin.get(page_of(items[1])).context
        assert (shown["previous"], shown["following"], shown["waiting"]) == (items[0], items[2], 3)
        ends = [admin.get(page_of(items[place])).context for place in (0, 2)]
        assert (ends[0]["previous"], ends[1]["following"]) == (None, None)

    def test_names_what_else_waits_about_the_same(self, admin: Client, item: ReviewItem) -> None:
        other = factories.review_item(item.fact, kind="flagged", reason="instructions")
        assert page_of(other) in text_of(admin.get(page_of(item)))

    def test_shows_a_proposed_section(self, admin: Client, person: EndUser) -> None:
        factories.profile_section(person, summary="Runs a bakery.")
        page = text_of(admin.get(page_of(proposed(person, "Runs a brewery."))))
        for shown in ("<del>bakery</del><ins>brewery</ins>", "Profile: Work", str(review_wording.SECTION_WHY)):
            assert shown in page
        ReviewItem.objects.update(kind="flagged", reason="instructions")
        assert str(review_wording.WHY["instructions"]) in text_of(admin.get(page_of(ReviewItem.objects.get())))

    def test_a_fact_and_a_person_lead_here(self, admin: Client, item: ReviewItem) -> None:
        for fact in (item.fact, item.known):
            assert fact
            assert page_of(item) in text_of(admin.get(page_of(fact)))
        assert f"{list_of(LIST)}?end_user__id__exact={item.end_user_id}" in text_of(admin.get(page_of(item.end_user)))
        keep_both(item_id=item.pk, actor=Actor.operator(factories.operator()), now=NOW)
        assert item.fact
        assert page_of(item) not in text_of(admin.get(page_of(item.fact)))


def proposed(person: EndUser, text: str) -> ReviewItem:
    revision = factories.profile_revision(person, text, version=None)
    return ReviewItem.objects.create(
        tenant=person.tenant,
        end_user=person,
        kind="conflict",
        reason="operators_word",
        proposed_section=revision,
        created_at=NOW,
    )


class TestDeciding:
    @pytest.mark.parametrize(
        ("verb", "said", "state"),
        [
            ("approve", {}, "approved"),
            ("keep_both", {}, "kept_both"),
            ("reject", {"reason": "By phone"}, "rejected"),
            (
                "merge",
                {"survivor": "known", "content": "对坚果过敏", "category": "constraint", "reason": "By phone"},
                "merged",
            ),
        ],
    )
    def test_it_says_who_decided_what_and_is_undone(
        self, admin: Client, administrator: Operator, item: ReviewItem, verb: str, said: dict[str, str], state: str
    ) -> None:
        answer = send(admin, item, verb, **said)
        assert (answer.status_code, answer["Location"]) == (302, page_of(item))
        item.refresh_from_db()
        assert (item.state, item.decided_by, item.note) == (state, str(administrator.pk), said.get("reason", ""))
        page = text_of(admin.get(page_of(item)))
        assert f"{item.get_state_display()}</strong> by {administrator.username}" in page
        assert admin.post(page_of(item, "undo"), {"version": item.version}).status_code == 302
        item.refresh_from_db()
        assert item.state == "open"
        assert "back in the queue" in text_of(admin.get(page_of(item)))
        assert set(Fact.objects.values_list("content", flat=True)) == {"对花生过敏", "对青霉素过敏"}

    def test_a_merge_needs_its_text(self, admin: Client, item: ReviewItem) -> None:
        assert send(admin, item, "merge").status_code == 400
        item.refresh_from_db()
        assert item.state == "open"

    def test_the_second_sees_what_the_first_decided(self, admin: Client, item: ReviewItem) -> None:
        keep_both(item_id=item.pk, actor=Actor.operator(factories.operator(username="ben")), now=NOW)
        answer = send(admin, item, "reject", reason="By phone")
        assert answer.status_code == 409
        assert "decided this in the meantime: kept both" in text_of(answer)
        assert "Kept both</strong> by ben" in text_of(answer)

    def test_what_was_typed_is_kept_when_a_fact_has_changed(self, admin: Client, item: ReviewItem) -> None:
        answer = send(admin, item, "reject", reason="By phone", fact_version=9)
        assert answer.status_code == 412
        page = text_of(answer)
        assert "Your input is kept" in page
        assert 'value="By phone"' in page
        # Sent again as the page has it now, it is taken.
        form = answer.context["forms"]["reject"]
        assert admin.post(page_of(item, "reject"), dict(form.data)).status_code == 302

    def test_a_merge_names_the_fact_that_says_the_same(self, admin: Client, item: ReviewItem) -> None:
        factories.fact(item.end_user, "对坚果过敏")
        said = {"survivor": "new", "content": "对坚果过敏", "category": "constraint", "reason": "By phone"}
        answer = send(admin, item, "merge", **said)
        assert answer.status_code == 409
        assert "already has a fact with this text" in text_of(answer)

    def test_a_secret_in_a_merge_is_cut_out_and_told(self, admin: Client, item: ReviewItem) -> None:
        said = {"content": "My password is hunter2hunter2", "category": "constraint", "reason": "By phone"}
        send(admin, item, "merge", survivor="new", **said)
        assert "A secret was removed" in text_of(admin.get(page_of(item)))
        assert not Fact.objects.filter(content__contains="hunter2").exists()


class TestWhoMay:
    def test_look_alone(self, staff_who_may: Callable[..., Client], item: ReviewItem) -> None:
        looker = staff_who_may("view_reviewitem")
        page = looker.get(page_of(item))
        assert page.status_code == 200
        assert offered(text_of(page)) == set()


def test_every_reason_kind_and_state_has_its_words() -> None:
    assert set(review_wording.WHY) == set(KIND_OF) == set(ReviewItem.Reason)
    assert set(review_wording.KIND_COLOURS) == set(ReviewItem.Kind)
    assert set(review_wording.STATE_COLOURS) == set(ReviewItem.State)
