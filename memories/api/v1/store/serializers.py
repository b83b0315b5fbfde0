"""What /store takes and answers."""

from collections.abc import Iterable
from typing import Any, ClassVar, cast

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from memories.api.v1.fields import ExactText, Flag, OneOf, Strict, Timestamp, Whole
from memories.models.memories.store_items import LONGEST_KEY
from memories.store import namespaces
from memories.store.namespaces import BadNamespace
from memories.store.operations import Operation
from memories.store.reading import Lookup, NamespaceQuery, Search
from memories.store.writing import Write
from memories.text.value_texts import LONGEST_PATH, MOST_PATHS

MOST_FOUND = 1_000
MOST_SKIPPED = 10_000_000
MOST_OPERATIONS = 1_000
MAX_QUERY = 20_000
LONGEST_TTL = 100 * 366 * 24 * 60
RESERVED = "langgraph"
_LABELS = {"type": "array", "items": {"type": "string"}, "maxItems": namespaces.MOST_LABELS}
_PATHS = {"type": "array", "items": {"type": "string"}, "maxItems": MOST_PATHS}


@extend_schema_field(_LABELS)
class Labels(serializers.Field[tuple[str, ...], Any, list[str], Any]):
    """A namespace, or a part of one: a list of labels."""

    most_members: ClassVar[int] = namespaces.MOST_LABELS
    default_error_messages = {"invalid": "Give a list of labels."}

    def to_internal_value(self, data: Any) -> tuple[str, ...]:
        if not isinstance(data, list):
            self.fail("invalid")
        checked(data)
        return tuple(data)

    def to_representation(self, value: Iterable[str]) -> list[str]:
        return list(value)


