"""What can go wrong: a class for each status that calls for an answer of its own, and three for no answer at all."""

import json
from dataclasses import dataclass
from typing import Any


class MemoryHubError(Exception):
    """The root of all errors of this package."""

    # Whether an attempt may have reached the hub: then nobody knows whether it did what it was asked.
    may_be_done = False


class ConnectionFailedError(MemoryHubError):
    """The hub could not be reached, or the connection broke."""


class NoAnswerInTimeError(ConnectionFailedError):
    """The hub did not answer within the timeout."""


class UnexpectedAnswerError(MemoryHubError):
    """What answered is no hub, or one that this client does not understand."""


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong with a request. `pointer` is a JSON pointer into the body, or a parameter's name."""

    pointer: str
    code: str
    detail: str


class ProblemError(MemoryHubError):
    """The hub refused, with a problem document (RFC 9457). `code` is for programs, `detail` for people."""

    def __init__(self, status: int, document: dict[str, Any], *, retry_after: float | None = None) -> None:
        self.status = status
        self.document = document
        self.type = str(document.get("type", "about:blank"))
        self.title = str(document.get("title", ""))
        self.detail = str(document.get("detail", ""))
        self.code = str(document.get("code", ""))
        self.instance = str(document.get("instance", ""))
        self.request_id = str(document.get("request_id", ""))
        self.errors = [
            Fault(*(str(fault.get(name, "")) for name in ("pointer", "code", "detail")))
            for fault in document.get("errors") or ()
            if isinstance(fault, dict)
        ]
        # Seconds, where the hub says when to try again.
        self.retry_after = retry_after
        places = "".join(f"; {fault.pointer}: {fault.detail}" for fault in self.errors[:3])
        request = f" (request {self.request_id})" if self.request_id else ""
        super().__init__(f"{self.status} {self.code or self.title}: {self.detail}{places}{request}")

    @property
    def existing_id(self) -> str | None:
        """Of `duplicate`: the id of the fact that the person has already."""
        found = self.document.get("existing_id")
        return None if found is None else str(found)


class BadRequestError(ProblemError):
    """400: the request is not valid; `errors` says where."""


class UnauthorizedError(ProblemError):
    """401: the key is missing, not known, expired or revoked."""


class ForbiddenError(ProblemError):
    """403: the key lacks a scope, or is for another person or agent."""


class NotFoundError(ProblemError):
    """404: no such object."""


class ConflictError(ProblemError):
    """409: the object's state does not allow it; `code` says why."""


class GoneError(ProblemError):
    """410: the person was erased, or the export is no longer there."""


class VersionMismatchError(ProblemError):
    """412: somebody else changed the object first."""


class TooLargeError(ProblemError):
    """413: the body or a message is too large."""


class IdempotencyKeyReusedError(ProblemError):
    """422: the idempotency key came with another request before."""


class RestrictedError(ProblemError):
    """423: the person is restricted while a privacy case is open."""


class ThrottledError(ProblemError):
    """429: the key made too many requests."""


class ServerError(ProblemError):
    """5xx: an error of the hub's; its log has it under the request id."""


class UnavailableError(ServerError):
    """503: the hub cannot answer at present."""


CLASSES: dict[int, type[ProblemError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    412: VersionMismatchError,
    413: TooLargeError,
    422: IdempotencyKeyReusedError,
    423: RestrictedError,
    429: ThrottledError,
    503: UnavailableError,
}


def problem(status: int, body: bytes, *, retry_after: float | None = None) -> ProblemError:
    """The error that an answer stands for, also one that no hub wrote: a proxy's page, say."""
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        document = {"title": f"Status {status}", "detail": "The answer is no problem document."}
    found = CLASSES.get(status, ServerError if status >= 500 else ProblemError)
    return found(status, document, retry_after=retry_after)


def explained(error: MemoryHubError) -> str:
    """What an agent is told of it, which cannot look at a status: the hub's sentence and the places."""
    if not isinstance(error, ProblemError):
        return "The memory cannot be reached at present. Go on without it."
    places = [one.detail for one in error.errors if one.detail not in error.detail]
    if isinstance(error, BadRequestError) and places:
        # Its own sentence only says that there are places.
        return " ".join(places)
    return " ".join([error.detail or error.title, *places])
