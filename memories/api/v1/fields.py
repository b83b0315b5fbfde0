"""Fields and serializers that all resources share.

A field takes its own type and nothing that merely converts to it. A serializer refuses unknown fields.
"""

import base64
import json
import math
import re
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, cached_property
from itertools import islice
from typing import Any, ClassVar

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import extend_schema_field, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.fields import SkipField

from memories.api import shapes
from memories.api.pagination import MAX_PAGE_SIZE, PAGE_SIZE
from memories.curation.statements.write_trust import StatedBy
from memories.llm.tokenizers import TokenizerNotInstalled, UnknownTokenizer, named
from memories.text.cleaning import clean_lines

MAX_JSON_BYTES = 64 * 1024
ID_LENGTH = 255
YEARS = range(1970, 2100)
# Of fractions in answers, as search rounds its scores.
DIGITS = 6
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Strict(serializers.Serializer[Any]):
    """Refuses fields that it does not have: a typo must not pass for a value that was left out."""

    # Fields that callers send in good faith and that mean nothing here. They are ignored.
    tolerated: ClassVar[frozenset[str]] = frozenset()
    # A key for one agent fills in an `agent_id` that is left out.
    agent_of_key: ClassVar[bool] = True

    def to_internal_value(self, data: Any) -> Any:
        """As REST framework reads, without asking a field that may be left out and is."""
        if shapes.have_enough_faults():
            raise shapes.ENOUGH
        if not isinstance(data, Mapping):
            shapes.note_faults(1)
            return super().to_internal_value(data)
        given: dict[str, Any] = {}
        faults: dict[str, Any] = {}
        for field, validate, may_be_absent in self._inputs:
            name: str = field.field_name
            if may_be_absent and name not in data:
                continue
            try:
                value = field.run_validation(data.get(name, serializers.empty))
                given[field.source] = validate(value) if validate else value
            except ValidationError as error:
                faults[name] = error.detail
            except SkipField:
                pass
        unknown = (name for name in data if name not in self.fields and name not in self.tolerated)
        faults |= {name: self.unknown(name, data[name]) for name in islice(unknown, shapes.MOST_FAULTS)}
        if faults:
            shapes.note_faults(len(faults))
            raise ValidationError(faults)
        return given

    def unknown(self, name: str, value: Any) -> Any:
        """What to say of a field that there is not."""
        return [self._no_such_field]

    @cached_property
    def _no_such_field(self) -> ErrorDetail:
        names = ", ".join(f"`{name}`" for name, field in self.fields.items() if not field.read_only)
        there_are = f"There are: {names}." if names else "There are none."
        return ErrorDetail(f"There is no such field. {there_are}", code="unknown_field")

    @cached_property
    def _inputs(self) -> list[tuple[Any, Any, bool]]:
        """Each field that is read, the method that validates it further, and whether its absence says nothing."""
        return [
            (field, getattr(self, f"validate_{name}", None), not field.required and field.default is serializers.empty)
            for name, field in self.fields.items()
            if not field.read_only
        ]


class ChangesSerializer(Strict):
    """A partial update: at least one field."""

    def validate(self, attrs: Any) -> Any:
        if not attrs:
            raise ValidationError("Name at least one field to change.", code="empty")
        return attrs


class PageQuery(Strict):
    """The parameters of every list."""

    page_size = serializers.IntegerField(min_value=1, max_value=MAX_PAGE_SIZE, default=PAGE_SIZE)
    cursor = serializers.CharField(required=False, max_length=1000, help_text="From `next` or `previous`.")


