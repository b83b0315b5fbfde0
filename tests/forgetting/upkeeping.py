"""What tests of upkeep share: people with old or many facts, and one night with a model that is told what to say."""

from datetime import timedelta
from typing import Any

import pytest

from memories import audit, conf
from memories.audit import Actor
from memories.forgetting import decay_passes, upkeep
from memories.models import ActorKind, DecayPass, EndUser, Fact
from memories.models.forgetting import DecayPass as Pass
from tests import factories
from tests.factories import NOW

DAY = timedelta(days=1)
# Longer than the 90 days after which a fact is stale, shorter than any of these take to fade.
OLD = NOW - 100 * DAY
State, Trigger = Pass.PassState, Pass.Trigger


def stored(person: EndUser, content: str, **over: Any) -> Fact:
    """With the revision that a real one begins with."""
    fact = factories.fact(person, content, **over)
    audit.revise(fact=fact, verb="extract", actor=Actor(kind=ActorKind.RUN), before={}, reason="", now=NOW)
    return fact


def old(person: EndUser, count: int = 3, **over: Any) -> list[Fact]:
    """Facts that are stale; the first is shown first."""
    return [
        stored(person, f"Was busy with task {number}", **{"now": OLD + number * DAY, "category": "context", **over})
        for number in range(count)
    ]


def many(person: EndUser, count: int = 8, **over: Any) -> list[Fact]:
    """Facts that crowd a category, fresh."""
    return [
        stored(person, f"Likes tea of kind {number}", **{"now": NOW + number * timedelta(seconds=1), **over})
        for number in range(count)
    ]


def switch(monkeypatch: pytest.MonkeyPatch, **own: Any) -> conf.Rules:
    """These are the rules of all tenants; both kinds of upkeep are on unless said otherwise."""
    rules = conf.Rules(**{**vars(conf.hub_rules()), "staleness_review": True, "merge_crowded": True, **own})
    monkeypatch.setattr(conf, "rules", lambda _: rules)
    return rules


def passed(person: EndUser, now: Any = NOW) -> DecayPass:
    """A finished pass of the person's tenant."""
    row = decay_passes.begin(tenant=person.tenant, trigger=Trigger.COMMAND, as_of=now, now=now)
    DecayPass.objects.filter(pk=row.pk).update(state=State.DONE)
    row.refresh_from_db()
    return row


def night(person: EndUser, now: Any = NOW) -> DecayPass:
    """The upkeep of one night of the person's tenant."""
    row = passed(person, now)
    upkeep.run(row=row, now=now)
    return row


def counts(row: DecayPass) -> dict[str, int]:
    """What it did, without what it did not."""
    row.refresh_from_db()
    return {name: row.counts[name] for name in upkeep.COUNTED if row.counts.get(name)}


def stale(*numbers: int, reason: str = "It is over.") -> dict[str, Any]:
    return {"stale": [{"fact": number, "reason": reason} for number in numbers], "merged": []}


def merged(*numbers: int, content: str = "Likes many kinds of tea", **over: Any) -> dict[str, Any]:
    item = {"facts": list(numbers), "content": content, "confidence": 0.8, "reason": "Much the same.", **over}
    return {"stale": [], "merged": [item]}