class Key(ExactText):
    """The key of an item: at most 512 bytes."""

    default_error_messages = {"bytes": f"A key can have {LONGEST_KEY} bytes."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=LONGEST_KEY, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if len(text.encode()) > LONGEST_KEY:
            self.fail("bytes")
        return text


@extend_schema_field({"type": "object", "additionalProperties": True})
class Value(serializers.Field[dict[str, Any], Any, dict[str, Any], Any]):
    """Any JSON object. The tenant says how large it can be."""

    is_free: ClassVar[bool] = True
    default_error_messages = {"invalid": "Give a JSON object."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("invalid")
        return dict(data)

    def to_representation(self, value: dict[str, Any]) -> dict[str, Any]:
        return value


@extend_schema_field({"oneOf": [_PATHS, {"type": "boolean"}]})
class IndexField(serializers.Field[Any, Any, Any, Any]):
    """What is embedded: paths into the value; false: nothing. Left out or null: all of it."""

    most_members: ClassVar[int] = MOST_PATHS
    default_error_messages = {
        "invalid": f"Give false, or at most {MOST_PATHS} paths of 1 to {LONGEST_PATH} characters.",
    }

    def to_internal_value(self, data: Any) -> tuple[str, ...]:
        if data is False:
            return ()
        paths = data if isinstance(data, list) and len(data) <= MOST_PATHS else [None]
        if not all(isinstance(path, str) and 0 < len(path) <= LONGEST_PATH for path in paths):
            self.fail("invalid")
        return tuple(paths)


class Minutes(serializers.FloatField):
    """A time to live: more than 0 minutes."""

    default_error_messages = {"range": f"Give more than 0 and at most {LONGEST_TTL:,} minutes."}

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        if not 0 < data <= LONGEST_TTL:
            self.fail("range")
        return float(data)


def checked(labels: list[Any]) -> None:
    """Errors: ValidationError in LangGraph's words, at the label."""
    try:
        namespaces.check(labels)
    except BadNamespace as error:
        # At a label, the place of the detail is its number.
        detail: Any = [ErrorDetail(str(error), code="namespace")]
        raise ValidationError(detail if error.at is None else cast(Any, {error.at: detail})) from error


class ItemName(Strict):
    namespace = Labels(help_text="Labels without periods, at most 64 with 1,024 bytes.")
    key = Key(allow_blank=True)

    def validate_namespace(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        if not labels:
            raise ValidationError("Namespace cannot be empty.", code="namespace")
        return labels


class PutItemSerializer(ItemName):
    value = Value()
    index = IndexField(
        required=False,
        allow_null=True,
        help_text="Paths of the value to embed, such as `title` or `items[*].text`; false: nothing. All of it if left "
        "out.",
    )
    ttl = Minutes(required=False, allow_null=True, help_text="Minutes until it expires, anew with each read.")

    def validate_namespace(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        super().validate_namespace(labels)
        if labels[0] == RESERVED:
            detail = f'Root label for namespace cannot be "{RESERVED}". Got: {labels}'
            raise ValidationError(detail, code="namespace")
        return labels


class ItemNameQuery(Strict):
    key = Key()
    namespace = ExactText(help_text="The labels, joined by periods.")

    def validate_namespace(self, path: str) -> tuple[str, ...]:
        labels = path.split(".")
        try:
            namespaces.check(labels)
        except BadNamespace as error:
            raise ValidationError(str(error), code="namespace") from error
        return tuple(labels)


class ItemQuery(ItemNameQuery):
    refresh_ttl = serializers.BooleanField(default=True, help_text="Let its time to live begin anew.")


class SearchItemsSerializer(Strict):
    namespace_prefix = Labels(help_text="Items of this namespace and of those below it; empty: of all.")
    filter = Value(
        required=False,
        allow_null=True,
        help_text="Field → value, or `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte` → value; objects look inside.",
    )
    limit = Whole(min_value=1, max_value=MOST_FOUND, default=10)
    offset = Whole(min_value=0, max_value=MOST_SKIPPED, default=0)
    query = ExactText(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=MAX_QUERY,
        help_text="Best first, by meaning; without it the last written first.",
    )
    refresh_ttl = Flag(required=False, allow_null=True, help_text="Let times to live of what is found begin anew.")


class NamespacesSerializer(Strict):
    prefix = Labels(required=False, allow_null=True, help_text="`*` stands for any one label.")
    suffix = Labels(required=False, allow_null=True, help_text="`*` stands for any one label.")
    max_depth = Whole(required=False, allow_null=True, min_value=1, max_value=namespaces.MOST_LABELS)
    limit = Whole(min_value=1, max_value=MOST_FOUND, default=100)
    offset = Whole(min_value=0, max_value=MOST_SKIPPED, default=0)


class MatchSerializer(Strict):
    """Of a listing of namespaces: what they begin or end with; `*` stands for any one label."""

    match_type = OneOf(["prefix", "suffix"])
    path = Labels()


class StoreOperationSerializer(Strict):
    """One operation; which fields it has depends on `op`."""

    op = OneOf(["get", "put", "delete", "search", "list_namespaces"])
    namespace = Labels(required=False, help_text="Of get, put, delete; of search the prefix.")
    key = Key(required=False, allow_blank=True)
    value = Value(required=False)
    index = IndexField(required=False, allow_null=True)
    ttl = Minutes(required=False, allow_null=True)
    refresh_ttl = Flag(required=False)
    filter = Value(required=False, allow_null=True)
    query = ExactText(required=False, allow_null=True, allow_blank=True, max_length=MAX_QUERY)
    match_conditions = serializers.ListField(child=MatchSerializer(), required=False, max_length=20)
    max_depth = Whole(required=False, allow_null=True, min_value=1, max_value=namespaces.MOST_LABELS)
    limit = Whole(required=False, min_value=1, max_value=MOST_FOUND)
    offset = Whole(required=False, min_value=0, max_value=MOST_SKIPPED)

    # What an operation may have, and the first of them what it must have.
    _fields = {
        "get": (("namespace", "key"), ("refresh_ttl",)),
        "put": (("namespace", "key", "value"), ("index", "ttl")),
        "delete": (("namespace", "key"), ()),
        "search": (("namespace",), ("filter", "query", "limit", "offset", "refresh_ttl")),
        "list_namespaces": ((), ("match_conditions", "max_depth", "limit", "offset")),
    }

    def validate(self, attrs: Any) -> Any:
        needed, possible = self._fields[attrs["op"]]
        faults = {
            name: [ErrorDetail("This field is required.", code="required")] for name in needed if name not in attrs
        }
        names = ", ".join(f"`{name}`" for name in ("op", *needed, *possible))
        foreign = attrs.keys() - {"op", *needed, *possible}
        detail = f"The operation {attrs['op']} has no such field. It has: {names}."
        faults |= {name: [ErrorDetail(detail, code="unknown_field")] for name in sorted(foreign)}
        if attrs.get("namespace") == () and attrs["op"] != "search":
            faults["namespace"] = [ErrorDetail("Namespace cannot be empty.", code="namespace")]
        if faults:
            raise ValidationError(faults)
        return attrs


class BatchSerializer(Strict):
    operations = serializers.ListField(child=StoreOperationSerializer(), max_length=MOST_OPERATIONS)


class StoreItemSerializer(serializers.Serializer[Any]):
    """A value under a namespace and a key."""

    namespace = serializers.ListField(child=serializers.CharField())
    key = serializers.CharField()
    value = Value()
    created_at = Timestamp()
    updated_at = Timestamp()


class FoundStoreItemSerializer(StoreItemSerializer):
    """`score` is None without a query, and of what has no vector."""

    score = serializers.FloatField(
        allow_null=True, help_text="The cosine of its vector and the query's; null without a query or a vector."
    )


class FoundStoreItemsSerializer(serializers.Serializer[Any]):
    """What a search of the store found."""

    items = FoundStoreItemSerializer(many=True)


class StoreNamespacesSerializer(serializers.Serializer[Any]):
    """Namespaces, each as its labels."""

    namespaces = serializers.ListField(child=serializers.ListField(child=serializers.CharField()))


class StoreAnswerSerializer(serializers.Serializer[Any]):
    """What one operation is answered: of a get `item`, of a search `items`, of a listing `namespaces`, else nothing."""

    item = StoreItemSerializer(allow_null=True)
    items = FoundStoreItemSerializer(many=True, allow_null=True)
    namespaces = serializers.ListField(child=serializers.ListField(child=serializers.CharField()), allow_null=True)


class StoreAnswersSerializer(serializers.Serializer[Any]):
    """In the order of the operations."""

    results = StoreAnswerSerializer(many=True)


def operation_of(given: dict[str, Any], at: str) -> Operation:
    """The operation that a validated part of a batch asks for."""
    kind = given["op"]
    if kind == "get":
        return Lookup(given["namespace"], given["key"], refresh=given.get("refresh_ttl", True), at=at)
    if kind == "search":
        return search_of({**given, "namespace_prefix": given["namespace"]}, at)
    if kind == "list_namespaces":
        paths: dict[str, list[tuple[str, ...]]] = {"prefix": [], "suffix": []}
        for condition in given.get("match_conditions", ()):
            paths[condition["match_type"]].append(condition["path"])
        return NamespaceQuery(
            prefixes=tuple(paths["prefix"]),
            suffixes=tuple(paths["suffix"]),
            max_depth=given.get("max_depth"),
            limit=given.get("limit", 100),
            offset=given.get("offset", 0),
            at=at,
        )
    return write_of(given, at)


def write_of(given: dict[str, Any], at: str = "") -> Write:
    """A put, or without a value a deletion."""
    return Write(
        given["namespace"],
        given["key"],
        value=given.get("value"),
        index=given.get("index"),
        ttl=given.get("ttl"),
        at=at,
    )


def search_of(given: dict[str, Any], at: str = "") -> Search:
    refresh = given.get("refresh_ttl")
    return Search(
        given["namespace_prefix"],
        filter=given.get("filter") or {},
        limit=given.get("limit", 10),
        offset=given.get("offset", 0),
        query=given.get("query") or "",
        refresh=True if refresh is None else refresh,
        at=at,
    )
