"""Operations as descriptors: each is described once, and is a method of the client and of its asynchronous twin.

`@operation` reads the signature of a function without a body. Arguments that the path names go there, `if_match` and
`idempotency_key` into headers, those named in `query` and all of a GET or DELETE into the query, the rest into the
body. The annotation of what it returns is what the answer is made into.
"""

import inspect
import json
import re
import sys
import types
import uuid
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache, cached_property, update_wrapper, wraps
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    Generic,
    ParamSpec,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
    overload,
)
from urllib.parse import parse_qs, quote, urlsplit

from memoryhub_client._page import Page
from memoryhub_client.errors import UnexpectedAnswerError

if TYPE_CHECKING:
    from memoryhub_client.client import AsyncHub, AsyncPages, Hub, Pages

P = ParamSpec("P")
T = TypeVar("T")
HEADERS = {"if_match": "If-Match", "if_none_match": "If-None-Match", "idempotency_key": "Idempotency-Key"}
BASE = "/api/v1"
# POSTs after which something that was told may not hold any more, and what no context tells by default.
TAKING_BACK = ("/redact", "/facts/delete", "/restore", "/graph/invalidate", "/graph/supersede", "/privacy/requests")
KEPT_APART = tuple(f"{BASE}/{one}" for one in ("store/", "files", "dreams", "diary"))


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


# Of a change: leave this field as it is (None empties it).
UNSET: Final = Unset.UNSET


