"""Keys and ids in headers, for protocols whose requests have no other room for them: the gateway and MCP."""

from collections.abc import Mapping
from urllib.parse import unquote

from rest_framework.exceptions import ValidationError

from memories.api.v1.fields import Identifier
from memories.exceptions import InvalidInput


def key_in(headers: Mapping[str, str]) -> str:
    """The hub's key where a client's library puts one; empty without. The names of headers are lower-cased."""
    scheme, _, bearer = headers.get("authorization", "").strip().partition(" ")
    return (bearer if scheme.lower() == "bearer" else headers.get("x-api-key", "")).strip()


def id_in(headers: Mapping[str, str], header: str, expected: Identifier, *, default: str = "") -> str:
    """An id in a header, else the default; empty for none. A client that cannot send its letters there encodes them as
    in an address. Errors: InvalidInput."""
    given = headers.get(header.lower(), "").strip()
    try:
        decoded = unquote(given, errors="strict") if "%" in given else given
        value = (given if decoded.isascii() else decoded) or default
        return str(expected.run_validation(value)) if value else ""
    except UnicodeDecodeError:
        raise InvalidInput.at(header, "What stands behind % is not UTF-8.") from None
    except ValidationError as error:
        raise InvalidInput.at(header, " ".join(str(one) for one in error.detail)) from None
