"""What the page of a fact shows besides the fact: evidence, revisions with diffs, related facts."""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q
from django.db.models.functions import Left
from django.utils.translation import gettext

from memories import conf
from memories.admin.site.segments import Segment, diff, highlight
from memories.admin.site.template_tags import percent
from memories.admin.site.wording import day_of
from memories.admin.trail.authors import names_of
from memories.admin.trail.redactions import sign_redactions
from memories.audit import REVISED_FIELDS, REVISED_MOMENTS
from memories.models import (
    Fact,
    FactEvidence,
    FactRelation,
    FactRevision,
    Operator,
    RelationType,
    Session,
    Status,
    Turn,
)

MOST_CITATIONS = 20
MOST_REVISIONS = 20
MOST_RELATED = 20
NEIGHBOUR_CLIP = 600
LONGEST_VALUE = 80
# The text has a diff, and of the others the status or the relations of the fact say the same.
_NOT_LISTED = ("content", "stated_confidence", "last_confirmed_at", "trashed_at")
_TRIPLE = ("subject", "predicate", "object")
LISTED = tuple(name for name in (*REVISED_FIELDS, *REVISED_MOMENTS) if name not in _NOT_LISTED)


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
    """One field of a fact that a revision changed."""

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
    """The evidence in order, as far as its turns are kept and the operator may see them.

    Two queries at most, and those of sign_redactions().
    """
    if not may_see_turns(operator):
        return []
    cited = FactEvidence.objects.filter(fact=fact, turn__isnull=False)
    rows = list(cited.select_related("turn", "session")[:MOST_CITATIONS])
    around = _neighbours(rows)
    sign_redactions([*(row.turn for row in rows), *around.values()])
    return [
        Citation(
            turn=turn,
            session=row.session,
            segments=highlight(turn.content, row.quote or fact.raw, turn.own),
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
    listed = [name for name in LISTED if name != "raw" or may_see_turns(operator)]
    in_trash, is_live = fact.status == Status.TRASHED, fact.status in Status.LIVE
    return [
        RevisionDiff(
            revision=row,
            segments=text_diff(row),
            actor=actors.get(row.actor_id, row.get_actor_kind_display()),
            others=changes_of(row, listed),
            # The current version of a live fact would change nothing.
            restorable=not in_trash and (row.version != fact.version or not is_live),
        )
        for row in rows
    ]


def text_diff(revision: FactRevision) -> list[Segment]:
    content = str(revision.after.get("content", ""))
    return diff(str(revision.before.get("content", content)), content)


def changes_of(revision: FactRevision, names: Iterable[str]) -> list[FieldChange]:
    """What the revision changed among the fields of these names."""
    before, after = revision.before, revision.after
    fields: Mapping[str, Any] = {name: Fact._meta.get_field(name) for name in names if name in before}
    return [
        FieldChange(str(field.verbose_name), _in_words(field, before[name]), _in_words(field, after.get(name)))
        for name, field in fields.items()
    ]


def _in_words(field: Any, value: Any) -> str:
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if value in (None, "", [], {}):
        return gettext("none")
    if field.name in REVISED_MOMENTS:
        return day_of(datetime.fromisoformat(value))
    if isinstance(value, float):
        return percent(value)
    value = dict(field.flatchoices).get(value, value) if isinstance(value, str) else value
    if isinstance(value, list):
        text = ", ".join(_in_short(one) for one in value)
    else:
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _in_short(item: Any) -> str:
    """An item of a list: a text, or a triple."""
    return " ".join(str(item[name]) for name in _TRIPLE if name in item) if isinstance(item, dict) else str(item)


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
