"""What the page of a fact shows besides the fact: evidence, revisions with diffs, related facts."""

import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q
from django.db.models.functions import Left
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memories import conf
from memories.admin.site.segments import Segment, diff, highlight
from memories.admin.site.template_tags import percent
from memories.admin.site.wording import day_of
from memories.admin.trail.authors import names_of, unnamed
from memories.audit import REVISED_MOMENTS
from memories.models import (
    Category,
    Fact,
    FactEvidence,
    FactRelation,
    FactRevision,
    MemoryScope,
    Operator,
    RelationType,
    Session,
    Source,
    Status,
    Trust,
    Turn,
)

LIVE = (Status.ACTIVE, Status.PENDING)
MOST_CITATIONS = 20
MOST_REVISIONS = 20
MOST_RELATED = 20
NEIGHBOUR_CLIP = 600
LONGEST_VALUE = 80
FIELD_LABELS = {
    "category": _("category"),
    "key": _("key"),
    "value": _("value"),
    "confidence": _("confidence"),
    "importance": _("importance"),
    "tags": _("tags"),
    "raw": _("quote"),
    "source": _("source"),
    "source_error": _("what was wrong"),
    "trust": _("trust"),
    "structured": _("structured data"),
    "status": _("status"),
    "flags": _("flags"),
    "pinned": _("pinned"),
    "locked": _("locked"),
    "binding": _("operator's word"),
    "scope": _("scope"),
    "agent_id": _("agent"),
    "allowed_users": _("users"),
    "allowed_roles": _("roles"),
    "mentions": _("mentions"),
    "valid_to": _("held until"),
    "expires_at": _("expires"),
}
# The text has a diff, and of the others the status or the relations of the fact say the same.
_NOT_LISTED = ("content", "stated_confidence", "last_confirmed_at", "trashed_at", "superseded_by")
_CHOICES: Mapping[str, Any] = {
    "category": Category,
    "status": Status,
    "trust": Trust,
    "source": Source,
    "scope": MemoryScope,
}


@dataclass(frozen=True)
class Citation:
    """A cited turn with the quote marked, and the turns on either side of it."""

    turn: Turn
    session: Session
    segments: list[Segment]
    before: Turn | None
    after: Turn | None


@dataclass(frozen=True)
class FieldChange:
    """One field of a fact that a revision changed; an empty text stands for nothing."""

    name: str
    was: str
    now: str


@dataclass(frozen=True)
class RevisionDiff:
    """One revision: the text as a diff to the version before, who made it, and what else changed."""

    revision: FactRevision
    segments: list[Segment]
    actor: str
    others: list[FieldChange]
    restorable: bool


def may_see_turns(operator: Operator | AnonymousUser) -> bool:
    """Whether the operator may read the conversations, and not only what was extracted from them."""
    return operator.has_perm("memories.view_session")


def citations(fact: Fact, operator: Operator | AnonymousUser) -> list[Citation]:
    """The evidence in order, as far as its turns are kept and the operator may see them; two queries at most."""
    if not may_see_turns(operator):
        return []
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


def _neighbours(rows: Iterable[FactEvidence]) -> dict[tuple[uuid.UUID, int], Turn]:
    wanted = Q(pk__in=[])
    for row in rows:
        wanted |= Q(session=row.session_id, number__in=[row.turn_number - 1, row.turn_number + 1])
    turns = Turn.objects.filter(wanted).annotate(start=Left("content", NEIGHBOUR_CLIP)).defer("content", "parts")
    return {(turn.session_id, turn.number): turn for turn in turns}


def newest_revisions(fact: Fact) -> list[FactRevision]:
    """The rows behind both the list of revisions and the curve."""
    return list(FactRevision.objects.filter(fact=fact).order_by("-version")[:MOST_REVISIONS])


def revisions(fact: Fact, rows: Sequence[FactRevision], operator: Operator | AnonymousUser) -> list[RevisionDiff]:
    """The rows in their order, each with what it changed; two queries."""
    actors = names_of(rows)
    # A quote is a turn's text.
    hidden = () if may_see_turns(operator) else ("raw",)
    in_trash, is_live = fact.status == Status.TRASHED, fact.status in LIVE
    return [
        RevisionDiff(
            revision=row,
            segments=text_diff(row),
            actor=actors.get(row.actor_id, unnamed(row.actor_kind)),
            others=_changes_of(row, hidden),
            # The current version of a live fact would change nothing.
            restorable=not in_trash and (row.version != fact.version or not is_live),
        )
        for row in rows
    ]


def text_diff(revision: FactRevision) -> list[Segment]:
    content = str(revision.after.get("content", ""))
    return diff(str(revision.before.get("content", content)), content)


def _changes_of(revision: FactRevision, hidden: Collection[str]) -> list[FieldChange]:
    """What the revision changed beside the text and the hidden fields."""
    before, after = revision.before, revision.after
    names = [name for name in FIELD_LABELS if name in before and name not in (*_NOT_LISTED, *hidden)]
    return [
        FieldChange(str(FIELD_LABELS[name]), _in_words(name, before[name]), _in_words(name, after.get(name)))
        for name in names
    ]


def _in_words(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if value in (None, "", [], {}):
        return gettext("none")
    if name in _CHOICES and value in _CHOICES[name].values:
        return str(_CHOICES[name](value).label)
    if name in REVISED_MOMENTS:
        return day_of(datetime.fromisoformat(value))
    if name in ("confidence", "importance"):
        return percent(value)
    if isinstance(value, list):
        text = ", ".join(map(str, value))
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def purged_on(fact: Fact) -> datetime | None:
    """When it is deleted for good, if it is in the trash."""
    if fact.status != Status.TRASHED or fact.trashed_at is None:
        return None
    return fact.trashed_at + timedelta(days=conf.rules(fact.tenant).trash_days)


def related(fact: Fact) -> list[tuple[str, Fact]]:
    """Other facts that it contradicts, was merged with or supersedes, each once, behind a code for the relation.

    Two queries.
    """
    rows = FactRelation.objects.filter(Q(fact=fact) | Q(target=fact)).select_related("fact", "target")
    relations = list(rows[: 2 * MOST_RELATED])
    found: list[tuple[str, Fact]] = [("superseded_by", fact.superseded_by)] if fact.superseded_by else []
    # The mere "related to" comes last: of several relations to one fact, the first is shown.
    for relation in sorted(relations, key=lambda relation: relation.type == RelationType.RELATED_TO):
        is_source = relation.fact_id == fact.pk
        code: str = relation.type
        if relation.type == RelationType.DERIVED_FROM:
            code = "took_in" if is_source else "part_of"
        found.append((code, relation.target if is_source else relation.fact))
    found += [("supersedes", older) for older in Fact.objects.filter(superseded_by=fact)[:MOST_RELATED]]
    once: dict[uuid.UUID, tuple[str, Fact]] = {}
    for code, other in found:
        once.setdefault(other.pk, (code, other))
    return list(once.values())[:MOST_RELATED]
