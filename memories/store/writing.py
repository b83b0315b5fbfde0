"""Writes of the store: puts and deletions, the last for each key, in one transaction.

Before anything is stored, secrets are replaced, invisible characters go, and an item that speaks to a model is refused:
its value, its key and its namespace.
The people whom namespaces name are made on first sight.
"""

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection, transaction

from memories import conf, content_policy
from memories.capture import get_or_create
from memories.content_policy import Road
from memories.db import binary_rows
from memories.exceptions import CapacityReached, Fault, InvalidInput, PersonRestricted, ReviewNeeded
from memories.models import StoreItem, Tenant
from memories.models.hand_written import first
from memories.models.ids import new_id
from memories.store import names, namespaces
from memories.store.namespaces import BadNamespace, Named
from memories.store.viewers import StoreViewer
from memories.text import value_texts
from memories.text.injection import detection
from memories.text.secrets.scrubbing import scrubbed_json

# A merge, a new id and an erasure wait for it, and it waits for them; then it sees what they left. By id, as everybody
# locks people.
_LOCK_PEOPLE = """
    SELECT external_id, id, merged_into_id, restricted_at FROM memories_enduser
    WHERE tenant_id = %(tenant)s AND external_id = ANY (%(names)s::text[]) ORDER BY id FOR KEY SHARE
"""
_LOCK_TARGETS = """
    SELECT restricted_at FROM memories_enduser
    WHERE tenant_id = %(tenant)s AND id = ANY (%(ids)s::uuid[]) ORDER BY id FOR KEY SHARE
"""
# Whoever changes the patterns gives all items to whom they name then, and waits for this write.
_PATTERNS = "SELECT person_namespaces::text FROM memories_tenant WHERE id = %(tenant)s FOR KEY SHARE"
_LOCK = """
    SELECT id FROM memories_storeitem i
    JOIN unnest(%(namespaces)s::text[], %(keys)s::text[]) AS w (namespace, key)
        ON i.namespace = w.namespace COLLATE "C" AND i.key = w.key COLLATE "C"
    WHERE i.tenant_id = %(tenant)s ORDER BY i.namespace, i.key FOR NO KEY UPDATE OF i
"""
_DELETE = """
    DELETE FROM memories_storeitem i USING unnest(%(namespaces)s::text[], %(keys)s::text[]) AS w (namespace, key)
    WHERE i.tenant_id = %(tenant)s AND i.namespace = w.namespace COLLATE "C" AND i.key = w.key COLLATE "C"
"""
_COLUMNS = {
    "id": "uuid",
    "end_user_id": "uuid",
    "namespace": "text",
    "key": "text",
    "value": "jsonb",
    "index_paths": "jsonb",
    "content_hash": "bytea",
    "ttl_minutes": "float8",
    "expires_at": "timestamptz",
    "created_at": "timestamptz",
    "updated_at": "timestamptz",
}
_PUT = f"""
    INSERT INTO memories_storeitem AS i (
        id, tenant_id, end_user_id, namespace, key, value, index_paths, content_hash, ttl_minutes, expires_at, key_id,
        created_at, updated_at
    )
    SELECT n.id, %(tenant)s, n.end_user_id, n.namespace, n.key, n.value,
        CASE WHEN n.index_paths IS NOT NULL THEN ARRAY(SELECT jsonb_array_elements_text(n.index_paths)) END,
        n.content_hash, n.ttl_minutes,
        coalesce(n.expires_at, statement_timestamp() + make_interval(secs => n.ttl_minutes * 60)), %(key_id)s,
        coalesce(n.created_at, statement_timestamp()), coalesce(n.updated_at, statement_timestamp())
    FROM unnest({", ".join(f"%({name})s::{kind}[]" for name, kind in _COLUMNS.items())})
        AS n ({", ".join(_COLUMNS)})
    ON CONFLICT (tenant_id, namespace, key) {{otherwise}}
    RETURNING i.end_user_id, i.id, i.updated_at, i.created_at = i.updated_at
"""  # noqa: S608  (names of ours)
_REPLACE = """
    DO UPDATE SET
        end_user_id = EXCLUDED.end_user_id, value = EXCLUDED.value, index_paths = EXCLUDED.index_paths,
        content_hash = EXCLUDED.content_hash, ttl_minutes = EXCLUDED.ttl_minutes, expires_at = EXCLUDED.expires_at,
        key_id = EXCLUDED.key_id, updated_at = EXCLUDED.updated_at,
        created_at = CASE WHEN i.expires_at <= EXCLUDED.updated_at THEN EXCLUDED.created_at ELSE i.created_at END
"""
_KEEP = "DO NOTHING"
# Namespace and key.
Name = tuple[str, str]
_TOO_MANY = "The limit of items is reached ({most:,}). Delete some, or let an operator raise the limit."


