"""Who is due for upkeep, and which facts a model is then shown (rules.md, 7.5)."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Q, QuerySet

from memories import conf
from memories.categories import CORRECTIVE
from memories.llm import tokens
from memories.llm.prompts import fact_upkeep
from memories.llm.prompts.fact_upkeep import FactInput
from memories.llm.prompts.framing import Message
from memories.models import EndUser, Fact, FactEvidence, MemoryScope, Tenant, Trust
from memories.models.memories.facts import OF_PROFILE, FactQuerySet
from memories.trust import CORRECTIONS

# After a review of a person, only newer candidates make them due again before this.
AGAIN_AFTER = timedelta(days=30)
# Longer than a night, shorter than the time between two: each person is tried once a night, whatever the result.
NIGHT = timedelta(hours=12)
# Stated outright: such a fact rests on no conversation, and must not be deleted with one.
STATED = ("api", "import")
_KEPT = (
    Q(pinned=True) | Q(locked=True) | Q(binding=True) | Q(trust=Trust.OPERATOR) | Q(scope=MemoryScope.PUBLIC)
    | Q(category__in=CORRECTIVE) | Q(source__in=CORRECTIONS) | Q(key__startswith=OF_PROFILE)
)  # fmt: skip


@dataclass(frozen=True)
class UpkeepFact:
    """A fact as a model was shown it; `group` is that of the facts it may be merged with, 0 none."""

    fact_id: uuid.UUID
    version: int
    content_hash: bytes
    is_stale: bool
    group: int


@dataclass(frozen=True)
class UpkeepSheet:
    """What one call shows of a person: facts, numbered 1, 2, …, and the messages that hold them."""

    facts: Sequence[UpkeepFact]
    messages: Sequence[Message]


def people(*, tenant: Tenant, rules: conf.Rules, now: datetime, limit: int) -> list[EndUser]:
    """People with enough candidates who were not tried this night, those tried longest ago first.

    Within AGAIN_AFTER of a review only newer candidates count.
    """
    found = Q(pk__in=[])
    if rules.staleness_review:
        found |= Q(pk__in=_with_stale(tenant, rules, now))
    if rules.merge_crowded:
        found |= Q(pk__in=_with_crowds(tenant, rules, now))
    untried = Q(upkeep_tried_at=None) | Q(upkeep_tried_at__lte=now - NIGHT)
    rows = EndUser.objects.filter(found, untried, tenant=tenant, restricted_at=None).select_related("tenant")
    return list(rows.order_by(F("upkeep_tried_at").asc(nulls_first=True), "pk")[:limit])


def gather(*, person: EndUser, rules: conf.Rules, now: datetime) -> UpkeepSheet:
    """The person's candidates whose texts fit the tokens of a batch: stale facts, the longest unconfirmed first, then
    crowds. Empty when there are too few."""
    facts = list(unprotected(person.tenant, rules, now).filter(end_user=person).order_by("last_confirmed_at", "pk"))
    stale = {fact.pk for fact in facts if rules.staleness_review and is_stale(fact, rules, now)}
    stale = stale if len(stale) >= rules.stale_least else set()
    crowds = _crowds(facts, rules) if rules.merge_crowded else ()
    groups = {fact.pk: number for number, crowd in enumerate(crowds, start=1) for fact in crowd}
    offered = [fact for fact in facts if fact.pk in stale or fact.pk in groups]
    offered.sort(key=lambda fact: (fact.pk not in stale, groups.get(fact.pk, 0)))
    inputs = [
        FactInput(
            number=number,
            content=fact.content,
            category=fact.category,
            key=fact.key,
            confirmed=person.local(fact.last_confirmed_at).date(),
            is_stale=fact.pk in stale,
            group=groups.get(fact.pk, 0),
        )
        for number, fact in enumerate(offered, start=1)
    ]
    inputs = inputs[: _fitting(inputs, rules.batch_tokens)]
    return UpkeepSheet(
        facts=[
            UpkeepFact(fact.pk, fact.version, bytes(fact.content_hash), one.is_stale, one.group)
            for fact, one in zip(offered, inputs, strict=False)
        ],
        messages=fact_upkeep.build(
            facts=inputs,
            today=person.local(now).date(),
            time_zone=person.clock.key,
            most_stale=rules.stale_most,
            most_sources=rules.merged_most,
        ),
    )


def unprotected(tenant: Tenant, rules: conf.Rules, now: datetime) -> FactQuerySet:
    """Active facts that a model may review: no operator's word, no correction, nothing that never decays."""
    never = [category for category, days in rules.half_lives.items() if days is None]
    facts = Fact.objects.filter(tenant=tenant).active(now=now)
    return facts.exclude(_KEPT).exclude(category__in=never)


