"""Messages on their way to a hub, posted in the background by what must not wait for it."""

import hashlib
import logging
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from memoryhub_client.client import MemoryHub
from memoryhub_client.errors import (
    BadRequestError,
    ConflictError,
    ConnectionFailedError,
    MemoryHubError,
    NotFoundError,
    ServerError,
    ThrottledError,
    TooLargeError,
    UnexpectedAnswerError,
)
from memoryhub_client.models import NewMessage

logger = logging.getLogger(__name__)
# What POST /turns takes at once.
MOST_MESSAGES = 500
# What waits at most while the hub cannot be reached. What is over it is not taken.
MOST_WAITING = 20_000
# Of so many conversations the messages that were posted are known; of others the hub says that it has them.
MOST_CONVERSATIONS = 2_000
LONGEST_PAUSE_SECONDS = 30.0


class ConversationKey(NamedTuple):
    """A conversation of one person with one agent."""

    user_id: str | None
    agent_id: str | None
    session_id: str


@dataclass
class WaitingMessages:
    messages: list[NewMessage] = field(default_factory=list)
    # What the hub is told once they are posted: to extract at once, that the conversation is over.
    flush: bool = False
    end: bool = False


class Outbox:
    """Messages that are to be posted, by conversation and in order. One daemon posts them, and again while it must.

    Each has an `external_id`, so it can be put again: what is lost with the process comes with the next `put`.
    """

    def __init__(self, hub: MemoryHub) -> None:
        self._hub = hub
        self._changed = threading.Condition()
        self._waiting: OrderedDict[ConversationKey, WaitingMessages] = OrderedDict()
        # Conversation → external id → digest of what was posted under it, or given up.
        self._posted: OrderedDict[ConversationKey, dict[str, str]] = OrderedDict()
        self._daemon: threading.Thread | None = None
        # Whether somebody waits for it to become empty.
        self._hurry = False
        self._closed = False

    def put(
        self, to: ConversationKey, messages: Sequence[NewMessage], *, flush: bool = False, end: bool = False
    ) -> None:
        with self._changed:
            posted = self._posted.get(to, {})
            waiting = self._waiting.get(to, WaitingMessages())
            queued = {str(one["external_id"]): digest(one) for one in waiting.messages}
            new = [one for one in (_renamed(one, {**posted, **queued}) for one in messages) if one]
            room = MOST_WAITING - sum(len(one.messages) for one in self._waiting.values())
            if self._closed or len(new) > max(room, 0):
                logger.warning("%d messages are not posted: the outbox is full or closed", len(new))
                return
            if not new and not (flush and posted) and not end:
                return
            waiting.messages += new
            waiting.flush, waiting.end = waiting.flush or flush, waiting.end or end
            self._waiting[to] = waiting
            if self._daemon is None or not self._daemon.is_alive():
                self._daemon = threading.Thread(target=self._run, name="memoryhub-outbox", daemon=True)
                self._daemon.start()
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        with self._changed:
            self._hurry = True
            self._changed.notify_all()
            try:
                return self._changed.wait_for(lambda: not self._waiting, timeout)
            finally:
                self._hurry = False

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._daemon:
            self._daemon.join(timeout=1.0)

    def _run(self) -> None:
        failures = 0
        while True:
            with self._changed:
                if failures and self._hurry:
                    self._changed.wait(0.1)
                elif failures:
                    pause = min(LONGEST_PAUSE_SECONDS, 0.5 * 2**failures)
                    self._changed.wait_for(lambda: self._closed or self._hurry, pause)
                self._changed.wait_for(lambda: self._closed or self._waiting)
                if self._closed:
                    return
                to, waiting = next(iter(self._waiting.items()))
                batch, whole = waiting.messages[:MOST_MESSAGES], len(waiting.messages) <= MOST_MESSAGES
                flush, end = waiting.flush and whole, waiting.end and whole
                # What is put meanwhile is asked for anew.
                waiting.flush, waiting.end = waiting.flush and not flush, waiting.end and not end
            failures = failures + 1 if not self._try(to, batch, flush=flush, end=end) else 0
            with self._changed:
                if failures:
                    waiting.flush, waiting.end = waiting.flush or flush, waiting.end or end
                    self._waiting.move_to_end(to)
                    continue
                del waiting.messages[: len(batch)]
                if not waiting.messages and not waiting.flush and not waiting.end:
                    del self._waiting[to]
                self._changed.notify_all()

    def _try(self, to: ConversationKey, batch: list[NewMessage], *, flush: bool, end: bool) -> bool:
        """False if it is to be tried again."""
        try:
            if batch:
                self._post(to, batch, flush=flush)
            elif flush and not end:
                self._hub.flush_session(**to._asdict())
            if end:
                with suppress(NotFoundError):  # nothing of it was stored
                    self._hub.end_session(**to._asdict())
        except (ConnectionFailedError, ThrottledError, ServerError, UnexpectedAnswerError) as error:
            logger.warning("Messages wait for the hub: %s", error)
            return False
        except MemoryHubError as error:
            # Restricted, erased, or a key that may not: none of it passes soon.
            logger.warning("Messages were refused: %s", error)
        return True

    def _post(self, to: ConversationKey, batch: list[NewMessage], *, flush: bool) -> None:
        """All of the batch. What cannot be stored with others is found by halving, so that the order stays."""
        try:
            self._hub.post_turns(
                user_id=to.user_id, session_id=to.session_id, agent_id=to.agent_id, messages=batch, flush=flush or None
            )
        except (BadRequestError, ConflictError, TooLargeError) as error:
            if isinstance(error, BadRequestError) and not any("messages" in one.pointer for one in error.errors):
                raise
            if len(batch) > 1:
                half = len(batch) // 2
                self._post(to, batch[:half], flush=False)
                self._post(to, batch[half:], flush=flush)
                return
            [message] = batch
            own = _id(message).endswith(digest(message)[:16])
            renamed = None if own else _renamed(message, {_id(message): ""})
            if error.code == "external_id_reused" and renamed:
                # Another process posted it with other content, so this is a turn of its own.
                self._post(to, [renamed], flush=flush)
            else:
                logger.warning("A message cannot be stored: %s", error)
        self._note(to, batch)

    def _note(self, to: ConversationKey, batch: Sequence[NewMessage]) -> None:
        with self._changed:
            self._posted.setdefault(to, {}).update({_id(one): digest(one) for one in batch})
            self._posted.move_to_end(to)
            while len(self._posted) > MOST_CONVERSATIONS:
                self._posted.popitem(last=False)


def _renamed(message: NewMessage, posted: Mapping[str, str]) -> NewMessage | None:
    """The message if it is new; under an id of its own if it has other content than what is known by its id."""
    name, content = _id(message), digest(message)
    if name not in posted:
        return message
    own = f"{name[:200]}#{content[:16]}"
    return None if posted[name] == content or own in posted else {**message, "external_id": own}


def _id(message: NewMessage) -> str:
    return str(message["external_id"])


def digest(message: NewMessage) -> str:
    return hashed(f"{message['role']}\n{message['content']}")


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
