"""Logged contexts of other people that had a public fact of a person: the fact goes, and so do the texts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from memories.models import EndUser, Fact, LoggedContext
from memories.privacy.stores.store import STEP, CountsRows, ids_behind


@dataclass(frozen=True)
class ToldToOthers(CountsRows):
    """What the log says of contexts of others; a log without the fact is true, too: something was left out."""

    model: str = "memories.LoggedContext.others"
    fields: tuple[str, ...] = ()

    def rows_of(self, person: EndUser) -> QuerySet[LoggedContext]:
        people = ids_behind(person)
        facts = list(Fact.objects.filter(end_user__in=people).values_list("pk", flat=True))
        rows = LoggedContext.objects.exclude(rests_on=[]).filter(tenant=person.tenant_id, rests_on__overlap=facts)
        return rows.exclude(end_user__in=people) if facts else rows.none()

    def export_rows(self, person: EndUser) -> Iterator[dict[str, Any]]:
        """Only that there are such contexts: they are somebody else's."""
        for pk in self.rows_of(person).values_list("pk", flat=True):
            yield {"context": str(pk)}

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        mine = set(Fact.objects.filter(end_user__in=ids_behind(person)).values_list("pk", flat=True))
        rows = list(self.rows_of(person).select_for_update(of=("self",)).order_by("pk")[:limit])
        names = {str(pk) for pk in mine}
        for row in rows:
            row.query = row.memory = row.revision = ""
            row.items = [item for item in row.items if item["id"] not in names]
            row.rests_on = [pk for pk in row.rests_on if pk not in mine]
        LoggedContext.objects.bulk_update(rows, ["query", "memory", "revision", "items", "rests_on"])
        return len(rows)


TOLD_TO_OTHERS = ToldToOthers()
