"""What an operator protects of an agent's facts is heeded on every road on which a key states something else."""

from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.facts.keeping import lock_fact, pin_fact
from memories.curation.people.records import person_for_writing
from memories.models import Fact, ReviewItem
from tests import factories
from tests.api.conftest import Hub

CITY: dict[str, Any] = {"category": "identity", "key": "city"}


def pin(fact: Fact, staff: Actor) -> None:
    pin_fact(fact_id=fact.pk, actor=staff, now=factories.NOW)


def lock(fact: Fact, staff: Actor) -> None:
    lock_fact(fact_id=fact.pk, actor=staff, now=factories.NOW)


def correct(fact: Fact, staff: Actor) -> None:
    correct_fact(fact_id=fact.pk, tenant=None, content="Lives in Leiden now", reason="", actor=staff, now=factories.NOW)


def nothing(_fact: Fact, _staff: Actor) -> None:
    """The control: nobody protects it."""


# All of them on one road, one of them on each of the others.
PROTECTIONS = pytest.mark.parametrize(
    ("protect", "is_protected"), [(pin, True), (lock, True), (correct, True), (nothing, False)]
)
CORRECTED = pytest.mark.parametrize(("protect", "is_protected"), [(correct, True), (nothing, False)])
LOCKED = pytest.mark.parametrize(("protect", "is_protected"), [(lock, True), (nothing, False)])


@pytest.fixture
def staff() -> Actor:
    return Actor.operator(factories.operator())


@pytest.fixture
def known(hub: Hub) -> Fact:
    """What agent a1 knows of u1."""
    return told(hub, agent_id="a1")


def told(hub: Hub, content: str = "Lives in Leiden", value: str = "Leiden", **over: Any) -> Fact:
    person = person_for_writing(tenant=hub.tenant, user_id="u1", now=factories.NOW)
    draft = FactDraft(**{"content": content, "value": value, **CITY, **over})
    return add_fact(end_user=person, draft=draft, actor=factories.KEY, now=factories.NOW).row


def state(hub: Hub, **over: Any) -> Any:
    return hub.client.post("/facts", {"user_id": "u1", "content": "Lives in Delft", **CITY, "value": "Delft", **over})


def held_by(fact: Fact) -> str:
    """Why something waits for the fact's sake."""
    return ReviewItem.objects.waiting().get(known=fact).reason


@PROTECTIONS
def test_another_value_waits(hub: Hub, known: Fact, staff: Actor, protect: Any, is_protected: bool) -> None:
    protect(known, staff)
    answer = state(hub)
    assert (answer.status_code, answer.json()["status"]) == (201, "pending" if is_protected else "active")
    if is_protected:
        assert held_by(known) == "operators_word"
    known.refresh_from_db()
    assert known.status == "active"


@CORRECTED
def test_the_same_text_is_known(hub: Hub, known: Fact, staff: Actor, protect: Any, is_protected: bool) -> None:
    protect(known, staff)
    known.refresh_from_db()
    answer = state(hub, content=known.content, value="")
    assert answer.status_code == (409 if is_protected else 201)
    document = {"facts": [{"content": known.content, "category": "knowledge", "confidence": 0.9}]}
    assert hub.client.call("PUT", "/memory?user_id=u1", document).status_code == 200
    assert Fact.objects.filter(content=known.content).count() == (1 if is_protected else 2)


@LOCKED
def test_what_a_statement_contradicts_in_so_many_words(
    hub: Hub, known: Fact, staff: Actor, protect: Any, is_protected: bool
) -> None:
    protect(known, staff)
    relations = [{"type": "contradicts", "target_id": str(known.pk)}]
    answer = state(hub, key="", value="", relations=relations, agent_id="a1")
    assert answer.json()["status"] == ("pending" if is_protected else "active")


@CORRECTED
def test_an_edit_gives_the_key_no_other_value(
    hub: Hub, known: Fact, staff: Actor, protect: Any, is_protected: bool
) -> None:
    own = told(hub, "Was in Delft", "", key="")
    protect(known, staff)
    answer = hub.client.call("PATCH", f"/facts/{own.pk}", {"key": "city", "category": "identity", "value": "Delft"})
    assert answer.status_code == (409 if is_protected else 200), answer.json()
    if is_protected:
        assert answer.json()["code"] == "review_needed"
    # What says nothing of the key is free.
    assert hub.client.call("PATCH", f"/facts/{own.pk}", {"importance": 0.9}).status_code == 200


@LOCKED
def test_a_restore_gives_the_key_no_other_value(
    hub: Hub, known: Fact, staff: Actor, protect: Any, is_protected: bool
) -> None:
    own = told(hub, "Lives in Delft", "Delft")
    forget_fact(fact_id=own.pk, tenant=None, actor=factories.KEY, now=factories.NOW)
    protect(known, staff)
    answer = hub.client.post(f"/facts/{own.pk}/restore", {})
    assert answer.status_code == (409 if is_protected else 200), answer.json()


def test_one_agents_facts_are_not_compared_with_anothers(hub: Hub, known: Fact, staff: Actor) -> None:
    pin(known, staff)
    assert state(hub, agent_id="a2").json()["status"] == "active"
    assert state(hub, agent_id="a1").json()["status"] == "pending"


def test_an_operators_statement_never_waits(hub: Hub, known: Fact, staff: Actor) -> None:
    pin(known, staff)
    for content, value in (("Lives in Leiden", "Leiden"), ("Lives in Delft", "Delft")):
        draft = FactDraft(content, value=value, **CITY)
        assert add_fact(end_user=known.end_user, draft=draft, actor=staff, now=factories.NOW).row.status == "active"
