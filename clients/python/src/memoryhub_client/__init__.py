"""A client of Memory Hub: sync and async, typed, with every operation of its API.

from memoryhub_client import MemoryHub

with MemoryHub(key) as hub:
    hub.post_turns(user_id="u1", session_id="s1", messages=[{"role": "user", "content": "I live in Leiden."}])
    print(hub.get_context(user_id="u1", query="Where do I live?").memory)
"""

from memoryhub_client import models
from memoryhub_client._calls import UNSET
from memoryhub_client._events import AnswerEvent
from memoryhub_client._retrying import Retries
from memoryhub_client.client import AsyncHubManagement, AsyncMemoryHub, AsyncPages, HubManagement, MemoryHub, Pages
from memoryhub_client.errors import (
    BadRequestError,
    ConflictError,
    ConnectionFailedError,
    Fault,
    ForbiddenError,
    GoneError,
    IdempotencyKeyReusedError,
    MemoryHubError,
    NoAnswerInTimeError,
    NotFoundError,
    ProblemError,
    RestrictedError,
    ServerError,
    ThrottledError,
    TooLargeError,
    UnauthorizedError,
    UnavailableError,
    UnexpectedAnswerError,
    VersionMismatchError,
)

__all__ = [
    "UNSET",
    "AnswerEvent",
    "AsyncHubManagement",
    "AsyncMemoryHub",
    "AsyncPages",
    "BadRequestError",
    "ConflictError",
    "ConnectionFailedError",
    "Fault",
    "ForbiddenError",
    "GoneError",
    "HubManagement",
    "IdempotencyKeyReusedError",
    "MemoryHub",
    "MemoryHubError",
    "NoAnswerInTimeError",
    "NotFoundError",
    "Pages",
    "ProblemError",
    "RestrictedError",
    "Retries",
    "ServerError",
    "ThrottledError",
    "TooLargeError",
    "UnauthorizedError",
    "UnavailableError",
    "UnexpectedAnswerError",
    "VersionMismatchError",
    "models",
]
__version__ = "0.1.0"
