"""`as_of` on GET /facts, POST /search and POST /context: what was true, and said, by then."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories import conf
from memories.capture import ingest
from memories.capture.ingest import PostedMessage
from memories.models import EndUser, Episode, Fact, Session
from memories.models.memories.visibility import Viewer
from memories.retrieval import recalls, visible_facts
from tests import factories
from tests.api.conftest import Hub

START = datetime(2023, 1, 1, tzinfo=UTC)
CITY = {"category": "identity", "key": "home_city"}


def day(number: int) -> datetime:
    return START + timedelta(days=number)


@pytest.fixture
def person(hub: Hub) -> EndUser:
    """Leiden from day 10, Utrecht from day 20 on; a temporary fact; what was taken back; what nobody may see."""
    person = factories.end_user(hub.tenant, external_id="u1")
    utrecht = factories.fact(person, "Lives in Utrecht", **CITY, value="Utrecht", now=day(20))
    ended = {"status": "superseded", "valid_to": day(20), "superseded_by": utrecht}
    factories.fact(person, "Lives in Leiden", **CITY, value="Leiden", now=day(10), **ended)
    factories.fact(person, "Lives in a hotel", now=day(12), expires_at=day(14))
    factories.fact(person, "Lives with a cat", now=day(5), status="archived", valid_to=day(15))
    for status in ("pending", "rejected", "trashed", "archived"):
        factories.fact(person, f"Lives {status}", now=day(5), status=status)
    messages = [PostedMessage("user", f"I live here on day {n}", timestamp=day(n)) for n in (10, 20)]
    ingest.store_turns(tenant=hub.tenant, user_id="u1", session_id="s1", agent_id="", messages=messages)
    return person


HELD: list[tuple[int, set[str]]] = [
    (4, set()),
    (5, {"Lives with a cat"}),
    (13, {"Lives with a cat", "Lives in Leiden", "Lives in a hotel"}),
    (14, {"Lives with a cat", "Lives in Leiden"}),
    (19, {"Lives in Leiden"}),
    (20, {"Lives in Utrecht"}),
    (2000, {"Lives in Utrecht"}),
]


def test_facts_as_they_held_then(hub: Hub, person: EndUser) -> None:
    for number, held in HELD:
        moment = day(number)
        listed = hub.client.get(f"/facts?user_id=u1&as_of={moment:%Y-%m-%d}T00:00:00Z").json()["results"]
        assert {one["content"] for one in listed} == held, number
        body = {"user_id": "u1", "query": "Where do they live?", "kinds": ["fact"], "as_of": moment.isoformat()}
        assert {one["text"] for one in hub.client.post("/search", body).json()["results"]} == held, number
        told = hub.client.post("/context", {"user_id": "u1", "as_of": moment.isoformat(), "include": ["facts"]}).json()
        assert {fact.content for fact in Fact.objects.all() if fact.content in told["memory"]} == held, number
        # The statement serves what the query set says.
        viewer, rules = Viewer(as_of=moment), conf.rules(person.tenant)
        expected = {fact.pk for fact in Fact.objects.of(person.tenant, person).held_at(moment)}
        served = visible_facts.served(person, viewer, rules=rules, now=timezone.now())
        assert {one.id for one in served} == expected, number


def test_without_it_the_present_is_told(hub: Hub, person: EndUser) -> None:
    listed = hub.client.get("/facts?user_id=u1").json()["results"]
    assert [one["content"] for one in listed] == ["Lives in Utrecht", "Lives in a hotel"]
    narrowed = hub.client.get("/facts?user_id=u1&as_of=2023-01-14T00:00:00Z&status=superseded")
    assert [one["content"] for one in narrowed.json()["results"]] == ["Lives in Leiden"]


@pytest.mark.parametrize("query", [None, "Where do I live on that day?"])
def test_turns_that_had_been_said_by_then(hub: Hub, person: EndUser, query: str | None) -> None:
    for number, days in ((9, set()), (10, {10}), (19, {10}), (20, {10, 20})):
        body: dict[str, Any] = {"user_id": "u1", "as_of": day(number).isoformat(), "query": query}
        for include in ("turns", "unextracted"):
            told = hub.client.post("/context", {**body, "include": [include]}).json()["memory"]
            assert {n for n in (10, 20) if f"on day {n}" in told} == days
        if query:
            found = hub.client.post("/search", {**body, "kinds": ["turn"]}).json()["results"]
            assert {int(one["text"].split()[-1]) for one in found} == days


def test_an_episode_counts_once_it_has_ended(hub: Hub, person: EndUser) -> None:
    factories.episode(Session.objects.get(end_user=person), "Moved")
    Episode.objects.update(ended_at=day(20))
    for number, there in ((19, False), (20, True)):
        body = {"user_id": "u1", "as_of": day(number).isoformat()}
        found = hub.client.post("/search", {**body, "query": "Moved", "kinds": ["episode"]}).json()["results"]
        told = hub.client.post("/context", {**body, "include": ["episodes"]}).json()["memory"]
        assert (bool(found), "Moved" in told) == (there, there)


def test_the_profile_is_of_today(hub: Hub, person: EndUser) -> None:
    factories.profile_section(person)
    assert hub.client.post("/context", {"user_id": "u1", "include": ["profile"]}).json()["memory"]
    as_of = {"as_of": day(2000).isoformat()}
    assert hub.client.post("/context", {"user_id": "u1", "include": ["profile"], **as_of}).json()["memory"] == ""


def test_a_look_at_the_past_recalls_nothing(hub: Hub, person: EndUser) -> None:
    body = {"user_id": "u1", "query": "Where do they live?"}
    recalls.flush(now=timezone.now())
    for path in ("/search", "/context"):
        hub.client.post(path, {**body, "as_of": day(2000).isoformat()})
    assert recalls.flush(now=timezone.now()) == 0
    # The control.
    hub.client.post("/search", body)
    assert recalls.flush(now=timezone.now()) > 0
