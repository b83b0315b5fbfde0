"""A page of a list."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Page(Generic[T]):
    """A page of a list. The cursors lead to its neighbours; None means that there is none."""

    results: list[T]
    next_cursor: str | None = None
    previous_cursor: str | None = None
    # Of all pages, where the list counts them.
    total: int | None = None
