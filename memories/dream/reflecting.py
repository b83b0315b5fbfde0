"""Reflections: patterns over many episodes, proposed as facts that wait for review.

A reflection is a dream that edits no file. It reads the newest episodes of a person with an agent, once enough of them
are new, and proposes habits, changes of mind and problems that come again. What it proposes rests on the turns of the
person in the episodes that show it, so that it goes with them. Nothing of it is ever active by itself: each fact is
stored pending, with a flag, and a review item asks an operator.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, Min, OuterRef, Q, Sum
from pydantic import ValidationError

from memories import conf
from memories.audit import Actor
from memories.dream import unread
from memories.dream.unread import LONGEST_ENTRY, PAGE
from memories.facts import policies
from memories.facts.candidate import Candidate, Citation
from memories.facts.record import Recorded, record
from memories.facts.review_items import CHANGE_OF_MIND, HABIT, REASON_OF_FLAG, RECURRING_PROBLEM
from memories.facts.write import FactWrite
from memories.llm.prompts import reflections
from memories.llm.prompts.framing import Message
from memories.llm.prompts.reflections import EpisodeInput, ExistingInput, ProposedPattern
from memories.models import (
    Category,
    Dream,
    EndUser,
    Episode,
    Fact,
    Role,
    Source,
    Status,
    Tenant,
    Trust,
    Turn,
)
from memories.reconcile import gate
from memories.reconcile.gate import Accepted, BatchEvidence

# So many episodes must be new before a model is asked, or before an operator lets it be asked, and so many must show a
# pattern.
LEAST_NEW = 3
LEAST_BY_HAND = 1
LEAST_SHOWING = 2
MOST_EPISODES = 60
# Proposals for a person in a week, whatever the interval and however many agents.
MOST_A_WEEK = 5
WEEK = timedelta(days=7)
LONGEST_PATTERN = 500
_MOST_EXISTING = 60
_LONGEST_EXISTING = 200
_MOST_ITEMS = 50
DONE = (Dream.State.APPLIED, Dream.State.UNCHANGED)
FLAGS = {
    reflections.HABIT: HABIT,
    reflections.CHANGE_OF_MIND: CHANGE_OF_MIND,
    reflections.RECURRING_PROBLEM: RECURRING_PROBLEM,
}
# No turn states it: it is a machine's word about episodes, whatever the person said in them.
_NO_EVIDENCE = BatchEvidence(fed={}, tool_numbers=frozenset())


@dataclass(frozen=True)
class _EvidencedPattern:
    """What may be proposed, its flag, and the episodes that show it."""

    accepted: Accepted
    flag: str
    episodes: Sequence[Episode]


def due(*, tenant: Tenant, rules: conf.Rules, now: datetime, passed: Sequence[UUID] = ()) -> list[tuple[EndUser, str]]:
    """People and agents with enough new episodes about whom nobody reflected for long enough, but for these people.

    After a failure the next attempt comes when the next dream would.
    """
    since = unread.last_time(tenant, rules, now=now)
    days = timedelta(days=rules.reflection_days)
    begun = since - days + timedelta(days=1) if rules.dream_hour else now - days
    theirs = Dream.objects.filter(
        end_user=OuterRef("end_user"), agent_id=OuterRef("session__agent_id"), kind=Dream.Kind.REFLECTION
    )
    rows = Episode.objects.filter(tenant=tenant).active(now=now).filter(end_user__restricted_at=None)
    rows = rows.exclude(end_user__in=passed)
    rows = rows.exclude(Exists(theirs.filter(state__in=DONE, started_at__gte=OuterRef("created_at"))))
    waits = Q(state=Dream.State.RUNNING) | Q(state__in=DONE, started_at__gt=begun)
    rows = rows.exclude(Exists(theirs.filter(waits | Q(state=Dream.State.FAILED, started_at__gt=since))))
    pairs: Any = rows.order_by().values_list("end_user", "session__agent_id")
    pairs = pairs.annotate(new=Count("pk"), first=Min("created_at")).filter(new__gte=LEAST_NEW).order_by("first")
    return unread.people_of([(person, agent) for person, agent, _new, _first in pairs[:PAGE]])


def next_episodes(person: EndUser, agent_id: str, *, now: datetime, least_new: int = LEAST_NEW) -> list[Episode]:
    """The newest episodes of the person with this agent, the oldest first; none while too few are new, or too few at
    all to show a pattern, or the week's proposals are used up."""
    rows = Episode.objects.of(person.tenant, person).active(now=now).filter(session__agent_id=agent_id)
    rows = rows.select_related("session")
    theirs = Dream.objects.of(person.tenant, person).filter(agent_id=agent_id, kind=Dream.Kind.REFLECTION)
    last = theirs.filter(state__in=DONE).order_by("-started_at").values_list("started_at", flat=True).first()
    new = rows.filter(created_at__gt=last) if last else rows
    if new.count() < least_new or not left_this_week(person, now=now):
        return []
    newest = list(reversed(rows.order_by("-ended_at", "-pk")[:MOST_EPISODES]))
    return newest if len(newest) >= LEAST_SHOWING else []


