"""The head of an upload, which is asked alone before its body comes: whoever may not upload takes no place for it.

The web server sends the head through the application without a body. The view that would take the file checks whoever
sends it, says that the body may come, and does nothing else. Then the same request goes through it whole.
"""

from collections.abc import MutableMapping
from typing import Any

_STAGE = "memoryhub.upload"
_ASKED, _MAY_COME, _WHOLE = "asked", "may_come", "whole"

# What of a request both sides see: the WSGI environment, which Django calls META.
Environ = MutableMapping[str, Any]


def ask(environ: Environ) -> None:
    """This is the head of an upload, without its body."""
    environ[_STAGE] = _ASKED


def is_asked(environ: Environ) -> bool:
    return environ.get(_STAGE) == _ASKED


def let_come(environ: Environ) -> bool:
    """Say that the body may come, if that is what is asked: the view then ends without doing anything."""
    if not is_asked(environ):
        return False
    environ[_STAGE] = _MAY_COME
    return True


def may_come(environ: Environ) -> bool:
    return environ.get(_STAGE) == _MAY_COME


def note_whole(environ: Environ) -> None:
    """The request whose head was let come, with its body: it was counted then."""
    environ[_STAGE] = _WHOLE


def is_whole(environ: Environ) -> bool:
    return environ.get(_STAGE) == _WHOLE
