"""A person's memory as one document comes in: what it says is added to what is known; nothing is lost by it."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from memories import audit, conf
from memories.audit import Actor
from memories.curation.fact_changes import lock_person
from memories.curation.facts import edit_fact
from memories.curation.people_errors import PersonMerged
from memories.curation.profile import write_profile_section
from memories.curation.scrubbing import without_secrets
from memories.exceptions import CapacityReached, OperatorWord, PersonRestricted
from memories.models import (
    EndUser,
    Fact,
    FactRefusal,
    ReviewItem,
    Source,
    Status,
    Trust,
)
from memories.models.folding import refusal_of_text
from memories.pipeline import review_items
from memories.pipeline.review_items import Question

EXTRACTOR = "import"
# Where a fact from elsewhere keeps the name of the conversation that it came from.
IMPORTED_SOURCE = "imported_source"


@dataclass(frozen=True)
class DocumentFact:
    """A fact of a document; `id` is ours when the hub wrote it, `said_at` when it was first said, if that is told."""

    content: str
    category: str
    confidence: float
    id: uuid.UUID | None = None
    said_at: datetime | None = None
    source: str = ""
    source_error: str = ""


def import_document(
    *,
    end_user: EndUser,
    sections: Mapping[str, str],
    facts: Sequence[DocumentFact],
    actor: Actor,
    now: datetime,
) -> None:
    """Write the named sections, change the facts that the document names by our ids, add those that are new.

    All or nothing. What it does not name stays; what an operator wrote stays as it is; a text that was refused before
    waits for review. Errors: PersonRestricted, DuplicateFact, CapacityReached when a fact would be archived at once.
    """
    with transaction.atomic():
        if lock_person(end_user.pk) != end_user.pk:
            raise PersonMerged
        end_user.refresh_from_db(fields=["restricted_at"])
        if end_user.restricted_at:
            raise PersonRestricted
        for section, summary in sections.items():
            _write(end_user, section, summary, actor=actor, now=now)
        known = Fact.objects.of(end_user.tenant, end_user).filter(status__in=[Status.ACTIVE, Status.PENDING])
        rest = _without_changed(known.in_bulk([fact.id for fact in facts if fact.id]), facts, actor=actor, now=now)
        added = _add(end_user, rest, actor=actor, now=now)
        counts = {"facts": added, "sections": len(sections)}
        audit.record(
            actor=actor, verb="import", target=end_user, object_id=end_user.pk, tenant=end_user.tenant, now=now,
            counts=counts,
        )  # fmt: skip


def _write(end_user: EndUser, section: str, summary: str, *, actor: Actor, now: datetime) -> None:
    try:
        write_profile_section(end_user=end_user, section=section, summary=summary, actor=actor, now=now)
    except OperatorWord:
        return


def _without_changed(
    known: Mapping[uuid.UUID, Fact], facts: Iterable[DocumentFact], *, actor: Actor, now: datetime
) -> list[DocumentFact]:
    """Take over what the document says of facts that it names; returns the others, which are new."""
    rest = []
    for stated in facts:
        fact = known.get(stated.id) if stated.id else None
        if fact is None:
            rest.append(stated)
        elif not fact.protected and (changes := _changes(fact, stated)):
            edit_fact(fact_id=fact.pk, tenant=fact.tenant, changes=changes, actor=actor, now=now)
    return rest


def _changes(fact: Fact, stated: DocumentFact) -> dict[str, object]:
    names = ("content", "category", "confidence", "source_error")
    return {name: getattr(stated, name) for name in names if getattr(stated, name) != getattr(fact, name)}


def _add(end_user: EndUser, facts: Iterable[DocumentFact], *, actor: Actor, now: datetime) -> int:
    """Store what nobody has said yet, each text once, in a few statements; returns how many."""
    made = [_fact(end_user, one, now=now) for one in facts]
    # Of the same text the first stays.
    stated = {bytes(fact.content_hash): fact for fact in reversed(made)}
    live = Fact.objects.of(end_user.tenant, end_user).filter(status__in=[Status.ACTIVE, Status.PENDING], agent_id="")
    for digest in live.filter(content_hash__in=list(stated)).values_list("content_hash", flat=True):
        del stated[bytes(digest)]
    new = [fact for fact in made if stated.get(bytes(fact.content_hash)) is fact]
    refused = _refused(end_user, new)
    for fact in refused:
        fact.status = Status.PENDING
    _check_room(end_user, len(new) - len(refused), now=now)
    Fact.objects.bulk_create(new)
    audit.revise_new(new, verb="import", actor=actor)
    for fact in refused:
        review_items.ask(Question(ReviewItem.Reason.REFUSED_BEFORE, fact=fact), run=None, now=now)
    return len(new)


def _check_room(end_user: EndUser, wanted: int, *, now: datetime) -> None:
    capacity = conf.rules(end_user.tenant).capacity
    active = Fact.objects.of(end_user.tenant, end_user).active(now=now)
    if capacity and wanted and active.count() + wanted > capacity:
        raise CapacityReached(
            f"A person may have {capacity} active facts: with these {wanted} new ones there would be more, and the "
            "least of them would be archived at once."
        )


def _refused(end_user: EndUser, facts: Iterable[Fact]) -> list[Fact]:
    digests = {refusal_of_text(fact.content): fact for fact in facts}
    found = FactRefusal.objects.filter(end_user=end_user, digest__in=list(digests)).values_list("digest", flat=True)
    return [digests[bytes(digest)] for digest in found]


def _fact(end_user: EndUser, stated: DocumentFact, *, now: datetime) -> Fact:
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
        category=stated.category,
        confidence=stated.confidence,
        stated_confidence=stated.confidence,
        structured=clean["structured"],
        source_error=clean["source_error"],
        source=Source.EXPLICIT,
        trust=Trust.USER,
        extractor=EXTRACTOR,
    )
    fact.say(clean["content"])
    fact.begin(now=now, rules=conf.rules(end_user.tenant))
    fact.first_observed_at = min(stated.said_at or now, now)
    return fact