@dataclass(frozen=True)
class PreparedRequest:
    """A request as it is sent, each time the same bytes: only then the idempotency key stands for it."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: dict[str, str]
    body: bytes | None
    # Whether it may be sent again when nobody knows if the first one arrived.
    repeatable: bool

    @property
    def takes_back(self) -> bool:
        """Whether what a context told before may not hold any more behind it. Contexts have no files and items."""
        if self.path.startswith(KEPT_APART):
            return False
        return self.method in {"DELETE", "PATCH", "PUT"} or self.path.endswith(TAKING_BACK)


@dataclass(frozen=True)
class Description:
    """Where an operation is, and where its arguments go that are neither in the path nor where its method has them."""

    method: str
    path: str
    # Of a method with a body: arguments for the query.
    query: frozenset[str] = frozenset()
    # Arguments that have another name in the API.
    named: dict[str, str] = field(default_factory=dict)
    # The argument that is the body itself; what else goes into the body is added to it.
    document: str = ""
    # Whether it can be repeated although it is a POST without an idempotency key (it only reads), or cannot although
    # it is a GET (it can be taken once).
    repeatable: bool | None = None
    # Of a body that is no change: arguments whose None says something. Elsewhere it leaves them out.
    nulls: frozenset[str] = frozenset()
    # The argument whose bytes are the body; all others go into the query.
    raw: str = ""

    def place_of(self, argument: str) -> str:
        """`path`, `header`, `query` or `body`."""
        if f"{{{argument}}}" in self.path:
            return "path"
        if argument in HEADERS:
            return "header"
        in_query = self.method in {"GET", "DELETE"} or argument in self.query or bool(self.raw)
        return "query" if in_query and argument != self.raw else "body"


class _Described(Generic[P, T]):
    def __init__(self, description: Description, function: Callable[Concatenate[Any, P], T]) -> None:
        self.description = description
        self.signature = inspect.signature(function)
        self._function = function
        update_wrapper(cast("Callable[..., T]", self), function)

    @cached_property
    def answer(self) -> Any:
        """What the answer is made into."""
        return get_type_hints(self._function)["return"]

    def call(self, args: tuple[Any, ...], given: dict[str, Any]) -> PreparedRequest:
        placed: dict[str, dict[str, Any]] = {"path": {}, "header": {}, "query": {}, "body": {}}
        arguments = self.signature.bind(None, *args, **given).arguments
        whole = arguments.pop(self.description.document, None) or {}
        for name, value in list(arguments.items())[1:]:
            place = self.description.place_of(name)
            says_none = place == "body" and (self.description.method == "PATCH" or name in self.description.nulls)
            if value is UNSET or (value is None and not says_none):
                continue
            placed[place][self.description.named.get(name, name)] = value
        return self._call(placed, whole)

    def _call(self, placed: dict[str, dict[str, Any]], whole: dict[str, Any]) -> PreparedRequest:
        described, body = self.description, None
        # A version, as facts and episodes have it, stands in quotes.
        headers = {
            HEADERS[name]: f'"{value}"' if name == "if_match" else str(value)
            for name, value in placed["header"].items()
        }
        keyed = "idempotency_key" in self.signature.parameters
        if keyed:
            headers.setdefault("Idempotency-Key", str(uuid.uuid4()))
        if described.raw:
            headers["Content-Type"] = "application/octet-stream"
            body = placed["body"][described.raw]
        elif described.method in {"POST", "PUT", "PATCH"}:
            headers["Content-Type"] = "application/json"
            text = json.dumps({**whole, **placed["body"]}, ensure_ascii=False, default=_plain)
            # Half of a surrogate pair is the hub's to refuse.
            body = text.encode("utf-8", "surrogatepass")
        # The answer to a change that arrived and bumped the version would be a mismatch the second time.
        safe = keyed or (described.method != "POST" and not headers.keys() & {"If-Match", "If-None-Match"})
        repeatable = safe if described.repeatable is None else described.repeatable
        path = BASE + described.path.format(**{name: quote(str(one), safe="") for name, one in placed["path"].items()})
        query = [
            (name, _text(single))
            for name, value in placed["query"].items()
            for single in (value if isinstance(value, list | tuple) else [value])
        ]
        return PreparedRequest(described.method, path, query, headers, body, repeatable)


class Operation(_Described[P, T]):
    """An operation of the API as a method: of a `MemoryHub` it answers, of an `AsyncMemoryHub` it is awaited."""

    @overload
    def __get__(self, client: None, owner: type) -> "Operation[P, T]": ...
    @overload
    def __get__(self, client: "Hub", owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: "AsyncHub", owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        if client is None:
            return self

        @wraps(self._function)
        def method(*args: P.args, **given: P.kwargs) -> Any:
            return client._answer(self.call(args, given), self.read)

        return method

    def read(self, body: bytes) -> Any:
        """What the answer says."""
        if self.answer is bytes:
            return body
        return read(self.answer, body) if body and body != b"null" else None


class Listing(_Described[P, T]):
    """A list of the API as a method: its items, page after page as they are needed."""

    @overload
    def __get__(self, client: None, owner: type) -> "Listing[P, T]": ...
    @overload
    def __get__(self, client: "Hub", owner: type) -> "Callable[P, Pages[T]]": ...
    @overload
    def __get__(self, client: "AsyncHub", owner: type) -> "Callable[P, AsyncPages[T]]": ...
    def __get__(self, client: Any, owner: type) -> Any:
        if client is None:
            return self

        @wraps(self._function)
        def method(*args: P.args, **given: P.kwargs) -> Any:
            return client._pages(self.call(args, given), self.read)

        return method

    def read(self, body: bytes) -> Page[T]:
        """A page: of the addresses of its neighbours the cursors alone, because the hub may be known by another one."""
        found = _parsed(body)
        results = decoded(list[self.answer], found.get("results"))  # type: ignore[name-defined]
        return Page(
            results=results,
            next_cursor=_cursor(found.get("next")),
            previous_cursor=_cursor(found.get("previous")),
            total=found.get("total"),
        )


def operation(
    method: str,
    path: str,
    *,
    query: Iterable[str] = (),
    named: dict[str, str] | None = None,
    document: str = "",
    repeatable: bool | None = None,
    nulls: Iterable[str] = (),
    raw: str = "",
) -> Callable[[Callable[Concatenate[Any, P], T]], Operation[P, T]]:
    described = Description(method, path, frozenset(query), named or {}, document, repeatable, frozenset(nulls), raw)
    return lambda function: Operation(described, function)


def listing(path: str) -> Callable[[Callable[Concatenate[Any, P], T]], Listing[P, T]]:
    return lambda function: Listing(Description("GET", path), function)


def read(kind: Any, body: bytes) -> Any:
    """The body as this type; of alternatives the first that has all members of the answer."""
    found = _parsed(body)
    return decoded(_chosen(kind, found), found)


def decoded(kind: Any, value: Any) -> Any:
    try:
        return decode(kind, value)
    except (AttributeError, TypeError, ValueError) as error:
        raise UnexpectedAnswerError(f"The answer does not fit: {error}") from error


def _parsed(body: bytes) -> Any:
    try:
        found = json.loads(body)
    except ValueError as error:
        raise UnexpectedAnswerError("The answer is not JSON.") from error
    if not isinstance(found, dict):
        raise UnexpectedAnswerError("The answer is no object.")
    return found


def _chosen(kind: Any, found: dict[str, Any]) -> Any:
    """A class that is told from its base by the members that it adds: of a union the first that has all it needs."""
    for one in getattr(kind, "__args__", ()):
        if set(get_type_hints(one)) <= set(found):
            return one
    return kind


def _cursor(address: str | None) -> str | None:
    return parse_qs(urlsplit(address or "").query).get("cursor", [None])[0]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return json.dumps(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime | uuid.UUID):
        return _text(value)
    raise TypeError(f"{type(value).__name__} cannot be sent")


# From JSON to the dataclasses of `models`, by their annotations

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
        return kind(**{name: decode(hint, value[name]) for name, hint in _members(kind) if name in value})
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


@cache
def _members(kind: type) -> list[tuple[str, Any]]:
    hints = get_type_hints(kind)
    return [(one.name, hints[one.name]) for one in fields(kind)]
