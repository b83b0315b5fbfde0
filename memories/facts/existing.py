"""The existing facts of a person that bear on candidates, locked until the commit, and what each candidate meets."""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import Q

from memories.facts import policies, refusals, timeline
from memories.facts.candidate import Candidate, NearbyFact, Verdict, has_readers_of
from memories.facts.policies import Policy, Refused, Repeated
from memories.facts.refusals import RefusalOutcome
from memories.facts.review_items import SUGGESTED
from memories.facts.timeline import Interval
from memories.models import EndUser, Fact, FactQuerySet, FactRefusal, ReviewItem, Status
from memories.models.folding import fold
from memories.models.memories.refusals import RefusalKey, refusal_key_of_text, refusal_keys
from memories.profiles import is_field_key

GONE = (Status.REJECTED, Status.TRASHED)
# Fact.protected, in a query.
PROTECTED = Q(binding=True) | Q(pinned=True) | Q(locked=True)


@dataclass(frozen=True)
class Comparison:
    """What a candidate meets: facts of the same text, external id and key, refusals, and where it belongs in time.

    `same_text` are live facts that have its text, where that ends it. Of facts that bear on it `same` say the same,
    `rivals` something else of its key, or the contrary, `refines` less exactly the same; `near` are active facts near
    it that nobody judged. `restated` is the fact of the same readers that says the same. `suggestion` is the pending
    fact of the same text, `is_contested` if a person has yet to decide it against other facts than the rivals.
    `near_refused` is a near one that somebody refused, `corrected` the active one that said the same until somebody
    corrected it, `namesakes` have its key in another category.
    """

    same_text: Sequence[Fact] = ()
    same_id: Sequence[Fact] = ()
    same: Sequence[Fact] = ()
    rivals: Sequence[Fact] = ()
    refines: Sequence[Fact] = ()
    near: Sequence[Fact] = ()
    restated: Fact | None = None
    suggestion: Fact | None = None
    is_contested: bool = False
    near_refused: Fact | None = None
    corrected: Fact | None = None
    namesakes: Sequence[Fact] = ()
    refusal: RefusalOutcome = RefusalOutcome.ALLOW
    refused_keys: Sequence[RefusalKey] = ()
    interval: Interval | None = None


