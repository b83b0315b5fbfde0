"""Facts in the order in which they answer a question: by relevance, gently weighted by how good a fact is."""

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

from django.db.models import Q

from memories import conf
from memories.models import EndUser, Fact, FactEvidence, FactQuerySet, MemoryScope
from memories.pipeline import fact_units, rows
from memories.pipeline.asking import Question
from memories.pipeline.fact_units import Measured
from memories.pipeline.findings import FACT, Evidence, Filters, Finding
from memories.pipeline.lone_units import DAY, Place, best_first, today
from memories.scoring.decay import Remembered, decay_score

# What a finding shows of a fact.
SHOWN = ("end_user", "content", "agent_id", "category", "confidence", "tags", "first_observed_at")


class Ranked(NamedTuple):
    """One fact with its score, and what that consists of."""

    fact: Measured
    place: Place
    reranked: Mapping[str, float] = MappingProxyType({})

    @property
    def score(self) -> float:
        return self.place.score

    @property
    def parts(self) -> dict[str, float]:
        """Written out for the few that are shown."""
        return self.place.parts | dict(self.reranked)


def measured(*lots: FactQuerySet) -> list[Measured]:
    """The facts of all lots, newest first."""
    # Apart: one statement for the person's own and public ones would look through all facts of the tenant.
    found = [fact for facts in lots for fact in _measured(facts)]
    return sorted(found, key=lambda fact: (fact.created_at, fact.id), reverse=True)


def rank(person: EndUser, facts: Sequence[Measured], question: Question, *, now: datetime) -> list[Ranked]:
    """All of the person's `facts`, best first; of equals the one that was given first."""
    if not facts:
        return []
    rules, day = conf.rules(person.tenant), today(now)
    places = best_first(
        fact_units.units(person, facts, question.space),
        question.queries,
        confidence=[fact.confidence for fact in facts],
        decay=[decayed(fact, rules, day) for fact in facts],
        age_days=[(day - fact.last_confirmed_at) // DAY for fact in facts],
    )
    return [Ranked(facts[place.at], place) for place in places]


def narrowed(facts: FactQuerySet, filters: Filters) -> FactQuerySet:
    """Those of `facts` that the filters leave."""
    given = {
        "category": filters.category,
        "tags__contains": list(filters.tags) or None,
        "first_observed_at__gte": filters.since,
        "first_observed_at__lt": filters.until,
    }
    facts = facts.filter(**{name: value for name, value in given.items() if value is not None})
    if filters.session_id is not None:
        resting = FactEvidence.objects.filter(session__external_id=filters.session_id).values("fact")
        facts = facts.filter(pk__in=resting)
    return facts


def shown(person: EndUser, ranked: Sequence[Ranked]) -> list[Finding]:
    """The facts with their text as they are stored, in the given order.

    Those of the person with their evidence; of whom a public one is, and who said it where, nobody else is told.
    """
    if not ranked:
        return []
    ids = [one.fact.id for one in ranked]
    served = Fact.objects.filter(Q(end_user=person) | Q(scope=MemoryScope.PUBLIC), tenant=person.tenant, pk__in=ids)
    stored = served.only(*SHOWN).in_bulk()
    evidence = _evidence([pk for pk, fact in stored.items() if fact.end_user_id == person.pk])
    return [
        _finding(one, stored[one.fact.id], evidence.get(one.fact.id, [])) for one in ranked if one.fact.id in stored
    ]


def decayed(fact: Measured, rules: conf.Rules, day: datetime) -> float:
    """What is left of its importance on that day, as today() gives it, 0..1 (rules.md, 7.1)."""
    if fact.forget_at is None:
        return fact.importance
    last = max(fact.last_confirmed_at, fact.last_recalled_at or fact.last_confirmed_at)
    return decay_score(Remembered(fact.importance, last, fact.mentions, fact.category), rules, now=day)


def _measured(facts: FactQuerySet) -> list[Measured]:
    """In the binary format, for reading thousands of dates as text takes long."""
    statement, parameters = facts.order_by().values_list(*Measured._fields).query.sql_with_params()
    return [Measured(*row) for row in rows.fetched(statement, parameters)]


def _evidence(facts: Sequence[uuid.UUID]) -> dict[uuid.UUID, list[Evidence]]:
    found: dict[uuid.UUID, list[Evidence]] = {}
    for row in FactEvidence.objects.filter(fact__in=facts).select_related("session"):
        found.setdefault(row.fact_id, []).append(Evidence(row.session.external_id, row.turn_number, row.quote))
    return found


def _finding(ranked: Ranked, fact: Fact, evidence: list[Evidence]) -> Finding:
    sessions = {one.session_id for one in evidence}
    # One session can be named; evidence of several is told below.
    session = sessions.pop() if len(sessions) == 1 else None
    return Finding(
        kind=FACT,
        id=fact.pk,
        text=fact.content,
        score=ranked.score,
        score_parts=ranked.parts,
        created_at=fact.first_observed_at,
        session_id=session,
        agent_id=fact.agent_id or None,
        turn_numbers=[one.turn_number for one in evidence] if session else [],
        category=fact.category,
        confidence=fact.confidence,
        tags=fact.tags,
        evidence=evidence,
    )
