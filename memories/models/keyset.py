"""Keyset pagination: the rows after a row of a sorted list, as a condition that an index serves."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Q


def beyond(fields: Sequence[str], position: Sequence[Any], operator: str) -> Q:
    """The rows below (`lt`) or above (`gt`) the position in a list that is sorted by all of these fields.

    (a, b) < (x, y) as a ≤ x and (a < x or b < y): the first half is a range of the index.
    """
    first, *others = zip(fields, position, strict=True)
    past = Q(**{f"{first[0]}__{operator}": first[1]})
    if not others:
        return past
    rest = beyond([name for name, _ in others], [value for _, value in others], operator)
    return Q(**{f"{first[0]}__{operator}e": first[1]}) & (past | rest)
