"""Episodes in the admin: the list, the page, the verbs, and where else they are shown."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories.admin.episodes import detail as episode_detail
from memories.curation.review.decisions import reject_item
from memories.models import AuditEvent, Episode, Operator, Session
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of, said, text_of
from tests.factories import NOW

WORDS = {
    "summary": "要了五月的发票",
    "key_topics": "发票\n\n 账单 ",
    "actions_taken": "",
    "outcomes": "已寄出",
    "importance": "0.8",
}
VERBS: dict[str, dict[str, str]] = {"edit": WORDS, "pin": {}, "unpin": {}, "forget": {}}


@pytest.fixture
def session(db: None) -> Session:
    person = factories.end_user(factories.tenant(slug="acme-prod"), external_id="usr_1000", display_name="华桂珍")
    turns = [("user", "Where is my invoice?"), ("assistant", "Here it is."), ("user", "Thanks")]
    return factories.session(person, turns, session_id="billing", agent_id="support")


@pytest.fixture
def episode(session: Session) -> Episode:
    lists: dict[str, Any] = {"key_topics": ["invoices"], "actions_taken": ["Looked it up"], "outcomes": ["Sent again"]}
    return factories.episode(session, last_number=2, **lists)


def send(client: Client, episode: Episode, verb: str, **over: Any) -> Any:
    version = Episode.objects.get(pk=episode.pk).version
    return client.post(page_of(episode, verb), {"version": version, **VERBS.get(verb, {}), **over})


def fresh(episode: Episode) -> Episode:
    return Episode.objects.get(pk=episode.pk)


class TestTheList:
    def test_shows_what_happened_last_first(self, admin: Client, session: Session, episode: Episode) -> None:
        later = factories.episode(session, "Said thanks", first_number=3, last_number=3, now=NOW + timedelta(hours=1))
        page = admin.get(list_of(Episode))
        assert list(page.context["cl"].result_list) == [later, episode]
        for shown in ("Said thanks", "华桂珍", "usr_1000", "Active", "60 %", "90 %", "title="):
            assert shown in text_of(page)

    def test_is_searched_and_filtered(self, admin: Client, session: Session, episode: Episode) -> None:
        poor = factories.poor_episode(factories.session(session.end_user)).episode
        assert poor
        factories.episode(factories.session(factories.end_user()), "Somebody else's", quality=0.5, status="trashed")
        names = {episode.pk: "good", poor.pk: "poor"}
        for query, found in (
            ({"q": "INVOICE"}, {"good"}),
            ({"q": "usr_1000"}, {"good", "poor"}),
            ({"q": "nothing"}, set()),
            ({"quality": "good"}, {"good"}),
            ({"quality": "poor"}, {"poor"}),
            ({"status__exact": "pending"}, {"poor"}),
            ({"tenant__id__exact": str(session.tenant_id)}, {"good", "poor"}),
            ({"session__id__exact": str(session.pk)}, {"good"}),
            ({"end_user__id__exact": str(session.end_user_id)}, {"good", "poor"}),
        ):
            shown = admin.get(list_of(Episode), query).context["cl"].result_list
            assert {names[row.pk] for row in shown if row.pk in names} == found, query
            assert len(shown) == len(found) + (query == {"quality": "good"}), query


class TestThePage:
    def test_shows_what_it_says_and_the_turns_of_its_range_alone(self, admin: Client, episode: Episode) -> None:
        page = text_of(admin.get(page_of(episode)))
        for shown in (
            "invoice of May",
            "invoices",
            "Looked it up",
            "Sent again",
            "Where is my invoice?",
            "Here it is.",
        ):
            assert shown in page
        assert "Thanks" not in page
        assert f"{page_of(episode.session)}?page=1#turn-1" in page

    def test_shows_a_bounded_part_of_a_long_range(
        self, admin: Client, session: Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(episode_detail, "TURNS_SHOWN", 2)
        monkeypatch.setattr(episode_detail, "TURN_CLIP", 5)
        page = text_of(admin.get(page_of(factories.episode(session, last_number=3))))
        for shown in ("The first 2 turns", "1 more in session", "Where…"):
            assert shown in page
        assert "is my invoice?" not in page

    def test_shows_no_turns_to_those_who_may_not_see_them(
        self, staff_who_may: Callable[..., Client], episode: Episode
    ) -> None:
        page = text_of(staff_who_may("view_episode").get(page_of(episode)))
        assert "invoice of May" in page
        for hidden in ("Where is my invoice?", "billing", "华桂珍", page_of(episode, "edit")):
            assert hidden not in page

    @pytest.mark.parametrize(
        ("over", "told"),
        [
            ({"forget_at": None}, "Never fades."),
            ({"forget_at": NOW + timedelta(days=90)}, "Fades on <time"),
            ({"forget_at": NOW, "pinned": True}, "Never fades: it is pinned."),
            ({"binding": True}, "Never fades: an operator confirmed it."),
            ({"status": "trashed", "trashed_at": NOW, "pinned": True}, "Not served: it is in the trash."),
            ({"forget_at": None, "expires_at": timedelta(hours=3, minutes=30)}, "in 3 h"),
        ],
    )
    def test_tells_when_it_will_be_forgotten(
        self, admin: Client, episode: Episode, over: dict[str, Any], told: str
    ) -> None:
        # From now, which is long after the tests were collected.
        from_now = {name: timezone.now() + value for name, value in over.items() if isinstance(value, timedelta)}
        Episode.objects.update(**over | from_now)
        assert told in text_of(admin.get(page_of(episode)))

    def test_tells_its_flaws_in_words(self, admin: Client, episode: Episode) -> None:
        Episode.objects.update(flaws=["too_short", "unheard_of"])
        page = text_of(admin.get(page_of(episode)))
        assert str(episode_detail.FLAWS["too_short"]) in page
        assert "unheard_of" in page

    def test_offers_what_makes_sense(self, admin: Client, episode: Episode) -> None:
        plain = {"status": "active", "pinned": False, "binding": False}
        for over, verbs in (
            ({}, {"edit", "pin", "forget"}),
            ({"status": "pending"}, {"edit", "pin", "forget"}),
            ({"pinned": True, "binding": True}, {"edit", "unpin", "forget"}),
            ({"binding": True}, {"edit", "pin", "unpin", "forget"}),
            ({"status": "trashed", "binding": True}, {"restore"}),
        ):
            Episode.objects.update(**plain | over)
            page = text_of(admin.get(page_of(episode)))
            assert set(re.findall(r'action="\S*/episode/[0-9a-f-]+/(\w+)/"', page)) == verbs, over

    def test_names_who_made_which_version(self, admin: Client, administrator: Operator, episode: Episode) -> None:
        send(admin, episode, "pin")
        send(admin, episode, "forget")
        page = text_of(admin.get(page_of(episode)))
        for shown in (f"Forget by {administrator.username}", f"Pin by {administrator.username}", "version 3", "now 3"):
            assert shown in page

    def test_leads_to_what_waits_about_it(self, admin: Client, session: Session) -> None:
        item = factories.poor_episode(session)
        assert item.episode
        page = text_of(admin.get(page_of(item.episode)))
        assert page_of(item) in page
        assert "Pending: it is not served" in page


class TestTheVerbs:
    def test_an_edit_is_the_operators_word(self, admin: Client, administrator: Operator, episode: Episode) -> None:
        response = send(admin, episode, "edit")
        assert (response.status_code, response["Location"]) == (302, page_of(episode))
        after = fresh(episode)
        assert (after.summary, after.key_topics, after.actions_taken) == ("要了五月的发票", ["发票", "账单"], [])
        assert (after.importance, after.binding, after.extractor) == (0.8, True, "operator")
        event = AuditEvent.objects.get(object_id=episode.pk)
        assert (event.verb, event.actor_id) == ("edit", str(administrator.pk))
        assert event.request_id == response["X-Request-ID"]

    def test_a_bad_edit_is_refused_and_what_was_typed_is_kept(self, admin: Client, episode: Episode) -> None:
        for over in (
            {"summary": ""}, {"summary": "x" * 201}, {"key_topics": "x" * 201}, {"outcomes": "x\n" * 21},
            {"importance": "1.1"}, {"importance": "nan"}, {"version": ""},
        ):  # fmt: skip
            response = send(admin, episode, "edit", **over)
            assert response.status_code == 400, over
            assert any(typed in text_of(response) for typed in ("账单", "已寄出")), over
        assert fresh(episode).version == 1

    def test_a_secret_is_cut_out_and_told(self, admin: Client, episode: Episode) -> None:
        response = send(admin, episode, "edit", outcomes="My password is hunter2hunter2")
        assert "A secret was removed" in said(response)
        assert not Episode.objects.filter(outcomes__icontains="hunter2").exists()
        assert "A secret" not in said(send(signed_in(factories.operator()), episode, "edit"))

    def test_forget_and_restore(self, admin: Client, episode: Episode) -> None:
        assert send(admin, episode, "forget").status_code == 302
        assert fresh(episode).status == "trashed"
        assert send(admin, episode, "restore").status_code == 302
        assert fresh(episode).status == "active"
        assert send(admin, episode, "restore").status_code == 409

    def test_the_second_of_two_operators_is_told_and_may_send_it_again(self, admin: Client, episode: Episode) -> None:
        send(signed_in(factories.operator()), episode, "edit", summary="By somebody else")
        responses = {verb: send(admin, episode, verb, version=1) for verb in VERBS}
        assert {response.status_code for response in responses.values()} == {412}
        assert "Somebody else changed this in the meantime." in text_of(responses["edit"])
        assert fresh(episode).summary == "By somebody else"
        form = responses["edit"].context["forms"]["edit"]
        assert admin.post(page_of(episode, "edit"), dict(form.data)).status_code == 302


class TestElsewhere:
    def test_a_person_shows_the_newest_and_their_number(self, admin: Client, session: Session) -> None:
        for number in range(12):
            # Of turns that were deleted: otherwise each would stand with its turn.
            factories.episode(session, f"Episode-{number:02}", first_number=number + 101, last_number=number + 101,
                              now=NOW + timedelta(hours=number))  # fmt: skip
        factories.poor_episode(factories.session(session.end_user), "Too poor to show")
        page = text_of(admin.get(page_of(session.end_user)))
        assert f'{list_of(Episode)}?end_user__id__exact={session.end_user_id}&amp;status__exact=active">12</a>' in page
        # The poor one stands with its turn, which was said just now.
        assert page.index("Too poor to show") < page.index("Episode-11") < page.index("Episode-01")
        # What is not active says so.
        assert "Pending" in page

    def test_a_session_shows_its_own(self, admin: Client, session: Session, episode: Episode) -> None:
        other = factories.session(session.end_user)
        page = text_of(admin.get(page_of(session)))
        assert page_of(episode) in page
        assert f"{list_of(Episode)}?session__id__exact={session.pk}" in page
        page = text_of(admin.get(page_of(other)))
        assert page_of(episode) not in page
        assert "has no episode yet" in page

    def test_those_who_may_not_see_them_are_not_shown_any(
        self, staff_who_may: Callable[..., Client], session: Session, episode: Episode
    ) -> None:
        reader = staff_who_may("view_enduser", "view_session")
        for address in (page_of(session), page_of(session.end_user)):
            assert "invoice of May" not in text_of(reader.get(address))

    def test_the_page_of_a_rejected_one_offers_to_restore_it(self, admin: Client, session: Session) -> None:
        item = factories.poor_episode(session)
        reject_item(item_id=item.pk, actor=factories.COMMAND, now=NOW, reason="Says nothing")
        assert item.episode
        assert "Restore this episode" in text_of(admin.get(page_of(item.episode)))
