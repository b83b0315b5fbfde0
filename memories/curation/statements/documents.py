"""Imports a person's memory as one document: what it states is added to what exists; nothing is lost by it.

What a document says that the hub has no field for is kept beside the fact, or the section, and told again with it
(`document`): `given` are its own words, `updated` is when it says that it was last updated, and `version` is that of
the fact or section since which they hold.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import Q

from memories import audit
from memories.audit import Actor
from memories.curation.facts.editing import edit_fact
from memories.curation.profile.stating import state_profile_section
from memories.curation.statements import guarding
from memories.curation.statements.scrubbing import scrubbed_fact
from memories.curation.statements.write_trust import AS_USER, IMPORTED, WriteTrust
from memories.curation.writing import open_write
from memories.exceptions import ContentForbidden, OperatorWord, RefusedBefore, ReviewNeeded
from memories.facts import policies
from memories.facts.candidate import Candidate
from memories.facts.record import record
from memories.facts.write import FactWrite
from memories.models import EndUser, Fact, FactQuerySet, ProfileSection, ReviewItem, Status
from memories.models.folding import text_digest
from memories.text.secrets.redaction import redact_text
from memories.text.secrets.scrubbing import scrubbed_json, scrubbed_text

LONGEST_EXTERNAL_ID = 255


@dataclass(frozen=True)
class DocumentFact:
    """A fact of a document; `stated_at` is when it was first stated, if the document says so.

    `id` is ours when the hub wrote it, `external_id` the document's own. `given` is what the document says of it in its
    own words, beside the fields here.
    """

    content: str
    category: str
    confidence: float
    id: uuid.UUID | None = None
    external_id: str = ""
    stated_at: datetime | None = None
    source_error: str = ""
    expires_at: datetime | None = None
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DocumentSection:
    """The text of a section of a document, and when the document says that it was written, in its own words."""

    summary: str
    updated: str = ""


@dataclass(frozen=True)
class HeldParts:
    """How many facts and sections of a document wait for an operator now; `asked` are the texts of sections for which
    the document made a review item: ids of revisions."""

    facts: int = 0
    sections: int = 0
    asked: tuple[uuid.UUID, ...] = ()


def import_document(
    *,
    end_user: EndUser,
    sections: Mapping[str, DocumentSection],
    facts: Sequence[DocumentFact],
    actor: Actor,
    now: datetime,
    visible: FactQuerySet | None = None,
    agent_id: str = "",
    updated: str = "",
    write_trust: WriteTrust = AS_USER,
) -> HeldParts:
    """Write the named sections, change the facts that the document names by our ids or its own, add those that are new.

    `visible`: the facts that the caller sees. A document changes these, and that of an agent (`agent_id`) its own
    ones alone; ids of others are ignored. New facts and sections are the agent's, or the person's own. `updated`:
    when the document says that it was last updated. All or nothing. What it does not name stays; what an operator
    wrote stays as it is. A text that was refused before, one that speaks to a model, and what somebody states whose
    trust is not believed, wait for review; an import that would change a fact waits beside it.

    Errors: PersonMerged, PersonRestricted, DuplicateFact, CapacityReached when a fact would be archived at once.
    """
    updated = _told_again(updated)
    with open_write(end_user, None):
        new_sections = _changed_sections(end_user, sections, agent_id) if agent_id else sections
        held = [
            _write_section(
                end_user, agent_id, name, section, updated=updated, actor=actor, now=now, write_trust=write_trust
            )
            for name, section in new_sections.items()
        ]
        seen = (Fact.objects.all() if visible is None else visible).of(end_user.tenant, end_user)
        # One past its end is no longer there to be changed: a document that names it states it anew.
        seen = seen.filter(status__in=[Status.ACTIVE, Status.PENDING]).exclude(locked=False, expires_at__lte=now)
        named = _named(seen.filter(agent_id=agent_id) if agent_id else seen, [_clean(fact) for fact in facts])
        rest = _change_named(named, updated=updated, actor=actor, now=now, write_trust=write_trust)
        # An agent's contexts contain the person's own facts, too: a fact that repeats one of them is not new.
        own = seen.filter(agent_id="").values_list("content_hash", flat=True) if agent_id else ()
        own_hashes = {bytes(digest) for digest in own}
        candidates = [
            _candidate(one, old, agent_id=agent_id, updated=updated, actor=actor, now=now, write_trust=write_trust)
            for one, old in rest
        ]
        new = [one for one in candidates if one.beside or one.content_hash not in own_hashes]
        done = record(new, person=end_user, write=FactWrite(actor, now), policy=policies.DOCUMENT)
        stored = [one.fact for one in done if one.fact]
        waiting = sum(fact.status == Status.PENDING for fact in stored)
        audit.record(
            actor=actor,
            verb="import",
            target=end_user,
            now=now,
            counts={"facts": len(stored), "sections": len(sections)},
        )
    items = [item for item in held if item]
    asked = [item.proposed_section_id for item in items if item.created_at == now and item.proposed_section_id]
    return HeldParts(waiting, len(items), tuple(asked))


def _changed_sections(
    end_user: EndUser, sections: Mapping[str, DocumentSection], agent_id: str
) -> dict[str, DocumentSection]:
    """Without those in which the agent repeats the person's own section, and has none itself."""
    rows = {row.section: row for row in ProfileSection.objects.written().filter(end_user=end_user).served_to(agent_id)}
    own = {name: row.summary for name, row in rows.items() if not row.agent_id}
    return {name: section for name, section in sections.items() if own.get(name) != section.summary}