@dataclass
class ExistingFacts:
    """A person's facts that bear on candidates, and what was refused.

    `contested` are, by suggestion, the facts that it conflicts with in a question that nobody has decided. `visible`:
    which facts the caller sees; None: all of the person's.
    """

    person: EndUser
    policy: Policy
    now: datetime
    facts: list[Fact]
    refused: Mapping[FactRefusal, RefusalKey] = field(default_factory=dict)
    contested: Mapping[uuid.UUID, set[uuid.UUID | None]] = field(default_factory=dict)
    visible: FactQuerySet | None = None

    def compare(self, candidate: Candidate) -> Comparison:
        """Compare the candidate with the facts as they are now; a verdict on another text does not count."""
        near = {one.fact_id: one for one in candidate.near}
        by_verdict: dict[Verdict, list[Fact]] = {verdict: [] for verdict in Verdict}
        for fact in self._in_order(candidate, near):
            if verdict := _verdict(fact, candidate, near.get(fact.pk), self.policy, now=self.now):
                by_verdict[verdict].append(fact)
        same, rivals = by_verdict[Verdict.SAME], by_verdict[Verdict.CONTRADICTS]
        interval = self._interval(candidate, rivals)
        stating = [one for one in interval.neighbours if states_value(one, candidate)] if interval else same
        compared = Comparison(
            same_text=[fact for fact in self.facts if _has_text(fact, candidate) and self._counts(fact, candidate)],
            same_id=[fact for fact in self.facts if self._has_id(fact, candidate)],
            same=same,
            rivals=rivals,
            refines=by_verdict[Verdict.REFINES],
            near=by_verdict[Verdict.NOT_JUDGED],
            restated=self._restated(candidate, stating),
            interval=interval,
            **self._refusal(candidate),
        )
        return replace(compared, **self._heard(candidate, compared)) if self.policy.is_heard else compared

    def add_twin(self, candidate: Candidate) -> None:
        """Add the fact with the candidate's text that somebody else committed meanwhile."""
        live = Fact.objects.of(self.person.tenant, self.person).filter(status__in=Status.LIVE)
        same = live.filter(agent_id=candidate.agent_id, content_hash=candidate.content_hash)
        twins = same.select_related("tenant", "end_user")
        self.facts.append(twins.select_for_update(of=("self",), no_key=True).get())

    def _heard(self, candidate: Candidate, compared: Comparison) -> dict[str, Any]:
        """What only extraction asks. What it repeats decides, so nothing contradicts it, or is refined by it."""
        twin = self._twin(candidate)
        suggestion = twin if twin and twin.status == Status.PENDING and not twin.protected else None
        beside = {fact.pk for fact in compared.rivals}
        said = {"rivals": (), "refines": ()} if compared.same else {"near_refused": self._near_refused(candidate)}
        own = [one for one in self.facts if _is_comparable(one, candidate, self.policy) and _is_in_force(one, self.now)]
        of_key = [one for one in own if candidate.key and one.key == candidate.key]
        corrected = None
        if compared.refusal == RefusalOutcome.HOLD:
            active = Fact.objects.of(self.person.tenant, self.person).filter(status=Status.ACTIVE)
            against = FactRefusal.objects.against(self.person, compared.refused_keys)
            corrected = active.filter(refusals__in=against).order_by("pk").first()
        return {
            **said,
            "suggestion": suggestion,
            "is_contested": suggestion is not None and not self.contested.get(suggestion.pk, set()) <= beside,
            "corrected": corrected,
            "namesakes": [one for one in of_key if one.category != candidate.category],
        }

    def _refusal(self, candidate: Candidate) -> dict[str, Any]:
        """What follows from what was forgotten or corrected for good. Of what is heard nothing does where it is stated
        again by now."""
        twin = self._twin(candidate) if self.policy.is_heard else None
        is_stated = twin is not None and (twin.status == Status.ACTIVE or twin.protected)
        keys = _refusal_keys(candidate, self.policy)
        found = {} if is_stated else {row: key for row, key in self.refused.items() if key in keys}
        outcome = refusals.outcome(
            found,
            rule=self.policy.refused,
            trust=candidate.trust,
            key_id=candidate.key_id,
            is_import=candidate.is_import,
            is_suggested=SUGGESTED in candidate.flags,
        )
        return {"refusal": outcome, "refused_keys": list(found.values())}

    def _twin(self, candidate: Candidate) -> Fact | None:
        """The live fact with the same text."""
        own = (fact for fact in self.facts if _is_comparable(fact, candidate, self.policy))
        return next((fact for fact in own if _has_text(fact, candidate)), None)

    def _near_refused(self, candidate: Candidate) -> Fact | None:
        """The nearest rejected or trashed fact whose text is refused, even if only since the comparison."""
        gone = {fact.pk: fact for fact in self.facts if fact.status in GONE}
        pairs = ((gone.get(one.fact_id), one) for one in candidate.near)
        unchanged = (fact for fact, one in pairs if fact and bytes(fact.content_hash) == one.content_hash)
        return next((fact for fact in unchanged if refusal_key_of_text(fact.content) in self.refused.values()), None)

    def _in_order(self, candidate: Candidate, near: Mapping[uuid.UUID, NearbyFact]) -> list[Fact]:
        """The facts that bear on it: the same text first, then the same key, then the nearest."""
        facts = [fact for fact in self.facts if _bears(fact, candidate, self.policy)]
        same_text = [fact for fact in facts if _has_text(fact, candidate)]
        same_key = [fact for fact in facts if _has_key(fact, candidate)]
        by_id = {fact.pk: fact for fact in facts if fact.pk in near}
        nearest = [by_id[fact_id] for fact_id in near if fact_id in by_id]
        return list({fact.pk: fact for fact in [*same_text, *same_key, *nearest]}.values())

    def _has_id(self, fact: Fact, candidate: Candidate) -> bool:
        """Whether it has the caller's own id already; a document may give one id to several facts."""
        is_asked = candidate.external_id and self.policy.same_text == Repeated.REPORT
        is_own = fact.status in Status.LIVE and fact.agent_id == candidate.agent_id
        return bool(is_asked) and is_own and fact.external_id == candidate.external_id

    def _counts(self, fact: Fact, candidate: Candidate) -> bool:
        """Whether the fact says the same for the candidate's readers: one of its agent, or a protected one."""
        if self.policy.same_text in (Repeated.REINFORCE, Repeated.SKIP_ANY):
            return self.policy.same_text == Repeated.SKIP_ANY
        is_own = fact.agent_id == candidate.agent_id
        return is_own or (fact.protected and not candidate.binding and is_met(fact, candidate))

    def _restated(self, candidate: Candidate, same: Sequence[Fact]) -> Fact | None:
        """The fact that is stated again: of one that was replaced by now the later one, if it says the same."""
        same = [one for one in same if self.policy.is_heard or has_readers_of(one, candidate)]
        if self.visible is not None and same:
            seen = set(self.visible.filter(pk__in=[one.pk for one in same]).values_list("pk", flat=True))
            same = [one for one in same if one.pk in seen]
        return next(iter(sorted(same, key=lambda one: (not one.protected, one.status != Status.ACTIVE))), None)

    def _interval(self, candidate: Candidate, rivals: Sequence[Fact]) -> Interval | None:
        """Where the candidate belongs if another value of its key, or the same, was stated later, or its contrary was;
        None: nothing was.

        What is stated without turns was said now, so nothing is later.
        """
        last = candidate.moments(self.now)[-1]
        if last >= self.now or not self.policy.compares_keys:
            return None
        of_key = [fact for fact in self.facts if _has_key(fact, candidate) and fact.value and candidate.value]
        stated = [one for one in of_key if one.status == Status.SUPERSEDED or _is_in_force(one, self.now)]
        contrary = rivals if self.policy.is_heard else ()
        dated = {one.pk: one for one in (*stated, *contrary) if one.agent_id == candidate.agent_id}
        if candidate.binding and any(
            one.status == Status.ACTIVE and states_value(one, candidate) for one in dated.values()
        ):
            # An operator binds the words of what is in force.
            return None
        return timeline.find_interval(list(dated.values()), moment=last)


