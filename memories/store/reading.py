"""Reads of the store: one item, a search, a list of namespaces. Expired items, and people under restriction, are left
out."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import Any, NamedTuple

from django.db import connection

from memories import budgets
from memories.db import binary_rows
from memories.exceptions import InvalidInput
from memories.store import filters, names, ranking
from memories.store.filters import BadFilter
from memories.store.viewers import StoreViewer

# Not of people under restriction; the list of these is short, and read once for the statement.
_SERVED = """
    (i.end_user_id IS NULL OR NOT i.end_user_id = ANY (ARRAY(
        SELECT named.id FROM memories_enduser held
        JOIN memories_enduser named ON named.id = held.id OR named.merged_into_id = held.id
        WHERE named.tenant_id = %(tenant)s AND held.restricted_at IS NOT NULL AND held.tenant_id = %(tenant)s
    )))
"""
_LIVE = "(i.expires_at IS NULL OR i.expires_at > statement_timestamp())"
_SHOWN = (
    "i.id, i.namespace, i.key, i.value::text AS value, i.created_at, i.updated_at, i.ttl_minutes IS NOT NULL AS ttl"
)
# Rows in the order of `place` up to the one with which the values are larger than the request's budget.
_WITHIN_BUDGET = """
    SELECT {columns} FROM (
        SELECT w.*, sum(octet_length(w.value)) OVER (ORDER BY w.place) - octet_length(w.value) AS before FROM ({rows}) w
    ) w WHERE w.before <= %(room)s ORDER BY w.place
"""
_COLUMNS = "id, namespace, key, value, created_at, updated_at, ttl"
_LOOK_UP = f"""
    SELECT w.place, {_SHOWN}
    FROM unnest(%(namespaces)s::text[], %(keys)s::text[]) WITH ORDINALITY AS w (namespace, key, place)
    JOIN memories_storeitem i ON i.tenant_id = %(tenant)s
        AND i.namespace = w.namespace COLLATE "C" AND i.key = w.key COLLATE "C"
    WHERE {_LIVE} AND {_SERVED}
"""  # noqa: S608  (names of ours)
_NEWEST = f"""
    SELECT {_SHOWN}, row_number() OVER (ORDER BY i.updated_at DESC, i.id DESC) AS place
    FROM memories_storeitem i WHERE {{selected}}
    ORDER BY i.updated_at DESC, i.id DESC LIMIT %(limit)s OFFSET %(offset)s
"""  # noqa: S608  (names of ours)
# The vectors of each item by themselves: of a join the planner expects few rows, and compares each item with each.
_BEST = f"""
    WITH found AS MATERIALIZED (
        SELECT i.id, i.updated_at, i.content_hash FROM memories_storeitem i WHERE {{selected}}
    ), best AS (
        SELECT f.id, f.updated_at, coalesce(n.score, (
            SELECT max(1 - (v.vector <=> %(vector)s::halfvec)) FROM memories_storeitemvector v
            WHERE v.tenant_id = %(tenant)s AND v.item_id = f.id AND v.space_id = %(space)s
                AND v.text_digest = f.content_hash
        )) AS score
        FROM found f LEFT JOIN unnest(%(fresh)s::uuid[], %(scores)s::float8[]) AS n (id, score) ON n.id = f.id
        ORDER BY score DESC NULLS LAST, f.updated_at DESC, f.id DESC LIMIT %(limit)s OFFSET %(offset)s
    )
    SELECT {_SHOWN}, b.score,
        row_number() OVER (ORDER BY b.score DESC NULLS LAST, b.updated_at DESC, b.id DESC) AS place
    FROM best b JOIN memories_storeitem i ON i.tenant_id = %(tenant)s AND i.id = b.id
"""  # noqa: S608  (names of ours)
_FRESH = """
    SELECT i.id, i.value::text, i.index_paths FROM memories_storeitem i
    WHERE {selected} AND i.content_hash IS NOT NULL
        AND (i.embedded_hash IS NULL OR i.embedded_hash <> i.content_hash)
    ORDER BY i.updated_at DESC LIMIT %(most)s
"""
_NAMESPACES = """
    WITH found AS (SELECT DISTINCT i.namespace FROM memories_storeitem i WHERE {selected}),
    split AS (SELECT string_to_array(namespace, '.') AS labels FROM found)
    SELECT DISTINCT array_to_string(labels[1:%(depth)s], '.') COLLATE "C" AS path FROM split s WHERE {matching}
    ORDER BY path LIMIT %(limit)s OFFSET %(offset)s
