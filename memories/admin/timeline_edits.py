"""The items of a timeline as they are shown: edits with who made them and what became of the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from memories.admin.authors import names_of, unnamed
from memories.admin.fact_wording import NAMES
from memories.admin.segments import Segment, diff
from memories.admin.template_tags import percent
from memories.admin.timeline import Item, Leaf
from memories.models import Fact, FactRevision, ProfileRevision, Section

# What else of a fact is told when it changed; the fact's own page tells the rest.
TOLD = ("status", "category", "confidence", "importance", "pinned", "locked", "scope", "key", "value", "tags")


class Change(NamedTuple):
    """A field of a fact with what it was and what it became."""

    label: str
    before: str
    after: str


@dataclass(frozen=True)
class Shown:
    """An item; of an edit also who made it, the text as a diff, what else changed, and the label of its section."""

    item: Item
    actor: str = ""
    segments: Sequence[Segment] = ()
    others: Sequence[Change] = ()
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
    actor = names.get(row.actor_id, unnamed(row.actor_kind))
    if isinstance(row, FactRevision):
        return Shown(item, actor, _text(row), _others(row))
    if isinstance(row, ProfileRevision):
        # A first text is no change of another.
        segments = diff(row.before, row.after) if row.before else [Segment(row.after)]
        return Shown(item, actor, segments, section=str(Section(row.section).label))
    return Shown(item, actor)


def _text(revision: FactRevision) -> list[Segment]:
    content = str(revision.after.get("content", ""))
    return diff(str(revision.before.get("content", content)), content)


def _others(revision: FactRevision) -> list[Change]:
    changed = [name for name in TOLD if name in revision.before]
    return [_change(name, revision.before[name], revision.after.get(name)) for name in changed]


def _change(name: str, before: Any, after: Any) -> Change:
    field = Fact._meta.get_field(name)
    labels: dict[Any, Any] = dict(getattr(field, "flatchoices", ()))
    return Change(str(NAMES[name]), _said(before, labels), _said(after, labels))


def _said(value: Any, labels: dict[Any, Any]) -> str:
    """The value of a field in words."""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, float):
        return percent(value)
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    return str(labels.get(value, value) or "–")