def load(
    person: EndUser,
    candidates: Sequence[Candidate],
    *,
    policy: Policy,
    now: datetime,
    named: Collection[uuid.UUID] = (),
    visible: FactQuerySet | None = None,
) -> ExistingFacts:
    """Read and lock what bears on the candidates, and the `named` facts, in the order of the facts' ids; the caller
    holds the person's row."""
    bearing = Q(status__in=Status.LIVE, content_hash__in={one.content_hash for one in candidates})
    if policy.same_text == Repeated.REPORT and (ids := {one.external_id for one in candidates if one.external_id}):
        bearing |= Q(status__in=Status.LIVE, external_id__in=ids)
    if near := {one.fact_id for candidate in candidates for one in candidate.near}:
        bearing |= Q(pk__in=near)
    if named:
        bearing |= Q(status__in=Status.LIVE, pk__in=named)
    keys = {one.key for one in candidates if one.key} if policy.compares_keys else ()
    if keys:
        bearing |= Q(status__in=Status.LIVE, key__in=keys)
        if any(one.moments(now)[-1] < now for one in candidates):
            # What was superseded bears on what was said before or after it and arrives only now.
            agents = {one.agent_id for one in candidates}
            bearing |= Q(status=Status.SUPERSEDED, agent_id__in=agents, key__in=keys)
    facts = Fact.objects.of(person.tenant, person).filter(bearing).select_related("tenant", "end_user")
    # In the order of their ids, as everywhere: two transactions that lock the same facts cannot deadlock.
    locked = list(facts.select_for_update(of=("self",), no_key=True).order_by("pk"))
    # After the locks: whoever held one may have refused the fact.
    asked = [key for one in candidates for key in _refusal_keys(one, policy)]
    asked += [refusal_key_of_text(fact.content) for fact in locked if fact.status in GONE]
    refused = FactRefusal.objects.found(person, asked)
    return ExistingFacts(person, policy, now, locked, refused, _contested(locked) if policy.is_heard else {}, visible)


def rivals_of(facts: Collection[Fact], *, now: datetime) -> Mapping[uuid.UUID, Sequence[Fact]]:
    """By fact, what gives its key another value for its agent, and the protected facts that bind it and say something
    else of the key, or nothing any more because somebody corrected them; one query for all."""
    keyed = [fact for fact in facts if fact.key]
    people, keys = {fact.end_user_id for fact in keyed}, {fact.key for fact in keyed}
    live = Fact.objects.filter(end_user__in=people, key__in=keys, status__in=Status.LIVE).order_by("pk")
    of_person: dict[uuid.UUID, list[Fact]] = {}
    for row in live if keyed else ():
        of_person.setdefault(row.end_user_id, []).append(row)
    rivals: dict[uuid.UUID, Sequence[Fact]] = {}
    for fact in facts:
        near = (row for row in of_person.get(fact.end_user_id, ()) if row.pk != fact.pk)
        stated = (row for row in near if _bears(row, fact, policies.APPROVAL))
        verdicts = ((row, _verdict(row, fact, None, policies.APPROVAL, now=now)) for row in stated)
        rivals[fact.pk] = [row for row, verdict in verdicts if verdict == Verdict.CONTRADICTS]
    return rivals


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
    others = Fact.objects.twins_of(fact).filter(PROTECTED).exclude(agent_id=fact.agent_id)
    return next((one for one in others if is_met(one, fact)), None)


