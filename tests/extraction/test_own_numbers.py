"""What a tenant's own numbers do, set by the verb and without a restart; what began before goes on as it began."""

from datetime import timedelta
from typing import Any

import pytest

from memories import conf
from memories.audit import Actor
from memories.capture import ingest
from memories.capture.ingest import PostedMessage
from memories.context import context
from memories.context.context import ContextRequest
from memories.curation.tenants.settings import save_tenant
from memories.exceptions import ModelTimeout
from memories.extraction import consolidation
from memories.models import ActorKind, EndUser, ExtractionRun, Fact, SessionQueue, Tenant
from tests import factories
from tests.factories import NOW
from tests.model import Model, candidate

STAFF = Actor(kind=ActorKind.OPERATOR, id="7")
SAID = [PostedMessage(role="user", content="I live in Leiden"), PostedMessage(role="assistant", content="Noted")]


@pytest.fixture
def tenant(person: EndUser) -> Tenant:
    return person.tenant


def set_numbers(tenant: Tenant, **numbers: Any) -> None:
    """In the admin, from another copy of the row."""
    row = Tenant.objects.get(pk=tenant.pk)
    row.numbers = numbers
    save_tenant(tenant=row, actor=STAFF, now=NOW)


def post(tenant: Tenant, session_id: str = "s1", *, flush: bool = False) -> SessionQueue:
    """As a request does: the tenant's row is read for each."""
    fresh = Tenant.objects.get(pk=tenant.pk)
    given: dict[str, Any] = {"user_id": "u1", "session_id": session_id, "agent_id": "", "messages": SAID}
    receipt = ingest.store_turns(tenant=fresh, flush=flush, **given)
    assert receipt.session
    return SessionQueue.objects.select_related("session").get(pk=receipt.session.pk)


def extracted(tenant: Tenant, session_id: str) -> ExtractionRun:
    run = consolidation.consolidate(session_id=post(tenant, session_id, flush=True).pk, now=NOW)
    assert run
    return run


def told(tenant: Tenant, person: EndUser) -> int:
    request = ContextRequest(user_id=person.external_id)
    return len(context.build(tenant=Tenant.objects.get(pk=tenant.pk), request=request, now=NOW).items)


def wait_of(queue: SessionQueue) -> timedelta:
    assert queue.due_at
    return queue.due_at - queue.session.last_turn_at


def test_the_quiet_time(model: Model, tenant: Tenant) -> None:
    assert wait_of(post(tenant)) == timedelta(seconds=30)
    set_numbers(tenant, debounce_seconds=5)
    assert wait_of(post(tenant, "s2")) == timedelta(seconds=5)
    set_numbers(tenant)
    assert wait_of(post(tenant, "s3")) == timedelta(seconds=30)


def test_capacity(model: Model, tenant: Tenant) -> None:
    person = factories.end_user(tenant, external_id="u1")
    for number in range(12):
        factories.fact(person, f"Fact {number}")
    active = Fact.objects.filter(end_user=person, status="active")
    for numbers, left, name in (({}, 13, "early"), ({"capacity": 10}, 10, "late"), ({"capacity": 0}, 11, "last")):
        set_numbers(tenant, **numbers)
        model.say(candidate(f"New and {name}"))
        extracted(tenant, f"s{left}")
        assert active.count() == left


@pytest.mark.parametrize(
    ("numbers", "served"),
    [({}, 3), ({"served_confidence": 0.85}, 2), ({"served_confidence": 0.95}, 1)],
)
def test_what_a_context_tells(person: EndUser, tenant: Tenant, numbers: dict[str, Any], served: int) -> None:
    for confidence in (0.8, 0.9, 1.0):
        factories.fact(person, f"Fact {confidence}", confidence=confidence)
    assert told(tenant, person) == 3
    set_numbers(tenant, **numbers)
    assert told(tenant, person) == served


def test_the_gate_and_the_gain_by_a_mention(model: Model, tenant: Tenant) -> None:
    set_numbers(tenant, min_confidence=0.3, inferred_confidence=0.5, confirmed_by=0.2)
    model.say(candidate(confidence=0.4), candidate("Bakes bread", confidence=0.9), candidate("Runs", confidence=0.2))
    assert extracted(tenant, "s1").refusals == {"low_confidence": 1}
    kept = {fact.content: fact.confidence for fact in Fact.objects.all()}
    assert kept == {"Lives in Leiden": 0.4, "Bakes bread": 0.5}
    model.say(candidate("Bakes bread", confidence=0.9))
    extracted(tenant, "s2")
    assert Fact.objects.get(content="Bakes bread").confidence == pytest.approx(0.7)


def test_half_lives_and_windows_hold_for_the_next_who_asks(tenant: Tenant) -> None:
    set_numbers(tenant, half_life_days=14, half_lives={"identity": 365, "goal": None}, window_tokens=500)
    rules = conf.rules(Tenant.objects.get(pk=tenant.pk))
    assert (rules.half_life_days, rules.window_tokens) == (14, 500)
    assert rules.half_lives == {"identity": 365, "goal": None, "relationship": None, "constraint": None}


class TestChangedMeanwhile:
    """While the model thinks nothing is open, so the settings may change under a batch: it ends as it began."""

    def change(self, tenant: Tenant, *said: dict[str, Any], **numbers: Any) -> dict[str, Any]:
        set_numbers(tenant, **numbers)
        return {"new_facts": list(said)}

    def test_the_gate_of_a_batch_is_that_of_its_claim(self, model: Model, tenant: Tenant) -> None:
        model.answers.append(lambda: self.change(tenant, candidate(confidence=0.75), min_confidence=0.8))
        assert extracted(tenant, "s1").outcome == {"stored": 1}
        model.say(candidate("Bakes bread", confidence=0.75))
        assert extracted(tenant, "s2").refusals == {"low_confidence": 1}

    def test_so_are_its_attempts(self, model: Model, tenant: Tenant) -> None:
        def fail() -> dict[str, Any]:
            set_numbers(tenant, max_attempts=1)
            raise ModelTimeout

        model.answers.append(fail)
        assert extracted(tenant, "s1").status == "failed"
        model.answers.append(ModelTimeout())
        assert extracted(tenant, "s2").status == "parked"

    def test_guidance_is_recorded_as_it_was_sent(self, model: Model, tenant: Tenant) -> None:
        def reword() -> dict[str, Any]:
            row = Tenant.objects.get(pk=tenant.pk)
            row.extraction_guidance = "Remember names."
            save_tenant(tenant=row, actor=STAFF, now=NOW)
            return {"new_facts": []}

        model.answers.append(reword)
        assert extracted(tenant, "s1").guidance_version == 1
        assert "Remember names." not in model.prompts[0]
        assert extracted(tenant, "s2").guidance_version == 2


def test_numbers_that_no_version_of_ours_wrote_fail_no_request(model: Model, person: EndUser, tenant: Tenant) -> None:
    factories.fact(person)
    for stored in (
        {"debounce_seconds": "soon", "capacity": -1, "half_lives": [1], "nonsense": {}},
        ["capacity"],
        "torn",
    ):
        Tenant.objects.filter(pk=tenant.pk).update(numbers=stored)
        assert wait_of(post(tenant, str(stored))) == timedelta(seconds=30)
        assert told(tenant, person) == 1
