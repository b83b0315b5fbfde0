"""Many facts at once from the list: what is shown before, what has to be typed, what is done, and its one undo."""

import re
import uuid
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories.admin.facts import bulk as fact_bulk
from memories.admin.site import bulk
from memories.models import Batch, EndUser, Fact, Operator
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, queries_of, text_of
from tests.admin.test_tenant_scope import limited

DONE: dict[str, Any] = {
    "forget": {"status": "trashed"},
    "pin": {"pinned": True},
    "expire": {"expires_at__year": 2999},
}


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

    def test_is_done_and_undone_as_one_without_a_reason(self, admin: Client, facts: list[Fact], verb: str) -> None:
        response = confirm(admin, verb, facts, reason="")
        batch = Batch.objects.get()
        assert response["Location"] == reverse("admin:memories_fact_batch", args=[batch.pk])
        assert done(verb) == 3
        assert "Undo all" in text_of(admin.get(response["Location"]))
        assert admin.post(response["Location"]).status_code == 302
        assert done(verb) == 0
        page = text_of(admin.get(response["Location"]))
        assert "Undone" in page
        assert "Undo all" not in page


class TestMany:
    def test_their_number_has_to_be_typed(
        self, admin: Client, administrator: Operator, facts: list[Fact], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(bulk, "TYPED_ABOVE", 2)
        assert "Type 3 to confirm" in text_of(choose(admin, "forget", facts))
        for typed in ("", "2", "all"):
            assert confirm(admin, "forget", facts, typed=typed).status_code == 400
        assert confirm(signed_in(administrator, fresh=False), "forget", facts, typed="3").status_code == 403
        assert done("forget") == 0
        assert confirm(admin, "forget", facts, typed=" 3 ").status_code == 302
        assert done("forget") == 3
        # As many as that need no number.
        restored = [factories.fact(facts[0].end_user, f"Another {number}") for number in range(2)]
        assert "to confirm" not in text_of(choose(admin, "forget", restored))
        assert confirm(admin, "forget", restored).status_code == 302

    def test_too_many_are_refused(self, admin: Client, facts: list[Fact], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fact_bulk, "MOST", 2)
        response = choose(admin, "forget", facts, select_across="1")
        assert response.status_code == 302
        assert "Choose at most 2 facts" in text_of(admin.get(list_of(Fact)))

    def test_what_was_done_takes_as_many_queries_for_many(self, admin: Client, facts: list[Fact]) -> None:
        one, more = (confirm(admin, "pin", some)["Location"] for some in (facts[:1], facts[1:]))
        assert queries_of(admin, one) == queries_of(admin, more)


class TestBadInput:
    def test_nothing_is_done(self, admin: Client, facts: list[Fact]) -> None:
        for expected in (["nonsense"], []):
            assert confirm(admin, "forget", facts, expected=expected).status_code == 400
        for day in ("", "2020-01-01", "tomorrow"):
            assert confirm(admin, "expire", facts, last_day=day).status_code == 400, day
        assert confirm(admin, "delete", facts).status_code == 404
        assert set(Fact.objects.values_list("version", flat=True)) == {1}


class TestWhoMay:
    def test_nobody_beyond_their_tenants(self, admin: Client, facts: list[Fact]) -> None:
        own = factories.fact(factories.end_user(), "Within reach")
        client = signed_in(limited(own.tenant))
        confirm(client, "pin", [*facts, own])
        assert list(Fact.objects.filter(pinned=True)) == [own]
        done_by_other = confirm(admin, "forget", facts)["Location"]
        assert client.get(done_by_other).status_code == 404
        assert client.post(done_by_other).status_code == 404
        assert done("forget") == 3
