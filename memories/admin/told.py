"""The memories that an answer names by kind and id, as pages show them: their text, and where their page is."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Left
from django.urls import reverse

from memories.admin.page import url_of
from memories.admin.template_tags import turn_page
from memories.models import EndUser, Episode, Fact, ProfileSection, Turn

CLIP = 400
# Besides the id and the text.
_FACT = ("content", "category", "confidence", "version", "status", "pinned", "locked", "binding", "end_user_id")
_EPISODE = ("summary", "status", "pinned", "binding", "ended_at")


@dataclass(frozen=True)
class Memory:
    """One memory of an answer; `row` is None for one that was deleted meanwhile.

    `tokens`: what it takes of the budget; `reason`: why it has no place there, by code.
    """

    kind: str
    id: uuid.UUID
    row: Any = None
    text: str = ""
    address: str = ""
    score: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    tokens: int | None = None
    reason: str = ""


def memories_of(person: EndUser, named: Iterable[Mapping[str, Any]]) -> list[Memory]:
    """The items of a context, told or dropped, with their texts; a query for each kind."""
    named = list(named)
    rows = rows_of(person, ((one["kind"], uuid.UUID(one["id"])) for one in named))
    return [_memory(person, one, rows.get((one["kind"], uuid.UUID(one["id"])))) for one in named]


def rows_of(person: EndUser, keys: Iterable[tuple[str, uuid.UUID]]) -> dict[tuple[str, uuid.UUID], Any]:
    """The stored rows by kind and id; facts that others made public are among them."""
    wanted: defaultdict[str, list[uuid.UUID]] = defaultdict(list)
    for kind, row_id in keys:
        wanted[kind].append(row_id)
    return {(kind, row.pk): row for kind, ids in wanted.items() for row in _rows(person, kind).filter(pk__in=ids)}


def text_of(kind: str, row: Any) -> str:
    """What it says, or the beginning of it."""
    texts = {"fact": "content", "episode": "summary", "turn": "start", "profile": "summary"}
    return str(getattr(row, texts[kind])) if row else ""


def address_of(person: EndUser, kind: str, row: Any) -> str:
    """Its own page, or its place on one; empty for what is gone."""
    if row is None:
        return ""
    if kind == "turn":
        session = reverse("admin:memories_session_change", args=[row.session_id])
        return f"{session}?page={turn_page(row.number)}#turn-{row.number}"
    if kind == "profile":
        return reverse("admin:memories_enduser_profile", args=[person.pk, row.section])
    return url_of(row)


def _rows(person: EndUser, kind: str) -> QuerySet[Any]:
    if kind == "fact":
        return Fact.objects.filter(tenant=person.tenant_id).only(*_FACT)
    if kind == "episode":
        return Episode.objects.filter(end_user=person).only(*_EPISODE)
    if kind == "turn":
        clipped = Turn.objects.filter(end_user=person).annotate(start=Left("content", CLIP))
        return clipped.only("session_id", "number", "role", "created_at")
    return ProfileSection.objects.filter(end_user=person)


def _memory(person: EndUser, one: Mapping[str, Any], row: Any) -> Memory:
    kind = one["kind"]
    return Memory(
        kind=kind,
        id=uuid.UUID(one["id"]),
        row=row,
        text=text_of(kind, row),
        address=address_of(person, kind, row),
        score=one.get("score"),
        parts=one.get("score_parts") or {},
        tokens=one.get("tokens"),
        reason=one.get("reason", ""),
    )