@dataclass(frozen=True)
class Write:
    """A put, or without a value a deletion. `index`: paths to embed, none: nothing, None: all of the value. `at` is the
    place of the operation in the request. The dates are those of another store; None: of this moment, and its end by
    `ttl`."""

    namespace: tuple[str, ...]
    key: str
    value: dict[str, Any] | None = None
    index: tuple[str, ...] | None = None
    ttl: float | None = None
    at: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    expires_at: datetime | None = None

    @property
    def path(self) -> str:
        return ".".join(self.namespace)

    @property
    def name(self) -> Name:
        return self.path, self.key


class PutItem(NamedTuple):
    """An item that was put, as it is then, and whose it is."""

    end_user: uuid.UUID | None
    id: uuid.UUID
    updated_at: datetime


def write(
    writes: Sequence[Write], *, tenant: Tenant, viewer: StoreViewer, now: datetime, only_new: bool = False
) -> list[PutItem]:
    """Do all of them, or none; returns the items that were put. `only_new`: what is there stays as it is.

    Two at once for one key follow each other: the later one stays. Errors: InvalidInput, KeyBound, ReviewNeeded,
    CapacityReached, PersonRestricted, Erased.
    """
    last: dict[Name, Write] = {}
    for asked in writes:
        kept = replace(
            asked,
            namespace=names.kept_labels(asked.namespace, viewer.patterns, at=f"{asked.at}/namespace"),
            index=None if asked.index is None else tuple(map(names.kept_path, asked.index)),
            key=names.kept_key(asked.key, at=f"{asked.at}/key"),
        )
        last[kept.name] = kept
    # All requests lock in the same order, so that two with the same keys cannot deadlock.
    ordered = [last[name] for name in sorted(last)]
    for one in ordered:
        viewer.hold(one.namespace, at=f"{one.at}/namespace")
    rows = [_row(one, tenant, viewer) for one in ordered if one.value is not None]
    named = {one.name: _named(one, viewer) for one in ordered}
    while (stored := _store(ordered, rows, named, only_new, tenant=tenant, viewer=viewer, now=now)) is None:
        # A person got another id, or the tenant other patterns, at this moment.
        tenant.refresh_from_db(fields=["person_namespaces"])
        named = {one.name: _named(one, viewer) for one in ordered}
    return stored


def _named(one: Write, viewer: StoreViewer) -> Named | None:
    """Whom the namespace names. Errors: InvalidInput for a put whose label is no id."""
    found = namespaces.person_in(one.namespace, viewer.patterns)
    if found and one.value is not None:
        try:
            namespaces.check_person(found)
        except BadNamespace as error:
            raise InvalidInput.at(f"{one.at}/namespace/{error.at}", str(error)) from error
    return found


def _store(
    ordered: Sequence[Write],
    rows: Sequence[dict[str, Any]],
    named: Mapping[Name, Named | None],
    only_new: bool,
    *,
    tenant: Tenant,
    viewer: StoreViewer,
    now: datetime,
) -> list[PutItem] | None:
    """The items that were put. None: whom the namespaces name has changed, and nothing was done."""
    stored: list[PutItem] = []
    with transaction.atomic():
        row = first(_PATTERNS, {"tenant": tenant.pk})
        is_current = row is not None and json.loads(row[0]) == viewer.patterns
        people = _people(ordered, named, tenant, now=now) if is_current else None
        if people is None:
            return None
        given: dict[str, Any] = {"tenant": tenant.pk, "key_id": viewer.key_id}
        with connection.cursor() as cursor:
            if len(ordered) > 1:
                cursor.execute(_LOCK, given | _names(ordered))
            if gone := [one for one in ordered if one.value is None]:
                cursor.execute(_DELETE, given | _names(gone))
            if rows:
                owned = [{**row, "end_user_id": people.get((row["namespace"], row["key"]))} for row in rows]
                put = _PUT.format(otherwise=_KEEP if only_new else _REPLACE)
                cursor.execute(put, given | {name: [row[name] for row in owned] for name in _COLUMNS})
                written = cursor.fetchall()
                stored = [PutItem(*put) for *put, _is_new in written]
                _check_room({owner for owner, *_, is_new in written if is_new or only_new}, tenant)
    return stored


