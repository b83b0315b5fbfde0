"""Memories of plain kinds of two people who are merged: all of them move, and an undo gives them back."""

import uuid
from collections.abc import Sequence

from memories.curation.change_sets import Changes
from memories.curation.people.merging.locks import Pair
from memories.curation.people.merging.rows import moved
from memories.kinds import PLAIN, Kind
from memories.models import ChangeSet, EndUser


def join(pair: Pair, changes: Changes) -> None:
    """Move the rows, also those in the trash; counts them."""
    for kind in PLAIN:
        theirs = list(kind.rows.filter(end_user=pair.merged).order_by("pk").values_list("pk", flat=True))
        if theirs:
            _give(kind, theirs, pair.survivor)
            changes.counts[kind.plural] = changes.move(kind.name, theirs)


def separate(pair: Pair, done: ChangeSet) -> None:
    """Undo join(). What was written since stays with the survivor."""
    for kind in PLAIN:
        rows = kind.rows.filter(pk__in=moved(done, kind.name), end_user=pair.survivor)
        _give(kind, list(rows.order_by("pk").values_list("pk", flat=True)), pair.merged)


def _give(kind: Kind, ids: Sequence[uuid.UUID], to: EndUser) -> None:
    """These rows, with the copy of the person's id at their vectors."""
    kind.rows.filter(pk__in=ids).update(end_user=to)
    if embedded := kind.embedded:
        embedded.vectors._default_manager.filter(**{f"{embedded.reference}__in": ids}).update(end_user=to)
