"""Many facts at once from the list: what is shown before, what has to be typed, what is done, and its one undo."""

import re
import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories.admin.facts import bulk as fact_bulk
from memories.curation.batches import TYPED_ABOVE
from memories.models import Batch, EndUser, Fact
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import HOSTILE, list_of, queries_of, shows_harmless, text_of

DONE: dict[str, Any] = {
    "forget": {"status": "trashed"},
    "pin": {"pinned": True},
    "expire": {"expires_at__year": 2999},
}


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user()


@pytest.fixture
def facts(person: EndUser) -> list[Fact]:
    return [factories.fact(person, f"Fact {number}") for number in range(3)]


def choose(client: Client, verb: str, facts: list[Fact], **over: Any) -> Any:
    chosen = [str(fact.pk) for fact in facts]
    return client.post(list_of(Fact), {"action": f"{verb}_many", "_selected_action": chosen, "index": "0", **over})


def confirm(client: Client, verb: str, facts: list[Fact], **over: Any) -> Any:
    form = {
        "batch": str(uuid.uuid4()),
        "expected": [f"{fact.pk}:{fact.version}" for fact in facts],
        "reason": "They asked",
        "last_day": "2999-01-01",
    }
    return client.post(reverse("admin:memories_fact_bulk", args=[verb]), {**form, **over})


def done(verb: str) -> int:
    return Fact.objects.filter(**DONE[verb]).count()


@pytest.mark.parametrize("verb", DONE)
class TestEach:
    def test_is_shown_first_and_changes_nothing(self, admin: Client, facts: list[Fact], verb: str) -> None:
        Fact.objects.filter(pk=facts[0].pk).update(status="trashed")
        page = text_of(choose(admin, verb, facts))
        assert "2 facts would change" in page
        assert "stays: in the trash already" in page
        assert set(re.findall(r'name="expected" value="([^"]+)"', page)) == {f"{fact.pk}:1" for fact in facts}
        assert set(Fact.objects.values_list("version", flat=True)) == {1}

    def test_is_done_and_undone_as_one(self, admin: Client, facts: list[Fact], verb: str) -> None:
        response = confirm(admin, verb, facts)
        batch = Batch.objects.get()
        assert response["Location"] == reverse("admin:memories_fact_batch", args=[batch.pk])
        assert done(verb) == 3
        assert "Undo all" in text_of(admin.get(response["Location"]))
        assert admin.post(response["Location"]).status_code == 302
        assert done(verb) == 0
        page = text_of(admin.get(response["Location"]))
        assert "Undone" in page
        assert "Undo all" not in page

    def test_needs_no_reason(self, admin: Client, facts: list[Fact], verb: str) -> None:
        assert confirm(admin, verb, facts, reason="").status_code == 302
        assert done(verb) == 3


class TestMany:
    @pytest.fixture
    def crowd(self, person: EndUser) -> list[Fact]:
        return [factories.fact(person, f"One of many: {number}") for number in range(TYPED_ABOVE + 1)]

    @pytest.mark.parametrize("typed", ["", "25", "all"])
    def test_their_number_has_to_be_typed(self, admin: Client, crowd: list[Fact], typed: str) -> None:
        assert "Type 26 to confirm" in text_of(choose(admin, "forget", crowd))
        assert confirm(admin, "forget", crowd, typed=typed).status_code == 400
        assert done("forget") == 0
        assert confirm(admin, "forget", crowd, typed=" 26 ").status_code == 302
        assert done("forget") == 26

    def test_a_few_need_no_number(self, admin: Client, crowd: list[Fact]) -> None:
        assert "to confirm" not in text_of(choose(admin, "forget", crowd[:-1]))
        assert confirm(admin, "forget", crowd[:-1]).status_code == 302

    def test_too_many_are_refused(self, admin: Client, crowd: list[Fact], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fact_bulk, "MOST", 20)
        response = choose(admin, "forget", crowd, select_across="1")
        assert response.status_code == 302
        assert "Choose at most 20 facts" in text_of(admin.get(list_of(Fact)))

    def test_the_preview_takes_as_many_queries_for_many(self, admin: Client, crowd: list[Fact]) -> None:
        assert "26 facts" in text_of(choose(admin, "pin", crowd))
        confirm(admin, "pin", crowd, typed="26")
        address = reverse("admin:memories_fact_batch", args=[Batch.objects.get().pk])
        assert queries_of(admin, address) <= 16


class TestBadInput:
    @pytest.mark.parametrize("over", [{"expected": ["nonsense"]}, {"expected": []}], ids=str)
    def test_nothing_is_done(self, admin: Client, facts: list[Fact], over: dict[str, Any]) -> None:
        assert confirm(admin, "forget", facts, **over).status_code == 400
        assert done("forget") == 0

    @pytest.mark.parametrize("day", ["", "2020-01-01", "tomorrow"])
    def test_a_day_that_is_none(self, admin: Client, facts: list[Fact], day: str) -> None:
        assert confirm(admin, "expire", facts, last_day=day).status_code == 400

    def test_another_verb_is_not_found(self, admin: Client, facts: list[Fact]) -> None:
        assert confirm(admin, "delete", facts).status_code == 404

    def test_hostile_text_stays_text(self, admin: Client, person: EndUser) -> None:
        hostile = factories.fact(person, HOSTILE)
        assert shows_harmless(choose(admin, "pin", [hostile]))
        assert shows_harmless(admin.get(confirm(admin, "pin", [hostile])["Location"]))


class TestWhoMay:
    def test_nobody_beyond_their_tenants(self, admin: Client, facts: list[Fact]) -> None:
        limited = factories.operator(all_tenants=False)
        own = factories.fact(factories.end_user(), "Within reach")
        limited.tenants.add(own.tenant)
        client = signed_in(limited)
        confirm(client, "pin", [*facts, own])
        assert list(Fact.objects.filter(pinned=True)) == [own]
        done_by_other = confirm(admin, "forget", facts)["Location"]
        assert client.get(done_by_other).status_code == 404
        assert client.post(done_by_other).status_code == 404
        assert done("forget") == 3
