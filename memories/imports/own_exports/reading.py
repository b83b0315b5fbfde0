"""Reads the hub's own export of a person (docs/export-schema.md): that for access row by row, as another hub had it;
that for portability, which has only what the person said, as conversations and facts."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from memories.imports.places import Given
from memories.imports.raw_documents import Documents, RefusedDocumentError, beginning, lists_in
from memories.imports.records import NOBODY, ExportedRows, LeftOut, Owner, Record, Said, StoredItem
from memories.imports.stating import memory
from memories.imports.unpacking import Part
from memories.kinds import PLAIN
from memories.models import CaseType
from memories.privacy.exports import schema
from memories.privacy.exports.profiles import SECTIONS

SOURCE = "memory-hub"
# Rows of one transaction.
AT_ONCE = 200
PEOPLE = "people"
# Lists that come back, each behind what its rows name; those marked are looked at once more, when all rows are there.
LINKED = frozenset({"facts", "graph_entities"})
COMING = (
    PEOPLE, "graph_entities", "sessions", "turns", "facts", "refusals", "profile_sections", "profile_history",
    "episodes", "files", *(kind.plural for kind in PLAIN), "groups", "group_facts", "said_in_groups", "graph_triples",
)  # fmt: skip
_ITEMS = "store_items"
# Why the others do not: the hub makes these again, or they tell what happened in the other hub.
ANEW, ELSEWHERE, ATTACHED = "made_anew", "of_the_other_hub", "attachments"
_ANEW = frozenset(one.name for one in SECTIONS if one.is_data_only)
_HEAD = re.compile(rb'"(format|version|profile)"\s*:\s*"?([\w-]{1,40})')


def is_export(part: Part) -> bool:
    """Whether it is `data.json` of a hub. Errors: OSError."""
    return _head(part).get("format") == schema.FORMAT


def read(given: Given, parts: list[Part]) -> Iterator[Record]:
    """Errors: OSError, ValueError."""
    for part in parts:
        head = _head(part)
        if head.get("format") != schema.FORMAT:
            continue
        if head.get("version") != str(schema.VERSION):
            found = head.get("version", "none")
            yield RefusedDocumentError("/version unsupported", hint=f"expected {schema.VERSION}, found {found}")
            continue
        lists = lists_in(part.path)
        own = _provided if head.get("profile") == CaseType.PORTABILITY else _rows
        yield from own(given, lists)


def _head(part: Part) -> dict[str, str]:
    found = _HEAD.findall(beginning(part.path)) if part.path.is_file() else []
    return {name.decode(): value.decode() for name, value in reversed(found)}


def _rows(given: Given, lists: Mapping[str, Documents]) -> Iterator[Record]:
    for name in COMING:
        yield from _of_list(name, lists) if name != PEOPLE else _people(lists, given.user)
    for name in COMING:
        yield from _of_list(name, lists, links=True) if name in LINKED else ()
    names = {str(row.get("external_id")) for row in _good(lists, PEOPLE)}
    for item in lists.get(_ITEMS, ()):
        yield item if isinstance(item, RefusedDocumentError) else _item(item, names, given.user)
    for name, documents in lists.items():
        if name not in (*COMING, _ITEMS) and documents.places:
            yield LeftOut(ANEW if name in _ANEW else _elsewhere(name), len(documents.places))


def _elsewhere(name: str) -> str:
    # Their bytes are gone where they were read: to be searched here, they are posted here.
    return ATTACHED if name == "attachments" else ELSEWHERE


def _of_list(name: str, lists: Mapping[str, Documents], *, links: bool = False) -> Iterator[Record]:
    found = iter(lists.get(name, ()))
    while some := list(islice(found, AT_ONCE)):
        yield ExportedRows(name, [one for one in some if not isinstance(one, RefusedDocumentError)], links)
        if not links:
            yield from (one for one in some if isinstance(one, RefusedDocumentError))


def _people(lists: Mapping[str, Documents], user_id: str) -> Iterator[Record]:
    """The person, under the id that they get here, and their other names."""
    for record in _of_list(PEOPLE, lists):
        if isinstance(record, ExportedRows) and user_id:
            yield replace(
                record, rows=[row if row.get("merged_into") else {**row, "external_id": user_id} for row in record.rows]
            )
        else:
            yield record


def _good(lists: Mapping[str, Documents], name: str) -> Iterator[dict[str, Any]]:
    yield from (one for one in lists.get(name, ()) if not isinstance(one, RefusedDocumentError))


def _item(row: Mapping[str, Any], names: set[str], user_id: str) -> StoredItem:
    """The item; where its namespace names the person it names whom the rows are for."""
    labels = str(row.get("namespace") or "").split(".")
    paths = row.get("index_paths")
    return StoredItem(
        [user_id if user_id and label in names else label for label in labels],
        str(row.get("key")),
        row.get("value"),
        created_at=row.get("created_at"),
        updated_at=row.get("updated_at"),
        expires_at=row.get("expires_at"),
        ttl_minutes=row.get("ttl_minutes"),
        index=paths if isinstance(paths, list) else None,
    )


def _provided(given: Given, lists: Mapping[str, Documents]) -> Iterator[Record]:
    """What the person said, and stated: for whom it is, the export says, where nobody else does."""
    people = [row for row in _good(lists, "people") if not row.get("merged_into")]
    person = given.user or str(people[0].get("external_id") if people else "")
    if not person:
        yield LeftOut(NOBODY)
        return
    sessions = {row.get("id"): row for row in _good(lists, "sessions")}
    talks: dict[Any, list[dict[str, Any]]] = {}
    for row in _good(lists, "turns"):
        talks.setdefault(row.get("session"), []).append(_message(row))
    for key, messages in talks.items():
        session = sessions.get(key, {})
        named = {"session_id": str(session.get("external_id") or key), "agent_id": session.get("agent_id") or None}
        yield Said({"user_id": person, **{name: one for name, one in named.items() if one}}, messages)
    for row in _good(lists, "facts"):
        if row.get("valid_to"):
            yield LeftOut("no_longer_true")
            continue
        whose = Owner(person, str(row.get("agent_id") or ""))
        yield memory(SOURCE, row.get("id"), row.get("content"), row.get("first_observed_at"), whose=whose)
    for name, documents in lists.items():
        if name not in ("people", "sessions", "turns", "facts") and documents.places:
            yield LeftOut(_elsewhere(name), len(documents.places))


def _message(row: Mapping[str, Any]) -> dict[str, Any]:
    names = ("name", "metadata")
    return {
        "role": row.get("role"),
        "author": "person",
        "content": row.get("parts") or row.get("content"),
        "external_id": row.get("external_id") or str(row.get("id")),
        "timestamp": row.get("timestamp") or row.get("created_at"),
        **{name: row[name] for name in names if row.get(name)},
    }
