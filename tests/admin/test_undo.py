"""The undo in the message after a change: of facts, episodes and sections, by who changed them."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories.models import EndUser, Fact, FactRefusal, ProfileSection
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of

pytestmark = pytest.mark.django_db
OFFERED = re.compile(r'<form method="post" action="([^"]+/undo/[^"]+)">')

CORRECTED = {"content": "Lives in Utrecht", "category": "knowledge", "reason": "Phoned"}


@pytest.fixture
def fact() -> Fact:
    return factories.fact(factories.end_user(), "Lives in Leiden")


def offered(response: Any) -> str:
    """The address of the undo that the page offers; empty if none."""
    found = OFFERED.search(text_of(response))
    return found.group(1) if found else ""


def act(client: Client, record: Any, verb: str, **given: Any) -> Any:
    return client.post(page_of(record, verb), {"version": record.version, **given}, follow=True)


def test_a_forgotten_fact_is_back_with_one_click(admin: Client, fact: Fact) -> None:
    address = offered(act(admin, fact, "forget", reason="Wrong person"))
    fact.refresh_from_db()
    assert (fact.status, FactRefusal.objects.count()) == ("trashed", 1)
    done = admin.post(address, follow=True)
    assert "Undone." in text_of(done)
    assert offered(done) == ""
    fact.refresh_from_db()
    assert (fact.status, FactRefusal.objects.count()) == ("active", 0)


@pytest.mark.parametrize(("verb", "given"), [("pin", {}), ("lock", {}), ("correct", CORRECTED)])
def test_a_changed_fact_is_what_it_was(admin: Client, fact: Fact, verb: str, given: dict[str, str]) -> None:
    before = (fact.content, fact.pinned, fact.locked)
    address = offered(act(admin, fact, verb, **given))
    fact.refresh_from_db()
    assert (fact.content, fact.pinned, fact.locked) != before
    admin.post(address)
    fact.refresh_from_db()
    assert (fact.content, fact.pinned, fact.locked) == before


def test_episodes_and_sections_too(admin: Client, fact: Fact) -> None:
    episode = factories.episode(factories.session(fact.end_user))
    admin.post(offered(act(admin, episode, "pin")))
    episode.refresh_from_db()
    assert not episode.pinned
    section = factories.profile_section(fact.end_user, summary="Bakes.")
    given = {"section": section.section, "version": section.version, "summary": "Bakes bread."}
    written = admin.post(page_of(fact.end_user, "write_section"), given, follow=True)
    assert ProfileSection.objects.get().summary == "Bakes bread."
    back = admin.post(offered(written), follow=True)
    assert ProfileSection.objects.get().summary == "Bakes."
    assert back.redirect_chain[-1][0] == reverse("admin:memories_enduser_profile_all", args=[fact.end_user.pk])


def test_what_changed_nothing_of_memory_offers_none(admin: Client, fact: Fact) -> None:
    person: EndUser = fact.end_user
    act(admin, fact, "pin")
    factories.profile_section(person)
    given = {"language": "nl", "time_zone": "", "capture": "on", "serve": "on", "display_name": ""}
    assert offered(admin.post(page_of(person, "update"), given, follow=True)) == ""


def test_it_is_refused_once_the_fact_has_changed_since(admin: Client, fact: Fact) -> None:
    address = offered(act(admin, fact, "pin"))
    fact.refresh_from_db()
    act(admin, fact, "lock")
    assert "has changed since" in text_of(admin.post(address, follow=True))
    fact.refresh_from_db()
    assert (fact.pinned, fact.locked) == (True, True)


def test_only_who_changed_it_and_still_may(admin: Client, fact: Fact, staff_who_may: Callable[..., Client]) -> None:
    address = offered(act(admin, fact, "pin"))
    other = signed_in(factories.operator(username="other", is_superuser=True))
    assert other.post(address).status_code == 404
    assert staff_who_may("view_fact").post(address).status_code == 403
    assert admin.get(address).status_code == 302
    another = factories.fact(fact.end_user, "Likes tea")
    assert admin.post(address.replace(str(fact.pk), str(another.pk))).status_code == 404
    fact.refresh_from_db()
    assert fact.pinned
