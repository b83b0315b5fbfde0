"""How much a request may say, from what its serializer declares: checked on the document as it came, before a field
looks into a list. REST framework validates the members of a list first, and then counts them.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any

from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.fields import DictField, Field, JSONField, ListField
from rest_framework.serializers import ListSerializer, Serializer

# An answer shows no more (errors.py): what comes after them is not looked for.
MOST_FAULTS = 100
# Values of a document, its lists and objects among them, where the operation declares no fewer.
MOST_VALUES = 200_000
# Of an object whose keys the caller chooses, where its values are declared.
MOST_KEYS = 100
# Of an operation that takes few. So many are read in milliseconds, and a fault is then told with its place.
LEAST_VALUES = 20_000

_found: ContextVar[list[int] | None] = ContextVar("faults", default=None)
ENOUGH = ValidationError("There are more faults.", code="more")


def validated(expected: type[Serializer[Any]], data: Any) -> dict[str, Any]:
    """The validated input. Errors: ValidationError; for a list that is too long alone, before its members are read."""
    reader = reader_of(expected)
    if faults := _faults(reader, data):
        raise ValidationError(faults)
    counting = _found.set([0])
    try:
        given: dict[str, Any] = reader.run_validation(data)
    finally:
        _found.reset(counting)
    return given


def most_values(expected: type[Serializer[Any]]) -> int:
    """How many values a document can have that this takes: between LEAST_VALUES and MOST_VALUES."""
    return min(MOST_VALUES, max(LEAST_VALUES, _most(reader_of(expected))))


@cache
def reader_of(expected: type[Serializer[Any]]) -> Serializer[Any]:
    """One instance for all threads: reading leaves no state in it, and making its fields takes longer than reading."""
    reader = expected()
    # Make the fields now, not in the first thread that reads.
    _ = reader.fields
    return reader


def note_faults(number: int) -> None:
    """Count faults of this input."""
    found = _found.get()
    if found is not None:
        found[0] += number


def have_enough_faults() -> bool:
    """Whether the answer cannot show more: what is left need not be validated."""
    found = _found.get()
    return found is not None and found[0] >= MOST_FAULTS


def _faults(field: Any, data: Any) -> Any:
    """REST framework's nested details of what is too long; empty: nothing is."""
    if isinstance(field, ListField | ListSerializer):
        return _faults_of_list(field, data)
    if not isinstance(data, Mapping):
        return None
    if isinstance(field, DictField):
        return _faults_of_dictionary(field, data)
    if not isinstance(field, Serializer):
        return None
    own = _too_many(field, data)
    if own:
        return own
    found = {name: _faults(one, data[name]) for name, one in _fields_with_lists(field) if name in data}
    return {name: faults for name, faults in found.items() if faults}


def _faults_of_list(field: Any, data: Any) -> Any:
    if not isinstance(data, list):
        return None
    if field.max_length is not None and len(data) > field.max_length:
        detail = field.error_messages["max_length"].format(max_length=field.max_length)
        return [ErrorDetail(detail, code="max_length")]
    if not _has_lists(field.child):
        return None
    return {str(at): faults for at, one in enumerate(data) if (faults := _faults(field.child, one))}


def _faults_of_dictionary(field: Any, data: Mapping[str, Any]) -> Any:
    most = _most_keys(field)
    if len(data) > most:
        return [ErrorDetail(f"Give at most {most:,} keys.", code="max_length")]
    return {key: faults for key, one in data.items() if (faults := _faults(field.child, one))}


def _most_keys(field: Any) -> int:
    return int(getattr(field, "most_keys", MOST_KEYS))


def _too_many(field: Any, data: Mapping[str, Any]) -> Any:
    """Of lists that are inside of the members of another one, together: `most_together()` of the serializer."""
    faults = {}
    for (outer, inner), most in getattr(field, "most_together", dict)().items():
        members = data.get(outer)
        lists = [one.get(inner) for one in members if isinstance(one, Mapping)] if isinstance(members, list) else []
        if sum(len(one) for one in lists if isinstance(one, list)) > most:
            faults[outer] = [ErrorDetail(f"Give at most {most:,} {inner} in all.", code="max_length")]
    return faults


# Readers are made once for all threads, and so are their fields.
@cache
def _fields_with_lists(field: Serializer[Any]) -> list[tuple[str, Any]]:
    return [(name, one) for name, one in field.fields.items() if not one.read_only and _has_lists(one)]


@cache
def _has_lists(field: Field[Any, Any, Any, Any]) -> bool:
    if isinstance(field, ListField | ListSerializer | DictField):
        return True
    return isinstance(field, Serializer) and bool(_fields_with_lists(field))


@cache
def _most(field: Any) -> int:
    """How many values a document of this field can have: itself, and what is inside."""
    if isinstance(field, ListField | ListSerializer):
        most: int | None = getattr(field, "max_length", None)
        return MOST_VALUES if most is None else 1 + most * _most(field.child)
    if isinstance(field, Serializer):
        return 1 + sum(_most(one) for one in field.fields.values() if not one.read_only)
    if isinstance(field, DictField):
        return 1 + _most_keys(field) * _most(field.child)
    is_free = isinstance(field, JSONField) or getattr(field, "is_free", False)
    return MOST_VALUES if is_free else getattr(field, "most_members", 0) + 1
