"""The memories of a context or a search as pages show them: the stored row, the text, and the address of its page."""

import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.db.models.functions import Left
from django.urls import reverse

from memories.admin.site.page import address_of_section, url_of
from memories.admin.site.template_tags import turn_page
from memories.graph import reading
from memories.kinds import PLAIN
from memories.kinds.served import SERVED
from memories.models import EndUser

CLIP = 400
_FACT = (
    "content", "category", "confidence", "version", "status", "pinned", "locked", "binding", "source", "end_user_id",
)  # fmt: skip
_TURN = ("session_id", "number", "role", "author", "own", "is_doubtful", "flagged", "created_at", "redacted_at")
_EPISODE = ("summary", "status", "pinned", "binding", "ended_at", "updated_at")


def _starts(rows: QuerySet[Any], *, columns: Collection[str]) -> QuerySet[Any]:
    found: QuerySet[Any] = rows.annotate(start=Left("content", CLIP)).only(*columns)
    return found


class _Shown(NamedTuple):
    """The field with the text of a kind, and what is read of its rows."""

    text: str
    read: Callable[[Any], Any] = QuerySet.all


# How a page shows each kind that a context can serve.
_SHOWN: Mapping[str, _Shown] = {
    "fact": _Shown("content", lambda rows: rows.only(*_FACT)),
    "profile": _Shown("summary"),
    "triple": _Shown("sentence", reading.with_names),
    "group_fact": _Shown("content", lambda rows: rows.select_related("group").only("content", "trashed_at", "group")),
    "file": _Shown("path", lambda rows: rows.only("path", "trashed_at", "updated_at")),
    **{
        kind.name: _Shown("start", partial(_starts, columns=(kind.plain.topic, "trashed_at")))
        for kind in PLAIN
        if kind.plain
    },
    "episode": _Shown("summary", lambda rows: rows.only(*_EPISODE)),
    "document": _Shown("content", lambda rows: rows.only("content", "attachment_id")),
    "turn": _Shown("start", partial(_starts, columns=_TURN)),
}


@dataclass(frozen=True)
class RecalledMemory:
    """A memory with its text, or the beginning of it; `row` is None if it was deleted meanwhile.

    In a context, `tokens` is its share of the budget, and `reason` the code of why it was left out.
    """

    kind: str
    id: uuid.UUID
    row: Any = None
    text: str = ""
    address: str = ""
    score: float | None = None
    tokens: int | None = None
    reason: str = ""


def memories_of(person: EndUser, items: Iterable[Mapping[str, Any]]) -> list[RecalledMemory]:
    """The items of a context, included or dropped; a query for each kind."""
    keys = [((item["kind"], uuid.UUID(item["id"])), item) for item in items]
    rows = rows_of(person, (key for key, _item in keys))
    return [
        memory_of(
            person,
            *key,
            rows.get(key),
            score=item.get("score"),
            tokens=item.get("tokens"),
            reason=item.get("reason", ""),
        )
        for key, item in keys
    ]


def memory_of(person: EndUser, kind: str, row_id: uuid.UUID, row: Any, **more: Any) -> RecalledMemory:
    text = str(getattr(row, _SHOWN[kind].text)) if row else ""
    return RecalledMemory(kind, row_id, row, text, _address_of(person, kind, row) if row else "", **more)


def _address_of(person: EndUser, kind: str, row: Any) -> str:
    """Its own page, or its place on the page of the session or of the person."""
    if kind == "turn":
        session = reverse("admin:memories_session_change", args=[row.session_id])
        return f"{session}?page={turn_page(row.number)}#turn-{row.number}"
    if kind == "profile":
        return address_of_section(person.pk, row.section, row.agent_id)
    if kind == "document":
        return reverse("admin:memories_attachment_change", args=[row.attachment_id])
    return url_of(row.group if kind == "group_fact" else row)


def rows_of(person: EndUser, keys: Iterable[tuple[str, uuid.UUID]]) -> dict[tuple[str, uuid.UUID], Any]:
    """The stored rows by kind and id. Facts that other people made public are among them."""
    wanted: defaultdict[str, list[uuid.UUID]] = defaultdict(list)
    for kind, row_id in keys:
        wanted[kind].append(row_id)
    return {(kind, row.pk): row for kind, ids in wanted.items() for row in _rows(person, kind).filter(pk__in=ids)}


def _rows(person: EndUser, kind: str) -> QuerySet[Any]:
    served = SERVED[kind]
    whose = {"tenant": person.tenant_id} if served.of_others else {served.owner: person}
    rows: QuerySet[Any] = _SHOWN[kind].read(served.model._default_manager.filter(**whose))
    return rows