def left_this_week(person: EndUser, *, now: datetime) -> int:
    """How many facts may still be proposed about the person, and who was merged into them, with any agent."""
    recent = Dream.objects.filter(kind=Dream.Kind.REFLECTION, started_at__gt=now - WEEK)
    made = recent.filter(end_user__in=EndUser.objects.with_aliases(person.pk)).aggregate(made=Sum("proposed"))["made"]
    return max(0, MOST_A_WEEK - (made or 0))


def messages(person: EndUser, agent_id: str, episodes: Sequence[Episode], *, now: datetime) -> list[Message]:
    """The prompt: these episodes, and what need not be proposed again."""
    existing = Fact.objects.of(person.tenant, person).for_agent(agent_id)
    shown = (
        existing.filter(status__in=[*Status.LIVE, Status.REJECTED])
        .order_by("-updated_at", "-pk")
        .values_list("content", "status")[:_MOST_EXISTING]
    )
    return reflections.build(
        episodes=[
            EpisodeInput(number, person.local(one.ended_at), one.text[:LONGEST_ENTRY])
            for number, one in enumerate(episodes, start=1)
        ],
        existing=[ExistingInput(content[:_LONGEST_EXISTING], status == Status.REJECTED) for content, status in shown],
        today=person.local(now).date(),
        time_zone=person.clock.key,
        most=MOST_A_WEEK,
        categories=Category.values,
    )


def propose(
    dream: Dream,
    items: Sequence[Any],
    episodes: Sequence[Episode],
    *,
    actor: Actor,
    extractor: str,
    rules: conf.Rules,
    now: datetime,
) -> Counter[str]:
    """Store what of an answer may be proposed, and ask an operator; counts of what was proposed and refused.

    In the transaction that locked the person and these episodes.
    """
    counts: Counter[str] = Counter(proposed=0)
    left = left_this_week(dream.end_user, now=now)
    write = FactWrite(actor, now, reason="Found in several episodes.")
    for raw in items[:_MOST_ITEMS]:
        pattern = _judge(raw, episodes, rules) if counts["proposed"] < left else None
        made: list[Recorded] = []
        if pattern:
            candidate = _candidate(pattern, dream.tenant, extractor=extractor)
            made = record([candidate], person=dream.end_user, write=write, policy=policies.REFLECTION)
        counts["proposed" if any(one.fact for one in made) else "refused"] += 1
    return counts


def _judge(raw: Any, episodes: Sequence[Episode], rules: conf.Rules) -> _EvidencedPattern | None:
    """The pattern, if the gate admits its text as it would an extracted fact's and enough episodes show it."""
    try:
        item = ProposedPattern.model_validate(raw)
    except ValidationError:
        return None
    flag = FLAGS.get(item.kind.strip().lower())
    shown = [episodes[number - 1] for number in sorted(set(item.episodes)) if 1 <= number <= len(episodes)]
    if flag is None or len(shown) < LEAST_SHOWING:
        return None
    given = item.model_dump(include={"content", "category", "confidence", "importance"})
    accepted = gate.judge(given, index=0, evidence=_NO_EVIDENCE, rules=rules)
    if not isinstance(accepted, Accepted) or len(accepted.content) > LONGEST_PATTERN:
        return None
    return _EvidencedPattern(accepted, flag, shown)


def _candidate(pattern: _EvidencedPattern, tenant: Tenant, *, extractor: str) -> Candidate:
    accepted, episodes = pattern.accepted, pattern.episodes
    return Candidate(
        content=accepted.content,
        category=accepted.category,
        confidence=accepted.confidence,
        importance=accepted.importance,
        # Private to the agent if one of the conversations is.
        agent_id=max({episode.session.owner(tenant) for episode in episodes}),
        source=Source.IMPLICIT,
        trust=Trust.ASSISTANT,
        flags=[*accepted.flags, pattern.flag],
        proposed_as=REASON_OF_FLAG[pattern.flag],
        extractor=extractor,
        prompt_version=reflections.VERSION,
        stated_at=[episode.ended_at for episode in episodes],
        citations=_citations(episodes),
    )


def _citations(episodes: Sequence[Episode]) -> list[Citation]:
    """The turns of the person in these episodes; of one whose turns are gone by now, where it began."""
    segments = [Q(session=one.session_id, number__range=(one.first_number, one.last_number)) for one in episodes]
    turns = Turn.objects.filter(reduce(or_, segments), role=Role.USER).order_by("session", "number")
    cited = [Citation(session, number, turn) for turn, session, number in turns.values_list("pk", "session", "number")]
    return cited + [
        Citation(one.session_id, one.first_number)
        for one in episodes
        if not any(row.session_id == one.session_id and one.covers(row.turn_number) for row in cited)
    ]
