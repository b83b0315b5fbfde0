"""What was said: the list of logged contexts, and on the page of one what became of each memory since."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from memories import audit
from memories.admin.recall.logged import served
from memories.curation.episodes import edit_episode, forget_episode, pin_episode
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.forgetting import forget_fact
from memories.models import EndUser, Fact, LoggedContext, SentBlock, Turn
from tests import factories
from tests.admin.pages import list_of, page_of

pytestmark = pytest.mark.django_db
THEN = factories.NOW + timedelta(hours=1)
LATER = factories.NOW + timedelta(days=1)
AS_OPERATOR: dict[str, Any] = {"tenant": None, "actor": factories.COMMAND, "now": LATER}


@pytest.fixture
def person() -> EndUser:
    return factories.end_user(display_name="Lin")


def known(person: EndUser, content: str, **over: Any) -> Fact:
    fact = factories.fact(person, content, **over)
    audit.revise(fact=fact, verb="extract", actor=factories.COMMAND, before={}, reason="", now=factories.NOW)
    return fact


def logged(person: EndUser, *rows: Any, **over: Any) -> LoggedContext:
    made = factories.logged_context(person, rows, created_at=THEN, **over)
    return LoggedContext.objects.select_related("end_user__merged_into").get(pk=made.pk)


def test_what_became_of_each(person: EndUser) -> None:
    same, wrong, unwanted, gone = (known(person, text) for text in ("Likes tea", "In Leiden", "Has a dog", "Is 40"))
    session = factories.session(person)
    turn, episode = Turn.objects.get(), factories.episode(session)
    row = logged(person, same, wrong, unwanted, gone, turn, episode)
    correct_fact(fact_id=wrong.pk, content="In Delft", reason="", **AS_OPERATOR)
    forget_fact(fact_id=unwanted.pk, **AS_OPERATOR)
    gone.delete()
    Turn.objects.update(redacted_at=LATER, content="")
    found = served(row)
    assert [one.outcome for one in found] == ["same", "corrected", "trashed", "deleted", "redacted", "same"]
    assert [one.text for one in found][:4] == ["Likes tea", "In Leiden", "Has a dog", ""]
    assert {one.text for one in found[1].segments} >= {"Leiden", "Delft"}


def test_episodes_say_what_they_said_then(person: EndUser) -> None:
    episode = factories.episode(factories.session(person), summary="Talked about Leiden")
    early = logged(person, episode)
    moments = [THEN + timedelta(hours=hours) for hours in (1, 2, 3)]
    for moment, words in zip(moments, ("Talked about Delft", "Talked about Utrecht"), strict=False):
        changes = {"summary": words}
        edit_episode(episode_id=episode.pk, changes=changes, tenant=None, actor=factories.COMMAND, now=moment)
    between = logged(person, episode)
    LoggedContext.objects.filter(pk=between.pk).update(created_at=moments[0] + timedelta(minutes=1))
    between = LoggedContext.objects.select_related("end_user__merged_into").get(pk=between.pk)
    assert [(one.outcome, one.text) for one in served(early)] == [("corrected", "Talked about Leiden")]
    assert [(one.outcome, one.text) for one in served(between)] == [("corrected", "Talked about Delft")]
    assert {one.text for one in served(between)[0].segments} >= {"Delft", "Utrecht"}
    forget_episode(episode_id=episode.pk, tenant=None, actor=factories.COMMAND, now=moments[2])
    assert [(one.outcome, one.text) for one in served(early)] == [("trashed", "Talked about Leiden")]
    pinned = factories.episode(factories.session(person, session_id="s-2"), summary="Talked about tea")
    row = logged(person, pinned)
    pin_episode(episode_id=pinned.pk, actor=factories.COMMAND, now=LATER)
    assert [(one.outcome, one.text) for one in served(row)] == [("changed", "Talked about tea")]


def test_a_correction_before_it_is_what_was_served(person: EndUser) -> None:
    fact = known(person, "In Leiden")
    correct_fact(
        fact_id=fact.pk,
        content="In Delft",
        reason="",
        **{**AS_OPERATOR, "now": factories.NOW + timedelta(minutes=1)},
    )
    assert [(one.outcome, one.text) for one in served(logged(person, fact))] == [("same", "In Delft")]


def test_the_page(admin: Client, person: EndUser) -> None:
    row = logged(person, known(person, "Likes tea"), agent_id="sales", revision="a" * 32)
    page = admin.get(page_of(row)).content.decode()
    assert "Likes tea" in page
    assert f'<time datetime="{THEN.isoformat()}">' in page
    assert "Deleted in the meantime" not in page
    Fact.objects.all().delete()
    page = admin.get(page_of(row)).content.decode()
    assert "Likes tea" not in page
    assert "Deleted in the meantime" in page
    assert "sales" in admin.get(list_of(LoggedContext)).content.decode()


@pytest.mark.parametrize("name", ["", "shop"])
def test_the_key_is_named_with_a_name_or_without(name: str, admin: Client, person: EndUser) -> None:
    key, _secret = factories.api_key(person.tenant, name=name)
    page = admin.get(page_of(logged(person, key_id=key.pk))).content.decode()
    assert f"<code>{key}</code>" in page
    assert name in page


def test_its_page_shows_what_the_gateway_keeps_of_it(admin: Client, person: EndUser) -> None:
    tea, dog = known(person, "Likes tea"), known(person, "Has a dog")
    row = logged(person, tea)
    factories.sent_block(person, [tea], sent_at=THEN, text="<memory>tea</memory>")
    assert "&lt;memory&gt;tea" in admin.get(page_of(row)).content.decode()
    SentBlock.objects.all().delete()
    for other in ({"sent_at": THEN - timedelta(days=1)}, {"agent_id": "other", "sent_at": THEN}):
        factories.sent_block(person, [tea], **other)
    factories.sent_block(person, [dog], sent_at=THEN)
    factories.sent_block(factories.end_user(person.tenant), [tea], sent_at=THEN)
    assert "&lt;memory&gt;" not in admin.get(page_of(row)).content.decode()


def test_its_page_takes_the_permission_for_each_kind(staff_who_may: Callable[..., Client], person: EndUser) -> None:
    row = logged(person, known(person, "Likes tea"))
    seeing = ("view_loggedcontext", "view_fact", "view_episode")
    assert staff_who_may(*seeing).get(page_of(row)).status_code == 403
    assert staff_who_may(*seeing, "view_session").get(page_of(row)).status_code == 200