"""
# Deeper than any namespace.
_EVERY_LABEL = 1_000_000
# A time to live begins anew. Whoever holds the row writes or deletes it.
_REFRESH = """
    UPDATE memories_storeitem SET expires_at = statement_timestamp() + make_interval(secs => ttl_minutes * 60)
    WHERE tenant_id = %(tenant)s AND id IN (
        SELECT id FROM memories_storeitem
        WHERE tenant_id = %(tenant)s AND id = ANY (%(ids)s) AND ttl_minutes IS NOT NULL
        ORDER BY id FOR UPDATE SKIP LOCKED
    )
"""
_ANY_SIZE = 2**62
ANY = "*"


class FoundItem(NamedTuple):
    """An item as answers show it."""

    namespace: list[str]
    key: str
    value: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    score: float | None = None


@dataclass(frozen=True)
class Lookup:
    """One item; `at` is the place of the operation in the request, here and below."""

    namespace: tuple[str, ...]
    key: str
    refresh: bool = True
    at: str = ""


@dataclass(frozen=True)
class Search:
    """Items below a prefix: those that fit a query best, or else the last that were written."""

    prefix: tuple[str, ...]
    filter: dict[str, Any] = field(default_factory=dict)
    limit: int = 10
    offset: int = 0
    query: str = ""
    refresh: bool = True
    at: str = ""


@dataclass(frozen=True)
class NamespaceQuery:
    """Namespaces that begin and end with these labels, `*` for any one, cut to a depth."""

    prefixes: tuple[tuple[str, ...], ...] = ()
    suffixes: tuple[tuple[str, ...], ...] = ()
    max_depth: int | None = None
    limit: int = 100
    offset: int = 0
    at: str = ""


def look_up(wanted: Sequence[Lookup], viewer: StoreViewer) -> list[FoundItem | None]:
    """The items in the order of the look-ups, None for one that is not there; one statement, and one where a time to
    live begins anew. Errors: KeyBound."""
    if not wanted:
        return []
    wanted = [
        replace(
            lookup,
            namespace=names.kept_labels(lookup.namespace, viewer.patterns, at=f"{lookup.at}/namespace"),
            key=names.kept_key(lookup.key, at=f"{lookup.at}/key"),
        )
        for lookup in wanted
    ]
    for lookup in wanted:
        viewer.hold(lookup.namespace, at=f"{lookup.at}/namespace")
    given = {
        "tenant": viewer.tenant.pk,
        "namespaces": [".".join(lookup.namespace) for lookup in wanted],
        "keys": [lookup.key for lookup in wanted],
    }
    found: list[FoundItem | None] = [None] * len(wanted)
    refreshed = []
    for place, *row in _fetched(_LOOK_UP, given, columns=f"place, {_COLUMNS}"):
        found[place - 1] = _found(row)
        if row[-1] and wanted[place - 1].refresh:
            refreshed.append(row[0])
    _refresh(viewer, refreshed)
    return found


def search(wanted: Search, viewer: StoreViewer) -> list[FoundItem]:
    """Errors: InvalidInput (the filter), KeyBound, RequestTooCostly."""
    budgets.check_time()
    prefix = names.kept_labels(wanted.prefix, viewer.patterns, at=f"{wanted.at}/namespace_prefix")
    viewer.hold(prefix, at=f"{wanted.at}/namespace_prefix", whole=False)
    selected, given = _selected(prefix, viewer)
    if wanted.filter:
        try:
            condition, operands = filters.condition(wanted.filter)
        except BadFilter as error:
            raise InvalidInput.at(f"{wanted.at}/filter", str(error)) from error
        selected, given = f"{selected} AND {condition}", given | operands
    given |= {"limit": wanted.limit, "offset": wanted.offset}
    query = ranking.prepare(wanted.query) if wanted.query.strip() else None
    if query is None:
        rows = _fetched(_NEWEST.format(selected=selected), given)
        found = [_found(row) for row in rows]
    else:
        fresh = binary_rows.fetched(_FRESH.format(selected=selected), given | {"most": ranking.MOST_FRESH})
        scores = ranking.scores(query, [(pk, json.loads(value), paths) for pk, value, paths in fresh])
        given |= {
            "vector": query.written,
            "space": query.space.pk,
            "fresh": list(scores),
            "scores": list(scores.values()),
        }
        rows = _fetched(_BEST.format(selected=selected), given, columns=f"{_COLUMNS}, score")
        found = [_found(row[:-1], row[-1]) for row in rows]
    if wanted.refresh:
        _refresh(viewer, [row[0] for row in rows if row[6]])
    return found


def list_namespaces(wanted: NamespaceQuery, viewer: StoreViewer) -> list[list[str]]:
    """Sorted, each once. Errors: KeyBound, RequestTooCostly."""
    budgets.check_time()
    prefixes = [names.kept_labels(path, viewer.patterns, at=f"{wanted.at}/prefix") for path in wanted.prefixes]
    suffixes = [names.kept_labels(path, (), at=f"{wanted.at}/suffix") for path in wanted.suffixes]
    for prefix in prefixes:
        if ANY not in prefix:
            viewer.hold(prefix, at=f"{wanted.at}/prefix", whole=False)
    # The labels before the first wildcard are a range of the index.
    literal = tuple(takewhile(lambda label: label != ANY, prefixes[0])) if prefixes else ()
    selected, given = _selected(literal, viewer)
    matching = ["true"]
    for ends, paths in ((False, prefixes), (True, suffixes)):
        for number, path in enumerate(paths):
            matching += _matching(path, f"{'suffix' if ends else 'prefix'}_{number}", ends=ends, given=given)
    given |= {"depth": wanted.max_depth or _EVERY_LABEL, "limit": wanted.limit, "offset": wanted.offset}
    rows = binary_rows.fetched(_NAMESPACES.format(selected=selected, matching=" AND ".join(matching)), given)
    budgets.spend(rows=len(rows), size=sum(len(path) for (path,) in rows))
    return [path.split(".") for (path,) in rows]


def _fetched(statement: str, given: dict[str, Any], *, columns: str = _COLUMNS) -> list[tuple[Any, ...]]:
    """The rows of items, out of the request's budget. Errors: RequestTooCostly; then not all values were read."""
    room = budgets.bytes_left()
    rows = binary_rows.fetched(
        _WITHIN_BUDGET.format(columns=columns, rows=statement), given | {"room": _ANY_SIZE if room is None else room}
    )
    at = columns.split(", ").index("value")
    budgets.spend(rows=len(rows), size=sum(len(row[at]) for row in rows))
    return rows


