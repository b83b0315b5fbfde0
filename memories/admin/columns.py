"""The columns of the lists, declared in one typed line each."""

from collections.abc import Callable
from typing import TypeVar

from django.utils.functional import Promise
from unfold.decorators import display

Cell = TypeVar("Cell", bound=Callable[..., object])


def column(
    description: str | Promise, *, ordering: str | None = None, label: dict[str, str] | None = None
) -> Callable[[Cell], Cell]:
    """Head a column; `label` shows its value in the colour that the table names for it."""
    decorate: Callable[[Cell], Cell] = display(description=description, ordering=ordering, label=label)
    return decorate