def _names(writes: Sequence[Write]) -> dict[str, list[str]]:
    return {"namespaces": [one.path for one in writes], "keys": [one.key for one in writes]}


def _people(
    ordered: Sequence[Write], named: Mapping[Name, Named | None], tenant: Tenant, *, now: datetime
) -> dict[Name, uuid.UUID] | None:
    """Name of a write → the row with the id in its namespace, locked, and made by a put. None: one has another id by
    now."""
    ids = sorted({one.user_id for one in named.values() if one})
    puts = {found.user_id for one in ordered if one.value is not None and (found := named[one.name])}
    rows = _lock_people(ids, tenant)
    # Where there is nobody, there is nothing to delete.
    if missing := sorted(puts - rows.keys()):
        for user_id in missing:
            get_or_create.end_user(tenant=tenant, user_id=user_id, now=now)
        rows = _lock_people(ids, tenant)
        if puts - rows.keys():
            return None
    return {name: rows[found.user_id] for name, found in named.items() if found and found.user_id in rows}


def _lock_people(ids: Sequence[str], tenant: Tenant) -> dict[str, uuid.UUID]:
    """The rows with these ids, locked, and whom they lead to. Errors: PersonRestricted."""
    if not ids:
        return {}
    found = binary_rows.fetched(_LOCK_PEOPLE, {"tenant": tenant.pk, "names": ids})
    restrictions = [row[3] for row in found]
    if targets := sorted({row[2] for row in found if row[2]}):
        restrictions += [at for (at,) in binary_rows.fetched(_LOCK_TARGETS, {"tenant": tenant.pk, "ids": targets})]
    if any(restrictions):
        raise PersonRestricted
    return {row[0]: row[1] for row in found}


def _row(one: Write, tenant: Tenant, viewer: StoreViewer) -> dict[str, Any]:
    """What is stored of a put. Errors: InvalidInput, ReviewNeeded, ContentForbidden, TooManySecrets."""
    rules = conf.rules(tenant)
    value = scrubbed_json(one.value or {})
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if len(written.encode()) > rules.store_value_kilobytes * 1_000:
        detail = f"A value can have {rules.store_value_kilobytes:,} kB."
        raise InvalidInput.at(f"{one.at}/value", detail, code="max_size")
    if detection.are_meant_for_model(*dict.fromkeys(text for text in value_texts.strings(value) if text.strip())):
        fault = Fault(f"{one.at}/value", ReviewNeeded.code, "A text of this value speaks to a model.")
        raise ReviewNeeded(_SPEAKS, faults=[fault])
    content_policy.check(tenant, Road.STORE, [one.key.replace("_", " "), *value_texts.strings(value)])
    if names.speak_to_model(one.namespace, one.key, viewer.patterns):
        raise ReviewNeeded(_NAME_SPEAKS, faults=[Fault(f"{one.at}/key", ReviewNeeded.code, _NAME_SPEAKS)])
    return {
        "id": new_id(),
        "namespace": one.path,
        "key": one.key,
        "value": written,
        "index_paths": None if one.index is None else json.dumps(one.index),
        "content_hash": value_texts.digest(value_texts.of_value(value, one.index)),
        "ttl_minutes": one.ttl,
        "expires_at": one.expires_at,
        "created_at": one.created_at,
        "updated_at": one.updated_at,
    }


_NAME_SPEAKS = "The key or the namespace speaks to a model: name the item after what it is. Nothing was stored."
_SPEAKS = "A text of this value speaks to a model, and would be read by one. Say it otherwise; nothing was stored."


def _check_room(owners: set[uuid.UUID | None], tenant: Tenant) -> None:
    """Errors: CapacityReached, where new items are beyond what one of these may have."""
    most = conf.rules(tenant).store_items
    for owner in owners if most else ():
        rows = StoreItem.objects.filter(tenant=tenant, end_user=owner).order_by()
        # Counted up to the limit alone.
        if rows.values("pk")[: most + 1].count() > most:
            raise CapacityReached(_TOO_MANY.format(most=most))
