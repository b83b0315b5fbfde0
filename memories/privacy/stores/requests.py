"""Stores of what was asked of the hub: kept answers, privacy cases, and the exports made for them."""

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from memories.models import EndUser, IdempotencyRecord, PrivacyCase
from memories.privacy.stores.keeping import STEP, Store, any_of, called, holds, ids_behind

# Of a kept answer whose person was erased: what comes under its key again is refused, and stored by nobody.
GONE = 410
TEXTS = ("channel", "extension_reason", "refusal_reason", "hold_reason", "told", "outcome")
# A ticket's number tells of nobody, unless it names them.
REFERENCES = ("reference",)


@dataclass(frozen=True)
class Answers(Store):
    """Kept answers: the body goes, and the key stays refused until its day is over."""

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        found = list(self.rows_of(person).order_by("pk").values_list("pk", flat=True)[:limit])
        links = IdempotencyRecord.end_users.through._default_manager.filter(idempotencyrecord__in=found)
        links._raw_delete(links.db)
        IdempotencyRecord.objects.filter(pk__in=found).update(status=GONE, etag="", body=b"", fact=None)
        return len(found)


@dataclass(frozen=True)
class Cases(Store):
    """Privacy cases: they stay, as codes and times. What was written in them goes; of the one that erases, in the
    transaction that completes it: it says who was told."""

    def erase(self, person: EndUser, limit: int = STEP) -> int:
        words = called(person)
        emptied = 0
        for case in self._written(person).order_by("pk")[:limit]:
            emptied += empty(case, words)
        return emptied

    def verify(self, person: EndUser) -> int:
        words = called(person)
        return sum(_is_to_empty(case, words) for case in self._written(person))

    def _written(self, person: EndUser) -> QuerySet[PrivacyCase]:
        rows = PrivacyCase.objects.filter(end_user__in=ids_behind(person))
        return rows.exclude(_ERASES).filter(any_of((*TEXTS, *REFERENCES), empty=""))


_ERASES = Q(type="erasure", state__in=["running", "verifying"])


def empty(case: PrivacyCase, words: set[str], *, texts: tuple[str, ...] = TEXTS) -> bool:
    """Empty these free texts of a locked case, and references that hold one of these words; whether there were any."""
    references = [name for name in REFERENCES if holds(getattr(case, name), words)]
    said = [name for name in (*texts, *references) if getattr(case, name)]
    for name in said:
        setattr(case, name, "")
    if said:
        case.save(update_fields=said)
    return bool(said)


def _is_to_empty(case: PrivacyCase, words: set[str]) -> bool:
    return any(getattr(case, name) for name in TEXTS) or holds(case.reference, words)


REQUESTS: tuple[Store, ...] = (
    Answers(
        "memories.IdempotencyRecord",
        "end_users",
        ("body", "key_digest", "request_digest"),
        also=("fact__end_user",),
    ),
    Store("memories.PrivacyExport", "case__end_user", ("content",)),
    Cases("memories.PrivacyCase", "end_user", (*TEXTS, *REFERENCES, "needles")),
)
