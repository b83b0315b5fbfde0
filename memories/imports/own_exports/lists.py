"""The lists of an export, and how the rows of each come in."""

from collections.abc import Mapping

from django.db.models import Q

from memories.imports.own_exports import conversations, facts, groups, kept
from memories.imports.own_exports.ways import FOLLOWS, MergeStrategy
from memories.kinds import PLAIN
from memories.models import (
    Episode,
    Fact,
    FactRefusal,
    GraphEntity,
    GraphTriple,
    GroupEvidence,
    GroupFact,
    MemoryFile,
    MemoryGroup,
    ProfileRevision,
    ProfileSection,
    Session,
    Status,
    Turn,
)

_OPEN = Q(status__in=[Status.ACTIVE, Status.PENDING])
WAYS: Mapping[str, MergeStrategy] = {
    "sessions": MergeStrategy(
        Session, ("agent_id", "external_id"), is_taken_whole=True, complete=conversations.session,
        after=conversations.beside_sessions,
    ),
    "turns": MergeStrategy(
        Turn, ("session_id", "number"), parents={"session": Session}, complete=conversations.turn,
        after=conversations.beside_turns,
    ),
    "facts": MergeStrategy(
        Fact, ("agent_id", "content_hash"), _OPEN, lambda fact: fact.status in (Status.ACTIVE, Status.PENDING),
        complete=facts.fact, after=facts.beside_facts, link=facts.link_facts,
    ),
    "refusals": MergeStrategy(FactRefusal, store=facts.refusals),
    "profile_sections": MergeStrategy(ProfileSection, ("agent_id", "section"), complete=kept.section),
    "profile_history": MergeStrategy(ProfileRevision, complete=kept.section),
    "episodes": MergeStrategy(
        Episode, ("session_id", "first_number"), parents={"session": Session}, complete=conversations.episode,
        after=conversations.beside_episodes,
    ),
    "files": MergeStrategy(MemoryFile, ("agent_id", "path"), complete=kept.file, after=kept.beside_files),
    **{kind.plural: MergeStrategy(kind.model, complete=kept.plain(kind)) for kind in PLAIN},
    "groups": MergeStrategy(MemoryGroup, store=groups.groups),
    "group_facts": MergeStrategy(GroupFact, store=groups.group_facts),
    "said_in_groups": MergeStrategy(GroupEvidence, store=groups.said_in_groups),
    "graph_entities": MergeStrategy(GraphEntity, ("digest",), complete=kept.entity, link=kept.link_entities),
    # Those of facts follow their facts.
    "graph_triples": MergeStrategy(
        GraphTriple, parents={"subject": GraphEntity, "object": GraphEntity}, loose={"turn": Turn},
        left_out=lambda _, row: FOLLOWS if row.get("fact") else "", complete=kept.triple,
    ),
}  # fmt: skip
