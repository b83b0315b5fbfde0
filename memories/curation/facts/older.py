"""Statements that rest on older turns than what is known: they end before it, as older imports do (rules.md, 5.11)."""

from collections.abc import Iterable
from datetime import datetime

from django.db.models import Q

from memories import conf
from memories.curation.change_sets import Changes
from memories.facts import timeline
from memories.facts.timeline import Interval
from memories.models import Change, EndUser, Fact, FactEvidence, Status
from memories.models.folding import fold


def place_of(end_user: EndUser, stated: Fact, *, now: datetime) -> Interval | None:
    """Where the statement belongs if another value of its key, or the same, was stated later; None: nothing was.

    The caller holds the person's row. What is stated without turns was said now, so nothing is later.
    """
    if stated.last_confirmed_at >= now:
        return None
    existing = lock_values(end_user, stated, now=now)
    gap = timeline.find_interval(existing, moment=stated.last_confirmed_at)
    if gap and stated.binding and any(fact.status == Status.ACTIVE and _agree(fact, stated) for fact in existing):
        # An operator binds the words of what is in force.
        return None
    return gap


def lock_values(end_user: EndUser, stated: Fact, *, now: datetime) -> list[Fact]:
    """Lock what gives the statement's key a value, or gave it one until something else was stated."""
    if not (stated.key and stated.value):
        return []
    facts = Fact.objects.of(end_user.tenant, end_user).exclude(value="")
    facts = facts.filter(category=stated.category, key=stated.key, agent_id=stated.agent_id)
    in_force = Q(status=Status.ACTIVE) & (Q(expires_at=None) | Q(expires_at__gt=now))
    stating = facts.filter(in_force | Q(status=Status.SUPERSEDED)).select_for_update(of=("self",), no_key=True)
    return list(stating.select_related("tenant", "end_user").order_by("pk"))


def same_beside(gap: Interval, stated: Fact) -> list[Fact]:
    """The facts beside the gap that give the key the same value."""
    return list({fact.pk: fact for fact in gap.neighbours if _agree(fact, stated)}.values())


def insert(fact: Fact, gap: Interval, changes: Changes, *, stated_at: Iterable[datetime]) -> None:
    """Store the statement closed: it held until what is known was said. What was stated on both sides becomes two."""
    timeline.close(fact, gap, stated_at)
    changes.insert([fact])
    if gap.before and not gap.before.protected:
        if gap.before is gap.after:
            split(gap.after, changes, by=fact)
        else:
            end(gap.before, changes, by=fact)


def end(fact: Fact, changes: Changes, *, by: Fact) -> None:
    """The fact held until `by` did, unless it ended before."""
    if timeline.ends_at(fact, by=by):
        changes.supersede(fact, by=by, ended=by.valid_from)


def split(fact: Fact, changes: Changes, *, by: Fact) -> None:
    """The fact was stated before and after `by`: the earlier part becomes a fact of its own, which a revert trashes."""
    rules = conf.rules(fact.tenant)
    with changes.changing(fact, "split"):
        earlier, older = timeline.split(fact, by=by, confirmed_by=rules.confirmed_by, now=changes.now)
        earlier.refresh_decay(now=changes.now, rules=rules)
        changes.insert([earlier])
        changes.facts.add(earlier.pk)
        FactEvidence.objects.filter(pk__in=older).update(fact=earlier)
        for row in older:
            changes.note(Change.Table.EVIDENCE, Change.Action.CHANGED, row, before={"fact": str(fact.pk)})
    for predecessor in timeline.predecessors(fact, earlier=earlier, by=by):
        changes.supersede(predecessor, by=earlier, ended=predecessor.valid_to)


def _agree(one: Fact, other: Fact) -> bool:
    return fold(one.value) == fold(other.value)
