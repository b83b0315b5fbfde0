"""Keyset pagination: a signed cursor names a row, so pages neither skip nor repeat while rows come and go.

A page ends earlier than asked for where the request's budget does (memories/budgets.py); `next` goes on from there.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from django.core import signing
from django.db.models import F, Func, IntegerField, Model, QuerySet, TextField, Value
from django.db.models.functions import Cast, Coalesce
from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from memories import budgets
from memories.exceptions import InvalidInput
from memories.models.keyset import beyond

PAGE_SIZE = 50
MAX_PAGE_SIZE = 200
NEWEST_FIRST = ("-created_at", "-id")

Row = TypeVar("Row", bound=Model)


class _Cursor(NamedTuple):
    """The rows after `position` in the list's order; `backwards`: those before it, from there up."""

    position: list[Any]
    backwards: bool


class CursorPages:
    """The pages of one list. `ordering` is all ascending or all descending, and unique as a whole."""

    def __init__(self, request: Request, *, tenant_id: object, ordering: Sequence[str] = NEWEST_FIRST) -> None:
        self.request = request
        self.descending = ordering[0].startswith("-")
        self.fields = [name.lstrip("-") for name in ordering]
        # A cursor of another tenant, list or order does not verify here.
        listed = request.path if tuple(ordering) == NEWEST_FIRST else f"{request.path}:{','.join(ordering)}"
        self.signer = signing.Signer(salt=f"memories.api.cursor:{tenant_id}:{listed}")

    def page(
        self, rows: QuerySet[Row], *, size: int = PAGE_SIZE, cursor: str | None = None, long: Sequence[str] = ()
    ) -> tuple[list[Row], str | None, str | None]:
        """The rows that `cursor` names, else the first ones; the addresses of the next and of the previous page.

        `long`: columns that can be so large that a page of them is beyond the request's budget. They are weighed first.
        Errors: InvalidInput for a cursor that does not verify.
        """
        try:
            at = _Cursor(*self.signer.unsign_object(cursor)) if cursor else None
        except signing.BadSignature as error:
            detail = "This cursor is not one of this list: follow 'next' or 'previous' as they were given."
            raise InvalidInput.at("cursor", detail, code="cursor") from error
        backwards = at is not None and at.backwards
        descending = self.descending != backwards
        rows = rows.order_by(*(f"-{name}" if descending else name for name in self.fields))
        if at is not None:
            rows = rows.filter(beyond(self.fields, at.position, "lt" if descending else "gt"))
        size = min(size, _affordable(rows[:size], long)) if long else size
        found = list(rows[: size + 1])
        more, found = len(found) > size, found[:size]
        if backwards:
            found.reverse()
        has_next, has_previous = (True, more) if backwards else (more, at is not None)
        following = self._link(found[-1], backwards=False) if found and has_next else None
        previous = self._link(found[0], backwards=True) if found and has_previous else None
        return found, following, previous

    def _link(self, row: Row, *, backwards: bool) -> str:
        values = [getattr(row, name) for name in self.fields]
        position = [
            value if isinstance(value, int) else value.isoformat() if isinstance(value, datetime) else str(value)
            for value in values
        ]
        cursor = self.signer.sign_object([position, backwards])
        return replace_query_param(self.request.build_absolute_uri(), "cursor", cursor)


def _affordable(rows: QuerySet[Any], long: Sequence[str]) -> int:
    """How many of these rows, from the first, the request's budget is enough for; one at least."""
    left = budgets.bytes_left()
    if left is None:
        return MAX_PAGE_SIZE
    weight: Any = Value(budgets.ROW_BYTES, output_field=IntegerField())
    for name in long:
        octets = Func(Cast(F(name), TextField()), function="octet_length", output_field=IntegerField())
        weight += Coalesce(octets, Value(0))
    number = 0
    for size in rows.values_list(weight, flat=True):
        left -= size
        if left < 0 and number:
            break
        number += 1
    return max(1, number)
