"""What of a person came from which import."""

from typing import Any

from django.db.models import Count, F, Sum

from memories.admin.imports.wording import ROWS
from memories.models import EndUser, ImportedRow, ImportSource

# So many imports a person's page names, the newest.
SHOWN = 10
Kind = ImportedRow.Kind


def imports_of(person: EndUser) -> list[dict[str, Any]]:
    """The imports that stored something of the person: `id`, `source`, `created_at`, `made` (words and number)."""
    rows = ImportedRow.objects.filter(end_user__in=EndUser.objects.with_aliases(person), kind__in=ROWS)
    by_import = rows.values("made_by", "made_by__source", "made_by__created_at", "kind")
    counted = by_import.annotate(number=Count("id"), turns=Sum(F("last") - F("first") + 1))
    found: dict[Any, dict[str, Any]] = {}
    for row in counted.order_by("-made_by__created_at", "made_by", "kind")[: SHOWN * len(ROWS)]:
        named = dict(ImportSource.choices).get(row["made_by__source"], row["made_by__source"])
        one: dict[str, Any] = {
            "id": row["made_by"],
            "source": named,
            "created_at": row["made_by__created_at"],
            "made": [],
        }
        number = row["turns"] if row["kind"] == Kind.TURNS else row["number"]
        found.setdefault(row["made_by"], one)["made"].append((str(ROWS[row["kind"]]), number))
    return list(found.values())[:SHOWN]
