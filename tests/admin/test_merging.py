"""Two people merged in the admin: whom with, what it would do, the typed confirmation, its undo, and who may."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories import audit
from memories.models import AuditEvent, ChangeSet, EndUser, Fact
from tests import factories
from tests.admin.pages import list_of, page_of, text_of
from tests.factories import NOW

MAY = ("view_enduser", "change_enduser", "change_fact", "change_session")


@pytest.fixture
def ours(db: None) -> EndUser:
    return factories.end_user(external_id="app-1", display_name="Anna")


@pytest.fixture
def theirs(ours: EndUser) -> EndUser:
    return factories.end_user(ours.tenant, external_id="chat-9")


def known(person: EndUser, content: str, **over: Any) -> Fact:
    fact = factories.fact(person, content, **over)
    audit.revise(fact=fact, verb="extract", actor=factories.COMMAND, before={}, reason="", now=NOW)
    return fact


def address_of(person: EndUser) -> str:
    return page_of(person, "merge")


def confirmation(survivor: EndUser, merged: EndUser, **over: Any) -> dict[str, Any]:
    generations = f"{survivor.generation}-{merged.generation}"
    pair = {"survivor": survivor.pk, "merged": merged.pk, "generations": generations}
    return {**pair, "typed": merged.external_id, "reason": "", **over}


def fresh(person: EndUser) -> EndUser:
    return EndUser.objects.get(pk=person.pk)


def test_the_persons_page_leads_there_and_the_form_asks_whom_with(admin: Client, ours: EndUser) -> None:
    assert address_of(ours) in text_of(admin.get(page_of(ours)))
    page = admin.get(address_of(ours))
    assert (page.status_code, 'name="other"' in text_of(page)) == (200, True)


def test_nobody_else_is_told_of(admin: Client, ours: EndUser, theirs: EndUser) -> None:
    factories.end_user(external_id="nobody")
    for other, said in {"nobody": "no end user with this id", "app-1": "the same end user", "": "required"}.items():
        page = admin.post(address_of(ours), {"other": other})
        assert (page.status_code, said in text_of(page)) == (400, True), other


def test_the_preview_says_what_it_would_do_and_nothing_is_done(admin: Client, ours: EndUser, theirs: EndUser) -> None:
    for person in (ours, theirs):
        known(person, "Bakes bread")
        factories.session(person, session_id="main")
        factories.profile_section(person, "work_context", person.external_id)
    page = text_of(admin.post(address_of(ours), {"other": "chat-9"}))
    for said in ("Duplicate facts", "Sessions with the same id", "The other text waits for review", "chat-9"):
        assert said in page, said
    assert "Items for the review queue" not in page
    assert (ChangeSet.objects.count(), AuditEvent.objects.count()) == (0, 0)


def test_confirmed_it_is_done_and_can_be_undone(admin: Client, ours: EndUser, theirs: EndUser) -> None:
    known(theirs, "Builds boats")
    done: Any = admin.post(address_of(ours), confirmation(ours, theirs, reason="One person"))
    merge = ChangeSet.objects.get()
    assert (done.status_code, done.url) == (302, reverse("admin:memories_enduser_merged", args=[merge.pk]))
    assert Fact.objects.get().end_user_id == ours.pk
    assert "Undo the merge" in text_of(admin.get(done.url))
    assert text_of(admin.get(address_of(ours))).count(done.url) == 1
    admin.post(done.url)
    assert Fact.objects.get().end_user_id == theirs.pk
    assert 'id="undone"' in text_of(admin.get(done.url))
    again = admin.post(done.url, follow=True)
    assert "already undone" in text_of(again)


def test_without_the_id_typed_nothing_happens(admin: Client, ours: EndUser, theirs: EndUser) -> None:
    for typed in ("", "app-1", "CHAT-9"):
        page = admin.post(address_of(ours), confirmation(ours, theirs, typed=typed, reason="I am sure"))
        assert (page.status_code, "not the id of the end user to be merged" in text_of(page)) == (400, True)
        assert "I am sure" in text_of(page)
    assert not ChangeSet.objects.exists()


def test_the_two_can_be_swapped(admin: Client, ours: EndUser, theirs: EndUser) -> None:
    page = admin.post(address_of(ours), confirmation(ours, theirs, typed="", swap=1))
    assert f'name="survivor" value="{theirs.pk}"' in text_of(page)
    admin.post(address_of(ours), confirmation(theirs, ours))
    assert fresh(ours).merged_into_id == theirs.pk


def test_merged_meanwhile_the_page_is_shown_again(admin: Client, ours: EndUser, theirs: EndUser) -> None:
    stale = confirmation(ours, theirs, reason="I am sure")
    EndUser.objects.update(generation=5)
    page = admin.post(address_of(ours), stale)
    assert (page.status_code, "I am sure" in text_of(page), 'value="5-5"' in text_of(page)) == (412, True, True)
    assert admin.post(address_of(ours), {**stale, "generations": "5-5"}).status_code == 302


def test_a_made_up_form_is_nobodys(admin: Client, ours: EndUser, theirs: EndUser) -> None:
    other = factories.end_user()
    for made_up in ({"survivor": other.pk}, {"merged": other.pk}, {"generations": "1"}):
        given = {**confirmation(ours, theirs), **made_up}
        assert admin.post(address_of(ours), given).status_code == 404, made_up


def test_who_was_merged_leads_to_the_survivor(admin: Client, ours: EndUser, theirs: EndUser) -> None:
    admin.post(address_of(ours), confirmation(ours, theirs))
    gone: Any = admin.get(page_of(theirs))
    assert (gone.status_code, gone.url) == (302, page_of(ours))
    assert admin.get(address_of(theirs)).status_code == 404
    listed = text_of(admin.get(list_of(EndUser)))
    assert (page_of(ours) in listed, page_of(theirs) in listed) == (True, False)
    assert page_of(ours) in text_of(admin.get(list_of(EndUser), {"q": "chat-9"}))


@pytest.mark.parametrize("missing", [*MAY, ""])
def test_who_may(staff_who_may: Callable[..., Client], ours: EndUser, theirs: EndUser, missing: str) -> None:
    client = staff_who_may(*(name for name in MAY if name != missing))
    expected = 403 if missing not in ("", "view_enduser") else 200
    assert client.get(address_of(ours)).status_code == expected
    posted = client.post(address_of(ours), confirmation(ours, theirs))
    assert posted.status_code == (302 if expected == 200 else 403)
    assert ChangeSet.objects.exists() == (expected == 200)
