"""A row of an export as a row of its table: by the columns that the model declares as exported, each read strictly."""

import math
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.timezone import is_naive

from memories.imports.raw_documents import RefusedDocumentError
from memories.models.columns import columns_of
from memories.text.secrets.redaction import redact_text

_Row = TypeVar("_Row", bound=models.Model)
# A row that names a column that is none, or that holds what cannot be one, was changed by hand.
INVALID = "invalid"


def built(model: type[_Row], row: Mapping[str, Any]) -> _Row:
    """The row without its id and without what it refers to; texts have no secrets. A column that is missing has its
    default. Errors: RefusedDocumentError."""
    declared = columns_of(model)
    meanings = declared.of(model)
    values: dict[str, Any] = {}
    for name in declared.exported:
        field: Any = model._meta.get_field(name)
        if name in row and name != "id" and not field.is_relation:
            values[name] = _value(field, row[name], is_text=meanings[name].erased)
    made = model(**values)
    # Django finds nothing missing in what is empty.
    looked_at = {name for name, value in values.items() if value not in (None, "", [], {})}
    try:
        made.clean_fields(exclude={field.name for field in model._meta.fields} - looked_at)
    except ValidationError as error:
        raise RefusedDocumentError(f"/{min(error.message_dict)} {INVALID}") from error
    return made


def id_of(row: Mapping[str, Any], name: str = "id") -> uuid.UUID:
    """Errors: RefusedDocumentError."""
    if found := reference(row, name):
        return found
    raise RefusedDocumentError(f"/{name} {INVALID}")


def reference(row: Mapping[str, Any], name: str) -> uuid.UUID | None:
    """The id that the column names; None for none."""
    value = row.get(name)
    try:
        return uuid.UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def mapped(owner: uuid.UUID, old: uuid.UUID) -> uuid.UUID:
    """The id that a row of another hub has here: the same at each import for this owner, and at the same place among
    ids by time, which its first 64 bits tell."""
    digest = uuid.uuid5(owner, old.hex).int
    kept = (old.int >> 64) & ~0xF000 | 0x7000
    return uuid.UUID(int=kept << 64 | 0b10 << 62 | digest & ((1 << 62) - 1))


def _value(field: Any, value: Any, *, is_text: bool) -> Any:
    check_letters(value)
    try:
        found = field.to_python(value)
    except (ValidationError, TypeError, ValueError, OverflowError) as error:
        raise RefusedDocumentError(f"/{field.name} {INVALID}") from error
    if not _has_form(field, value, found):
        raise RefusedDocumentError(f"/{field.name} {INVALID}")
    if isinstance(found, datetime) and is_naive(found):
        found = found.replace(tzinfo=UTC)
    found = _without_secrets(found) if is_text else found
    longest = getattr(field, "max_length", None) or settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if isinstance(found, str) and len(found) > longest:
        raise RefusedDocumentError(f"/{field.name} too_large")
    return found


def _has_form(field: Any, value: Any, found: Any) -> bool:
    """Whether it is what the column holds, where Django would make something of anything else."""
    if value is None:
        return bool(field.null)
    if isinstance(field, models.JSONField):
        return isinstance(value, dict) if field.default is dict else isinstance(value, dict | list)
    if isinstance(field, ArrayField):
        return isinstance(value, list)
    if isinstance(field, models.CharField | models.TextField):
        return isinstance(value, str)
    return not isinstance(found, float) or math.isfinite(found)


def inner(row: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The row that is inside of this one; an empty one where there is none."""
    found = row.get(name)
    return found if isinstance(found, dict) else {}


def inners(row: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The rows of a list inside of this one."""
    found = row.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def check_letters(value: Any) -> None:
    """Errors: RefusedDocumentError for letters that no text of the database can have."""
    if isinstance(value, str):
        if "\0" in value:
            raise RefusedDocumentError("nul")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise RefusedDocumentError("surrogate") from error
    for one in [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else ():
        check_letters(one)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return redact_text(value)[0] if value else value
    if isinstance(value, list):
        return [_without_secrets(one) for one in value]
    if isinstance(value, dict):
        return {name: _without_secrets(one) for name, one in value.items()}
    return value