def _matching(labels: Sequence[str], name: str, *, ends: bool, given: dict[str, Any]) -> list[str]:
    """Conditions for `s.labels` to begin, or end, with these."""
    given[f"{name}_count"] = len(labels)
    conditions = [f"cardinality(s.labels) >= %({name}_count)s"]
    for at, label in enumerate(labels):
        if label != ANY:
            given |= {f"{name}_{at}": label, f"{name}_{at}_place": len(labels) - at - 1 if ends else at + 1}
            place = f"cardinality(s.labels) - %({name}_{at}_place)s" if ends else f"%({name}_{at}_place)s"
            conditions.append(f's.labels[{place}] = %({name}_{at})s COLLATE "C"')
    return conditions


def _selected(prefix: Sequence[str], viewer: StoreViewer) -> tuple[str, dict[str, Any]]:
    """The condition for items below a prefix that the viewer may see, and its parameters."""
    conditions = ["i.tenant_id = %(tenant)s", _LIVE, _SERVED]
    given: dict[str, Any] = {"tenant": viewer.tenant.pk}
    if prefix:
        path = ".".join(prefix)
        # By bytes a slash is next to a period: this is whatever begins with the path and a period.
        conditions.append("(i.namespace = %(path)s OR (i.namespace >= %(below)s AND i.namespace < %(behind)s))")
        given |= {"path": path, "below": f"{path}.", "behind": f"{path}/"}
    if viewer.people is not None:
        conditions.append("i.end_user_id = ANY (%(people)s)")
        given["people"] = viewer.people
    return " AND ".join(conditions), given


def _found(row: Sequence[Any], score: float | None = None) -> FoundItem:
    _, namespace, key, value, created_at, updated_at, _ = row
    return FoundItem(namespace.split("."), key, json.loads(value), created_at, updated_at, score)


def _refresh(viewer: StoreViewer, ids: Sequence[uuid.UUID]) -> None:
    if ids:
        with connection.cursor() as cursor:
            cursor.execute(_REFRESH, {"tenant": viewer.tenant.pk, "ids": list(ids)})