def is_met(fact: Fact, candidate: Candidate | Fact) -> bool:
    """Whether a protected fact binds the statement: what is the person's own meets those of all agents, an agent's
    its own and the person's."""
    return not candidate.agent_id or fact.agent_id in ("", candidate.agent_id)


def states_value(fact: Fact, candidate: Candidate | Fact) -> bool:
    """Whether it gives the candidate's key the same value."""
    return _has_key(fact, candidate) and bool(candidate.value) and fold(fact.value) == fold(candidate.value)


def _verdict(
    fact: Fact, candidate: Candidate | Fact, near: NearbyFact | None, policy: Policy, *, now: datetime
) -> Verdict | None:
    """Text and key decide before the judgement does."""
    if policy.is_heard and _has_text(fact, candidate) and (fact.status == Status.ACTIVE or fact.protected):
        return Verdict.SAME
    # A protected suggestion binds, too: nobody changes what an operator kept.
    if not _is_in_force(fact, now) and not (fact.protected and _is_in_force(fact, now, Status.PENDING)):
        return None
    if fact.key != candidate.key and is_field_key(fact.key) and is_field_key(candidate.key):
        # Two fields of profiles can have one value: neither says the other's.
        return None
    has_key = policy.compares_keys and _has_key(fact, candidate)
    if has_key and fact.value and candidate.value:
        return Verdict.SAME if states_value(fact, candidate) else Verdict.CONTRADICTS
    is_judged = near and _is_in_force(fact, now) and bytes(fact.content_hash) == near.content_hash
    verdict = near.verdict if near and is_judged else None
    decides = verdict in (Verdict.SAME, Verdict.CONTRADICTS, Verdict.REFINES)
    if fact.protected and not decides and has_key:
        # A corrected fact has no value any more: whatever is stated for its key would take its place.
        return Verdict.CONTRADICTS
    return verdict


def _bears(fact: Fact, candidate: Candidate | Fact, policy: Policy) -> bool:
    return _is_comparable(fact, candidate, policy) or (fact.protected and is_met(fact, candidate))


def _is_comparable(fact: Fact, candidate: Candidate | Fact, policy: Policy) -> bool:
    """Whether it is one of the candidate's agent; what an agent hears is compared with the person's own, too."""
    return fact.agent_id == candidate.agent_id or (policy.is_heard and not fact.agent_id)


def _is_in_force(fact: Fact, now: datetime, status: Status = Status.ACTIVE) -> bool:
    return fact.status == status and (fact.expires_at is None or fact.expires_at > now)


def _has_text(fact: Fact, candidate: Candidate | Fact) -> bool:
    return fact.status in Status.LIVE and bytes(fact.content_hash) == bytes(candidate.content_hash)


def _has_key(fact: Fact, candidate: Candidate | Fact) -> bool:
    return bool(candidate.key) and (fact.category, fact.key) == (candidate.category, candidate.key)


def _refusal_keys(candidate: Candidate, policy: Policy) -> list[RefusalKey]:
    if policy.refused in (Refused.BY_WHOM, Refused.ENDS, Refused.USERS_WAITS):
        return refusal_keys(candidate.content, category=candidate.category, key=candidate.key)
    return [refusal_key_of_text(candidate.content)]


def _contested(facts: Iterable[Fact]) -> dict[uuid.UUID, set[uuid.UUID | None]]:
    """Open conflicts of suggestions, without those with facts that are closed."""
    pending = [fact.pk for fact in facts if fact.status == Status.PENDING]
    contested: dict[uuid.UUID, set[uuid.UUID | None]] = {fact_id: set() for fact_id in pending}
    conflicts = ReviewItem.objects.waiting().filter(fact__in=pending, kind=ReviewItem.Kind.CONFLICT)
    over = Q(known__status__in=[Status.SUPERSEDED, Status.ARCHIVED])
    if pending:
        for fact_id, known_id in conflicts.exclude(over).values_list("fact_id", "known_id"):
            contested[fact_id].add(known_id)
    return contested
