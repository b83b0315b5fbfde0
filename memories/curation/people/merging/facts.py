"""Facts of two people who are merged: a text of both stays once, two facts about one key become a review item."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from memories.curation.change_sets import Changes, refusals_of
from memories.curation.facts.changing import lock_facts
from memories.curation.people.merging.locks import Pair
from memories.curation.sessions import STATED
from memories.facts import review_items
from memories.facts.review_items import ReviewQuestion
from memories.models import EndUser, Fact, FactRefusal, ReviewItem, Status
from memories.trust import rank


def same_texts(person: EndUser, other: EndUser) -> QuerySet[Fact]:
    """Live facts of the person whose text the other one has as well, for the same agent."""
    same = _live(other).filter(agent_id=OuterRef("agent_id"), content_hash=OuterRef("content_hash"))
    return _live(person).filter(Exists(same))


def same_keys(survivor: EndUser, merged: EndUser) -> list[tuple[uuid.UUID, uuid.UUID]]:
    """(theirs, ours) of active facts about one key with different texts, which contradict each other after a merge: of
    one agent, and of the person and an agent where one of the two is protected."""
    ours, theirs = (_keyed(person) for person in (survivor, merged))
    pairs = [pair for key in theirs.keys() & ours.keys() for pair in product(theirs[key], ours[key])]
    return sorted((their.pk, our.pk) for their, our in pairs if their.text != our.text and _conflict(their, our))


def refused_by_other(survivor: EndUser, merged: EndUser) -> list[uuid.UUID]:
    """Active facts of either that were refused of the other, and are not an operator's word."""
    return [fact for one, other in ((survivor, merged), (merged, survivor)) for fact in _refused(one, other)]


def merge_duplicates(pair: Pair, changes: Changes) -> int:
    """Let the stronger of two facts with the same text supersede the other; returns how many.

    Before the facts move: fact_text_once lets no person have a text twice.
    """
    ids = [pk for both in (pair.people, pair.people[::-1]) for pk in same_texts(*both).values_list("pk", flat=True)]
    locked = {(fact.end_user_id, fact.agent_id, bytes(fact.content_hash)): fact for fact in lock_facts(ids)}
    twins = [
        (fact, locked[pair.merged.pk, agent, text])
        for (owner, agent, text), fact in locked.items()
        if owner == pair.survivor.pk
    ]
    for ours, theirs in twins:
        kept, other = (ours, theirs) if _strength(ours) >= _strength(theirs) else (theirs, ours)
        changes.supersede(other, by=kept)
        with changes.changing(kept, "merge_people"):
            kept.mentions += other.mentions
            kept.extend_times([other.first_observed_at, other.last_confirmed_at])
        # A fact that was stated outright cites no turn, or the deletion of a session would delete it.
        if kept.extractor not in STATED:
            changes.copy_evidence(of=other, to=kept)
    return len(twins)


def ask(pairs: Sequence[tuple[uuid.UUID, uuid.UUID]], refused: Sequence[uuid.UUID], changes: Changes) -> int:
    """Ask which of two facts is true, and whether a fact that was refused of the other person is; after they moved."""
    rows = Fact.objects.select_related("end_user").filter(status=Status.ACTIVE)
    found = rows.in_bulk([*(pk for pair in pairs for pk in pair), *refused])
    questions = [
        ReviewQuestion(ReviewItem.Reason.NOT_JUDGED, fact=found[theirs], known=found[ours])
        for theirs, ours in pairs
        if theirs in found and ours in found
    ]
    questions += [ReviewQuestion(ReviewItem.Reason.OTHER_PERSON, known=found[pk]) for pk in refused if pk in found]
    for question in questions:
        review_items.ask(question, run=None, now=changes.now)
    return len(questions)


def _live(person: EndUser) -> QuerySet[Fact]:
    return Fact.objects.of(person.tenant, person).filter(status__in=Status.LIVE)


def _strength(fact: Fact) -> tuple[Any, ...]:
    """An operator's word before others, an active fact before one that waits, more trust before less."""
    return fact.binding, fact.locked, fact.pinned, fact.status == Status.ACTIVE, rank(fact.trust)


@dataclass(frozen=True)
class _Keyed:
    """What of an active fact with a key decides whether it contradicts another one."""

    pk: uuid.UUID
    agent_id: str
    text: bytes
    is_protected: bool


def _conflict(one: _Keyed, other: _Keyed) -> bool:
    if one.agent_id == other.agent_id:
        return True
    return "" in (one.agent_id, other.agent_id) and (one.is_protected or other.is_protected)


def _keyed(person: EndUser) -> dict[tuple[str, str], list[_Keyed]]:
    """By category and key: the active facts about it."""
    rows = _live(person).filter(status=Status.ACTIVE).exclude(key="")
    found: dict[tuple[str, str], list[_Keyed]] = {}
    for fact in rows.only("agent_id", "category", "key", "content_hash", "binding", "pinned", "locked"):
        one = _Keyed(fact.pk, fact.agent_id, bytes(fact.content_hash), fact.protected)
        found.setdefault((fact.category, fact.key), []).append(one)
    return found


def _refused(owner: EndUser, by: EndUser) -> Iterable[uuid.UUID]:
    digests = {bytes(digest) for digest in FactRefusal.objects.filter(end_user=by).values_list("digest", flat=True)}
    if not digests:
        return
    active = _live(owner).filter(status=Status.ACTIVE, binding=False, pinned=False, locked=False)
    for fact in active.only("content", "category", "key"):
        if not digests.isdisjoint(digest for mark in refusals_of(fact) for digest in mark.digests):
            yield fact.pk
