"""The existing facts of a person that bear on candidates, locked until the commit, and what each candidate meets."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Q

from memories.facts import refusals, timeline
from memories.facts.candidate import Candidate, has_readers_of
from memories.facts.policies import Policy, Refused, Repeated
from memories.facts.refusals import RefusalOutcome
from memories.facts.timeline import Interval
from memories.facts.write import LIVE
from memories.models import EndUser, Fact, FactQuerySet, FactRefusal, Status
from memories.models.folding import fold
from memories.models.memories.refusals import RefusalKey, refusal_key_of_text, refusal_keys

# Fact.protected, in a query.
PROTECTED = Q(binding=True) | Q(pinned=True) | Q(locked=True)


@dataclass(frozen=True)
class Comparison:
    """What a candidate meets: facts of the same text, external id and key, refusals, and where it belongs in time.

    `same_text` are live facts; `of_key` are in force, and of `same_value` and `rivals` each has that value, or another
    or none. `restated` is the fact of the same readers that says the same. `near` are active facts near it.
    """

    same_text: Sequence[Fact] = ()
    same_id: Sequence[Fact] = ()
    same_value: Sequence[Fact] = ()
    rivals: Sequence[Fact] = ()
    restated: Fact | None = None
    near: Sequence[Fact] = ()
    refusal: RefusalOutcome = RefusalOutcome.ALLOW
    refused_keys: Sequence[RefusalKey] = ()
    interval: Interval | None = None


@dataclass
class ExistingFacts:
    """A person's facts that bear on candidates, those near them, and what was refused."""

    person: EndUser
    policy: Policy
    now: datetime
    facts: list[Fact]
    refused: Mapping[FactRefusal, RefusalKey] = field(default_factory=dict)
    near: Sequence[uuid.UUID] = ()
    # Which facts the caller sees; None: all of the person's.
    visible: FactQuerySet | None = None

    def compare(self, candidate: Candidate) -> Comparison:
        """Compare the candidate with the facts as they are now."""
        of_key = [fact for fact in self.facts if self._bears_on_key(fact, candidate)]
        same_value = [fact for fact in of_key if states_value(fact, candidate)]
        interval = self._interval(candidate)
        beside = {fact.pk: fact for fact in interval.neighbours if states_value(fact, candidate)} if interval else {}
        keys = self._refusal_keys(candidate)
        found = {row: key for row, key in self.refused.items() if key in keys}
        return Comparison(
            same_text=[fact for fact in self.facts if _has_text(fact, candidate) and self._counts(fact, candidate)],
            same_id=[fact for fact in self.facts if self._has_id(fact, candidate)],
            same_value=same_value,
            rivals=[fact for fact in of_key if fact not in same_value],
            restated=self._restated(candidate, list(beside.values()) if interval else same_value),
            near=self._near(),
            refusal=refusals.outcome(
                found,
                rule=self.policy.refused,
                trust=candidate.trust,
                key_id=candidate.key_id,
                is_import=candidate.is_import,
            ),
            refused_keys=list(found.values()),
            interval=interval,
        )

    def _has_id(self, fact: Fact, candidate: Candidate) -> bool:
        """Whether it has the caller's own id already; a document may give one id to several facts."""
        is_asked = candidate.external_id and self.policy.same_text == Repeated.REPORT
        is_own = fact.status in LIVE and fact.agent_id == candidate.agent_id
        return bool(is_asked) and is_own and fact.external_id == candidate.external_id

    def _counts(self, fact: Fact, candidate: Candidate) -> bool:
        """Whether the fact says the same for the candidate's readers: one of its agent, or a protected one."""
        is_own = fact.agent_id == candidate.agent_id
        is_any = self.policy.same_text == Repeated.SKIP_ANY
        return is_any or is_own or (fact.protected and not candidate.binding and is_met(fact, candidate))

    def _bears_on_key(self, fact: Fact, candidate: Candidate) -> bool:
        """Whether it gives the key a value for the candidate's readers. A protected one counts without a value, too:
        somebody corrected it, and whatever is stated for its key would take its place."""
        if not (_has_key(fact, candidate) and self._is_in_force(fact)):
            return False
        is_valued = bool(candidate.value and fact.value)
        return (fact.protected and is_met(fact, candidate)) or (is_valued and fact.agent_id == candidate.agent_id)

    def _restated(self, candidate: Candidate, same: Sequence[Fact]) -> Fact | None:
        """The fact that is stated again: of one that was replaced by now the later one, if it says the same."""
        same = [one for one in same if has_readers_of(one, candidate)]
        if self.visible is not None and same:
            seen = set(self.visible.filter(pk__in=[one.pk for one in same]).values_list("pk", flat=True))
            same = [one for one in same if one.pk in seen]
        return next(iter(sorted(same, key=lambda one: (not one.protected, one.status != Status.ACTIVE))), None)

    def _interval(self, candidate: Candidate) -> Interval | None:
        """Where the candidate belongs if another value of its key, or the same, was stated later; None: nothing was.

        What is stated without turns was said now, so nothing is later.
        """
        last = candidate.moments(self.now)[-1]
        if last >= self.now or not (self.policy.compares_keys and candidate.key and candidate.value):
            return None
        own = [fact for fact in self.facts if fact.agent_id == candidate.agent_id and _has_key(fact, candidate)]
        dated = [one for one in own if one.value and (one.status == Status.SUPERSEDED or self._is_in_force(one))]
        if candidate.binding and any(one.status == Status.ACTIVE and states_value(one, candidate) for one in dated):
            # An operator binds the words of what is in force.
            return None
        return timeline.find_interval(dated, moment=last)

    def _near(self) -> list[Fact]:
        by_id = {fact.pk: fact for fact in self.facts if fact.status == Status.ACTIVE}
        return [by_id[fact_id] for fact_id in self.near if fact_id in by_id]

    def _is_in_force(self, fact: Fact) -> bool:
        return fact.status == Status.ACTIVE and (fact.expires_at is None or fact.expires_at > self.now)

    def _refusal_keys(self, candidate: Candidate) -> list[RefusalKey]:
        return _refusal_keys(candidate, self.policy)


