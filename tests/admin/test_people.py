"""End users: the list, the page, and the edit of a record through its verb."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from memories.models import AuditEvent, EndUser
from tests import factories
from tests.admin.pages import HOSTILE, LIST_BUDGET, PAGE_BUDGET, list_of, page_of, queries_of, shows_harmless, text_of
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


@pytest.mark.parametrize("search", ["华桂珍", "usr_1000", "USR_10"])
def test_the_list_is_searched_by_id_and_name(admin: Client, person: EndUser, search: str) -> None:
    factories.end_user(external_id="usr_2000", display_name="Brandon")
    found = admin.get(list_of(EndUser), {"q": search}).context["cl"].result_list
    assert [row.pk for row in found] == [person.pk]


def test_the_list_is_filtered_by_tenant(admin: Client, person: EndUser) -> None:
    factories.end_user()
    address = {"tenant__id__exact": str(person.tenant_id)}
    assert [row.pk for row in admin.get(list_of(EndUser), address).context["cl"].result_list] == [person.pk]


def test_the_list_takes_few_queries(admin: Client, person: EndUser) -> None:
    few = queries_of(admin, list_of(EndUser))
    for _ in range(30):
        other = factories.end_user(person.tenant)
        factories.session(other)
        factories.fact(other)
    assert queries_of(admin, list_of(EndUser)) == few <= LIST_BUDGET


def test_an_empty_list_says_what_to_do(admin: Client) -> None:
    assert "make it an API key" in text_of(admin.get(list_of(EndUser)))
    factories.end_user()
    page = text_of(admin.get(list_of(EndUser), {"q": "nobody"}))
    assert "Nothing matches" in page


def test_the_page_shows_all_that_is_known(admin: Client, person: EndUser) -> None:
    session = factories.session(person, session_id="周末计划")
    factories.run(session)
    factories.fact(person, "喜欢简短的回答")
    factories.profile_section(person, summary="在一家物流公司做数据工程师。")
    page = text_of(admin.get(page_of(person)))
    for shown in (
        "华桂珍",
        "usr_1000",
        "zh-CN",
        "喜欢简短的回答",
        "周末计划",
        "在一家物流公司做数据工程师。",
        "Committed",
    ):
        assert shown in page
    for label in ("Work", "Personal", "Current focus", "Recent", "Earlier", "Background"):
        assert f"<dt>{label}" in page


def test_the_page_of_somebody_new_says_what_comes(admin: Client, person: EndUser) -> None:
    page = text_of(admin.get(page_of(person)))
    assert "No profile yet" in page
    assert "No active facts yet" in page
    assert "No sessions yet" in page


def test_the_flags_are_shown(admin: Client, person: EndUser) -> None:
    assert "Turns not stored" not in text_of(admin.get(page_of(person)))
    EndUser.objects.update(capture=False, serve=False, restricted_at=person.created_at)
    page = text_of(admin.get(page_of(person)))
    for flag in ("Turns not stored", "Memory not served", "Restricted"):
        assert flag in page


def test_nothing_of_the_person_is_in_title_or_address(admin: Client, person: EndUser) -> None:
    page = text_of(admin.get(page_of(person)))
    title = page[page.index("<title>") : page.index("</title>")]
    assert "华桂珍" not in title
    assert "usr_1000" not in title + page_of(person)
    assert str(person.pk) in title


def test_hostile_text_is_escaped(admin: Client) -> None:
    person = factories.end_user(external_id="x", display_name=HOSTILE, metadata={"note": HOSTILE})
    factories.fact(person, HOSTILE)
    factories.profile_section(person, summary=HOSTILE)
    assert shows_harmless(admin.get(page_of(person)))
    assert shows_harmless(admin.get(list_of(EndUser)))
    nameless = factories.end_user(external_id=HOSTILE)
    assert shows_harmless(admin.get(page_of(nameless)))


def test_sections_are_shown_to_those_who_may_see_them(person: EndUser, staff_who_may: Callable[..., Client]) -> None:
    factories.fact(person, "Lives in Leiden")
    factories.session(person, session_id="chat-1")
    page = text_of(staff_who_may("view_enduser").get(page_of(person)))
    assert "usr_1000" in page
    assert "Lives in Leiden" not in page
    assert "chat-1" not in page
    assert "Lives in Leiden" in text_of(staff_who_may("view_enduser", "view_fact").get(page_of(person)))


def test_the_page_takes_few_queries(admin: Client, person: EndUser) -> None:
    for number in range(15):
        factories.run(factories.session(person))
        factories.fact(person, f"Fact {number}")
    assert queries_of(admin, page_of(person)) <= PAGE_BUDGET


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
    assert "桂珍" not in text_of(admin.get(page_of(person))).split("<title>")[1].split("</title>")[0]


def test_an_edit_that_changes_nothing_leaves_no_trace(admin: Client, person: EndUser) -> None:
    edit(admin, person)
    assert not AuditEvent.objects.exists()


@pytest.mark.parametrize("fault", [{"time_zone": "Mars/Olympus"}, {"language": "not a language"}])
def test_a_bad_edit_keeps_what_was_typed(admin: Client, person: EndUser, fault: dict[str, Any]) -> None:
    response = edit(admin, person, display_name="Typed", **fault)
    assert response.status_code == 400
    assert "This is not a" in text_of(response)
    assert "Typed" in text_of(response)
    person.refresh_from_db()
    assert person.display_name == "华桂珍"


def test_an_edit_needs_the_permission(person: EndUser, staff_who_may: Callable[..., Client]) -> None:
    assert edit(staff_who_may("view_enduser"), person, display_name="No").status_code == 403
    assert edit(staff_who_may("change_enduser"), person, display_name="Yes").status_code == 302
    person.refresh_from_db()
    assert person.display_name == "Yes"


@pytest.mark.parametrize("name", ["密码是Tr0ub4dor-9x", "小明"])
def test_a_secret_in_the_name_is_cut_out_and_the_operator_told(admin: Client, person: EndUser, name: str) -> None:
    page = text_of(admin.post(page_of(person, "update"), {"display_name": name, "capture": "on"}, follow=True))
    assert ("A secret was cut out of what you typed." in page) == ("密码" in name)
    assert places_of("Tr0ub4dor-9x") == []
    person.refresh_from_db()
    assert person.display_name == ("密码是[redacted:password]" if "密码" in name else "小明")
