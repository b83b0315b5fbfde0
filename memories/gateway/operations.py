"""What the gateway passes on: each operation is declared here, and nothing else of the endpoint is reached through it.

An operation is found by its path, decoded whole. The address at the endpoint is made of the declared path and of
parameters that were checked, never of what the client sent.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import parse_qsl, quote, unquote, urlencode

from memories.curation.access.keys import holds_key
from memories.gateway.anthropic import Messages
from memories.gateway.chat import ChatCompletions
from memories.gateway.dialects import Dialect
from memories.gateway.memory import GatewayRefused
from memories.gateway.responses import Responses
from memories.models import Scope

ROOT = "/v1"
# A body that may hold a whole conversation, one with texts alone, and one with some names and values.
CONVERSATION, TEXTS, NAMES = 10 * 1024 * 1024, 4 * 1024 * 1024, 64 * 1024
# An endpoint may read another method or another path from these than the request has.
OVERRIDING = frozenset(
    {
        *("_method", "x-http-method", "x-http-method-override", "x-method-override"),
        *("x-original-uri", "x-original-url", "x-rewrite-url"),
    }
)
# Names of models begin with no dot, so that no part of one leads elsewhere. OpenRouter's and others' have slashes.
_PART = r"[A-Za-z0-9@~_][A-Za-z0-9@~_.:+-]{0,127}"
_ID = r"[A-Za-z0-9_][A-Za-z0-9_.:=+-]{0,511}"
_PARAMETERS: Mapping[str, str] = {
    "model": f"{_PART}(?:/{_PART}){{0,5}}",
    "response": _ID,
    "conversation": _ID,
    "item": _ID,
}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_DECODINGS = 4
_MOST_PARAMETERS = 50


@dataclass(frozen=True)
class Operation:
    """One operation of the endpoint.

    `path`: below the hub's address, with its parameters in braces. `protocol`: the form of errors, and the header of
    the endpoint's key. `most_bytes`: of a body; 0: none goes on. A key needs all `scopes`. `converses`: it gets memory,
    and what both sides say becomes turns; of any other the hub keeps nothing.
    """

    method: str
    path: str
    protocol: Dialect
    scopes: Sequence[Scope]
    most_bytes: int = 0
    converses: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What its path looks like, decoded."""
        pieces = re.split(r"\{(\w+)\}", self.path)
        named = [f"(?P<{one}>{_PARAMETERS[one]})" if at % 2 else re.escape(one) for at, one in enumerate(pieces)]
        return re.compile("".join(named))

    @property
    def has_parameters(self) -> bool:
        return "{" in self.path


@dataclass(frozen=True)
class Target:
    """An operation with the path that it has behind the endpoint's base address."""

    operation: Operation
    path: str


_CHAT, _RESPONSES, _MESSAGES = ChatCompletions(), Responses(), Messages()
# Whatever stores, deletes or costs something at the endpoint needs the scope of those who converse with it.
_READS, _CONVERSES = (Scope.READ,), (Scope.INGEST, Scope.READ)
_RESPONSE, _CONVERSATION = f"{_RESPONSES.path}/{{response}}", f"{ROOT}/conversations/{{conversation}}"
OPERATIONS: Sequence[Operation] = (
    Operation("POST", _CHAT.path, _CHAT, _CONVERSES, CONVERSATION, converses=True),
    Operation("POST", _RESPONSES.path, _RESPONSES, _CONVERSES, CONVERSATION, converses=True),
    Operation("POST", _MESSAGES.path, _MESSAGES, _CONVERSES, CONVERSATION, converses=True),
    Operation("POST", f"{_MESSAGES.path}/count_tokens", _MESSAGES, _CONVERSES, CONVERSATION),
    Operation("POST", f"{_RESPONSES.path}/compact", _RESPONSES, _CONVERSES, CONVERSATION),
    Operation("POST", f"{_RESPONSES.path}/input_tokens", _RESPONSES, _CONVERSES, CONVERSATION),
    Operation("GET", _RESPONSE, _RESPONSES, _READS),
    Operation("DELETE", _RESPONSE, _RESPONSES, _CONVERSES),
    Operation("POST", f"{_RESPONSE}/cancel", _RESPONSES, _CONVERSES, NAMES),
    Operation("GET", f"{_RESPONSE}/input_items", _RESPONSES, _READS),
    Operation("POST", f"{ROOT}/conversations", _RESPONSES, _CONVERSES, CONVERSATION),
    Operation("GET", _CONVERSATION, _RESPONSES, _READS),
    Operation("POST", _CONVERSATION, _RESPONSES, _CONVERSES, NAMES),
    Operation("DELETE", _CONVERSATION, _RESPONSES, _CONVERSES),
    Operation("GET", f"{_CONVERSATION}/items", _RESPONSES, _READS),
    Operation("POST", f"{_CONVERSATION}/items", _RESPONSES, _CONVERSES, CONVERSATION),
    Operation("GET", f"{_CONVERSATION}/items/{{item}}", _RESPONSES, _READS),
    Operation("DELETE", f"{_CONVERSATION}/items/{{item}}", _RESPONSES, _CONVERSES),
    Operation("POST", f"{ROOT}/embeddings", _CHAT, _CONVERSES, TEXTS),
    Operation("POST", f"{ROOT}/completions", _CHAT, _CONVERSES, TEXTS),
    Operation("GET", f"{ROOT}/models", _CHAT, _READS),
    Operation("GET", f"{ROOT}/models/{{model}}", _CHAT, _READS),
)