def load(
    person: EndUser,
    candidates: Sequence[Candidate],
    *,
    policy: Policy,
    now: datetime,
    near: Sequence[uuid.UUID] = (),
    visible: FactQuerySet | None = None,
) -> ExistingFacts:
    """Read and lock what bears on the candidates, in the order of the facts' ids; the caller holds the person's row."""
    bearing = Q(status__in=LIVE, content_hash__in={one.content_hash for one in candidates})
    if policy.same_text == Repeated.REPORT and (ids := {one.external_id for one in candidates if one.external_id}):
        bearing |= Q(status__in=LIVE, external_id__in=ids)
    if near:
        bearing |= Q(status=Status.ACTIVE, pk__in=near)
    keys = {one.key for one in candidates if one.key} if policy.compares_keys else ()
    if keys:
        # What was superseded bears on what was said before or after it and arrives only now.
        is_late = any(one.moments(now)[-1] < now for one in candidates)
        statuses = [Status.ACTIVE, *([Status.SUPERSEDED] if is_late else [])]
        bearing |= Q(status__in=statuses, key__in=keys)
    facts = Fact.objects.of(person.tenant, person).filter(bearing).select_related("tenant", "end_user")
    locked = list(facts.select_for_update(of=("self",), no_key=True).order_by("pk"))
    # After the locks: whoever held one may have refused the fact.
    refused = FactRefusal.objects.found(person, [key for one in candidates for key in _refusal_keys(one, policy)])
    return ExistingFacts(person, policy, now, locked, refused, near, visible)


def lock_values(fact: Fact, *, now: datetime) -> list[Fact]:
    """Lock what gives the fact's key a value for its agent, or gave it one until something else was stated."""
    if not (fact.key and fact.value):
        return []
    facts = Fact.objects.of(fact.tenant, fact.end_user).exclude(value="")
    facts = facts.filter(category=fact.category, key=fact.key, agent_id=fact.agent_id)
    in_force = Q(status=Status.ACTIVE) & (Q(expires_at=None) | Q(expires_at__gt=now))
    stating = facts.filter(in_force | Q(status=Status.SUPERSEDED)).select_for_update(of=("self",), no_key=True)
    return list(stating.select_related("tenant", "end_user").order_by("pk"))


def protected_twin(fact: Fact) -> Fact | None:
    """The live protected fact of others that has the same text: the person's own repeats none of an agent's."""
    same = met_facts(fact).filter(status__in=LIVE, content_hash=fact.content_hash)
    return same.exclude(agent_id=fact.agent_id).order_by("pk").first()


def protected_rivals(fact: Fact, *, now: datetime) -> list[Fact]:
    """The protected facts that give its key another value, or none any more because somebody corrected them; locked."""
    if not fact.key:
        return []
    found = met_facts(fact).active(now=now).filter(category=fact.category, key=fact.key).exclude(pk=fact.pk)
    return [one for one in found.select_for_update(no_key=True).order_by("pk") if not states_value(one, fact)]


def met_facts(fact: Fact) -> FactQuerySet:
    """The protected facts that the statement meets, as is_met() has it."""
    protected = Fact.objects.of(fact.tenant, fact.end_user).filter(PROTECTED)
    return protected.filter(agent_id__in={"", fact.agent_id}) if fact.agent_id else protected


def is_met(fact: Fact, candidate: Candidate | Fact) -> bool:
    """Whether a protected fact binds the statement: what is the person's own meets those of all agents, an agent's
    its own and the person's."""
    return not candidate.agent_id or fact.agent_id in ("", candidate.agent_id)


def states_value(fact: Fact, candidate: Candidate | Fact) -> bool:
    """Whether it gives the candidate's key the same value."""
    return _has_key(fact, candidate) and bool(candidate.value) and fold(fact.value) == fold(candidate.value)


def _has_text(fact: Fact, candidate: Candidate) -> bool:
    return fact.status in LIVE and bytes(fact.content_hash) == candidate.content_hash


def _has_key(fact: Fact, candidate: Candidate | Fact) -> bool:
    return bool(candidate.key) and (fact.category, fact.key) == (candidate.category, candidate.key)


def _refusal_keys(candidate: Candidate, policy: Policy) -> list[RefusalKey]:
    if policy.refused in (Refused.BY_WHOM, Refused.ENDS):
        return refusal_keys(candidate.content, category=candidate.category, key=candidate.key)
    return [refusal_key_of_text(candidate.content)]
