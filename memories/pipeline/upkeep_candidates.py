"""Who is due for upkeep, and which facts a model is then shown (rules.md, 7.5)."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Q, QuerySet

from memories import conf
from memories.llm import tokens
from memories.llm.prompts import fact_upkeep
from memories.llm.prompts.fact_upkeep import FactInput
from memories.llm.prompts.framing import Message
from memories.models import Category, EndUser, Fact, FactEvidence, MemoryScope, Source, Tenant, Trust
from memories.models.facts import FactQuerySet

# Once a model has looked at a person, only what has come since brings them up again before this.
AGAIN_AFTER = timedelta(days=30)
# Shorter than any two nights are apart, longer than one: who was tried, with whatever end, is not tried again in it.
NIGHT = timedelta(hours=12)
# Said outright: such a fact rests on no conversation, and is not to go with one.
STATED = ("api", "import")
_KEPT = (
    Q(pinned=True) | Q(locked=True) | Q(binding=True) | Q(trust=Trust.OPERATOR) | Q(scope=MemoryScope.PUBLIC)
    | Q(category=Category.CORRECTION) | Q(source=Source.CORRECTED)
)  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """A fact as a model was shown it; `group` is that of the facts it may be merged with, 0 none."""

    fact_id: uuid.UUID
    version: int
    content_hash: bytes
    is_stale: bool
    group: int


@dataclass(frozen=True)
class Sheet:
    """What one call shows of a person: facts by their numbers 1, 2, …, and the messages that say so."""

    facts: Sequence[Shown]
    messages: Sequence[Message]


def people(*, tenant: Tenant, rules: conf.Rules, now: datetime, limit: int) -> list[EndUser]:
    """Those with enough candidates, who were not tried this night: those tried longest ago first.

    Within AGAIN_AFTER of a look only what became a candidate since counts.
    """
    found = Q(pk__in=[])
    if rules.staleness_review:
        found |= Q(pk__in=_with_stale(tenant, rules, now))
    if rules.merge_crowded:
        found |= Q(pk__in=_with_crowds(tenant, rules, now))
    untried = Q(upkeep_tried_at=None) | Q(upkeep_tried_at__lte=now - NIGHT)
    rows = EndUser.objects.filter(found, untried, tenant=tenant, restricted_at=None).select_related("tenant")
    return list(rows.order_by(F("upkeep_tried_at").asc(nulls_first=True), "pk")[:limit])


def gather(*, person: EndUser, rules: conf.Rules, now: datetime) -> Sheet:
    """The person's candidates whose texts fit the tokens of a batch: the stale, last confirmed longest ago first, then
    crowds. Empty when there are too few."""
    facts = list(unprotected(person.tenant, rules, now).filter(end_user=person).order_by("last_confirmed_at", "pk"))
    stale = {fact.pk for fact in facts if rules.staleness_review and is_stale(fact, rules, now)}
    stale = stale if len(stale) >= rules.stale_least else set()
    crowds = _crowds(facts, rules) if rules.merge_crowded else ()
    groups = {fact.pk: number for number, crowd in enumerate(crowds, start=1) for fact in crowd}
    offered = [fact for fact in facts if fact.pk in stale or fact.pk in groups]
    offered.sort(key=lambda fact: (fact.pk not in stale, groups.get(fact.pk, 0)))
    inputs = [_input(number, fact, stale, groups) for number, fact in enumerate(offered, start=1)]
    inputs = inputs[: _fitting(inputs, rules.batch_tokens)]
    return Sheet(
        facts=[
            Shown(fact.pk, fact.version, bytes(fact.content_hash), one.is_stale, one.group)
            for fact, one in zip(offered, inputs, strict=False)
        ],
        messages=fact_upkeep.build(
            facts=inputs, today=now.date(), most_stale=rules.stale_most, most_sources=rules.merged_most
        ),
    )


def unprotected(tenant: Tenant, rules: conf.Rules, now: datetime) -> FactQuerySet:
    """Active facts that a model may be asked about: no operator's word, no correction, nothing that never fades."""
    never = [category for category, days in rules.half_lives.items() if days is None]
    facts = Fact.objects.filter(tenant=tenant).active(now=now)
    return facts.exclude(_KEPT).exclude(category__in=never)


