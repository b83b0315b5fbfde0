"""What other people have that concerns a person.

Of their facts that name the person as a reader the name goes, and the fact stays. Of their logged contexts that had a
memory that goes with the person, such as a public fact of theirs or a group's fact about them, it goes, and so do the
texts; blocks that were sent with one go.
"""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from django.db import connection
from django.db.models import QuerySet

from memories.db import closed_indexes
from memories.kinds.served import SERVED
from memories.models import EndUser, Fact, IdempotencyRecord, LoggedContext, SentBlock
from memories.models.people.people import NOBODY
from memories.privacy.stores.linked import STORES
from memories.privacy.stores.store import STEP, CountsRows, Store, external_ids_of, ids_behind

_Rests = TypeVar("_Rests", LoggedContext, SentBlock)
_REST = "array(SELECT name FROM unnest({column}) name WHERE name <> ALL(%(names)s))"
_FACTS = f"""
    UPDATE memories_fact
    SET allowed_users = coalesce(nullif({_REST.format(column="allowed_users")}, '{{}}'), %(nobody)s)
    WHERE tenant_id = %(tenant)s AND id = ANY(%(facts)s)
"""  # noqa: S608 - no value of anybody's
_WITHOUT_NAMES = """
    {column} = CASE WHEN {column}->'allowed_users' ?| %(names)s THEN jsonb_set({column}, '{{allowed_users}}', to_jsonb(
        coalesce(nullif(array(
            SELECT name FROM jsonb_array_elements_text({column}->'allowed_users') name WHERE name <> ALL(%(names)s)
        ), '{{}}'), %(nobody)s)
    )) ELSE {column} END
"""
_REVISIONS = f"""
    UPDATE memories_factrevision SET {_WITHOUT_NAMES.format(column="before")}, {_WITHOUT_NAMES.format(column="after")}
    WHERE tenant_id = %(tenant)s AND fact_id = ANY(%(facts)s)
"""  # noqa: S608 - no value of anybody's
_NAMING = """
    SELECT id FROM memories_fact
    WHERE tenant_id = %(tenant)s AND allowed_users <> '{}' AND allowed_users && %(names)s
    UNION
    SELECT fact_id FROM memories_factrevision
    WHERE tenant_id = %(tenant)s AND (after->'allowed_users' <> '[]' OR before->'allowed_users' <> '[]')
        AND (after->'allowed_users' ?| %(names)s OR before->'allowed_users' ?| %(names)s)
"""

# Rows that are looked up at once: an erasure goes on until none is left.
MOST = 10_000
# Ids of one look-up, which are one value of the statement.
IDS_AT_ONCE = 1_000
# One by one: of `rests_on && ids` PostgreSQL compares each row that it finds with all of the ids. OFFSET 0 passes over
# nothing; without it the plan that a prepared statement gets after its tenth execution reads the table for each id.
_RESTING = """
    SELECT resting.id FROM unnest(%(ids)s::uuid[]) one (id), LATERAL (
        SELECT id FROM TABLE
        WHERE tenant_id = %(tenant)s AND rests_on <> '{}' AND rests_on @> ARRAY[one.id]
            AND end_user_id <> ALL(%(people)s)
        OFFSET 0
    ) resting LIMIT %(most)s
"""


@dataclass(frozen=True)
class Readers(CountsRows):
    """Facts of others that name one of the person's external ids, now or in their history."""

    model: str = "memories.Fact.allowed_users"
    fields: tuple[str, ...] = ()

    def rows_of(self, person: EndUser) -> QuerySet[Fact]:
        with closed_indexes.of_tenant(person.tenant_id), connection.cursor() as cursor:
            # Each half uses its own index; both are small, for few facts name readers.
            cursor.execute(_NAMING, {"tenant": person.tenant_id, "names": external_ids_of(person)})
            naming = [pk for (pk,) in cursor.fetchall()]
        return Fact.objects.filter(pk__in=naming, tenant=person.tenant_id).exclude(end_user__in=ids_behind(person))

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        """Only that there are such facts: their content is somebody else's."""
        for pk in self.rows_of(person).values_list("pk", flat=True):
            yield {"fact": str(pk)}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        rows = self.rows_of(person).select_for_update(of=("self",), no_key=True).order_by("pk")
        facts = list(rows.values_list("pk", flat=True)[:limit])
        if facts:
            # NOBODY replaces the only reader: a fact without readers is for everybody.
            given: dict[str, Any] = {"tenant": person.tenant_id, "facts": facts, "nobody": [NOBODY]}
            given["names"] = external_ids_of(person)
            with connection.cursor() as cursor:
                cursor.execute(_FACTS, given)
                cursor.execute(_REVISIONS, given)
            _rewrite_kept_answers(facts, set(given["names"]))
        return len(facts)


