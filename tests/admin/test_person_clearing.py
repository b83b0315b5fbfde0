"""Clearing a person's memories on a page: previewed, with a reason and a fresh password, and taken back there."""

from typing import Any

import pytest
from django.test import Client

from memories.audit import Actor
from memories.curation.people.clearing import clear_memories
from memories.models import AuditEvent, ChangeSet, EndUser, Episode, Fact, FactRevision, ProfileSection
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.factories import NOW


@pytest.fixture
def person(db: None) -> EndUser:
    person = factories.end_user(external_id="u1")
    factories.fact(person, "Sings")
    factories.fact(person, "Locked", locked=True)
    factories.fact(person, "Sells", agent_id="sales")
    factories.episode(factories.session(person, agent_id="support"), "Helped")
    factories.profile_section(person)
    return person


def counts_on(page: Any) -> dict[str, int]:
    return dict(page.context["counts"])


def active() -> set[str]:
    return set(Fact.objects.filter(status="active").values_list("content", flat=True))


def test_the_persons_page_leads_to_the_preview_and_that_to_the_clearing(admin: Client, person: EndUser) -> None:
    address = page_of(person, "clear")
    assert address in text_of(admin.get(page_of(person)))
    assert counts_on(admin.get(address)) == {"facts": 3, "episodes": 1, "sections": 1, "files": 0, "diary": 0}
    preview = admin.post(address, {"agent": "", "reason": "A test"})
    assert (preview.status_code, 'name="confirmed"' in text_of(preview)) == (200, True)
    assert active() == {"Sings", "Locked", "Sells"}
    done: Any = admin.post(address, {"agent": "", "reason": "A test", "confirmed": "1"})
    assert (done.status_code, done.url) == (302, address)
    assert (active(), Episode.objects.get().status, ProfileSection.objects.get().summary) == (set(), "trashed", "")
    assert AuditEvent.objects.get(verb="clear").counts == {
        "facts": 3,
        "episodes": 1,
        "sections": 1,
        "files": 0,
        "diary": 0,
    }
    assert set(FactRevision.objects.filter(verb="forget").values_list("reason", flat=True)) == {"A test"}
    again = admin.post(address, {"confirmed": "1"}, follow=True)
    assert "Nothing was changed" in text_of(again)


def test_of_an_agent_what_is_that_agents(admin: Client, person: EndUser) -> None:
    address = page_of(person, "clear")
    factories.profile_section(person, agent_id="sales", summary="Buys much.")
    assert [name for name, _label in admin.get(address).context["form"].fields["agent"].choices] == [
        *("", "sales", "support")
    ]
    assert counts_on(admin.post(address, {"agent": "sales"})) == {
        "facts": 1,
        "episodes": 0,
        "sections": 1,
        "files": 0,
        "diary": 0,
    }
    admin.post(address, {"agent": "sales", "confirmed": "1"})
    assert AuditEvent.objects.get(verb="clear").counts == {
        "facts": 1,
        "episodes": 0,
        "sections": 1,
        "files": 0,
        "diary": 0,
    }
    assert (active(), Episode.objects.get().status) == ({"Sings", "Locked"}, "active")
    # An agent who has nothing, and one of whom nobody knows.
    for agent in ("sales", "nobody"):
        assert admin.post(address, {"agent": agent, "confirmed": "1"}).status_code == 400
    assert active() == {"Sings", "Locked"}


def test_what_a_key_cleared_is_taken_back_once(admin: Client, person: EndUser) -> None:
    key, _secret = factories.api_key(person.tenant)
    clear_memories(end_user=person, actor=Actor(kind="key", id=str(key.pk)), now=NOW)  # type: ignore[arg-type]
    made = ChangeSet.objects.get()
    address = page_of(person, "clear")
    page = text_of(admin.get(address))
    assert str(key) in page
    assert f'name="undo" value="{made.pk}"' in page
    assert admin.post(page_of(factories.end_user(person.tenant), "clear"), {"undo": made.pk}).status_code == 404
    assert admin.post(address, {"undo": "nonsense"}).status_code == 404
    assert active() == {"Locked"}
    assert "memories are back" in text_of(admin.post(address, {"undo": made.pk}, follow=True))
    assert active() == {"Sings", "Locked", "Sells"}
    assert (Episode.objects.get().status, ProfileSection.objects.get().summary) == ("active", "Runs a bakery.")
    page = text_of(admin.get(address))
    assert ('name="undo"' in page, "Restored facts: 2" in page) == (False, True)
    assert "already undone" in text_of(admin.post(address, {"undo": made.pk}, follow=True))


def test_only_with_a_password_entered_lately(person: EndUser) -> None:
    stale = signed_in(factories.operator(is_superuser=True), fresh=False)
    page = stale.post(page_of(person, "clear"), {"confirmed": "1", "reason": "A test"})
    assert (page.status_code, "fresh_password" in text_of(page)) == (403, True)
    assert len(active()) == 3
