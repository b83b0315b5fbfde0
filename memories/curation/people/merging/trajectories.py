"""Trajectories of two people who are merged: all move; one whose external id the survivor has as well gets another."""

from memories.curation.change_sets import Changes
from memories.curation.people.merging.locks import Pair
from memories.curation.people.merging.rows import moved
from memories.models import Change, ChangeSet, Trajectory

Table, Action = Change.Table, Change.Action
_LONGEST_ID = 255
# Digits of the hub's own id that are enough to distinguish those of one person.
_DIGITS = 12


def join(pair: Pair, changes: Changes) -> None:
    """Move them with their steps; counts them. After rename_sessions(), whose sessions they follow."""
    theirs = Trajectory.objects.select_for_update(of=("self",)).filter(end_user=pair.merged).order_by("pk")
    named = dict(theirs.values_list("pk", "external_id"))
    if not named:
        return
    taken = set(Trajectory.objects.filter(end_user=pair.survivor).exclude(external_id="").values_list("external_id"))
    for pk, external_id in named.items():
        if (external_id,) in taken:
            changes.record_row_change(Table.TRAJECTORY, Action.CHANGED, pk, before={"external_id": external_id})
            mark = f"~{pk.hex[-_DIGITS:]}"
            Trajectory.objects.filter(pk=pk).update(external_id=external_id[: _LONGEST_ID - len(mark)] + mark)
    Trajectory.objects.filter(pk__in=list(named)).update(end_user=pair.survivor)
    changes.counts["trajectories"] = changes.move(Table.TRAJECTORY, list(named))


def separate(pair: Pair, done: ChangeSet) -> None:
    """Undo join(), with the steps that came since. Before restore_session_ids()."""
    rows = Trajectory.objects.filter(pk__in=moved(done, Table.TRAJECTORY), end_user=pair.survivor)
    ids = list(rows.order_by("pk").values_list("pk", flat=True))
    Trajectory.objects.filter(pk__in=ids).update(end_user=pair.merged)
    before = done.changes.filter(table=Table.TRAJECTORY, action=Action.CHANGED).exclude(uuid=None)
    for pk, values in before.values_list("uuid", "before"):
        Trajectory.objects.filter(pk__in=[pk], end_user=pair.merged).update(external_id=values["external_id"])
