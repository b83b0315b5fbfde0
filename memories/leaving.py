"""Whether the client of a request has left: the web server knows, and asks whoever makes a costly answer."""

from collections.abc import Callable, MutableMapping
from typing import Any

_HAS_LEFT = "memoryhub.has_left"


def note(environ: MutableMapping[str, Any], has_left: Callable[[], bool]) -> None:
    """Have the request of this WSGI environment know it."""
    environ[_HAS_LEFT] = has_left


def of_request(environ: MutableMapping[str, Any]) -> Callable[[], bool] | None:
    """Whether its client has left, to be called in any thread; None where the server does not know."""
    found: Callable[[], bool] | None = environ.get(_HAS_LEFT)
    return found
