"""What the page of a fact shows besides the fact: its evidence, its revisions with diffs, and how it fades."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q
from django.db.models.functions import Left

from memories import conf
from memories.admin import wording
from memories.admin.authors import names_of, unnamed
from memories.admin.fact_wording import FieldChange, changes_of
from memories.admin.segments import Segment, diff, highlight
from memories.models import Fact, FactEvidence, FactRevision, Session, Status, Turn

MOST_CITATIONS = 20
MOST_REVISIONS = 20
NEIGHBOUR_CLIP = 600


@dataclass(frozen=True)
class Citation:
    """A cited turn with the quote marked, and the turns on either side of it."""

    turn: Turn
    session: Session
    segments: list[Segment]
    before: Turn | None
    after: Turn | None


@dataclass(frozen=True)
class Change:
    """One revision: the text as a diff to the version before, who made it, and what else changed."""

    revision: FactRevision
    segments: list[Segment]
    actor: str
    others: list[FieldChange]
    restorable: bool


@dataclass(frozen=True)
class Fading:
    """When a fact will have faded, or why it never does."""

    forget_at: datetime | None
    because: str


def citations(fact: Fact) -> list[Citation]:
    """The evidence in order, as far as its turns are kept; two queries, however much there is."""
    cited = FactEvidence.objects.filter(fact=fact, turn__isnull=False)
    rows = list(cited.select_related("turn", "session")[:MOST_CITATIONS])
    around = _neighbours(rows)
    return [
        Citation(
            turn=turn,
            session=row.session,
            segments=highlight(turn.content, row.quote or fact.raw),
            before=around.get((row.session_id, turn.number - 1)),
            after=around.get((row.session_id, turn.number + 1)),
        )
        for row in rows
        if (turn := row.turn)
    ]


def newest_revisions(fact: Fact) -> list[FactRevision]:
    """What both the list of revisions and the curve are made of."""
    return list(FactRevision.objects.filter(fact=fact).order_by("-version")[:MOST_REVISIONS])


def revisions(fact: Fact, rows: Sequence[FactRevision]) -> list[Change]:
    """The rows in their order, each with what it changed; two queries."""
    actors = names_of(rows)
    return [
        Change(
            revision=row,
            segments=_changes_of_text(row),
            actor=actors.get(row.actor_id, unnamed(row.actor_kind)),
            others=changes_of(row),
            restorable=fact.status != Status.TRASHED and _restorable(fact, row),
        )
        for row in rows
    ]


def fading(fact: Fact) -> Fading:
    """By the tenant's numbers as they are now."""
    because = wording.why_it_stays(fact, conf.rules(fact.tenant))
    return Fading(None if because else fact.forget_at, because)


def purged_on(fact: Fact) -> datetime | None:
    """When it is deleted for good, if it is in the trash."""
    if fact.status != Status.TRASHED or fact.trashed_at is None:
        return None
    return fact.trashed_at + timedelta(days=conf.rules(fact.tenant).trash_days)


def _neighbours(rows: Iterable[FactEvidence]) -> dict[tuple[uuid.UUID, int], Turn]:
    wanted = Q(pk__in=[])
    for row in rows:
        wanted |= Q(session=row.session_id, number__in=[row.turn_number - 1, row.turn_number + 1])
    turns = Turn.objects.filter(wanted).annotate(start=Left("content", NEIGHBOUR_CLIP)).defer("content", "parts")
    return {(turn.session_id, turn.number): turn for turn in turns}


def _changes_of_text(revision: FactRevision) -> list[Segment]:
    content = str(revision.after.get("content", ""))
    return diff(str(revision.before.get("content", content)), content)


def _restorable(fact: Fact, revision: FactRevision) -> bool:
    """Whether going back to this version changes anything."""
    return revision.version != fact.version or fact.status not in (Status.ACTIVE, Status.PENDING)
