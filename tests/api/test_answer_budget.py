"""What one request can make the hub answer: one budget for all of its operations. An error says what to ask less of,
and a page that ends early has a cursor; nothing is left out without a word."""

from typing import Any

import pytest

from memories import budgets
from tests import factories
from tests.api.client import HubClient, follow
from tests.api.conftest import Hub

pytestmark = pytest.mark.django_db

LONG = "wort " * 1_000


def put(client: HubClient, number: int) -> None:
    operations = [{"op": "put", "namespace": ["a"], "key": f"k{at:02}", "value": {"t": LONG}} for at in range(number)]
    assert client.post("/store/batch", {"operations": operations}).status_code == 200


def batch(client: HubClient, *operations: dict[str, Any]) -> Any:
    return client.post("/store/batch", {"operations": list(operations)})


def refused(response: Any) -> None:
    problem = response.json()
    assert (response.status_code, problem["code"]) == (413, "too_costly")
    assert "Ask for fewer" in problem["detail"]


SEARCH = {"op": "search", "namespace": ["a"], "limit": 10}
GET = {"op": "get", "namespace": ["a"], "key": "k01"}


class TestStore:
    @pytest.mark.parametrize("one", [SEARCH, {**SEARCH, "query": "wort"}], ids=["newest", "best"])
    def test_many_searches_of_a_batch_are_one_answer(
        self, client: HubClient, one: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(client, 10)
        monkeypatch.setattr(budgets, "MOST_BYTES", 25 * (len(LONG) + budgets.ROW_BYTES + 50))
        answer = batch(client, one, one)
        assert [len(result["items"]) for result in answer.json()["results"]] == [10, 10]
        refused(batch(client, one, one, one))
        # Whoever narrows it, is answered.
        assert batch(client, *[{**one, "limit": 5}] * 4).status_code == 200

    def test_what_is_beyond_is_not_even_read(self, client: HubClient, monkeypatch: pytest.MonkeyPatch) -> None:
        put(client, 10)
        monkeypatch.setattr(budgets, "MOST_BYTES", 2 * len(LONG))
        read: list[int] = []
        spend = budgets.spend

        def noted(*, rows: int, size: int = 0) -> None:
            read.append(rows)
            spend(rows=rows, size=size)

        monkeypatch.setattr(budgets, "spend", noted)
        refused(client.post("/store/items/search", {"namespace_prefix": ["a"], "limit": 10}))
        assert read == [2]

    def test_look_ups_and_namespaces_count_too(self, client: HubClient, monkeypatch: pytest.MonkeyPatch) -> None:
        put(client, 3)
        monkeypatch.setattr(budgets, "MOST_ROWS", 5)
        assert batch(client, *[GET] * 5).status_code == 200
        refused(batch(client, *[GET] * 6))
        names = {"op": "list_namespaces", "limit": 10}
        assert batch(client, *[names] * 5).status_code == 200
        refused(batch(client, *[names] * 6))

    def test_what_is_refused_wrote_nothing(self, client: HubClient, monkeypatch: pytest.MonkeyPatch) -> None:
        put(client, 3)
        monkeypatch.setattr(budgets, "MOST_ROWS", 2)
        new = {"op": "put", "namespace": ["b"], "key": "new", "value": {}}
        refused(batch(client, SEARCH, new))
        monkeypatch.undo()
        assert batch(client, {**GET, "namespace": ["b"], "key": "new"}).json()["results"][0]["item"] is None


def test_a_page_ends_where_the_budget_does_and_goes_on(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [("user", f"{number} {LONG}") for number in range(9)]
    session = factories.session(factories.end_user(hub.tenant), said)
    monkeypatch.setattr(budgets, "MOST_BYTES", 4 * (len(LONG) + budgets.ROW_BYTES + 50))
    page = hub.client.get(f"/sessions/{session.pk}/turns", page_size=9).json()
    numbers = [one["number"] for one in page["results"]]
    assert numbers == [1, 2, 3, 4]
    while page["next"]:
        page = follow(hub.client, page["next"])
        assert len(page["results"]) <= 4
        numbers += [one["number"] for one in page["results"]]
    assert numbers == list(range(1, 10))
    # One that is larger than all of it comes by itself.
    monkeypatch.setattr(budgets, "MOST_BYTES", 10)
    assert [one["number"] for one in hub.client.get(f"/sessions/{session.pk}/turns").json()["results"]] == [1]


def test_files_count_as_often_as_they_are_named(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    person = factories.end_user(hub.tenant)
    factories.memory_file(person, "/memories/a.md", LONG)
    monkeypatch.setattr(budgets, "MOST_BYTES", 20 * (len(LONG) + budgets.ROW_BYTES))

    def asked(times: int) -> Any:
        return hub.client.post("/files/download", {"user_id": person.external_id, "paths": ["/memories/a.md"] * times})

    assert len(asked(20).json()["results"]) == 20
    refused(asked(21))


def test_a_search_of_several_kinds_is_one_answer(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    person = factories.end_user(hub.tenant)
    factories.session(person, [("user", f"tea {number}") for number in range(5)])
    asked = {"user_id": person.external_id, "query": "tea", "kinds": ["turn", "session"], "limit": 5}
    assert hub.client.post("/search", asked).json()["results"]
    monkeypatch.setattr(budgets, "MOST_ROWS", 1)
    refused(hub.client.post("/search", asked))
