"""Diary entries in the admin: the list, an entry, and its verbs."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from memories.models import AuditEvent, DiaryEntry, EndUser
from tests import factories
from tests.admin.pages import HOSTILE, list_of, page_of, said, shows_harmless, text_of
from tests.factories import NOW


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(external_id="usr_1000")


def act(client: Client, entry: DiaryEntry, verb: str) -> Any:
    return client.post(page_of(entry, verb), {})


def test_the_list_shows_beginnings_and_the_trash_apart(admin: Client, person: EndUser) -> None:
    factories.diary_entry(person, f"Asked about\nrye. {'x' * 200} the end", agent_id="baker", topic="bread")
    gone = factories.diary_entry(person, "Deleted one", trashed_at=NOW)
    page = text_of(admin.get(list_of(DiaryEntry)))
    assert "Asked about rye." in page
    assert "the end" not in page
    assert ("bread" in page, "baker" in page, "Deleted one" in page) == (True, True, True)
    trash = text_of(admin.get(f"{list_of(DiaryEntry)}?tab=trash"))
    assert (page_of(gone) in trash, "Asked about" in trash) == (True, False)


def test_an_entry_is_deleted_and_restored_by_who_may_change_memories(
    admin: Client, staff_who_may: Callable[..., Client], person: EndUser
) -> None:
    entry = factories.diary_entry(person, "Asked about rye.")
    reviewer = staff_who_may("view_diaryentry")
    assert "Asked about rye." in text_of(reviewer.get(page_of(entry)))
    assert act(reviewer, entry, "delete").status_code == 403
    assert "is deleted" in said(act(admin, entry, "delete"))
    assert DiaryEntry.objects.get().trashed_at
    assert "It can be restored" in text_of(admin.get(page_of(entry)))
    # Somebody else was quicker.
    assert act(admin, entry, "delete").status_code == 404
    assert "is restored" in said(act(admin, entry, "restore"))
    assert DiaryEntry.objects.get().trashed_at is None
    assert act(admin, entry, "restore").status_code == 409
    verbs = AuditEvent.objects.filter(object_type="DiaryEntry").order_by("id").values_list("verb", "actor_kind")
    assert list(verbs) == [("delete", "operator"), ("restore", "operator")]


def test_the_page_of_a_person_has_a_tab_for_each_agents_diary(
    admin: Client, staff_who_may: Callable[..., Client], person: EndUser
) -> None:
    for agent_id, content in (("coach", "Likes rye"), ("sales", HOSTILE), ("sales", "Bought bread")):
        factories.diary_entry(person, content, agent_id=agent_id)
    factories.diary_entry(person, "Thrown away", agent_id="coach", trashed_at=factories.NOW)
    address = page_of(person, "diary")
    assert staff_who_may("view_enduser").get(address).status_code == 403
    page = text_of(admin.get(address))
    assert ("Likes rye" in page, "Bought bread" in page, "Thrown away" in page) == (True, False, False)
    sales = admin.get(f"{address}?agent=sales")
    assert "Bought bread" in text_of(sales)
    assert shows_harmless(sales)
