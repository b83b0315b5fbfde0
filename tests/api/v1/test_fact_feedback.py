"""POST /facts/{id}/feedback."""

from typing import Any

import pytest

from memories.curation.facts.forgetting import forget_fact
from memories.models import Fact
from tests import factories
from tests.api.conftest import Hub


@pytest.fixture
def fact(hub: Hub) -> Fact:
    return factories.fact(factories.end_user(hub.tenant, external_id="u1"), importance=0.5)


def give(hub: Hub, fact: Fact, useful: Any, **headers: str) -> Any:
    return hub.client.post(f"/facts/{fact.pk}/feedback", {"useful": useful}, **headers)


def test_a_useful_fact_fades_later(hub: Hub, fact: Fact) -> None:
    answer = give(hub, fact, True).json()
    assert (answer["importance"], answer["version"]) == (0.55, 2)
    after = Fact.objects.get()
    assert after.last_confirmed_at > fact.last_confirmed_at
    assert fact.forget_at
    assert after.forget_at
    assert after.forget_at > fact.forget_at


def test_another_fades_sooner(hub: Hub, fact: Fact) -> None:
    assert give(hub, fact, False).json()["importance"] == 0.4
    after = Fact.objects.get()
    assert after.last_confirmed_at == fact.last_confirmed_at
    assert fact.forget_at
    assert after.forget_at
    assert after.forget_at < fact.forget_at


@pytest.mark.parametrize(("useful", "end"), [(True, 1.0), (False, 0.0)])
def test_it_stays_from_0_to_1(hub: Hub, fact: Fact, useful: bool, end: float) -> None:
    shown = [give(hub, fact, useful).json()["importance"] for _ in range(12)]
    assert shown[-1] == end
    assert all(0 <= importance <= 1 for importance in shown)


def test_the_history_tells_of_it(hub: Hub, fact: Fact) -> None:
    give(hub, fact, False)
    newest = fact.revisions.first()
    assert newest
    assert (newest.verb, newest.reason, newest.actor_id) == ("feedback", "not useful", str(hub.key.pk))


@pytest.mark.parametrize("field", ["pinned", "locked", "binding"])
def test_an_operators_word_stays(hub: Hub, fact: Fact, field: str) -> None:
    Fact.objects.update(**{field: True})
    answer = give(hub, fact, False)
    assert (answer.status_code, answer.json()["importance"], answer.json()["version"]) == (200, 0.5, 1)


def test_what_is_served_nowhere_takes_none(hub: Hub, fact: Fact) -> None:
    forget_fact(fact_id=fact.pk, tenant=None, actor=factories.COMMAND, now=factories.NOW)
    assert give(hub, fact, True).status_code == 409


def test_of_a_restricted_person_nothing_changes(hub: Hub, fact: Fact) -> None:
    fact.end_user.restricted_at = factories.NOW
    fact.end_user.save()
    assert give(hub, fact, True).status_code == 423
    Fact.objects.update(pinned=True)
    assert give(hub, fact, True).status_code == 423


@pytest.mark.parametrize("body", [{}, {"useful": "yes"}, {"useful": 1}, {"useful": None}, {"useful": True, "why": "x"}])
def test_bad_bodies_are_refused(hub: Hub, fact: Fact, body: dict[str, Any]) -> None:
    assert hub.client.post(f"/facts/{fact.pk}/feedback", body).status_code == 400
