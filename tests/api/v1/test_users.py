"""GET /users."""

from datetime import timedelta

from pytest_django import DjangoAssertNumQueries

from tests import factories
from tests.api.conftest import Hub

LATER = factories.NOW + timedelta(seconds=1)


def names(hub: Hub, **query: str) -> list[str]:
    return [row["user_id"] for row in hub.client.get("/users", **query).json()["results"]]


def test_lists_the_tenants_people_newest_first(hub: Hub, other: Hub) -> None:
    factories.end_user(hub.tenant, external_id="first")
    factories.end_user(
        hub.tenant, external_id="second", created_at=LATER, display_name="Wei", restricted_at=factories.NOW
    )
    factories.end_user(other.tenant, external_id="stranger")
    assert names(hub) == ["second", "first"]
    row = hub.client.get("/users").json()["results"][0]
    assert (row["display_name"], row["restricted"], row["language"], row["metadata"]) == ("Wei", True, None, {})


def test_q_finds_parts_of_ids_and_names_in_any_case(hub: Hub) -> None:
    factories.end_user(hub.tenant, external_id="alice@example.org")
    factories.end_user(hub.tenant, external_id="u_2", display_name="王小明")
    assert names(hub, q="ALICE@") == ["alice@example.org"]
    assert names(hub, q="小明") == ["u_2"]
    # An underscore is no wildcard.
    assert names(hub, q="e_") == []


def test_costs_two_queries(hub: Hub, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    for _ in range(3):
        factories.end_user(hub.tenant)
    hub.client.get("/users")
    with django_assert_num_queries(2):
        hub.client.get("/users")
