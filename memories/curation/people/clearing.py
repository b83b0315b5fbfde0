"""Clears what is remembered of a person, or of one agent of theirs, into the trash: one change set, with one undo."""

import uuid
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from memories import conf
from memories.audit import Actor
from memories.conf import Rules
from memories.curation import episodes
from memories.curation.change_sets import CLEAR, Changes
from memories.curation.facts.changing import lock_facts
from memories.curation.graph import taking_back
from memories.curation.profile.sections import empty_sections, written_sections
from memories.curation.review import item_states
from memories.curation.rollback import files, groups, plain
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.writing import open_write
from memories.facts import review_items
from memories.kinds import PLAIN
from memories.models import (
    Dream,
    EndUser,
    Episode,
    EpisodeStatus,
    Fact,
    FactQuerySet,
    GraphTriple,
    GraphTripleQuerySet,
    GroupEvidence,
    MemoryFile,
    ProfileSection,
    Status,
    TripleStatus,
    Trust,
)

# A rejected fact is no memory: it stays for what an operator refused.
_KEPT = (Status.TRASHED, Status.REJECTED)


def clear_memories(
    *,
    end_user: EndUser,
    actor: Actor,
    now: datetime,
    visible: FactQuerySet | None = None,
    agent_id: str = "",
    reason: str = "",
    write_trust: WriteTrust = AS_USER,
) -> dict[str, int]:
    """Move facts, episodes, triples, memory files, notes of agents and what the person stated in groups to the trash,
    and empty the profile; returns how many.

    What other members of a group stated, too, stays with them. With `agent_id` only what is that agent's: its facts,
    files, notes, profile, episodes of its sessions, and what was stated in groups through it. `visible`:
    the facts that the caller sees; None: all. A key leaves what an operator wrote, and what is locked. Turns stay, and
    nothing is refused: what is said, or extracted, from now on is remembered anew. What is in the trash already stays
    there.

    Errors: NotFound, PersonMerged, PersonRestricted for a key, ReviewNeeded where one of them is not this trust's to
    end: nothing is done then.
    """
    changes = Changes(actor=actor, now=now, reason=reason)
    with open_write(end_user, actor):
        fact_rows, episode_rows = _remembered(end_user, agent_id, Fact.objects.all() if visible is None else visible)
        kept_files = Q(pk__in=[])
        if not actor.is_operator:
            fact_rows, episode_rows = (
                fact_rows.exclude(Q(binding=True) | Q(locked=True)),
                episode_rows.exclude(binding=True),
            )
            kept_files = Q(locked=True) | Q(trust=Trust.OPERATOR)
        triple_rows = _stated(end_user, agent_id, actor)
        file_rows = _files(end_user, agent_id).exclude(kept_files)
        plain_rows = {kind.plural: plain.of_person(kind, end_user, agent_id) for kind in PLAIN}
        group_rows = _group_evidence(end_user, agent_id)
        if write_trust.trust != Trust.USER:
            _check_ends(
                write_trust,
                conf.rules(end_user.tenant),
                with_status=[fact_rows, triple_rows],
                others=[file_rows, *plain_rows.values(), group_rows],
                sections=written_sections(end_user, agent_id).filter(binding=False),
                episode=episode_rows.select_related("tenant").first(),
            )
        facts = lock_facts(fact_rows.values_list("pk", flat=True))
        changes.trash(facts, "forget")
        episode_count = sum(
            _forget(pk, changes) for pk in list(episode_rows.order_by("pk").values_list("pk", flat=True))
        )
        section_count = empty_sections(end_user, changes, agent_id=agent_id)
        triple_count = taking_back.trash(triple_rows, changes)
        file_count = files.clear(file_rows, changes)
        plain_counts = {name: plain.clear(rows, changes) for name, rows in plain_rows.items()}
        group_count = groups.clear(group_rows, changes)
        item_states.close_answered_items(changes)
        # What waits for approval would bring some of it back.
        dreams = Dream.objects.of(end_user.tenant, end_user)
        (dreams.filter(agent_id=agent_id) if agent_id else dreams).abandon()
        counts = {
            "facts": len(facts),
            "episodes": episode_count,
            "sections": section_count,
            "files": file_count,
            **plain_counts,
        }
        counts |= {"triples": triple_count} if triple_count else {}
        counts |= {"group_facts": group_count} if group_count else {}
        if any(counts.values()):
            changes.counts.update(counts)
            changes.record(CLEAR, end_user, counts=counts)
    return counts


