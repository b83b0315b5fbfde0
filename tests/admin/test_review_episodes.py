"""Review of poor episodes: what the page shows, each decision from it, and hostile text."""

import re
from typing import Any

import pytest
from django.test import Client

from memories.admin.episodes import detail as episode_detail
from memories.admin.review import wording as review_wording
from memories.audit import Actor
from memories.curation.episodes import forget_episode
from memories.models import Episode, Operator, ReviewItem
from tests import factories
from tests.admin.pages import PAGE_BUDGET, list_of, page_of, queries_of, text_of
from tests.factories import NOW

WORDS = {"summary": "要了五月的发票", "key_topics": "发票", "actions_taken": "", "outcomes": "", "importance": "0.8"}
DECISIONS: dict[str, tuple[dict[str, str], str, str]] = {
    "approve": ({}, "approved", "active"),
    "edit": (WORDS, "approved", "active"),
    "reject": ({"reason": "Says nothing"}, "rejected", "trashed"),
}


@pytest.fixture
def item(db: None) -> ReviewItem:
    person = factories.end_user(display_name="华桂珍")
    turns = [("user", "Where is my invoice?"), ("assistant", "Here it is.")]
    return factories.poor_episode(factories.session(person, turns), key_topics=["invoices"], last_number=2)


def send(client: Client, item: ReviewItem, verb: str, **over: Any) -> Any:
    shown = ReviewItem.objects.select_related("episode").get(pk=item.pk)
    assert shown.episode
    seen = {"version": shown.version, "episode_version": shown.episode.version}
    return client.post(page_of(item, verb), {**seen, **over})


def states(item: ReviewItem) -> tuple[str, str]:
    found = ReviewItem.objects.select_related("episode").get(pk=item.pk)
    assert found.episode
    return found.state, found.episode.status


def offered(page: str) -> set[str]:
    return set(re.findall(r'action="\S*/reviewitem/[0-9a-f-]+/(\w+)/"', page)) - {"take", "note"}


def test_the_list_shows_it(admin: Client, item: ReviewItem) -> None:
    page = text_of(admin.get(list_of(ReviewItem)))
    for shown in ("The user asked a question", "Poor episode", "Says too little about the conversation", "华桂珍"):
        assert shown in page


def test_the_page_shows_the_episode_its_flaws_and_its_turns(admin: Client, item: ReviewItem) -> None:
    page = text_of(admin.get(page_of(item)))
    assert item.episode
    for shown in (
        "The user asked a question",
        str(review_wording.WHY["poor_quality"]),
        str(episode_detail.FLAWS["boilerplate"]),
        "invoices",
        "30 %",
        "Where is my invoice?",
        page_of(item.episode),
    ):
        assert shown in page
    assert offered(page) == set(DECISIONS)
    assert queries_of(admin, page_of(item)) <= PAGE_BUDGET


def test_without_flaws_its_model_judged_it(admin: Client, item: ReviewItem) -> None:
    Episode.objects.update(flaws=[])
    assert str(episode_detail.OF_ITS_OWN) in text_of(admin.get(page_of(item)))


@pytest.mark.parametrize("verb", DECISIONS)
def test_it_is_decided_and_undone(admin: Client, administrator: Operator, item: ReviewItem, verb: str) -> None:
    given, *ends = DECISIONS[verb]
    answer = send(admin, item, verb, **given)
    assert (answer.status_code, answer["Location"]) == (302, page_of(item))
    assert states(item) == tuple(ends)
    page = text_of(admin.get(page_of(item)))
    assert f"by {administrator.username}" in page
    assert offered(page) == {"undo"}
    item.refresh_from_db()
    assert admin.post(page_of(item, "undo"), {"version": item.version}).status_code == 302
    assert states(item) == ("open", "pending")
    assert Episode.objects.get().summary == "The user asked a question"


def test_an_edit_is_what_is_served(admin: Client, item: ReviewItem) -> None:
    send(admin, item, "edit", **WORDS)
    episode = Episode.objects.get()
    assert (episode.summary, episode.key_topics, episode.importance, episode.binding) == (
        WORDS["summary"], ["发票"], 0.8, True,
    )  # fmt: skip


def test_a_summary_is_asked_for(admin: Client, item: ReviewItem) -> None:
    assert send(admin, item, "edit", **{**WORDS, "summary": ""}).status_code == 400
    assert states(item) == ("open", "pending")


def test_what_was_typed_is_kept_when_the_episode_has_changed(admin: Client, item: ReviewItem) -> None:
    answer = send(admin, item, "edit", **WORDS, episode_version=9)
    assert answer.status_code == 412
    assert all(text in text_of(answer) for text in WORDS.values())
    assert admin.post(page_of(item, "edit"), dict(answer.context["forms"]["edit"].data)).status_code == 302


@pytest.mark.parametrize("verb", ["keep_both", "merge"])
def test_nothing_else_is_offered_or_taken(admin: Client, item: ReviewItem, verb: str) -> None:
    answer = send(admin, item, verb, survivor="new", content="x", category="other", reason="x")
    assert answer.status_code in (400, 409)
    assert states(item) == ("open", "pending")


def test_an_item_about_a_fact_takes_no_words_of_an_episode(admin: Client, item: ReviewItem) -> None:
    other = factories.review_item(factories.fact(item.end_user, status="pending"))
    answer = admin.post(page_of(other, "edit"), {"version": 1, "fact_version": 1, **WORDS})
    assert (answer.status_code, set(answer.context["forms"]["edit"].errors)) == (400, {"content", "category"})
    other.refresh_from_db()
    assert other.state == "open"


def test_what_settled_it_is_told(admin: Client, item: ReviewItem) -> None:
    assert item.episode_id
    actor = Actor.operator(factories.operator())
    forget_episode(episode_id=item.episode_id, tenant=None, actor=actor, now=NOW)
    page = text_of(admin.get(page_of(item)))
    assert "somebody changed the episode" in page
    assert offered(page) == set()