def _rewrite_kept_answers(facts: list[uuid.UUID], names: set[str]) -> None:
    """Answers about these facts that are kept for a day lose the name, too."""
    kept = IdempotencyRecord.objects.filter(fact__in=facts).exclude(body=b"").order_by("pk")
    for row in kept.select_for_update(of=("self",)):
        answer = json.loads(bytes(row.body))
        readers = answer.get("allowed_users", [])
        if not names.isdisjoint(readers):
            answer["allowed_users"] = [name for name in readers if name not in names] or [NOBODY]
            row.body = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()
            row.save(update_fields=["body"])


@dataclass(frozen=True)
class ContextsOfOthers(CountsRows):
    """What the log says of contexts of others; a log without the memory is true, too: something was left out."""

    model: str = "memories.LoggedContext.others"
    fields: tuple[str, ...] = ()

    def rows_of(self, person: EndUser) -> QuerySet[LoggedContext]:
        return _resting_on(LoggedContext, person)

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        """Only that there are such contexts: they are somebody else's."""
        for pk in self.rows_of(person).values_list("pk", flat=True):
            yield {"context": str(pk)}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        found = _resting_on(LoggedContext, person).order_by("pk")[:limit].values_list("pk", flat=True)
        rows = list(LoggedContext.objects.filter(pk__in=list(found)).order_by("pk").select_for_update(of=("self",)))
        told = {uuid.UUID(item["id"]) for row in rows for item in row.items}
        served = iter(told.union(*(row.rests_on for row in rows)))
        # Those of them that go with the person.
        going = set[uuid.UUID]()
        while some := list(islice(served, IDS_AT_ONCE)):
            for store in _serving():
                going.update(store.rows_of(person).filter(pk__in=some).order_by().values_list("pk", flat=True))
        names = {str(pk) for pk in going}
        for row in rows:
            row.query = row.memory = row.revision = ""
            row.items = [item for item in row.items if item["id"] not in names]
            row.rests_on = [pk for pk in row.rests_on if pk not in going]
        LoggedContext.objects.bulk_update(rows, ["query", "memory", "revision", "items", "rests_on"])
        return len(rows)


def _resting_on(model: type[_Rests], person: EndUser) -> QuerySet[_Rests]:
    """Rows of others that rest on a memory that goes with the person; at most some more than MOST."""
    given: dict[str, Any] = {"tenant": person.tenant_id, "people": ids_behind(person), "most": MOST}
    statement = _RESTING.replace("TABLE", model._meta.db_table)
    found: set[uuid.UUID] = set()
    for ids in _served(person):
        with closed_indexes.of_tenant(person.tenant_id), connection.cursor() as cursor:
            cursor.execute(statement, {**given, "ids": ids})
            found.update(pk for (pk,) in cursor.fetchall())
        if len(found) >= MOST:
            break
    return model._default_manager.filter(pk__in=found, tenant=person.tenant_id)


def _served(person: EndUser) -> Iterator[list[uuid.UUID]]:
    """Ids of all memories that go with the person, some at a time, of every kind that a context can serve, by the
    stores that take them: a kind that is nobody else's today may be shared tomorrow."""
    for store in _serving():
        ids = iter(store.rows_of(person).order_by().values_list("pk", flat=True).iterator(chunk_size=IDS_AT_ONCE))
        while some := list(islice(ids, IDS_AT_ONCE)):
            yield some


def _serving() -> list[Store]:
    labels = {kind.model._meta.label for kind in SERVED.values()}
    return [store for store in STORES if store.model in labels]


@dataclass(frozen=True)
class BlocksOfOthers(CountsRows):
    """Blocks that the gateway sent with somebody else's conversations: one that tells such a memory goes as a whole."""

    model: str = "memories.SentBlock.others"
    fields: tuple[str, ...] = ()

    def rows_of(self, person: EndUser) -> QuerySet[SentBlock]:
        return _resting_on(SentBlock, person)

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        """Only that there are such blocks: they are somebody else's."""
        for pk in self.rows_of(person).values_list("pk", flat=True):
            yield {"block": str(pk)}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        found = list(self.rows_of(person).order_by("pk").values_list("pk", flat=True)[:limit])
        return SentBlock.objects.filter(pk__in=found).delete()[0]


READERS, CONTEXTS_OF_OTHERS, BLOCKS_OF_OTHERS = Readers(), ContextsOfOthers(), BlocksOfOthers()
