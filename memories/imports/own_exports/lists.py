"""The lists of an export, and how the rows of each come in."""

from collections.abc import Mapping

from django.db.models import Q

from memories.imports.own_exports import conversations, facts, groups, kept
from memories.imports.own_exports.ways import FOLLOWS, ListStrategy, noted_as
from memories.kinds import PLAIN
from memories.models import (
    Episode,
    Fact,
    FactRefusal,
    GraphEntity,
    GraphTriple,
    GroupEvidence,
    GroupFact,
    ImportedRow,
    MemoryFile,
    MemoryGroup,
    ProfileRevision,
    ProfileSection,
    Session,
    Status,
    Turn,
)

Kind = ImportedRow.Kind
_OPEN = Q(status__in=[Status.ACTIVE, Status.PENDING])
WAYS: Mapping[str, ListStrategy] = {
    "sessions": ListStrategy(
        Session, ("agent_id", "external_id"), is_taken_whole=True, complete=conversations.session,
        after=conversations.beside_sessions, noted=noted_as(Kind.SESSION),
    ),
    "turns": ListStrategy(
        Turn, ("session_id", "number"), parents={"session": Session}, complete=conversations.turn,
        after=conversations.beside_turns, noted=conversations.noted_turns,
    ),
    "facts": ListStrategy(
        Fact, ("agent_id", "content_hash"), _OPEN, lambda fact: fact.status in (Status.ACTIVE, Status.PENDING),
        complete=facts.fact, after=facts.beside_facts, link=facts.link_facts, noted=noted_as(Kind.FACT),
    ),
    "refusals": ListStrategy(FactRefusal, store=facts.refusals),
    "profile_sections": ListStrategy(
        ProfileSection, ("agent_id", "section"), complete=kept.section, noted=noted_as(Kind.PROFILE)
    ),
    "profile_history": ListStrategy(ProfileRevision, complete=kept.section, noted=noted_as(Kind.HISTORY)),
    "episodes": ListStrategy(
        Episode, ("session_id", "first_number"), parents={"session": Session}, complete=conversations.episode,
        after=conversations.beside_episodes, noted=noted_as(Kind.EPISODE),
    ),
    "files": ListStrategy(
        MemoryFile, ("agent_id", "path"), complete=kept.file, after=kept.beside_files, noted=noted_as(Kind.FILE)
    ),
    **{
        kind.plural: ListStrategy(kind.model, complete=kept.plain(kind), noted=noted_as(Kind.DIARY)) for kind in PLAIN
    },
    "groups": ListStrategy(MemoryGroup, store=groups.groups),
    "group_facts": ListStrategy(GroupFact, store=groups.group_facts),
    "said_in_groups": ListStrategy(GroupEvidence, store=groups.said_in_groups),
    "graph_entities": ListStrategy(
        GraphEntity, ("digest",), complete=kept.entity, link=kept.link_entities, noted=noted_as(Kind.ENTITY)
    ),
    # Those of facts follow their facts.
    "graph_triples": ListStrategy(
        GraphTriple, parents={"subject": GraphEntity, "object": GraphEntity}, loose={"turn": Turn},
        left_out=lambda _, row: FOLLOWS if row.get("fact") else "", complete=kept.triple, noted=noted_as(Kind.TRIPLE),
    ),
}  # fmt: skip