def is_stale(fact: Fact, rules: conf.Rules, now: datetime) -> bool:
    """Neither confirmed nor recalled for more than `stale_days`; what was imported just now has the days of grace."""
    is_new = fact.created_at > now - timedelta(days=rules.grace_days)
    return not is_new and fact.last_reinforced < now - timedelta(days=rules.stale_days)


def _with_stale(tenant: Tenant, rules: conf.Rules, now: datetime) -> QuerySet[Any, Any]:
    days = timedelta(days=rules.stale_days)
    arrived = now - timedelta(days=rules.grace_days)
    facts = unprotected(tenant, rules, now).filter(last_confirmed_at__lt=now - days, created_at__lte=arrived)
    facts = facts.exclude(last_recalled_at__gte=now - days)
    stale_then = F("end_user__upkept_at") - days
    facts = facts.filter(_unreviewed(now) | Q(last_confirmed_at__gte=stale_then) | Q(last_recalled_at__gte=stale_then))
    return _at_least(rules.stale_least, facts, "end_user")


def _with_crowds(tenant: Tenant, rules: conf.Rules, now: datetime) -> QuerySet[Any, Any]:
    # A merge would lose an expiry date.
    facts = unprotected(tenant, rules, now).filter(expires_at=None)
    facts = facts.filter(_unreviewed(now) | Q(created_at__gt=F("end_user__upkept_at")))
    return _at_least(rules.crowded_facts, facts, "end_user", "category", "trust")


def _unreviewed(now: datetime) -> Q:
    return Q(end_user__upkept_at=None) | Q(end_user__upkept_at__lte=now - AGAIN_AFTER)


def _at_least(number: int, facts: FactQuerySet, *together: str) -> QuerySet[Any, Any]:
    """People with at least so many of the facts that are equal in these columns."""
    counted: QuerySet[Any, Any] = facts.order_by().values(*together).annotate(number=Count("pk"))
    enough: QuerySet[Any, Any] = counted.filter(number__gte=number)
    return enough.values("end_user")


def _crowds(facts: Iterable[Fact], rules: conf.Rules) -> Iterator[list[Fact]]:
    """Groups of many facts with one category and trust, visible to the same agents and people.

    A fact that rests on turns is deleted with them: it is not merged with one that was stated outright.
    """
    mergeable = [fact for fact in facts if fact.expires_at is None]
    resting = set(FactEvidence.objects.filter(fact__in=mergeable).values_list("fact", flat=True))
    alike: defaultdict[tuple[object, ...], list[Fact]] = defaultdict(list)
    for fact in mergeable:
        rests = fact.pk in resting and fact.extractor not in STATED
        visible_to = fact.agent_id, fact.scope, tuple(sorted(fact.allowed_users)), tuple(sorted(fact.allowed_roles))
        alike[(rests, fact.category, fact.trust, *visible_to)].append(fact)
    return (crowd for crowd in alike.values() if len(crowd) >= rules.crowded_facts)


def _fitting(inputs: Sequence[FactInput], most: int) -> int:
    """How many of the first facts fit into so many tokens."""
    spent = 0
    for count, one in enumerate(inputs):
        spent += tokens.count(fact_upkeep.line(one))
        if spent > most:
            return count
    return len(inputs)
