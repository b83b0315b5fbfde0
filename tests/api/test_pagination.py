"""Pages: forwards and back without gaps, also among rows of one moment, and cursors that cannot be made up."""

from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from pytest_django import DjangoAssertNumQueries

from memories.models import EndUser, Fact
from tests import factories
from tests.api.client import follow
from tests.api.conftest import Hub


@pytest.fixture
def facts(hub: Hub) -> list[str]:
    """Seven facts of one moment, in the order of the list."""
    person = factories.end_user(hub.tenant, external_id="用户")
    for number in range(7):
        factories.fact(person, f"fact {number}")
    return [str(pk) for pk in Fact.objects.order_by("-id").values_list("pk", flat=True)]


def ids(page: Any) -> list[str]:
    return [row["id"] for row in page["results"]]


def test_forwards_and_back(hub: Hub, facts: list[str]) -> None:
    first = hub.client.get("/facts", user_id="用户", page_size=3).json()
    second = follow(hub.client, first["next"])
    third = follow(hub.client, second["next"])
    assert [ids(first), ids(second), ids(third)] == [facts[:3], facts[3:6], facts[6:]]
    assert (first["previous"], third["next"]) == (None, None)
    back = follow(hub.client, third["previous"])
    assert ids(back) == facts[3:6]
    start = follow(hub.client, back["previous"])
    assert (ids(start), start["previous"]) == (facts[:3], None)
    assert ids(follow(hub.client, start["next"])) == facts[3:6]


def test_rows_that_come_and_go_move_nothing(hub: Hub, facts: list[str]) -> None:
    first = hub.client.get("/facts", user_id="用户", page_size=3).json()
    Fact.objects.filter(pk=facts[2]).delete()
    factories.fact(EndUser.objects.get(), "newer")
    assert ids(follow(hub.client, first["next"])) == facts[3:6]


def test_the_default_is_50_and_200_the_most(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    session = factories.session(person, [("user", "x")] * 201)
    turns = f"/sessions/{session.pk}/turns"
    assert len(hub.client.get(turns).json()["results"]) == 50
    assert len(hub.client.get(turns, page_size=200).json()["results"]) == 200


def test_a_cursor_is_bound_to_its_list_and_tenant(hub: Hub, other: Hub, facts: list[str]) -> None:
    address = hub.client.get("/facts", user_id="用户", page_size=3).json()["next"]
    cursor = dict(parse_qsl(urlsplit(address).query))["cursor"]
    assert hub.client.get("/facts", user_id="用户", cursor=cursor).status_code == 200
    changed = cursor[:-1] + ("A" if cursor[-1] != "A" else "B")
    for client, path, query in [
        (other.client, "/facts", {"user_id": "用户", "cursor": cursor}),
        (hub.client, "/sessions", {"user_id": "用户", "cursor": cursor}),
        (hub.client, f"/facts/{facts[0]}/history", {"cursor": cursor}),
        (hub.client, "/facts", {"user_id": "用户", "cursor": changed}),
        (hub.client, "/facts", {"user_id": "用户", "cursor": cursor[1:]}),
    ]:
        answer = client.get(path, **query)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "cursor")


def test_a_page_costs_the_same_wherever_it_is(
    hub: Hub, facts: list[str], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    first = hub.client.get("/facts", user_id="用户", page_size=3).json()
    with django_assert_num_queries(7):
        assert ids(follow(hub.client, first["next"])) == facts[3:6]
