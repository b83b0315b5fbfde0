"""From JSON to the dataclasses of `models`, by their annotations."""

import re
import sys
import types
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints, is_typeddict

if sys.version_info >= (3, 11):
    _moment = datetime.fromisoformat
else:
    _FRACTION = re.compile(r"\.(\d{1,6})\d*")

    def _moment(value: str) -> datetime:
        # Python 3.10 reads no Z, and fractions of 3 and 6 digits alone.
        whole = _FRACTION.sub(lambda found: f".{found[1]:0<6}", value.replace("Z", "+00:00"))
        return datetime.fromisoformat(whole)


def decode(kind: Any, value: Any) -> Any:
    """The value as this type. What a dataclass does not know is passed over; values of `Literal` are not checked."""
    if value is None or kind is Any or is_typeddict(kind):
        return value
    if isinstance(kind, type) and is_dataclass(kind):
        return _decode_members(kind, value)
    if kind is datetime:
        return _moment(value)
    return float(value) if kind is float else _decode_generic(get_origin(kind), get_args(kind), value)


def _decode_generic(origin: Any, inner: tuple[Any, ...], value: Any) -> Any:
    if origin is list:
        return [decode(inner[0], one) for one in value]
    if origin is dict:
        return {name: decode(inner[1], one) for name, one in value.items()}
    kinds = [one for one in inner if one is not type(None)]
    if origin in (Union, types.UnionType) and len(kinds) == 1:
        return decode(kinds[0], value)
    # A plain value, or a text or a list of parts.
    return value


def _decode_members(kind: type, value: dict[str, Any]) -> Any:
    return kind(**{name: decode(hint, value[name]) for name, hint in _members(kind) if name in value})


@cache
def _members(kind: type) -> list[tuple[str, Any]]:
    hints = get_type_hints(kind)
    return [(one.name, hints[one.name]) for one in fields(kind)]
