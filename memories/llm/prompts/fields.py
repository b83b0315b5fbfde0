"""Types for fields of answers: strict where a wrong value must refuse the item, forgiving where it may count as absent."""

import math
from datetime import date
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field

ITEM = ConfigDict(extra="ignore", frozen=True)

# Beyond a century a date leaves the calendar, and nobody means it.
_MOST_DAYS = 36_500
# JSON's numbers are floats for many readers; beyond it they lose digits.
_LARGEST_NUMBER = 2**53

Plain = str | bool | int | float
# What a part says; several of a kind are a list.
Part = Plain | list[Plain]


def text_or_none(value: Any) -> str | None:
    """Models write ages and sizes as numbers."""
    if isinstance(value, str):
        return value
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number and math.isfinite(value) else None


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _integers(value: Any) -> list[int]:
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, int) and not isinstance(item, bool)]


def _parts(value: Any) -> list[tuple[str, Part]]:
    """Names with plain values or lists of them: as the schema has them, or as the object that models write without."""
    if isinstance(value, dict):
        found = list(value.items())
    else:
        items = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
        found = [(item.get("name"), item.get("value")) for item in items]
    return [(name, part) for name, part in found if isinstance(name, str) and _is_part(part)]


def _is_part(value: Any) -> bool:
    return all(map(_is_plain, value)) if isinstance(value, list) else _is_plain(value)


def _is_plain(value: Any) -> bool:
    """A text, a truth value or a number that any reader of JSON takes as it is."""
    return isinstance(value, str | bool) or (isinstance(value, int | float) and abs(value) <= _LARGEST_NUMBER)


def _days(value: Any) -> int | None:
    days = _integers([value])
    return days[0] if days and 0 < days[0] <= _MOST_DAYS else None


def _unit_or_none(value: Any) -> float | None:
    """Who rates by another scale, or by no number, has not rated."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= 1 else None


def folded(value: Any) -> Any:
    """A string without outer spaces and case; anything else as it is."""
    return value.strip().casefold() if isinstance(value, str) else value


def date_or_none(value: Any) -> date | None:
    """A whole date; of `2024` or `in spring` nobody knows the day."""
    try:
        return date.fromisoformat(value) if isinstance(value, str) and len(value) == len("2031-05-20") else None
    except ValueError:
        return None


Text = Annotated[str, Field(strict=True)]
Integer = Annotated[int, Field(strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Unit = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]

OptionalText = Annotated[str | None, BeforeValidator(text_or_none)]
OptionalUnit = Annotated[float | None, BeforeValidator(_unit_or_none)]
Texts = Annotated[list[str], BeforeValidator(_texts)]
Integers = Annotated[list[int], BeforeValidator(_integers)]
Parts = Annotated[list[tuple[str, Part]], BeforeValidator(_parts)]
Days = Annotated[int | None, BeforeValidator(_days)]
Items = Annotated[list[Any], BeforeValidator(lambda value: value if isinstance(value, list) else [])]
Date = Annotated[date | None, BeforeValidator(date_or_none)]
RawItems = Annotated[list[Any], BeforeValidator(lambda value: [] if value is None else value)]
RawMapping = Annotated[dict[str, Any], BeforeValidator(lambda value: value if isinstance(value, dict) else {})]