def _write_section(
    end_user: EndUser,
    agent_id: str,
    name: str,
    section: DocumentSection,
    *,
    updated: str,
    actor: Actor,
    now: datetime,
    write_trust: WriteTrust,
) -> ReviewItem | None:
    """The item by which the text waits for an operator, if it does."""
    try:
        item = state_profile_section(
            end_user=end_user,
            section=name,
            summary=section.summary,
            actor=actor,
            now=now,
            agent_id=agent_id,
            write_trust=write_trust,
        )
    except (ContentForbidden, OperatorWord, RefusedBefore):
        return None
    if item is None and section.updated:
        # Not a change of the section: a version for it would end what an operator is about to write.
        named = {"end_user": end_user, "agent_id": agent_id, "section": name}
        row = ProfileSection.objects.written().filter(**named).first()
        given = {"updatedAt": _told_again(section.updated)}
        document = {"given": given, "updated": updated, "version": row.version} if row else None
        if row and document != row.document:
            row.document = document
            row.save(update_fields=["document"])
    return item


def _told_again(text: str) -> str:
    """A time in the document's own words; none where they speak to a model."""
    said = scrubbed_text(text)
    return "" if guarding.speaks_beside(said) else said


def _clean(stated: DocumentFact) -> DocumentFact:
    """The same without secrets and invisible characters."""
    texts = scrubbed_fact({"content": stated.content, "source_error": stated.source_error})
    external_id = redact_text(stated.external_id)[0][:LONGEST_EXTERNAL_ID]
    given = scrubbed_json(stated.given)
    return replace(stated, **texts, external_id=external_id, given=given)


def _named(live: FactQuerySet, facts: Iterable[DocumentFact]) -> list[tuple[DocumentFact, Fact | None]]:
    """Each fact of the document with the live one that it names, by our id or its own; each of these once.

    Of several with one id of the document's own, the one with the same text is meant, then the active one.
    """
    stated = list(facts)
    ids = [fact.id for fact in stated if fact.id]
    external_ids = [fact.external_id for fact in stated if fact.external_id]
    rows = live.select_related("tenant", "end_user").filter(Q(pk__in=ids) | Q(external_id__in=external_ids))
    by_id: dict[uuid.UUID, Fact] = {}
    by_external_id: dict[str, list[Fact]] = defaultdict(list)
    for row in rows.order_by("status", "pk"):
        by_id[row.pk] = row
        if row.external_id:
            by_external_id[row.external_id].append(row)
    taken: set[uuid.UUID] = set()
    found: list[tuple[DocumentFact, Fact | None]] = []
    for one in stated:
        same_id = by_external_id.get(one.external_id, [])
        same_text = [row for row in same_id if bytes(row.content_hash) == text_digest(one.content)]
        meant = [by_id[one.id]] if one.id in by_id else [*same_text, *same_id]
        free = next((row for row in meant if row.pk not in taken), None)
        found.append((one, free))
        taken |= {free.pk} if free else set()
    return found


def _change_named(
    named: Iterable[tuple[DocumentFact, Fact | None]],
    *,
    updated: str,
    actor: Actor,
    now: datetime,
    write_trust: WriteTrust,
) -> list[tuple[DocumentFact, Fact | None]]:
    """Change the facts that the document names. Returns the others, which are new, and those that may not be changed
    by this writer or without an operator: each of these with the existing fact."""
    rest: list[tuple[DocumentFact, Fact | None]] = []
    changed: list[Fact] = []
    for stated, fact in named:
        if fact is None:
            rest.append((stated, None))
        elif not fact.protected:
            names = ("content", "category", "confidence", "source_error")
            changes = {name: getattr(stated, name) for name in names if getattr(stated, name) != getattr(fact, name)}
            try:
                changed.append(
                    _changed(fact, changes, stated, updated=updated, actor=actor, now=now, write_trust=write_trust)
                )
            except ContentForbidden:
                continue
            except ReviewNeeded:
                if "content" in changes or "source_error" in changes:
                    rest.append((stated, fact))
    # Not a change of the fact, for which there would be a revision.
    Fact.objects.bulk_update(changed, ["document"])
    return rest


def _changed(
    fact: Fact,
    changes: dict[str, Any],
    stated: DocumentFact,
    *,
    updated: str,
    actor: Actor,
    now: datetime,
    write_trust: WriteTrust,
) -> Fact:
    """The fact as the document states it; its `document` is still to be saved. Errors: as edit_fact()."""
    if changes and write_trust.imports:
        raise ReviewNeeded
    if (fact.document or fact.external_id) and guarding.speaks_beside(stated.given):
        raise ReviewNeeded
    after = fact
    if changes:
        after = edit_fact(
            fact_id=fact.pk, tenant=fact.tenant, changes=changes, actor=actor, now=now, write_trust=write_trust
        )
    # A fact that is the hub's own has no other words.
    if fact.document or fact.external_id:
        after.document = _document(stated, updated=updated, version=after.version)
    return after


def _document(stated: DocumentFact, *, updated: str, version: int) -> dict[str, Any] | None:
    """What the fact keeps of the document."""
    return {"given": stated.given, "updated": updated, "version": version} if stated.given else None


def _candidate(
    stated: DocumentFact,
    beside: Fact | None,
    *,
    agent_id: str,
    updated: str,
    actor: Actor,
    now: datetime,
    write_trust: WriteTrust,
) -> Candidate:
    candidate = Candidate(
        content=stated.content,
        category=stated.category,
        confidence=stated.confidence,
        source_error=stated.source_error,
        expires_at=stated.expires_at,
        external_id=stated.external_id,
        document=_document(stated, updated=updated, version=1),
        agent_id=agent_id,
        source=write_trust.source(""),
        trust=write_trust.trust,
        extractor=IMPORTED,
        is_import=write_trust.imports,
        key_id=actor.id,
        stated_at=[stated.stated_at or now, now],
        beside=beside,
    )
    return replace(candidate, flags=guarding.flags_of_fact(candidate, write_trust))
