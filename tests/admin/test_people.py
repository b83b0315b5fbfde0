"""End users: the list, the page, and the edit of a record through its verb."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories.curation.people.records import update_person
from memories.models import AuditEvent, EndUser, ReviewItem
from tests import factories
from tests.admin.pages import list_of, page_of, text_of
from tests.curation.marks import places_of


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(external_id="usr_1000", display_name="华桂珍", language="zh-CN")


def edit(client: Client, person: EndUser, **over: Any) -> Any:
    form = {"display_name": person.display_name, "time_zone": "", "language": "zh-CN", "capture": "on", "serve": "on"}
    return client.post(page_of(person, "update"), {**form, **over})


def test_the_list_counts_facts_and_sessions(admin: Client, person: EndUser) -> None:
    factories.session(person)
    factories.fact(person, "One")
    factories.fact(person, "Two")
    factories.fact(person, "Gone", status="trashed")
    factories.fact(factories.end_user(), "Somebody else's")
    row = admin.get(list_of(EndUser), {"q": "usr_1000"}).context["cl"].result_list[0]
    assert (row.facts_held, row.sessions_count) == (2, 1)


def test_the_list_is_searched_and_filtered(admin: Client, person: EndUser) -> None:
    factories.end_user(external_id="usr_2000", display_name="Brandon")
    for query in ({"q": "华桂珍"}, {"q": "usr_1000"}, {"q": "USR_10"}, {"tenant__id__exact": str(person.tenant_id)}):
        assert list(admin.get(list_of(EndUser), query).context["cl"].result_list) == [person], query


def test_an_empty_list_says_what_to_do(admin: Client) -> None:
    assert "Create an API key" in text_of(admin.get(list_of(EndUser)))
    factories.end_user()
    page = text_of(admin.get(list_of(EndUser), {"q": "nobody"}))
    assert "Nothing matches" in page


def view_of(person: EndUser, name: str) -> str:
    return reverse(f"admin:memories_enduser_{name}", args=[person.pk])


def test_the_page_shows_who_it_is_and_how_much_there_is(admin: Client, person: EndUser) -> None:
    session = factories.session(person)
    factories.fact(person, "喜欢简短的回答")
    factories.fact(person, "Waits", status="pending")
    factories.fact(person, "Gone", status="trashed")
    factories.episode(session)
    factories.profile_section(person, summary="在一家物流公司做数据工程师。")
    response: Any = admin.get(page_of(person))
    page = text_of(response)
    for text in ("华桂珍", "usr_1000", "zh-CN", "喜欢简短的回答", "在一家物流公司做数据工程师。"):
        assert text in page
    shown = response.context_data
    assert shown["fact_counts"] == {"active": 1, "pending": 1, "trashed": 1}
    assert [(status, number) for status, _, number in shown["fact_rest"]] == [
        ("pending", 1),
        ("trashed", 1),
    ]
    assert (shown["episode_count"], shown["session_count"], shown["turn_count"]) == (1, 1, 1)


def test_its_header_has_two_verbs_the_rest_in_a_menu_and_danger_apart(admin: Client, person: EndUser) -> None:
    page = text_of(admin.get(page_of(person)))
    header = page.split('class="hub-card hub-who"')[1].split("</header>")[0]
    for text in ("华桂珍", "usr_1000", str(person.tenant), "Active"):
        assert text in header
    verbs, menu = header.split('<details class="hub-menu">')
    everyday, dangerous = menu.split('class="hub-menu-danger"')
    assert [links_of(part) for part in (verbs, everyday, dangerous)] == [
        ["Add a fact", "Why recalled?"],
        ["Change id…", "Merge…", "Export…"],
        ["Roll back…", "Clear memories…", "Erase…"],
    ]


def links_of(html: str) -> list[str]:
    """Their texts, without the icons' names."""
    return [re.sub(r"<span.*?</span>|<[^>]+>", "", link) for link in re.findall("<a .*?</a>", html)]


def test_what_waits_is_counted_as_its_list_shows_it(
    admin: Client, staff_who_may: Callable[..., Client], person: EndUser
) -> None:
    held, known = factories.fact(person, "Waits", status="pending"), factories.fact(person, "Known")
    factories.review_item(held)
    factories.review_item(known, kind="duplicate")
    factories.review_item(factories.fact(factories.end_user()))
    page: Any = admin.get(page_of(person))
    listed: Any = admin.get(f"{list_of(ReviewItem)}?end_user__id__exact={person.pk}")
    assert page.context_data["to_review"] == listed.context_data["cl"].result_count == 2
    others: Any = staff_who_may("view_enduser", "view_fact").get(page_of(person))
    assert "to_review" not in others.context_data


def test_the_profile_is_a_view_of_its_own(admin: Client, person: EndUser) -> None:
    factories.profile_section(person, "top_of_mind", "准备半程马拉松。")
    page = text_of(admin.get(view_of(person, "profile_all")))
    assert "准备半程马拉松。" in page
    for label in ("Work", "Personal", "Current focus", "Recent", "Earlier", "Background"):
        assert f"<h2>{label}</h2>" in page
    assert page.count("Save this section") == 6


def test_the_sessions_are_a_view_of_their_own(admin: Client, person: EndUser) -> None:
    factories.run(factories.session(person, session_id="周末计划"))
    page = text_of(admin.get(view_of(person, "sessions")))
    assert "周末计划" in page
    assert "Done" in page


