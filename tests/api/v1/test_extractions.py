"""GET /extractions."""

from datetime import timedelta

import pytest
from pytest_django import DjangoAssertNumQueries

from tests import factories
from tests.api.conftest import Hub


def ids(hub: Hub, **query: str) -> list[str]:
    return [row["id"] for row in hub.client.get("/extractions", **query).json()["results"]]


def test_lists_runs_newest_first_with_filters(hub: Hub, other: Hub) -> None:
    wei, ana = factories.end_user(hub.tenant), factories.end_user(hub.tenant)
    done = factories.run(factories.session(wei))
    parked = factories.run(factories.session(wei), status="parked", started_at=factories.NOW + timedelta(seconds=1))
    hers = factories.run(factories.session(ana), started_at=factories.NOW + timedelta(seconds=2))
    factories.run(factories.session(factories.end_user(other.tenant)))
    assert ids(hub) == [str(hers.pk), str(parked.pk), str(done.pk)]
    assert ids(hub, user_id=wei.external_id) == [str(parked.pk), str(done.pk)]
    assert ids(hub, user_id=wei.external_id, status="parked") == [str(parked.pk)]
    assert ids(hub, user_id="nobody") == []


@pytest.mark.parametrize("query", [{"status": "lost"}, {"user_id": "x" * 256}, {"since": "x"}])
def test_bad_parameters_are_refused(hub: Hub, query: dict[str, str]) -> None:
    answer = hub.client.get("/extractions", **query)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] in query


def test_costs_two_queries(hub: Hub, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    for _ in range(3):
        factories.run(factories.session(factories.end_user(hub.tenant)))
    hub.client.get("/extractions")
    with django_assert_num_queries(2):
        hub.client.get("/extractions")
