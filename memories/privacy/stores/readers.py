"""Where other people's facts name a person as somebody who may read them: the name goes, the fact stays as it is."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from memories.models import EndUser, Fact, IdempotencyRecord
from memories.privacy.stores.keeping import STEP, ids_behind, names_of

# No caller's id has a control character. Whoever was the only reader leaves it behind: a fact that names nobody is
# for everybody.
NOBODY = "\x1a"
_REST = "array(SELECT name FROM unnest({column}) name WHERE name <> ALL(%(names)s))"
_FACTS = f"""
    UPDATE memories_fact
    SET allowed_users = coalesce(nullif({_REST.format(column="allowed_users")}, '{{}}'), %(nobody)s)
    WHERE id = ANY(%(facts)s)
"""  # noqa: S608 - no value of anybody's
_TOLD = """
    {column} = CASE WHEN {column}->'allowed_users' ?| %(names)s THEN jsonb_set({column}, '{{allowed_users}}', to_jsonb(
        coalesce(nullif(array(
            SELECT name FROM jsonb_array_elements_text({column}->'allowed_users') name WHERE name <> ALL(%(names)s)
        ), '{{}}'), %(nobody)s)
    )) ELSE {column} END
"""
_REVISIONS = f"""
    UPDATE memories_factrevision SET {_TOLD.format(column="before")}, {_TOLD.format(column="after")}
    WHERE fact_id = ANY(%(facts)s)
"""  # noqa: S608 - no value of anybody's


_NAMING = """
    SELECT id FROM memories_fact WHERE allowed_users <> '{}' AND allowed_users && %(names)s
    UNION
    SELECT fact_id FROM memories_factrevision
    WHERE (after->'allowed_users' <> '[]' OR before->'allowed_users' <> '[]')
        AND (after->'allowed_users' ?| %(names)s OR before->'allowed_users' ?| %(names)s)
"""


@dataclass(frozen=True)
class Readers:
    """Facts of others that name one of the person's ids, now or in their history."""

    model: str = "memories.Fact.allowed_users"
    fields: tuple[str, ...] = ()

    def rows_of(self, person: EndUser) -> QuerySet[Fact]:
        with connection.cursor() as cursor:
            # Each by its index: both are small, for few facts name any reader.
            cursor.execute(_NAMING, {"names": names_of(person)})
            naming = [pk for (pk,) in cursor.fetchall()]
        return Fact.objects.filter(pk__in=naming, tenant=person.tenant_id).exclude(end_user__in=ids_behind(person))

    def count(self, person: EndUser) -> int:
        return self.rows_of(person).count()

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        """That there are such facts; what they say is somebody else's."""
        for pk in self.rows_of(person).values_list("pk", flat=True):
            yield {"fact": str(pk)}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        rows = self.rows_of(person).select_for_update(of=("self",), no_key=True).order_by("pk")
        facts = list(rows.values_list("pk", flat=True)[:limit])
        if facts:
            given: dict[str, Any] = {"facts": facts, "names": names_of(person), "nobody": [NOBODY]}
            with connection.cursor() as cursor:
                cursor.execute(_FACTS, given)
                cursor.execute(_REVISIONS, given)
            _tell_anew(facts, set(given["names"]))
        return len(facts)

    def verify(self, person: EndUser) -> int:
        return self.count(person)


def _tell_anew(facts: list[uuid.UUID], names: set[str]) -> None:
    """In answers that are kept for a day, too; they stay what they are but for the name."""
    kept = IdempotencyRecord.objects.filter(fact__in=facts).exclude(body=b"").order_by("pk")
    for row in kept.select_for_update(of=("self",)):
        told = json.loads(bytes(row.body))
        readers = told.get("allowed_users", [])
        if not names.isdisjoint(readers):
            told["allowed_users"] = [name for name in readers if name not in names] or [NOBODY]
            row.body = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
            row.save(update_fields=["body"])


READERS = Readers()