def preview_clearing(*, end_user: EndUser, agent_id: str = "") -> dict[str, int]:
    """What clear_memories() by an operator would move and empty now; nothing is changed."""
    fact_rows, episode_rows = _remembered(end_user, agent_id, Fact.objects.all())
    written = written_sections(end_user, agent_id)
    group_count = _group_evidence(end_user, agent_id).count()
    counts = {
        "facts": fact_rows.count(),
        "episodes": episode_rows.count(),
        "sections": written.count(),
        "files": _files(end_user, agent_id).count(),
        **{kind.plural: plain.of_person(kind, end_user, agent_id).count() for kind in PLAIN},
    }
    return counts | ({"group_facts": group_count} if group_count else {})


def agents_remembered(end_user: EndUser) -> list[str]:
    """The agents who have memories of the person, by name."""
    fact_rows, episode_rows = _remembered(end_user, "", Fact.objects.all())
    names = {*fact_rows.values_list("agent_id", flat=True).distinct()}
    names |= {*episode_rows.values_list("session__agent_id", flat=True).distinct()}
    names |= {*ProfileSection.objects.written().filter(end_user=end_user).values_list("agent_id", flat=True).distinct()}
    names |= {*_files(end_user, "").values_list("agent_id", flat=True).distinct()}
    for kind in PLAIN:
        names |= {*plain.of_person(kind, end_user, "").values_list("agent_id", flat=True).distinct()}
    names |= {*_group_evidence(end_user, "").values_list("agent_id", flat=True).distinct()}
    return sorted(names - {""})


def _check_ends(
    write_trust: WriteTrust,
    rules: Rules,
    *,
    with_status: Iterable[QuerySet[Any]],
    others: Iterable[QuerySet[Any]],
    sections: QuerySet[ProfileSection],
    episode: Episode | None,
) -> None:
    """What would go is the writer's to end, all of it: what it may not change one by one, it does not clear.

    Errors: ReviewNeeded.
    """
    for rows in with_status:
        guarding.check_none(rows, guarding.beyond(write_trust, rules))
    for rows in others:
        guarding.check_none(rows, guarding.outranking(write_trust))
    # All of these are served; an agent that is not believed can only propose a text.
    guarding.check_none(
        sections, guarding.outranking(write_trust) if write_trust.is_believed(rules) else ~Q(summary="")
    )
    if episode:
        guarding.check_ends_episode(episode, write_trust)


def _remembered(end_user: EndUser, agent_id: str, facts: FactQuerySet) -> tuple[FactQuerySet, QuerySet[Episode]]:
    """The facts and episodes of the person, or of one agent of theirs, that are no trash yet."""
    fact_rows = facts.of(end_user.tenant, end_user).exclude(status__in=_KEPT)
    episode_rows = Episode.objects.filter(tenant=end_user.tenant, end_user=end_user, status__in=EpisodeStatus.LIVE)
    if agent_id:
        fact_rows, episode_rows = fact_rows.filter(agent_id=agent_id), episode_rows.filter(session__agent_id=agent_id)
    return fact_rows, episode_rows


def _files(end_user: EndUser, agent_id: str) -> QuerySet[MemoryFile]:
    files = MemoryFile.objects.of(end_user.tenant, end_user).filter(trashed_at=None)
    return files.filter(agent_id=agent_id) if agent_id else files


def _group_evidence(end_user: EndUser, agent_id: str) -> QuerySet[GroupEvidence]:
    """What the person stated in groups; no operator states anything there."""
    evidence = GroupEvidence.objects.filter(
        tenant=end_user.tenant, end_user__in=EndUser.objects.with_aliases(end_user), fact__trashed_at=None
    )
    return evidence.filter(agent_id=agent_id) if agent_id else evidence


def _stated(end_user: EndUser, agent_id: str, actor: Actor) -> GraphTripleQuerySet:
    """Triples that somebody stated; those of facts go with their facts."""
    triples = GraphTriple.objects.of(end_user.tenant, end_user).filter(fact=None).exclude(status=TripleStatus.TRASHED)
    if not actor.is_operator:
        triples = triples.exclude(trust=Trust.OPERATOR)
    return triples.filter(agent_id=agent_id) if agent_id else triples


def _forget(pk: uuid.UUID, changes: Changes) -> int:
    episode = episodes.lock(pk)
    if episode is None:
        return 0
    with episodes.next_version(episode, "forget", changes):
        episode.status, episode.trashed_at = EpisodeStatus.TRASHED, changes.now
    review_items.close_answered_items_of_episode(episode, now=changes.now, change_set=changes.id)
    return 1
