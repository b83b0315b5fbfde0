"""Imports a person's memory as one document: what it states is added to what exists; nothing is lost by it."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit, conf
from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.facts.changing import lock_person
from memories.curation.facts.editing import edit_fact
from memories.curation.people.errors import PersonMerged
from memories.curation.profile.stating import state_profile_section
from memories.curation.statements import guarding
from memories.curation.statements.scrubbing import without_secrets
from memories.curation.statements.voices import AS_USER, IMPORTED, WriteTrust
from memories.exceptions import CapacityReached, OperatorWord, PersonRestricted, RefusedBefore, ReviewNeeded
from memories.models import EndUser, Fact, FactQuerySet, FactRefusal, ReviewItem, Status, Trust
from memories.models.memories.refusals import mark_of_text
from memories.reconcile import review_items
from memories.reconcile.gate import rank
from memories.reconcile.review_items import ReviewQuestion

Reason = ReviewItem.Reason
# Key under which an imported fact keeps the name of the conversation that it came from.
IMPORTED_SOURCE = "imported_source"


@dataclass(frozen=True)
class DocumentFact:
    """A fact of a document; `id` is ours when the hub wrote it, `said_at` is when it was first said, if stated."""

    content: str
    category: str
    confidence: float
    id: uuid.UUID | None = None
    said_at: datetime | None = None
    source: str = ""
    source_error: str = ""


@dataclass(frozen=True)
class HeldParts:
    """How many facts and sections of a document wait for an operator now."""

    facts: int = 0
    sections: int = 0


@dataclass(frozen=True)
class _New:
    """A fact of a document that does not exist yet, and the existing one whose text it may not change."""

    fact: Fact
    existing: Fact | None = None


def import_document(
    *,
    end_user: EndUser,
    sections: Mapping[str, str],
    facts: Sequence[DocumentFact],
    actor: Actor,
    now: datetime,
    changeable: FactQuerySet | None = None,
    agent_id: str = "",
    voice: WriteTrust = AS_USER,
) -> HeldParts:
    """Write the named sections, change the facts that the document names by our ids, add those that are new.

    `changeable`: the facts that it can change; ids of others are ignored. New ones are `agent_id`'s, or the person's
    own. All or nothing. What it does not name stays; what an operator wrote stays as it is. A text that was refused
    before, one that speaks to a model, and what a `voice` states that is not believed, wait for review; an import that
    would change a fact waits beside it.

    Errors: PersonMerged, PersonRestricted, DuplicateFact, CapacityReached when a fact would be archived at once.
    """
    with transaction.atomic():
        if lock_person(end_user.pk) != end_user.pk:
            raise PersonMerged
        end_user.refresh_from_db(fields=["restricted_at"])
        if end_user.restricted_at:
            raise PersonRestricted
        held = [_write_section(end_user, *section, actor=actor, now=now, voice=voice) for section in sections.items()]
        facts_of = Fact.objects.all() if changeable is None else changeable
        live = facts_of.of(end_user.tenant, end_user).filter(status__in=[Status.ACTIVE, Status.PENDING])
        named = live.select_related("tenant", "end_user").in_bulk([fact.id for fact in facts if fact.id])
        rest = _change_named(named, facts, actor=actor, now=now, voice=voice)
        new = [_New(_unsaved(end_user, one, agent_id=agent_id, now=now, voice=voice), old) for one, old in rest]
        added, waiting = _add(end_user, new, agent_id=agent_id, actor=actor, now=now, voice=voice)
        audit.record(
            actor=actor,
            verb="import",
            target=end_user,
            object_id=end_user.pk,
            tenant=end_user.tenant,
            now=now,
            counts={"facts": added, "sections": len(sections)},
        )
    return HeldParts(waiting, sum(held))


def _write_section(
    end_user: EndUser, section: str, summary: str, *, actor: Actor, now: datetime, voice: WriteTrust
) -> bool:
    """Whether the text waits for an operator."""
    try:
        item = state_profile_section(
            end_user=end_user, section=section, summary=summary, actor=actor, now=now, voice=voice
        )
        return item is not None
    except (OperatorWord, RefusedBefore):
        return False


def _change_named(
    existing: Mapping[uuid.UUID, Fact], facts: Iterable[DocumentFact], *, actor: Actor, now: datetime, voice: WriteTrust
) -> list[tuple[DocumentFact, Fact | None]]:
    """Change the facts that the document names. Returns the others, which are new, and those that may not be changed
    by this voice or without an operator: each of these with the existing fact."""
    rest: list[tuple[DocumentFact, Fact | None]] = []
    for stated in facts:
        fact = existing.get(stated.id) if stated.id else None
        if fact is None:
            rest.append((stated, None))
            continue
        names = ("content", "category", "confidence", "source_error")
        changes = {name: getattr(stated, name) for name in names if getattr(stated, name) != getattr(fact, name)}
        if fact.protected or not changes:
            continue
        try:
            if voice.imports:
                raise ReviewNeeded
            edit_fact(fact_id=fact.pk, tenant=fact.tenant, changes=changes, actor=actor, now=now, voice=voice)
        except ReviewNeeded:
            if "content" in changes or "source_error" in changes:
                rest.append((stated, fact))
    return rest


def _add(
    end_user: EndUser, stated: Sequence[_New], *, agent_id: str, actor: Actor, now: datetime, voice: WriteTrust
) -> tuple[int, int]:
    """Store the texts that no live fact has, each once, in a few statements; returns how many, and how many wait."""
    # Of the same text the first stays.
    by_text = {bytes(one.fact.content_hash): one for one in reversed(stated)}
    live = Fact.objects.of(end_user.tenant, end_user).filter(status__in=[Status.ACTIVE, Status.PENDING])
    live = live.filter(agent_id=agent_id)
    for digest in live.filter(content_hash__in=list(by_text)).values_list("content_hash", flat=True):
        del by_text[bytes(digest)]
    new = [one for one in stated if by_text.get(bytes(one.fact.content_hash)) is one]
    marks = {mark_of_text(one.fact.content): one.fact.pk for one in new}
    refused: set[uuid.UUID] = set()
    dropped: set[uuid.UUID] = set()
    forgiven = FactRefusal.objects.found(end_user, marks)
    for row, mark in list(forgiven.items()):
        if voice.imports or not row.yields_to(trust=voice.trust, key_id=actor.id):
            del forgiven[row]
            # Only the user can state again what an operator refused (rules.md, 5.5).
            (refused if voice.trust == Trust.USER or row.by_key else dropped).add(marks[mark])
    new = [one for one in new if one.fact.pk not in dropped]
    questions = [question for one in new for question in _questions(one, voice, is_refused=one.fact.pk in refused)]
    waiting = {question.fact.pk for question in questions if question.fact}
    for one in new:
        one.fact.status = Status.PENDING if one.fact.pk in waiting else Status.ACTIVE
    _check_capacity(end_user, len(new) - len(waiting), now=now)
    lifted = [mark for mark in forgiven.values() if marks[mark] not in waiting | dropped]
    Changes(actor=actor, now=now).lift(end_user, lifted)
    Fact.objects.bulk_create([one.fact for one in new])
    audit.revise_new([one.fact for one in new], verb="import", actor=actor)
    review_items.ask_all(questions, run=None, now=now)
    return len(new), len(waiting)


def _questions(one: _New, voice: WriteTrust, *, is_refused: bool) -> list[ReviewQuestion]:
    """Why the new fact waits for an operator; empty when it does not."""
    fact, existing = one.fact, one.existing
    reasons = [Reason.REFUSED_BEFORE] if is_refused else []
    if existing and rank(voice.trust) < rank(existing.trust):
        reasons.append(Reason.OUTRANKED)
    elif existing and voice.imports:
        reasons.append(Reason.IMPORTED)
    waits = guarding.why_waits(fact, voice)
    reasons += [waits] if waits and (fact.flags or not reasons) else []
    # Only the first question names the existing fact.
    return [
        ReviewQuestion(reason, fact=fact, known=None if place else existing) for place, reason in enumerate(reasons)
    ]


def _check_capacity(end_user: EndUser, wanted: int, *, now: datetime) -> None:
    capacity = conf.rules(end_user.tenant).capacity
    active = Fact.objects.of(end_user.tenant, end_user).active(now=now)
    if capacity and wanted and active.count() + wanted > capacity:
        message = _(
            "A person can have %(capacity)d active facts. "
            "These %(wanted)d new ones would exceed that, and the least important would be archived at once."
        )
        raise CapacityReached(message % {"capacity": capacity, "wanted": wanted})


def _unsaved(end_user: EndUser, stated: DocumentFact, *, agent_id: str, now: datetime, voice: WriteTrust) -> Fact:
    clean = without_secrets(
        {
            "content": stated.content,
            "source_error": stated.source_error,
            "structured": {IMPORTED_SOURCE: stated.source} if stated.source else None,
        }
    )
    fact = Fact(
        tenant=end_user.tenant,
        end_user=end_user,
        agent_id=agent_id,
        category=stated.category,
        confidence=stated.confidence,
        stated_confidence=stated.confidence,
        structured=clean["structured"],
        source_error=clean["source_error"],
        source=voice.source(""),
        trust=voice.trust,
        extractor=IMPORTED,
    )
    fact.say(clean["content"])
    fact.flags = list(guarding.flags_of_fact(fact, voice))
    fact.begin(now=now, rules=conf.rules(end_user.tenant), said=[stated.said_at or now, now])
    return fact
