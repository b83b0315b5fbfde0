"""Tabs over the lists: the fixed ones, an operator's own, their counts in one query, and what is never kept."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Model, Q
from django.test import Client
from django.utils import timezone

from memories.admin.lists import change_list, tabs
from memories.audit import Actor
from memories.curation.access.saved_filters import save_filter
from memories.exceptions import Conflict
from memories.models import AuditEvent, EndUser, Fact, Operator, SavedFilter, Session, SessionQueue
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import LIST_BUDGET, list_of, queries_of, text_of
from tests.admin.test_tenant_scope import limited

pytestmark = pytest.mark.django_db


def shown(client: Client, model: type[Model], query: str = "") -> Any:
    response = client.get(f"{list_of(model)}{query}")
    assert response.status_code == 200
    return response.context["cl"]


def counts(client: Client, model: type[Model]) -> dict[str, int]:
    return {str(tab.title): tab.count for tab in shown(client, model).tabs}


def save(client: Client, query: str, name: str = "Mine", model: type[Model] = Fact) -> Any:
    return client.post(f"{list_of(model)}save-filter/", {"query": query, "name": name})


def test_every_tab_is_a_filter_of_its_list(admin: Client) -> None:
    for model in tabs.TABS:
        for tab in tabs.tabs_of(model):
            assert shown(admin, model, f"?tab={tab.slug}").tab == tab.slug
            assert isinstance(tab.where(timezone.now()), Q)


def test_facts_are_counted_by_tab(admin: Client) -> None:
    person, now = factories.end_user(), timezone.now()
    factories.fact(person, "pinned", pinned=True)
    factories.fact(person, "locked", locked=True)
    factories.fact(person, "binding", binding=True)
    factories.fact(person, "waits", status="pending")
    factories.fact(person, "ends", expires_at=now + timedelta(days=2))
    factories.fact(person, "ended", expires_at=now - timedelta(days=2))
    factories.fact(person, "gone", status="trashed", pinned=True, trashed_at=now)
    found = counts(admin, Fact)
    expected = {"Pending": 1, "Expires this week": 1, "Pinned": 1, "Locked": 1, "Confirmed": 1, "Trash": 1}
    assert {title: found[title] for title in expected} == expected
    page = text_of(admin.get(f"{list_of(Fact)}?tab=pinned"))
    assert "pinned</span>" in page
    assert "gone</span>" not in page


def test_people_and_sessions_are_counted_by_tab(admin: Client) -> None:
    person, now = factories.end_user(), timezone.now()
    factories.end_user(restricted_at=now)
    factories.end_user(capture=False)
    parked = factories.session(person)
    SessionQueue.objects.filter(pk=parked.pk).update(parked_at=now, failure="model_timeout")
    people, sessions = counts(admin, EndUser), counts(admin, Session)
    assert (people["Restricted"], people["Switched off"]) == (1, 1)
    assert (sessions["Extraction parked"], sessions["Working memory parked"]) == (1, 0)


def test_counting_stops(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    person = factories.end_user()
    for number in range(4):
        factories.fact(person, f"pinned {number}", pinned=True)
    monkeypatch.setattr(change_list, "COUNTED", 2)
    pinned = next(tab for tab in shown(admin, Fact).tabs if tab.title == "Pinned")
    assert (pinned.count, pinned.counted) == (3, "2+")


def test_counts_are_of_what_the_operator_may_see() -> None:
    own, other = factories.end_user(), factories.end_user()
    factories.fact(own, "one", pinned=True)
    factories.fact(other, "two", pinned=True)
    assert counts(signed_in(limited(own.tenant)), Fact)["Pinned"] == 1


def test_a_filter_is_saved_shown_and_forgotten(admin: Client, administrator: Operator) -> None:
    person = factories.end_user()
    factories.fact(person, "goal", category="goal", pinned=True)
    factories.fact(person, "other", category="skill", pinned=True)
    saved = save(admin, "tab=pinned&category__exact=goal&q=secret&p=2&o=3")
    assert saved["Location"] == f"{list_of(Fact)}?tab=pinned&category__exact=goal&q=secret&p=2&o=3"
    row = SavedFilter.objects.get()
    assert row.choices == {"tab": "pinned", "category__exact": "goal"}
    tab = next(tab for tab in shown(admin, Fact, "?tab=pinned&category__exact=goal").tabs if tab.saved)
    assert (tab.title, tab.count, tab.active) == ("Mine", 1, True)
    assert [event.verb for event in AuditEvent.objects.all()] == ["save_filter"]
    for _ in range(2):
        assert admin.post(f"{list_of(Fact)}forget-filter/{row.pk}/").status_code == 302
    assert not SavedFilter.objects.exists()
    assert [event.verb for event in AuditEvent.objects.all()] == ["forget_filter", "save_filter"]


def test_what_was_searched_for_is_never_saved(admin: Client) -> None:
    save(admin, "q=alice%40example.com")
    assert not SavedFilter.objects.exists()


def test_only_filters_of_the_list_are_saved(admin: Client) -> None:
    for query in ("content__contains=x", "tab=pinned&nothing=1", "tab=%00"):
        assert save(admin, query).status_code in (302, 400), query
    assert not SavedFilter.objects.exists()


def test_a_name_stands_for_one_filter(admin: Client) -> None:
    save(admin, "tab=pinned")
    save(admin, "tab=locked")
    assert [row.choices for row in SavedFilter.objects.all()] == [{"tab": "locked"}]


def test_filters_are_each_operators_own(admin: Client) -> None:
    save(admin, "category__exact=goal")
    row = SavedFilter.objects.get()
    other = signed_in(factories.operator(username="other"))
    assert not [tab for tab in shown(other, Fact).tabs if tab.saved]
    other.post(f"{list_of(Fact)}forget-filter/{row.pk}/")
    assert SavedFilter.objects.exists()


def test_a_saved_filter_that_no_longer_exists_is_shown_empty(admin: Client, administrator: Operator) -> None:
    factories.saved_filter(administrator, choices={"no_such_field": "x"})
    tab = next(tab for tab in shown(admin, Fact).tabs if tab.saved)
    assert tab.count == 0


def test_they_are_not_without_number(administrator: Operator) -> None:
    actor, now = Actor.operator(administrator), timezone.now()
    given: dict[str, Any] = {"operator": administrator, "model": "Fact", "actor": actor, "now": now, "choices": {}}
    for number in range(12):
        save_filter(**given, name=f"n{number}")
    save_filter(**given, name="n3")
    with pytest.raises(Conflict):
        save_filter(**given, name="one more")


def test_all_tabs_are_counted_in_one_query(admin: Client, administrator: Operator) -> None:
    factories.fact(factories.end_user(), "one")
    few = queries_of(admin, list_of(Fact))
    for number in range(5):
        factories.saved_filter(administrator, name=f"n{number}", choices={"category__exact": "goal"})
    assert queries_of(admin, list_of(Fact)) == few <= LIST_BUDGET


def test_saving_needs_a_post_and_the_list(admin: Client, staff: Client) -> None:
    assert admin.get(f"{list_of(Fact)}save-filter/").status_code == 405
    assert admin.get(f"{list_of(Fact)}forget-filter/00000000-0000-7000-8000-000000000000/").status_code == 405
    assert save(staff, "tab=pinned").status_code == 403