def is_stale(fact: Fact, rules: conf.Rules, now: datetime) -> bool:
    """Neither confirmed nor recalled for longer than the days of the rules."""
    return fact.last_reinforced < now - timedelta(days=rules.stale_days)


def _with_stale(tenant: Tenant, rules: conf.Rules, now: datetime) -> QuerySet[Any, Any]:
    days = timedelta(days=rules.stale_days)
    facts = unprotected(tenant, rules, now).filter(last_confirmed_at__lt=now - days)
    facts = facts.exclude(last_recalled_at__gte=now - days)
    stale_then = F("end_user__upkept_at") - days
    facts = facts.filter(_unseen(now) | Q(last_confirmed_at__gte=stale_then) | Q(last_recalled_at__gte=stale_then))
    return _at_least(rules.stale_least, facts, "end_user")


def _with_crowds(tenant: Tenant, rules: conf.Rules, now: datetime) -> QuerySet[Any, Any]:
    facts = _mergeable(unprotected(tenant, rules, now))
    facts = facts.filter(_unseen(now) | Q(created_at__gt=F("end_user__upkept_at")))
    return _at_least(rules.crowded_facts, facts, "end_user", "category", "trust")


def _unseen(now: datetime) -> Q:
    return Q(end_user__upkept_at=None) | Q(end_user__upkept_at__lte=now - AGAIN_AFTER)


def _at_least(number: int, facts: FactQuerySet, *together: str) -> QuerySet[Any, Any]:
    """People with so many of the facts that are alike in these columns."""
    counted: QuerySet[Any, Any] = facts.order_by().values(*together).annotate(number=Count("pk"))
    enough: QuerySet[Any, Any] = counted.filter(number__gte=number)
    return enough.values("end_user")


def _mergeable(facts: FactQuerySet) -> FactQuerySet:
    """A stated end would be lost in a text that has none."""
    return facts.filter(expires_at=None)


def _crowds(facts: Iterable[Fact], rules: conf.Rules) -> Iterator[list[Fact]]:
    """Facts of one category and trust, seen by the same agents and people, where there are many.

    What rests on turns goes with them: it is not merged with what was stated outright.
    """
    mergeable = [fact for fact in facts if fact.expires_at is None]
    resting = set(FactEvidence.objects.filter(fact__in=mergeable).values_list("fact", flat=True))
    alike: defaultdict[tuple[object, ...], list[Fact]] = defaultdict(list)
    for fact in mergeable:
        rests = fact.pk in resting and fact.extractor not in STATED
        alike[(rests, fact.category, fact.trust, *_seen_by(fact))].append(fact)
    return (crowd for crowd in alike.values() if len(crowd) >= rules.crowded_facts)


def _seen_by(fact: Fact) -> tuple[object, ...]:
    return fact.agent_id, fact.scope, tuple(sorted(fact.allowed_users)), tuple(sorted(fact.allowed_roles))


def _input(number: int, fact: Fact, stale: set[uuid.UUID], groups: dict[uuid.UUID, int]) -> FactInput:
    return FactInput(
        number=number,
        content=fact.content,
        category=fact.category,
        key=fact.key,
        confirmed=fact.last_confirmed_at.date(),
        is_stale=fact.pk in stale,
        group=groups.get(fact.pk, 0),
    )


def _fitting(inputs: Sequence[FactInput], most: int) -> int:
    """How many of the first lines fit into so many tokens."""
    spent = 0
    for count, one in enumerate(inputs):
        spent += tokens.count(fact_upkeep.line(one))
        if spent > most:
            return count
    return len(inputs)