# One for each kind of row: two operations may list the same.
@cache
def page_of(row: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    """The answer of every list, as the schema names it: `{"next", "previous", "results"}` of these rows."""
    return inline_serializer(
        name=f"{row.__name__.removesuffix('Serializer')}Page",
        fields={
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
            "results": row(many=True),
        },
    )


class ExactText(serializers.CharField):
    """A string as it is: not trimmed, not blank unless allowed."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(trim_whitespace=False, **kwargs)

    def run_validation(self, data: Any = serializers.empty) -> Any:
        if isinstance(data, str) and not self.allow_blank and not data.strip():
            self.fail("blank")
        return super().run_validation(data)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(data)


@extend_schema_field({"type": "string", "format": "byte"})
class Base64Bytes(ExactText):
    """Bytes, written in Base64 (RFC 4648, section 4)."""

    default_error_messages = {"base64": "This is not Base64 (RFC 4648, section 4), without line breaks."}

    def to_internal_value(self, data: Any) -> bytes:  # type: ignore[override]
        try:
            return base64.b64decode(super().to_internal_value(data), validate=True)
        except ValueError:
            self.fail("base64")


class CleanText(ExactText):
    """Text to be remembered. Invisible and control characters are removed, then it may not be blank."""

    def run_validation(self, data: Any = serializers.empty) -> Any:
        return super().run_validation(clean_lines(data) if isinstance(data, str) else data)


class Identifier(ExactText):
    """An id of the caller's own: 1-255 characters without control characters."""

    default_error_messages = {"control": "An id may not contain control characters."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=ID_LENGTH, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if _CONTROL.search(text):
            self.fail("control")
        return text


class AgentId(Identifier):
    """An agent's id, lower-cased; null for none."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, allow_null=True, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        # Some letters become two in lower case. The validators measure what is returned here.
        return super().to_internal_value(data).lower()


class Whole(serializers.IntegerField):
    """A JSON integer: no boolean, no fraction, no digits in a string."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return int(data)


class Fraction(serializers.FloatField):
    """A JSON number that is finite."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        try:
            number = float(data)
        except OverflowError:  # an integer of hundreds of digits
            self.fail("invalid")
        if not math.isfinite(number):
            self.fail("invalid")
        return number


class Share(Fraction):
    """A JSON number from 0 to 1."""

    def __init__(self, *, min_value: float = 0.0, **kwargs: Any) -> None:
        super().__init__(min_value=min_value, max_value=1.0, **kwargs)


class Flag(serializers.BooleanField):
    """true or false."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class OneOf(serializers.ChoiceField):
    """One of some words. The error names them and does not repeat the input."""

    def __init__(self, choices: Any, **kwargs: Any) -> None:
        super().__init__(choices, **kwargs)
        self.error_messages["invalid_choice"] = f"Use one of: {', '.join(map(str, self.choices))}."

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("invalid_choice")
        return data


class TokenizerName(serializers.CharField):
    """A tokenizer, or the name of a model that uses one; in its value the tokenizer's own name."""

    def to_internal_value(self, data: Any) -> str:
        try:
            return named(data if isinstance(data, str) else "")
        except UnknownTokenizer as error:
            raise ValidationError(str(error), code="invalid_choice") from None
        except TokenizerNotInstalled as error:
            raise ValidationError(str(error), code="not_installed") from None


class Moment(serializers.DateTimeField):
    """ISO-8601 from 1970 to 2099, without a zone as UTC."""

    default_error_messages = {
        "invalid": "Give a time as ISO-8601, e.g. 2026-11-03T09:12:00Z.",
        "year": f"The year must be from {YEARS[0]} to {YEARS[-1]}.",
    }

    def to_internal_value(self, value: Any) -> datetime:
        try:
            moment = parse_datetime(value) if isinstance(value, str) else None
        except ValueError:
            moment = None
        if moment is None:
            self.fail("invalid")
        # Check the year first: the conversion fails at the ends of the calendar.
        if moment.year in YEARS:
            moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        if moment.year not in YEARS:
            self.fail("year")
        return moment


class End(Moment):
    """A moment to come, at which something ends."""

    default_error_messages = {"past": "This moment is past. Give a later one, or null for never."}

    def to_internal_value(self, value: Any) -> datetime:
        moment = super().to_internal_value(value)
        if moment <= timezone.now():
            self.fail("past")
        return moment


class OurId(serializers.UUIDField):
    """An id of the hub's, as text."""

    def to_internal_value(self, data: Any) -> uuid.UUID:
        if not isinstance(data, str):
            self.fail("invalid", value="")
        return super().to_internal_value(data)


class StatedByField(OneOf):
    """Who stated what is written; none where the request does not say."""

    def __init__(self) -> None:
        super().__init__(
            [one.value for one in StatedBy],
            required=False,
            help_text="Whose words these are: the key's own by default. It can only lower their trust.",
        )


@extend_schema_field({"type": "object", "additionalProperties": True})
class JSONObject(serializers.Field[dict[str, Any], dict[str, Any], dict[str, Any], Any]):
    """Any JSON object, at most 64 kB when written out."""

    is_free: ClassVar[bool] = True
    default_error_messages = {
        "invalid": "Give a JSON object.",
        "max_size": f"A JSON object may have at most {MAX_JSON_BYTES:,} bytes.",
    }

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("invalid")
        if data and json_size(data) > MAX_JSON_BYTES:
            self.fail("max_size")
        return data

    def to_representation(self, value: dict[str, Any]) -> dict[str, Any]:
        return value


class Words(serializers.ListField):
    """A short list of strings."""

    def __init__(self, *, child: ExactText, max_length: int = 100, **kwargs: Any) -> None:
        super().__init__(child=child, max_length=max_length, **kwargs)


class Roles(ExactText):
    """A parameter with roles: words between commas, or the parameter several times."""

    default_error_messages = {"roles": "Give at most 100 roles of 1 to 100 characters each."}

    def __init__(self) -> None:
        super().__init__(
            required=False,
            help_text="Roles that the person has, for guarded facts: separated by commas, or given several times.",
        )

    def to_internal_value(self, data: Any) -> Any:
        roles = [role for part in super().to_internal_value(data).split(",") if (role := part.strip())]
        if len(roles) > 100 or any(len(role) > 100 for role in roles):
            self.fail("roles")
        return roles


class Rounded(serializers.FloatField):
    """For answers: a number without the digits that sums of fractions leave."""

    def to_representation(self, value: Any) -> Any:
        return round(float(value), DIGITS)


class Timestamp(serializers.DateTimeField):
    """For answers: a moment in UTC, as the database gives it."""

    def to_representation(self, value: Any) -> Any:
        # REST framework brings it into the zone of the thread first, which is UTC for all keys: half of its time.
        if isinstance(value, datetime) and value.tzinfo is not None and not value.utcoffset():
            return value.isoformat().removesuffix("+00:00") + "Z"
        return super().to_representation(value)


class OrNull(serializers.CharField):
    """For answers: an empty string is shown as null."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(allow_null=True, read_only=True, **kwargs)

    def to_representation(self, value: Any) -> Any:
        return value or None


def json_size(value: Any) -> int:
    """Bytes of `value` as compact JSON in UTF-8."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