def test_somebody_new_is_told_what_comes(admin: Client, person: EndUser) -> None:
    assert "No events yet" in text_of(admin.get(page_of(person)))
    assert "No profile yet" in text_of(admin.get(page_of(person)))
    assert "No sessions yet" in text_of(admin.get(view_of(person, "sessions")))
    assert "Nothing has been extracted" in text_of(admin.get(view_of(person, "sessions")))


VIEWS = {
    "change": (),
    "seen": ("view_fact", "view_episode", "view_session"),
    "profile_all": ("view_fact",),
    "sessions": ("view_session",),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_needs_its_permissions(view: str, person: EndUser, staff_who_may: Callable[..., Client]) -> None:
    address = view_of(person, view)
    assert staff_who_may("view_enduser", *VIEWS[view]).get(address).status_code == 200
    for missing in VIEWS[view]:
        rest = set(VIEWS[view]) - {missing}
        assert staff_who_may("view_enduser", *rest).get(address).status_code == 403
    assert staff_who_may(*VIEWS[view]).get(address).status_code == 403


def test_only_views_that_one_may_open_are_offered(person: EndUser, staff_who_may: Callable[..., Client]) -> None:
    page = text_of(staff_who_may("view_enduser", "view_fact").get(page_of(person)))
    offered = {view: view_of(person, view) in page for view in VIEWS}
    assert offered == {"change": True, "seen": False, "profile_all": True, "sessions": False}


def test_the_flags_are_shown(admin: Client, person: EndUser) -> None:
    assert "Turns not stored" not in text_of(admin.get(page_of(person)))
    EndUser.objects.update(capture=False, serve=False, restricted_at=person.created_at)
    page = text_of(admin.get(page_of(person)))
    for flag in ("Turns not stored", "Memory not served", "Restricted"):
        assert flag in page


def test_sections_are_shown_to_those_who_may_see_them(person: EndUser, staff_who_may: Callable[..., Client]) -> None:
    factories.fact(person, "Lives in Leiden")
    factories.session(person, session_id="chat-1")
    page = text_of(staff_who_may("view_enduser").get(page_of(person)))
    assert "usr_1000" in page
    assert "Lives in Leiden" not in page
    assert "chat-1" not in page
    assert "Lives in Leiden" in text_of(staff_who_may("view_enduser", "view_fact").get(page_of(person)))


def test_an_edit_is_saved_and_audited(admin: Client, person: EndUser) -> None:
    response = edit(admin, person, display_name="桂珍", time_zone="Asia/Shanghai", serve="")
    assert response.status_code == 302
    person.refresh_from_db()
    assert (person.display_name, person.time_zone, person.capture, person.serve) == (
        "桂珍",
        "Asia/Shanghai",
        True,
        False,
    )
    assert AuditEvent.objects.get(object_id=person.pk).verb == "update"
    assert "桂珍" in text_of(admin.get(page_of(person))).split("<title>")[1].split("</title>")[0]


def test_an_edit_that_changes_nothing_leaves_no_trace(admin: Client, person: EndUser) -> None:
    edit(admin, person)
    assert not AuditEvent.objects.exists()


def test_a_bad_edit_keeps_what_was_typed(admin: Client, person: EndUser) -> None:
    for fault in ({"time_zone": "Mars/Olympus"}, {"language": "not a language"}):
        response = edit(admin, person, display_name="Typed", **fault)
        assert response.status_code == 400
        assert "This is not a" in text_of(response)
        assert "Typed" in text_of(response)
    person.refresh_from_db()
    assert person.display_name == "华桂珍"


@pytest.mark.parametrize("name", ["密码是Tr0ub4dor-9x", "小明"])
def test_a_secret_in_the_name_is_cut_out_and_the_operator_told(admin: Client, person: EndUser, name: str) -> None:
    page = text_of(admin.post(page_of(person, "update"), {"display_name": name, "capture": "on"}, follow=True))
    assert ("A secret was removed from your input." in page) == ("密码" in name)
    assert places_of("Tr0ub4dor-9x") == []
    person.refresh_from_db()
    assert person.display_name == ("密码是[redacted:password]" if "密码" in name else "小明")


def test_what_somebody_changed_meanwhile_is_not_overwritten(admin: Client, person: EndUser) -> None:
    page = text_of(admin.get(page_of(person)))
    seen = re.findall(r'name="expected" value="(\w+)"', page)[0]
    update_person(end_user=person, changes={"language": "en"}, actor=factories.COMMAND, now=factories.NOW)
    form = {"display_name": "Lin", "time_zone": "", "language": "", "capture": "on", "serve": "on", "expected": seen}
    refused = admin.post(page_of(person, "update"), form)
    assert refused.status_code == 412
    assert "Somebody else changed this in the meantime" in text_of(refused)
    person.refresh_from_db()
    assert (person.display_name, person.language) == ("华桂珍", "en")
    # What was typed is kept, and applies when it is sent again.
    again = re.findall(r'name="expected" value="(\w+)"', text_of(refused))[0]
    assert admin.post(page_of(person, "update"), form | {"expected": again}).status_code == 302
    person.refresh_from_db()
    assert (person.display_name, person.language) == ("Lin", "")
