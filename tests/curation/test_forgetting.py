"""Operators run a pass, confirm a held one, and take back what went: each an audited verb."""

from datetime import timedelta
from typing import Any

import pytest
from django_q.models import OrmQ

from memories import conf
from memories.audit import Actor
from memories.curation.decay import confirm_decay, run_decay
from memories.curation.facts.editing import edit_fact
from memories.curation.facts.restoring import restore_fact
from memories.exceptions import Conflict, DecayRunning, NotFound
from memories.forgetting import decay
from memories.models import AuditEvent, DecayPass, EndUser, Fact, Tenant
from tests import factories
from tests.database import at_once
from tests.factories import COMMAND, NOW

LONG_AGO = NOW - timedelta(days=1_000)
DAY = timedelta(days=1)


@pytest.fixture
def by(db: None) -> Actor:
    return Actor.operator(factories.operator())


@pytest.fixture
def held(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> DecayPass:
    """A pass that three faded facts are too many for."""
    rules = conf.Rules(**{**vars(conf.hub_rules()), "brake_count": 2})
    monkeypatch.setattr(conf, "rules", lambda _: rules)
    for number in range(3):
        factories.fact(person, f"Number {number}", now=LONG_AGO)
    done = forget(person.tenant)
    assert done.state == "held"
    return done


def forget(tenant: Tenant, **given: Any) -> DecayPass:
    return decay.forget(tenant=tenant, now=NOW, trigger=DecayPass.Trigger.SCHEDULE, **given)


def work(now: Any = NOW) -> None:
    """As the worker does."""
    assert not decay.run_slice(now=now, seconds=60)


def test_a_confirmed_pass_is_carried_out_by_a_worker(held: DecayPass, by: Actor) -> None:
    begun = confirm_decay(pass_id=held.pk, actor=by, now=NOW + DAY)
    assert (begun.state, begun.trigger, begun.actor_id, begun.as_of) == ("running", "operator", by.id, NOW)
    assert OrmQ.objects.count() == 1
    assert Fact.objects.filter(status="active").count() == 3
    work(NOW + DAY)
    begun.refresh_from_db()
    assert (begun.state, begun.counts["facts"]) == ("done", 3)
    said = AuditEvent.objects.filter(object_id=begun.pk).order_by("pk")
    assert [(event.verb, event.actor_kind, event.actor_id) for event in said] == [
        ("confirm", "operator", by.id),
        ("decay", "decay", str(begun.pk)),
    ]


def test_it_takes_no_more_than_was_seen(held: DecayPass, by: Actor, person: EndUser) -> None:
    later = factories.fact(person, "Fades tomorrow", importance=0.2, now=NOW - timedelta(days=29))
    saved = Fact.objects.earliest("pk")
    edit_fact(fact_id=saved.pk, tenant=None, changes={"pinned": True}, actor=by, now=NOW)
    begun = confirm_decay(pass_id=held.pk, actor=by, now=NOW + 5 * DAY)
    work(NOW + 5 * DAY)
    begun.refresh_from_db()
    assert begun.counts["facts"] == 2
    assert set(Fact.objects.filter(status="active")) == {later, saved}


def test_what_cannot_be_confirmed(held: DecayPass, by: Actor) -> None:
    with pytest.raises(NotFound):
        confirm_decay(pass_id=factories.tenant().pk, actor=by, now=NOW)
    newer = decay.forget(tenant=held.tenant, now=NOW + DAY, trigger=DecayPass.Trigger.SCHEDULE)
    with pytest.raises(Conflict):
        confirm_decay(pass_id=held.pk, actor=by, now=NOW + DAY)
    begun = confirm_decay(pass_id=newer.pk, actor=by, now=NOW + DAY)
    for pass_id in (newer.pk, begun.pk):
        with pytest.raises(Conflict):
            confirm_decay(pass_id=pass_id, actor=by, now=NOW + DAY)


@pytest.mark.django_db(transaction=True)
def test_two_operators_confirm_once(held: DecayPass) -> None:
    outcomes = at_once(4, lambda _: confirm_decay(pass_id=held.pk, actor=COMMAND, now=NOW + DAY))
    begun = [outcome for outcome in outcomes if isinstance(outcome, DecayPass)]
    assert len(begun) == 1
    assert {type(outcome) for outcome in outcomes} <= {DecayPass, Conflict, DecayRunning}


def test_run_now_keeps_the_brake(held: DecayPass, by: Actor, person: EndUser) -> None:
    begun = run_decay(tenant=person.tenant, actor=by, now=NOW + DAY)
    with pytest.raises(DecayRunning):
        run_decay(tenant=person.tenant, actor=by, now=NOW + DAY)
    work(NOW + DAY)
    begun.refresh_from_db()
    assert (begun.state, begun.counts["facts"]) == ("held", 0)
    assert AuditEvent.objects.filter(object_id=begun.pk, verb="run", actor_id=by.id).exists()


@pytest.mark.parametrize("over", [{}, {"expires_at": NOW - DAY}], ids=["faded", "expired"])
def test_what_went_can_be_taken_back_and_fades_anew(person: EndUser, by: Actor, over: dict[str, Any]) -> None:
    fact = factories.fact(person, now=LONG_AGO, importance=0.4, **over)
    forget(person.tenant)
    restored = restore_fact(fact_id=fact.pk, tenant=None, actor=by, now=NOW)
    assert (restored.status, restored.trashed_at, restored.expires_at) == ("active", None, None)
    assert restored.forget_at == NOW + timedelta(days=30 + 90)
    assert restored.decay_score == 0.4
    assert forget(person.tenant).counts["facts"] == 0
    assert Fact.objects.get().status == "active"


def test_a_suggestion_that_expired_waits_again_when_taken_back(person: EndUser, by: Actor) -> None:
    fact = factories.fact(person, status="pending", expires_at=NOW - DAY)
    factories.review_item(fact)
    forget(person.tenant)
    assert not fact.review_items.filter(state="open").exists()
    assert restore_fact(fact_id=fact.pk, tenant=None, actor=by, now=NOW).status == "pending"
    assert fact.review_items.filter(state="open").count() == 1
