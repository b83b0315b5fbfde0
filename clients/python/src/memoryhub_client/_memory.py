"""What an integration asks the hub for its agent: the context before a call of the model, without ever failing it."""

import logging
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from memoryhub_client._conversation import sendable
from memoryhub_client._retrying import Retries
from memoryhub_client.client import MemoryHub
from memoryhub_client.errors import MemoryHubError, ProblemError
from memoryhub_client.models import Include

# An agent does not wait long for its memory.
TIMEOUT_SECONDS = 5.0
# After the hub could not be had: how long agents go on without it.
PAUSE_SECONDS = 10.0
KEPT_CONTEXTS = 512
LONGEST_QUERY = 20_000
INCLUDE: tuple[Include, ...] = ("profile", "facts", "episodes", "turns")
# Turns that the agent has before it are not told again: of the working memory that alone is wanted.
INCLUDE_OF_SESSION: tuple[Include, ...] = (*INCLUDE, "working_memory")


class Memory:
    """The contexts of many people, each fetched anew whenever it may have changed."""

    def __init__(
        self, hub: MemoryHub | None, *, max_tokens: int, log: logging.Logger, pause: float = PAUSE_SECONDS
    ) -> None:
        self.hub = hub or MemoryHub(timeout=TIMEOUT_SECONDS, retries=Retries(times=1, longest_wait=1))
        self._max_tokens, self._log = max_tokens, log
        self._pause_seconds, self._paused_until = pause, 0.0
        # What was asked → revision and memory of the last answer.
        self._kept: OrderedDict[Any, tuple[str, str]] = OrderedDict()
        self._warned: set[str] = set()

    def of(self, names: Mapping[str, str | None], query: str | None) -> str:
        """What is remembered, for a prompt; nothing while the hub cannot be had."""
        if not self.may_ask():
            return ""
        asked = str(sendable(query or "")).strip()[:LONGEST_QUERY] or None
        key = (*sorted(names.items()), asked)
        known = self._kept.get(key)
        try:
            context = self.hub.get_context(
                user_id=names["user_id"],
                session_id=names.get("session_id"),
                agent_id=names.get("agent_id"),
                query=asked,
                max_tokens=self._max_tokens,
                include=INCLUDE_OF_SESSION if names.get("session_id") else INCLUDE,
                if_revision=known[0] if known else None,
            )
        except MemoryHubError as error:
            self.failed("The agent goes on without memory", error)
            return ""
        if context.unchanged and known:
            return known[1]
        self._kept[key] = (context.revision, context.memory)
        while len(self._kept) > KEPT_CONTEXTS:
            self._kept.popitem(last=False)
        return context.memory

    def may_ask(self) -> bool:
        """Whether the hub is to be asked now: not right after it could not be had."""
        return time.monotonic() >= self._paused_until

    def failed(self, what: str, error: MemoryHubError) -> None:
        """Say so, and leave the hub alone for a while."""
        self._paused_until = time.monotonic() + self._pause_seconds
        self._log.warning("%s: %s", what, told(error))

    def warn_once(self, text: str) -> None:
        """Say it the first time."""
        if text not in self._warned:
            self._warned.add(text)
            self._log.warning(text)


def told(error: MemoryHubError) -> str:
    """For a log: nothing of what the request said."""
    return f"{error.status} {error.code}" if isinstance(error, ProblemError) else type(error).__name__


def field_of(context: Any, name: str) -> str | None:
    """The field of a run's context, whatever that is."""
    found = context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
    return str(found) if found else None