def is_below(path: str) -> bool:
    """Whether a path, decoded once, is the gateway's to answer: also if only its whole decoding leads below /v1."""
    if path == ROOT or path.startswith(f"{ROOT}/"):
        return True
    return any(sign in path for sign in ("%", "\\", "//", "/.")) and f"{_plain(path)}/".startswith(f"{ROOT}/")


def target_of(method: str, path: str) -> Target:
    """The operation that a path, decoded once, names. Errors: GatewayRefused (400, 404, 405)."""
    if _CONTROL.search(_decoded(path)):
        raise GatewayRefused(400, "invalid_path", "A path has no control characters.")
    there = list(_at(path))
    for one in there:
        if one.operation.method == method:
            return one
    if there:
        allowed = ", ".join(one.operation.method for one in there)
        raise GatewayRefused(405, "method_not_allowed", f"{method} is not possible here.", {"allow": allowed})
    raise GatewayRefused(
        404, "unknown_url", "The gateway passes no such path on: docs/gateway.md lists all that it does."
    )


def declared_path(path: str) -> str:
    """The path as it is declared, to be counted and logged: without ids, and empty for one that is not."""
    return next((one.operation.path for one in _at(path)), "")


def protocol_of(path: str) -> Dialect:
    """The protocol in which whoever asks for this path reads errors."""
    return _MESSAGES if f"{_plain(path)}/".startswith(f"{_MESSAGES.path}/") else _CHAT


def query_of(sent: bytes) -> str:
    """A query as it goes on: its parameters, written anew. Errors: GatewayRefused."""
    try:
        given = parse_qsl(
            sent.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS
        )
    except ValueError:
        detail = f"A query is UTF-8, and has at most {_MOST_PARAMETERS} parameters."
        raise GatewayRefused(400, "invalid_query", detail) from None
    texts = "".join(name + value for name, value in given)
    if _CONTROL.search(texts):
        raise GatewayRefused(400, "invalid_query", "A query has no control characters.")
    if holds_key(sent.decode("ascii")):
        raise GatewayRefused(400, "key_in_query", "A key of the hub belongs in a header.")
    return urlencode([(name, value) for name, value in given if name.lower() not in OVERRIDING])


def _at(path: str) -> Iterator[Target]:
    """What is declared at this path, each method once. A literal path comes before one whose parameter it fits."""
    if _plain(path) != path or holds_key(path):
        # Whoever writes a path in another way means to get past somebody who compares it.
        return
    found = [(one, fits) for one in OPERATIONS if (fits := one.pattern.fullmatch(path))]
    is_literal = any(not one.has_parameters for one, _ in found)
    for one, fits in found:
        if one.has_parameters != is_literal:
            values = {name: quote(value, safe="/:@+=~") for name, value in fits.groupdict().items()}
            yield Target(one, one.path.removeprefix(ROOT).format(**values))


def _plain(path: str) -> str:
    """The path that another server may take it for: decoded, with slashes for backslashes and without dots."""
    return posixpath.normpath("/" + _decoded(path).replace("\\", "/").lstrip("/"))


def _decoded(path: str) -> str:
    """Decoded again, for as long as that changes it, or some times."""
    for _ in range(_DECODINGS):
        if "%" not in path:
            break
        path = unquote(path)
    return path
