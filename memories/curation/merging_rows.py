"""What becomes of every store that can hold personal data when two people are merged: tests hold this against the
privacy registry, so that a new table cannot be forgotten here."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from django.apps import apps
from django.db.models import QuerySet

from memories.models import (
    EndUser,
    Fact,
    FactRefusal,
    IdempotencyRecord,
    MergeEntry,
    PersonMerge,
    ReviewItem,
    Session,
)

Kind = MergeEntry.Kind
STEP = 1000


class Way(Enum):
    """How the rows of a store come to their new person."""

    # Each by its own rule, in this module or one beside it.
    OWN_RULE = auto()
    # The copy of the person's id follows a session or a fact.
    CARRIED = auto()
    # It has no person's id: it hangs on a row that has.
    HANGS = auto()
    # It stays with the name that leads to the survivor.
    STAYS = auto()


CONSIDERED: Mapping[str, Way] = {
    "memories.EndUser": Way.OWN_RULE,
    "memories.Session": Way.OWN_RULE,
    "memories.SessionQueue": Way.HANGS,
    "memories.WorkingMemory": Way.HANGS,
    "memories.Turn": Way.CARRIED,
    "memories.TurnVector": Way.CARRIED,
    "memories.Episode": Way.CARRIED,
    "memories.EpisodeVector": Way.CARRIED,
    "memories.ExtractionRun": Way.CARRIED,
    "memories.Fact": Way.OWN_RULE,
    "memories.FactVector": Way.CARRIED,
    "memories.FactEvidence": Way.HANGS,
    "memories.FactRevision": Way.HANGS,
    "memories.FactRelation": Way.HANGS,
    "memories.FactMerge": Way.HANGS,
    "memories.ReviewItem": Way.OWN_RULE,
    "memories.BatchEntry": Way.HANGS,
    "memories.ProfileSection": Way.OWN_RULE,
    "memories.ProfileRevision": Way.OWN_RULE,
    "memories.FactRefusal": Way.OWN_RULE,
    "memories.IdempotencyRecord": Way.OWN_RULE,
    "memories.PersonMerge": Way.STAYS,
    "memories.MergeEntry": Way.HANGS,
    "memories.PrivacyCase": Way.STAYS,
    "memories.PrivacyExport": Way.HANGS,
}
# Copies of the person's id, and what each follows.
WITH_SESSION = {
    "memories.Turn": "session",
    "memories.TurnVector": "session",
    "memories.Episode": "session",
    "memories.EpisodeVector": "episode__session",
    "memories.ExtractionRun": "session",
}
WITH_FACT = {"memories.FactVector": "fact"}


def note(merge: PersonMerge, kind: Kind, ids: Iterable[uuid.UUID | int]) -> int:
    """Keep the ids of rows that the merge moved or made; how many."""
    named = [{"number": one} if isinstance(one, int) else {"uuid": one} for one in ids]
    MergeEntry.objects.bulk_create((MergeEntry(merge=merge, kind=kind, **name) for name in named), STEP)
    return len(named)


def noted(merge: PersonMerge, *kinds: Kind) -> QuerySet[MergeEntry, Any]:
    """The ids of these rows, as a subquery."""
    return merge.entries.order_by().filter(kind__in=kinds).values_list("uuid", flat=True)


def noted_numbers(merge: PersonMerge, *kinds: Kind) -> QuerySet[MergeEntry, Any]:
    """The same for rows that are numbered."""
    return merge.entries.order_by().filter(kind__in=kinds).values_list("number", flat=True)


def carry(sessions: Any, facts: Any, *, to: EndUser) -> None:
    """Give these sessions and facts to the person, with every copy of the person's id; both are subqueries of ids."""
    Session.objects.filter(pk__in=sessions).update(end_user=to)
    Fact.objects.filter(pk__in=facts).update(end_user=to)
    for rows, path, ids in _copies(sessions, facts):
        rows.filter(**{f"{path}__in": ids}).update(end_user=to)


def move_questions(*, frm: EndUser, to: EndUser) -> int:
    """Review items follow what they are about; how many. After carry() and the profile's revisions."""
    items = ReviewItem.objects.filter(end_user=frm)
    about = [items.filter(**{f"{name}__end_user": to}) for name in ("fact", "episode", "proposed_section")]
    about.append(items.filter(fact=None, known__end_user=to))
    return sum(
        ReviewItem.objects.filter(pk__in=list(rows.values_list("pk", flat=True))).update(end_user=to) for rows in about
    )


def move_refusals(merge: PersonMerge, *, frm: EndUser, to: EndUser) -> int:
    """What was refused of the one is refused of the other; what both refused stays where it is. How many moved."""
    known = FactRefusal.objects.filter(end_user=to)
    moving = FactRefusal.objects.filter(end_user=frm)
    ids = [row.pk for row in moving if not known.filter(kind=row.kind, digest=row.digest).exists()]
    FactRefusal.objects.filter(pk__in=ids).update(end_user=to)
    return note(merge, Kind.REFUSAL, ids)


def tell_of_both(*, frm: EndUser, to: EndUser) -> None:
    """Kept answers that tell of the one tell of the other, too: whoever erases them finds both."""
    link = IdempotencyRecord.end_users.through
    told = link.objects.filter(enduser=frm).values_list("idempotencyrecord", flat=True)
    rows = [link(idempotencyrecord_id=record, enduser_id=to.pk) for record in told]
    link.objects.bulk_create(rows, ignore_conflicts=True)


def _copies(sessions: Any, facts: Any) -> Iterable[tuple[QuerySet[Any], str, Any]]:
    named: Sequence[tuple[Mapping[str, str], Any]] = ((WITH_SESSION, sessions), (WITH_FACT, facts))
    for paths, ids in named:
        for label, path in paths.items():
            yield apps.get_model(label)._default_manager.all(), path, ids
