"""The one road by which statements become facts, whoever makes them: compare, decide, write, one after the other."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from memories import conf, content_policy
from memories.exceptions import CapacityReached, ContentForbidden
from memories.facts import existing
from memories.facts.candidate import Candidate
from memories.facts.decision import Action, Decision, decide
from memories.facts.policies import Capacity, Policy
from memories.facts.write import FactWrite, texts_of
from memories.facts.writer import FactWriter
from memories.models import EndUser, Fact, FactQuerySet, Status


@dataclass(frozen=True)
class Recorded:
    """What became of a candidate: the decision, and the fact that it became or joined; None when nothing is stored."""

    candidate: Candidate
    decision: Decision
    fact: Fact | None

    @property
    def is_new(self) -> bool:
        return self.fact is not None and self.decision.action != Action.REINFORCE


def record(
    candidates: Sequence[Candidate],
    *,
    person: EndUser,
    write: FactWrite,
    policy: Policy,
    near: Sequence[uuid.UUID] = (),
    visible: FactQuerySet | None = None,
) -> list[Recorded]:
    """Decide about each candidate by the policy, and write what follows; the caller holds the person's row.

    `near` are facts that the candidates may repeat, the nearest first. Facts that are stated again are among the
    `visible` ones; None: all of the person's. Facts of the same texts whose end has passed go to the trash first.

    What the tenant's content policy forbids is not among the results. Errors: DuplicateFact, RefusedBefore and
    ContentForbidden, where the policy reports them; CapacityReached; IntegrityError when
    somebody who does not hold the person's row stored a text meanwhile.
    """
    allowed = [one for one in candidates if _is_allowed(one, person, policy)]
    digests: dict[str, list[bytes]] = {}
    for one in allowed:
        digests.setdefault(one.agent_id, []).append(one.content_hash)
    for agent_id, of_agent in digests.items():
        write.sweep(person, of_agent, agent_id=agent_id)
    facts = existing.load(person, allowed, policy=policy, now=write.now, near=near, visible=visible)
    writer = FactWriter(person, write, policy)
    trusts_assistant = conf.rules(person.tenant).trust_assistant
    done: list[Recorded] = []
    for candidate in allowed:
        compared = facts.compare(candidate)
        decision = decide(candidate, compared, policy, trusts_assistant=trusts_assistant)
        fact = writer.apply(decision, candidate)
        done.append(Recorded(candidate, decision, fact))
        if fact and decision.action != Action.REINFORCE:
            facts.facts.append(fact)
        if fact and decision.action == Action.STORE and policy.asks_near:
            similar = [*compared.same_value, *(one for one in compared.near if one not in decision.supersedes)]
            writer.ask_about_near(fact, similar)
    if policy.capacity == Capacity.ERROR:
        _check_capacity(person, done, write)
    writer.flush()
    return done


def _is_allowed(candidate: Candidate, person: EndUser, policy: Policy) -> bool:
    """Errors: ContentForbidden, where the policy reports it."""
    try:
        content_policy.check(person.tenant, policy.road, texts_of(candidate))
    except ContentForbidden:
        if policy.reports_forbidden:
            raise
        return False
    return True


def _check_capacity(person: EndUser, done: Sequence[Recorded], write: FactWrite) -> None:
    """Errors: CapacityReached when the new active facts would exceed what a person can have."""
    capacity = conf.rules(person.tenant).capacity
    wanted = sum(one.is_new and one.fact is not None and one.fact.status == Status.ACTIVE for one in done)
    active = Fact.objects.of(person.tenant, person).active(now=write.now)
    if capacity and wanted and active.count() + wanted > capacity:
        message = _(
            "A person can have %(capacity)d active facts. "
            "These %(wanted)d new ones would exceed that, and the least important would be archived at once."
        )
        raise CapacityReached(message % {"capacity": capacity, "wanted": wanted})
