"""JSON that clients and endpoints send, read with a bound on its depth: what the gateway makes of it later recurses."""

import json
from typing import Any

from memories.api.parsers import MAX_DEPTH

_NESTED = (dict, list)
_NO_OBJECT = "The body is not a JSON object."
_TOO_DEEP = f"The body is nested more than {MAX_DEPTH} levels deep."


class UnreadableDocument(ValueError):
    """Not what can be read; the message is for the client and quotes nothing."""


def read_object(text: bytes) -> dict[str, Any]:
    """A JSON object. Errors: UnreadableDocument."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise UnreadableDocument(_TOO_DEEP) from None
    except ValueError:
        raise UnreadableDocument(_NO_OBJECT) from None
    if not isinstance(found, dict):
        raise UnreadableDocument(_NO_OBJECT)
    # Most documents have fewer brackets than they may have levels.
    if text.count(b"[") + text.count(b"{") > MAX_DEPTH and _is_deeper(found, MAX_DEPTH):
        raise UnreadableDocument(_TOO_DEEP)
    return found


def _is_deeper(found: Any, most: int) -> bool:
    """Level by level, as depth must not exhaust the stack."""
    level = [found]
    while level and most:
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [item for items in inner for item in items if isinstance(item, _NESTED)]
        most -= 1
    return bool(level)
