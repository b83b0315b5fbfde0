"""The rows of two people who are merged: which fields the survivor takes over, and which ids lead to whom."""

from memories.curation.change_sets import Changes
from memories.curation.people.merging.locks import Pair
from memories.curation.people.merging.rows import moved
from memories.models import ActorKind, Change, ChangeSet, EndUser
from memories.models.people.people import SWITCHES, who_switched

Table, Action = Change.Table, Change.Action
_TEXTS = ("display_name", "time_zone", "language", "metadata")


def fields_to_take(pair: Pair) -> list[str]:
    """Names of the fields in which the survivor takes the other's value: empty ones, and what either switched off."""
    ours, theirs = pair.people
    empty = [name for name in _TEXTS if getattr(theirs, name) and not getattr(ours, name)]
    return empty + [name for name in SWITCHES if getattr(ours, name) and not getattr(theirs, name)]


def join(pair: Pair, changes: Changes) -> None:
    """Let the id of the merged person, and its aliases, lead to the survivor, who takes over fields_to_take()."""
    survivor, merged = pair.people
    before = {name: getattr(survivor, name) for name in fields_to_take(pair)}
    changes.record_row_change(Table.PERSON, Action.CHANGED, survivor.pk, before=before)
    for name in before:
        setattr(survivor, name, getattr(merged, name))
    survivor.last_seen_at = max(survivor.last_seen_at, merged.last_seen_at)
    survivor.save(update_fields=[*before, *_combine_switchers(survivor, merged), "last_seen_at"])
    aliases = EndUser.objects.filter(merged_into=merged)
    changes.move(Table.PERSON, list(aliases.values_list("pk", flat=True)))
    aliases.update(merged_into=survivor)
    merged.merged_into = survivor
    merged.save(update_fields=["merged_into"])


def separate(pair: Pair, done: ChangeSet) -> None:
    """Undo join(); a field that somebody has written since stays as it is."""
    survivor, merged = pair.people
    before = done.changes.get(table=Table.PERSON, action=Action.CHANGED).before
    given = [name for name in before if getattr(survivor, name) == getattr(merged, name)]
    for name in given:
        setattr(survivor, name, before[name])
    switched = [who_switched(name) for name in given if name in SWITCHES]
    for name in switched:
        setattr(survivor, name, "")
    survivor.save(update_fields=[*given, *switched])
    EndUser.objects.filter(pk__in=moved(done, Table.PERSON), merged_into=survivor).update(merged_into=merged)
    merged.merged_into = None
    merged.save(update_fields=["merged_into"])


def _combine_switchers(survivor: EndUser, merged: EndUser) -> list[str]:
    """Set who switched off what is off now, an operator before a key; returns the names of the fields."""
    names = [who_switched(name) for name in SWITCHES]
    for name in names:
        who = {getattr(one, name) for one in (survivor, merged)} - {""}
        setattr(survivor, name, next(iter(who - {ActorKind.KEY} or who), ""))
    return names
