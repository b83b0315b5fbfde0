"""The items of a timeline as they are shown: edits with who made them and what became of the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from memories.admin.authors import ANONYMOUS, names_of
from memories.admin.segments import Segment, diff
from memories.admin.timeline import Item, Leaf
from memories.models import FactRevision, ProfileRevision, Section


@dataclass(frozen=True)
class Shown:
    """An item; of an edit also who made it, the text as a diff, what else changed, and the label of its section."""

    item: Item
    actor: str = ""
    segments: Sequence[Segment] = ()
    others: Sequence[str] = ()
    section: str = ""


def days_of(leaf: Leaf) -> list[tuple[date, list[Shown]]]:
    """By days, newest first; two queries where there are edits."""
    edits = [item.row for item in leaf.items if item.source.kind == "edit"]
    names = names_of(edits) if edits else {}
    return [(day, [_shown(item, names) for item in items]) for day, items in leaf.days()]


def _shown(item: Item, names: dict[str, str]) -> Shown:
    if item.source.kind != "edit":
        return Shown(item)
    row = item.row
    actor = names.get(row.actor_id, ANONYMOUS[row.actor_kind])
    if isinstance(row, FactRevision):
        return Shown(item, actor, _text(row), sorted(set(row.before) - {"content"}))
    if isinstance(row, ProfileRevision):
        return Shown(item, actor, diff(row.before, row.after), section=Section(row.section).label)
    return Shown(item, actor)


def _text(revision: FactRevision) -> list[Segment]:
    content = str(revision.after.get("content", ""))
    return diff(str(revision.before.get("content", content)), content)
