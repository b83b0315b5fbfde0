"""The columns of the lists, declared in one typed line each."""

from collections.abc import Callable
from typing import TypeVar

from django.utils.functional import Promise
from unfold.decorators import display

Cell = TypeVar("Cell", bound=Callable[..., object])


class _Colours(dict[str, str]):
    """Plain where the table names no colour: Unfold would show the code instead of the words."""

    def __missing__(self, state: str) -> str:
        return ""


def column(
    description: str | Promise, *, ordering: str | None = None, label: dict[str, str] | None = None
) -> Callable[[Cell], Cell]:
    """Head a column; `label` shows its value in the colour that the table names for it."""
    colours = _Colours(label) if label else None
    decorate: Callable[[Cell], Cell] = display(description=description, ordering=ordering, label=colours)
    return decorate
