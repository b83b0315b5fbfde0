"""Declarations of list columns."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.utils.functional import Promise
from django.utils.safestring import SafeString
from unfold.decorators import display

from memories.admin.lists import cells

Cell = TypeVar("Cell", bound=Callable[..., object])


class _Colours(dict[str, str]):
    """No colour for unknown states, for which Unfold would show the code instead of the label."""

    def __missing__(self, state: str) -> str:
        return ""


def column(
    description: str | Promise, *, ordering: str | None = None, label: dict[str, str] | None = None
) -> Callable[[Cell], Cell]:
    """Set a column's heading. `label` maps states to colours of Unfold's labels."""
    colours = _Colours(label) if label else None
    return display(description=description, ordering=ordering, label=colours)  # type: ignore[no-any-return]


def moment_column(
    description: str | Promise, field: str, *, none: str | Promise = "–"
) -> Callable[[Any, Any], SafeString | str]:
    """A column with the time in this field, which also sorts the list. `none` stands where there is no time."""

    @column(description, ordering=field)
    def cell(_page: Any, record: Any) -> SafeString | str:
        moment = getattr(record, field)
        return cells.moment(moment) if moment else str(none)

    return cell
