"""What was said: turns of a tenant are found by words and by meaning, and each look-up is in the trail."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories.embedding import vectors
from memories.models import AuditEvent, EndUser, Tenant, Turn
from memories.retrieval import evidence, tenant_turns
from memories.retrieval.prepared_query import prepare
from memories.retrieval.tenant_turns import TenantTurns, TurnFilters
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import text_of
from tests.admin.test_tenant_scope import limited
from tests.database import statements

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    owner = factories.tenant()
    for name, texts in {
        "lin": ("My landlord raised the rent in Leiden", "I am allergic to peanuts"),
        "wei": ("The rent is too high", "My cat likes fish"),
    }.items():
        person = factories.end_user(owner, external_id=name)
        said = [(role, text) for text in texts for role, text in (("user", text), ("assistant", "I see."))]
        factories.session(person, said, session_id=f"s-{name}")
    other = factories.end_user()
    factories.session(other, (("user", "Somebody else's rent"),))
    while vectors.embed_some().moved:
        """Until every text has its vector."""
    return owner


def found(owner: Tenant, words: str = "rent", **filters: Any) -> TenantTurns:
    return tenant_turns.search(owner, prepare(words), TurnFilters(**filters), limit=25)


def texts(result: TenantTurns) -> set[str]:
    return {one.turn.start for one in result.found}


class TestSearch:
    def test_over_all_people_of_the_tenant_alone(self, tenant: Tenant) -> None:
        result = found(tenant)
        best = {one.turn.start for one in result.found[:2]}
        assert best == {"My landlord raised the rent in Leiden", "The rent is too high"}
        assert "Somebody else's rent" not in texts(result)
        assert (result.searched, result.is_cut) == (8, False)

    def test_what_is_far_below_the_best_is_left_out(self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
        for text in ("OK", "好", "Tell me more about it"):
            factories.session(factories.end_user(tenant), (("user", text),))
        while vectors.embed_some().moved:
            """Until every text has its vector."""
        monkeypatch.setattr(evidence, "LEAST_STRONG", 2.0)
        result = found(tenant, "allergic")
        assert (texts(result), result.searched) == ({"I am allergic to peanuts"}, 11)
        # The positive controls: what is strong as evidence stays, and it is the share that left the others out.
        monkeypatch.setattr(evidence, "LEAST_STRONG", 0.0)
        monkeypatch.setattr(evidence, "STRONG_SHARE", 0.0)
        assert len(found(tenant, "allergic").found) > 1
        monkeypatch.undo()
        monkeypatch.setattr(tenant_turns, "SHARE_OF_BEST", 0.0)
        assert len(found(tenant, "allergic").found) > 1

    def test_filters(self, tenant: Tenant) -> None:
        lin = EndUser.objects.get(external_id="lin")
        assert texts(found(tenant, person=lin)) & {"The rent is too high"} == set()
        assert "The rent is too high" in texts(found(tenant, session="s-wei"))
        assert "My landlord raised the rent in Leiden" not in texts(found(tenant, session="s-wei"))
        assert {one.turn.role for one in found(tenant, "I see", role="assistant").found} == {"assistant"}
        assert found(tenant, role="tool").found == []

    def test_dates_are_those_of_when_it_was_said(self, tenant: Tenant) -> None:
        long_ago = datetime(2020, 5, 1, 12, tzinfo=UTC)
        Turn.objects.filter(content="The rent is too high").update(timestamp=long_ago)
        day = timedelta(days=1)
        assert texts(found(tenant, since=long_ago - day, until=long_ago + day)) == {"The rent is too high"}
        assert "The rent is too high" not in texts(found(tenant, since=long_ago + day))
        assert found(tenant, until=long_ago - day).found == []

    def test_by_words_alone(self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("memories.retrieval.prepared_query.spaces.serving", lambda: None)
        best = [one.turn.start for one in found(tenant, "peanuts").found]
        assert best[0] == "I am allergic to peanuts"

    def test_the_oldest_conversations_are_left_out_beyond_the_bound(
        self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tenant_turns, "MOST", 4)
        result = found(tenant)
        assert (result.searched, result.is_cut) == (4, True)

    def test_of_a_session_beyond_the_bound_the_newest_turns_are_read(
        self, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tenant_turns, "MOST", 2)
        result = found(tenant, "cat", session="s-wei")
        assert (result.searched, result.is_cut) == (2, True)
        assert "My cat likes fish" in texts(result)
        assert "The rent is too high" not in texts(found(tenant, session="s-wei"))
        monkeypatch.setattr(tenant_turns, "MOST", 4)
        result = found(tenant, session="s-wei")
        assert (result.searched, result.is_cut) == (4, False)
        assert "The rent is too high" in texts(result)

    def test_it_takes_as_many_statements_whatever_is_stored(self, tenant: Tenant) -> None:
        query = prepare("rent")
        before = len(statements(lambda: tenant_turns.search(tenant, query, TurnFilters(), limit=25)))
        for number in range(5):
            factories.session(factories.end_user(tenant), (("user", f"Rent number {number}"),))
        assert len(statements(lambda: tenant_turns.search(tenant, query, TurnFilters(), limit=25))) == before == 4


def ask(browser: Client, tenant: Tenant, **over: Any) -> Any:
    return browser.post(reverse("admin:said"), {"tenant": tenant.pk, "query": "rent in Leiden", "role": "", **over})


class TestPage:
    def test_a_look_up_is_in_the_trail_without_its_words(self, admin: Client, tenant: Tenant) -> None:
        answer = ask(admin, tenant)
        assert "My landlord raised the rent in Leiden" in text_of(answer)
        event = AuditEvent.objects.get(verb="search")
        assert (event.object_type, event.object_id, event.tenant_uuid) == ("Tenant", tenant.pk, tenant.pk)
        assert event.counts["searched"] == 8
        person = EndUser.objects.get(external_id="lin")
        ask(admin, tenant, user_id="lin")
        event = AuditEvent.objects.filter(verb="search").latest("id")
        assert (event.object_type, event.object_id) == ("EndUser", person.pk)
        assert "Leiden" not in str(list(AuditEvent.objects.values()))

    def test_an_end_user_is_found_by_name_too(self, admin: Client, tenant: Tenant) -> None:
        person = EndUser.objects.get(external_id="lin")
        EndUser.objects.filter(pk=person.pk).update(display_name="Lin Wei")
        ask(admin, tenant, user_id="Lin Wei")
        assert AuditEvent.objects.get(verb="search").object_id == person.pk
        assert "no end user with this id or name" in text_of(ask(admin, tenant, user_id="Nobody Known"))

    def test_looking_at_the_form_is_not_recorded(self, admin: Client) -> None:
        assert admin.get(reverse("admin:said")).status_code == 200
        assert not AuditEvent.objects.filter(verb="search").exists()

    def test_bad_input(self, admin: Client, tenant: Tenant) -> None:
        for fault in ({"query": ""}, {"user_id": "nobody"}, {"role": "king"}, {"since": "soon"}, {"query": "x\x00"}):
            assert ask(admin, tenant, **fault).status_code == 400, fault
        assert not AuditEvent.objects.filter(verb="search").exists()
        for day in ("0001-01-01", "9999-12-31"):
            assert ask(admin, tenant, since=day, until=day).status_code == 200, day

    def test_another_tenant_is_no_choice(self, tenant: Tenant) -> None:
        assert ask(signed_in(limited(factories.tenant())), tenant).status_code == 400
        assert ask(signed_in(limited(tenant)), tenant).status_code == 200
