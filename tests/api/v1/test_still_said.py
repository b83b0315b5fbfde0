"""What the person's turns still say of a fact that was changed, forgotten or is over."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.models import Fact
from tests import factories
from tests.api.conftest import Hub

pytestmark = pytest.mark.django_db
TURNS = [("user", "I live in Leiden. I like tea."), ("user", "What is the weather in Leiden?"), ("user", "Hello!")]


@pytest.fixture
def fact(hub: Hub) -> Fact:
    person = factories.end_user(hub.tenant, external_id="u1")
    factories.session(person, TURNS)
    return factories.fact(person, "Lives in Leiden", now=timezone.now() - timedelta(days=1))


def found(hub: Hub) -> dict[str, Any]:
    body = {"user_id": "u1", "query": "Leiden", "kinds": ["turn"]}
    results = hub.client.call("POST", "/search", body).json()["results"]
    return {one["text"]: one["outdated_since"] for one in results}


def test_a_change_of_the_text_tells_how_many_turns_say_the_old_one(hub: Hub, fact: Fact) -> None:
    unchanged = hub.client.call("PATCH", f"/facts/{fact.pk}", {"importance": 1}).json()
    assert unchanged["still_said_by"] is None
    assert found(hub)[TURNS[0][1]] is None
    changed = hub.client.call("PATCH", f"/facts/{fact.pk}", {"content": "Lives in Utrecht"}).json()
    assert changed["still_said_by"] == 1
    assert hub.client.call("GET", f"/facts/{fact.pk}").json()["still_said_by"] is None
    marked = found(hub)
    assert marked[TURNS[0][1]] is not None
    assert marked[TURNS[1][1]] is None


def test_forgetting_tells_it_in_a_header(hub: Hub, fact: Fact) -> None:
    other = factories.fact(fact.end_user, "Plays chess")
    assert hub.client.call("DELETE", f"/facts/{other.pk}").headers["X-Memory-Still-Said"] == "0"
    assert hub.client.call("DELETE", f"/facts/{fact.pk}").headers["X-Memory-Still-Said"] == "1"
    assert found(hub)[TURNS[0][1]] is not None
