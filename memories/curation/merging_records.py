"""The records of two people who are merged: what the survivor takes over of the other, by the names of fields."""

from datetime import datetime

from memories.curation.merging_locks import Pair
from memories.curation.merging_rows import Kind, note, noted
from memories.models import EndUser, PersonMerge

_TEXTS = ("display_name", "time_zone", "language", "metadata")
# Who switched one off for either of the two has switched it off for the person.
_SWITCHES = ("capture", "serve")


def taken(pair: Pair) -> list[str]:
    """Names of the fields in which the survivor takes the other's value."""
    ours, theirs = pair.people
    empty = [name for name in _TEXTS if getattr(theirs, name) and not getattr(ours, name)]
    return empty + [name for name in _SWITCHES if getattr(ours, name) and not getattr(theirs, name)]


def join(pair: Pair, merge: PersonMerge) -> None:
    """Let the name of the merged person, and those that led to them, lead to the survivor, who takes what was empty."""
    survivor, merged = pair.people
    merge.taken = taken(pair)
    for name in merge.taken:
        setattr(survivor, name, getattr(merged, name))
    survivor.last_seen_at = max(survivor.last_seen_at, merged.last_seen_at)
    survivor.save(update_fields=[*merge.taken, "last_seen_at"])
    names = EndUser.objects.filter(merged_into=merged)
    note(merge, Kind.NAME, list(names.values_list("pk", flat=True)))
    names.update(merged_into=survivor)
    merged.merged_into = survivor
    merged.save(update_fields=["merged_into"])


def part(pair: Pair, merge: PersonMerge, *, now: datetime) -> None:
    """Undo it; a field that somebody wrote since stays as it is."""
    survivor, merged = pair.people
    given = [name for name in merge.taken if getattr(survivor, name) == getattr(merged, name)]
    unwritten = EndUser()
    for name in given:
        setattr(survivor, name, getattr(unwritten, name))
    survivor.save(update_fields=given)
    EndUser.objects.filter(pk__in=noted(merge, Kind.NAME), merged_into=survivor).update(merged_into=merged)
    merged.merged_into = None
    merged.save(update_fields=["merged_into"])
    merge.undone_at = now
    merge.save(update_fields=["undone_at"])
