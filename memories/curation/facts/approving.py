"""How an approved suggestion becomes a fact: in force, or closed before what was said later (rules.md, 5.11)."""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from django.db.models import Max

from memories.curation.change_sets import Changes
from memories.curation.facts.changing import approve, check_policy, chosen, gives_way, lock_facts, own_rivals
from memories.facts import existing, timeline
from memories.facts.timeline import Interval
from memories.facts.writer import insert_before
from memories.models import Fact, FactEvidence, ReviewItem, Status


def approve_suggestion(fact: Fact, changes: Changes, *, instead_of: Collection[uuid.UUID] = ()) -> None:
    """Make the locked suggestion active in place of what contradicts it, also of the facts `instead_of`; if one of them
    was said later, keep the suggestion closed, as what held until then."""
    contradicting = {rival.pk for rival in _rivals([fact], now=changes.now)[fact.pk]}
    rivals = lock_facts({*contradicting, *instead_of})
    later, interval = _later({fact: rivals})[fact], None
    if later:
        stated = {row.pk: row for row in (*later, *existing.lock_values(fact, now=changes.now))}
        interval = timeline.find_interval(list(stated.values()), moment=_last_stated([fact])[fact])
    decision = chosen(fact, rivals, interval=interval)
    if decision.interval:
        _close(fact, decision.interval, changes)
        return
    approve(fact, changes)
    for rival in decision.supersedes:
        changes.supersede(rival, by=fact)


def stated_earlier(facts: Collection[Fact], *, now: datetime) -> set[uuid.UUID]:
    """The ids of those suggestions that approve_suggestion() would close; in three queries."""
    rivals = _rivals(facts, now=now)
    later = _later({fact: rivals[fact.pk] for fact in facts})
    return {fact.pk for fact in facts if later[fact]}


def asked_too_late(items: Iterable[ReviewItem], *, now: datetime) -> set[uuid.UUID]:
    """The ids of those items whose approval would close their suggestion."""
    waiting = [(item, item.fact) for item in items if item.fact and item.fact.status == Status.PENDING]
    rivals = _rivals([fact for _item, fact in waiting], now=now)
    later = _later({fact: [*rivals[fact.pk], *([item.known] if item.known else [])] for item, fact in waiting})
    return {item.pk for item, fact in waiting if later[fact]}


def _rivals(facts: Collection[Fact], *, now: datetime) -> Mapping[uuid.UUID, Sequence[Fact]]:
    """By fact, what is in force and gives its key another value, or contradicts it in an open conflict."""
    found = own_rivals(facts, now=now)
    if facts:
        items = ReviewItem.objects.waiting().filter(fact__in=facts, kind=ReviewItem.Kind.CONFLICT).exclude(known=None)
        for item in items.select_related("known").order_by("pk"):
            if item.fact_id and item.known:
                found[item.fact_id].append(item.known)
    return found


def _later(rivals: Mapping[Fact, Sequence[Fact]]) -> Mapping[Fact, Sequence[Fact]]:
    """By suggestion, those of its rivals that it would supersede although they were said later."""
    last_stated = _last_stated({one for fact, some in rivals.items() if some for one in (fact, *some)})
    return {
        fact: [rival for rival in some if gives_way(rival, fact) and last_stated[rival] > last_stated[fact]]
        for fact, some in rivals.items()
    }


def _last_stated(facts: Collection[Fact]) -> Mapping[Fact, datetime]:
    """When each was said last. An operator's approval confirms a fact as well, but tells nothing of when it was true;
    what an operator wrote was said then."""
    own = [fact for fact in facts if not fact.binding]
    cited = FactEvidence.objects.filter(fact__in=own, turn__isnull=False).values_list("fact")
    moments = dict(cited.annotate(last_stated=Max(timeline.SENT_AT))) if own else {}
    return {fact: moments.get(fact.pk, fact.last_confirmed_at) for fact in facts}


def _close(fact: Fact, interval: Interval, changes: Changes) -> None:
    """Close it before the next statement. A fact that was stated before and after it becomes two."""
    check_policy(fact)
    cited = FactEvidence.objects.filter(fact=fact, turn__isnull=False).order_by("pk")
    changes.remove_refusals_of(fact)
    with changes.changing(fact, "approve"):
        # Retention may have deleted the turns.
        timeline.close(fact, interval, [fact.last_confirmed_at, *cited.values_list(timeline.SENT_AT, flat=True)])
        fact.flags = []
    insert_before(interval, changes, by=fact)
