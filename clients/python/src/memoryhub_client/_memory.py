"""What an integration asks of the hub for its agent, without ever failing it: the context before a call of the model,
and to take new messages, each once.
"""

import hashlib
import json
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memoryhub_client._conversation import batches, sendable
from memoryhub_client._retrying import Retries
from memoryhub_client.client import MemoryHub
from memoryhub_client.errors import (
    BadRequestError,
    ConflictError,
    GoneError,
    MemoryHubError,
    NotFoundError,
    ProblemError,
    RestrictedError,
    TooLargeError,
)
from memoryhub_client.models import Context, Include, NewMessage

# An agent does not wait long for its memory.
TIMEOUT_SECONDS = 5.0
# After the hub could not be had: how long agents go on without it.
PAUSE_SECONDS = 10.0
KEPT_CONTEXTS = 512
# No provider keeps a prompt for longer. What was corrected since is not told longer either.
KEPT_SECONDS = 3600.0
# Of a conversation, and of all of them together, in characters: beyond them the oldest go.
KEPT_OF_ONE, KEPT_OF_ALL = 400_000, 8_000_000
LONGEST_QUERY = 20_000
INCLUDE: tuple[Include, ...] = ("profile", "facts", "groups", "episodes", "turns")
# Turns that the agent has before it are not told again: of the working memory that alone is wanted.
INCLUDE_OF_SESSION: tuple[Include, ...] = (*INCLUDE, "working_memory")

LONGEST_ID = 255
# Between the id of a message and what stands for its other text.
VERSION = "~"
# Refusals that may be for what a message is: without it the others are taken.
OF_A_MESSAGE = (BadRequestError, ConflictError, TooLargeError)
# Nothing of the person may be stored. It is not posted later either.
MAY_NOT_BE_STORED = (GoneError, RestrictedError)


@dataclass
class Told:
    """What the prompts of a conversation have of memory: `stable` with the system prompt, and `before` each message of
    the user a block, by what stands for the message. Neither changes what an earlier prompt had."""

    stable: str = ""
    before: dict[str, str] = field(default_factory=dict)
    revision: str = ""
    began: float = 0.0
    # Of the client, when its blocks were last good.
    taken_back: int = 0

    @property
    def size(self) -> int:
        """In characters."""
        return len(self.stable) + sum(map(len, self.before.values()))


class Memory:
    """The contexts of many people, each fetched anew whenever it may have changed."""

    def __init__(
        self,
        hub: MemoryHub | None,
        *,
        max_tokens: int,
        log: logging.Logger,
        pause: float = PAUSE_SECONDS,
        guidelines: bool = False,
        tokenizer: str | None = None,
    ) -> None:
        self.hub = hub or MemoryHub(timeout=TIMEOUT_SECONDS, retries=Retries(times=1, longest_wait=1))
        self._max_tokens, self._log, self._guidelines = max_tokens, log, guidelines
        self._tokenizer = tokenizer
        self._pause_seconds, self._paused_until = pause, 0.0
        # What was asked → revision and memory of the last answer.
        self._kept: OrderedDict[Any, tuple[str, str]] = OrderedDict()
        self._talks: OrderedDict[Any, Told] = OrderedDict()
        # Of a conversation: the ids of what the hub has of it.
        self._posted: OrderedDict[Any, set[str]] = OrderedDict()
        self._warned: set[str] = set()

    def of(self, names: Mapping[str, str | None], query: str | None) -> str:
        """What is remembered, for a prompt, behind the guidelines if they are wanted; nothing while the hub cannot be
        had."""
        if not self.may_ask():
            return ""
        asked = _asked(query)
        key = (*sorted(names.items()), asked)
        kept = self._kept.get(key)
        context = self._context(names, asked, if_revision=kept[0] if kept else None)
        if context is None:
            return ""
        if context.unchanged and kept:
            return kept[1]
        memory = "\n\n".join(one for one in (context.guidelines, context.memory) if one)
        self._kept[key] = (context.revision, memory)
        while len(self._kept) > KEPT_CONTEXTS:
            self._kept.popitem(last=False)
        return memory

    def told(self, names: Mapping[str, str | None], query: str | None, said: Sequence[str]) -> Told:
        """What the next prompt of a conversation is to have. `said`: what stands for each message of the user in it,
        the newest last; that of another one is forgotten.

        The stable block stays until its revision changes, and the others where they are as long, so that a provider's
        cache of the prompt holds. Nothing stays once this client has deleted or changed something, and of a person of
        whom nothing may be served. While a tool is at work, or the hub cannot be had, nothing new is asked.
        """
        key = tuple(sorted(names.items()))
        talk = self._talks.pop(key, None)
        if talk is None or time.monotonic() - talk.began > KEPT_SECONDS or talk.taken_back != self.hub.taken_back:
            talk = Told(began=time.monotonic(), taken_back=self.hub.taken_back)
        talk.before = {one: talk.before[one] for one in said if one in talk.before}
        self._talks[key] = talk
        if said and said[-1] not in talk.before and self.may_ask():
            self._tell(talk, names, query, said[-1])
        self._keep_within(talk)
        return talk

    def _keep_within(self, talk: Told) -> None:
        """The newest block of the conversation stays, and so does the conversation."""
        while talk.size > KEPT_OF_ONE and len(talk.before) > 1:
            del talk.before[next(iter(talk.before))]
        while len(self._talks) > KEPT_CONTEXTS or sum(one.size for one in list(self._talks.values())) > KEPT_OF_ALL:
            if len(self._talks) == 1:
                return
            self._talks.popitem(last=False)

    def forget(self, user_id: str | None) -> None:
        """Keep nothing that was told of the person."""
        for kept in (self._talks, self._kept):
            for key in [one for one in list(kept) if ("user_id", user_id) in one]:
                kept.pop(key, None)

    def _tell(self, talk: Told, names: Mapping[str, str | None], query: str | None, newest: str) -> None:
        context = self._context(names, _asked(query), blocks=True)
        if context is None:
            return
        if context.restricted or context.serve is False:
            talk.stable, talk.revision, talk.before = "", "", {newest: ""}
            return
        stable, volatile = context.stable, context.volatile
        revision = f"{stable.revision if stable else context.revision} {bool(context.guidelines)}"
        if revision != talk.revision:
            memory = stable.memory if stable else context.memory
            talk.stable = "\n\n".join(one for one in (context.guidelines, memory) if one)
            if talk.revision:
                # Something in it was corrected or forgotten, and blocks further down may tell it, too. The cache of the
                # prompt ends here in any case.
                talk.before = {}
            talk.revision = revision
        talk.before[newest] = volatile.memory if volatile else ""

    def _context(
        self,
        names: Mapping[str, str | None],
        asked: str | None,
        *,
        if_revision: str | None = None,
        blocks: bool | None = None,
    ) -> Context | None:
        """The hub's answer; None while it cannot be had."""
        try:
            return self.hub.get_context(
                user_id=names["user_id"],
                session_id=names.get("session_id"),
                agent_id=names.get("agent_id"),
                query=asked,
                max_tokens=self._max_tokens,
                tokenizer=self._tokenizer,
                include=INCLUDE_OF_SESSION if names.get("session_id") else INCLUDE,
                if_revision=if_revision,
                # Left out rather than false: hubs from before do not know these.
                guidelines=self._guidelines or None,
                blocks=blocks,
            )
        except MemoryHubError as error:
            if isinstance(error, MAY_NOT_BE_STORED):
                self.forget(names["user_id"])
            self.failed("The agent goes on without memory", error)
            return None

    def post(self, names: Mapping[str, str | None], messages: Sequence[NewMessage]) -> int:
        """Post messages, each with an `external_id`. Returns how many are done: stored, or never to be."""
        done = 0
        try:
            for some in batches(messages):
                self._store(names, some)
                done += len(some)
        except MAY_NOT_BE_STORED as error:
            self.forget(names["user_id"])
            self._log.warning("Nothing is remembered of this conversation: %s", logged(error))
            return len(messages)
        except MemoryHubError as error:
            self.failed("The hub did not take the messages, which are posted at the next chance", error)
        return done

    def post_new(self, names: Mapping[str, str | None], messages: Sequence[NewMessage], *, last: bool = False) -> None:
        """Of a conversation as it stands, post what was not posted yet. Right after the hub could not be had only if it
        is the `last` chance for now."""
        if not (last or self.may_ask()):
            return
        key = tuple(sorted(names.items()))
        posted = self._posted.pop(key, set())
        new = [one for one in messages if one["external_id"] not in posted]
        done = self.post(names, new) if new else 0
        posted.update(str(one["external_id"]) for one in new[:done])
        # What the conversation has no more is not kept: of a long one its framework may show the end alone.
        self._posted[key] = posted & {str(one["external_id"]) for one in messages}
        while len(self._posted) > KEPT_CONTEXTS:
            self._posted.popitem(last=False)

    def _store(self, names: Mapping[str, str | None], some: list[NewMessage]) -> None:
        """Store them; of those that the hub refuses for what they are, the others."""
        try:
            self.hub.post_turns(**names, messages=some)  # type: ignore[arg-type]
        except OF_A_MESSAGE as error:
            if not _is_of_a_message(error):
                raise
            if len(some) > 1:
                self._store(names, some[: len(some) // 2])
                self._store(names, some[len(some) // 2 :])
            elif isinstance(error, ConflictError):
                # What the user said instead of an earlier message is a turn of its own. Other messages change when they
                # are shortened.
                message, own_id = some[0], str(some[0]["external_id"])
                if message["role"] == "user" and VERSION not in own_id:
                    digest = hashlib.sha256(json.dumps(message["content"]).encode()).hexdigest()[:12]
                    self._store(names, [{**message, "external_id": f"{own_id[: LONGEST_ID - 16]}{VERSION}{digest}"}])
            else:
                self._log.warning("The hub refuses a message, which is left out: %s", logged(error))

    def end(self, names: Mapping[str, str | None]) -> None:
        """Say that the conversation is over: the hub makes an episode of it now. A new message reopens it."""
        try:
            self.hub.end_session(**names)  # type: ignore[arg-type]
        except NotFoundError:
            # Nothing of it was posted.
            return
        except MemoryHubError as error:
            self.failed("The hub was not told that the conversation is over", error)

    def may_ask(self) -> bool:
        """Whether the hub is to be asked now: not right after it could not be had."""
        return time.monotonic() >= self._paused_until

    def failed(self, what: str, error: MemoryHubError) -> None:
        """Say so, and leave the hub alone for a while."""
        self._paused_until = time.monotonic() + self._pause_seconds
        self._log.warning("%s: %s", what, logged(error))

    def warn_once(self, text: str) -> None:
        """Say it the first time."""
        if text not in self._warned:
            self._warned.add(text)
            self._log.warning(text)


def marks(contents: Iterable[Any]) -> list[str]:
    """What stands for each of what the user said, and for all before it: for `Memory.told`."""
    digest, found = hashlib.sha256(), []
    for content in contents:
        digest.update(json.dumps(content, sort_keys=True, default=str).encode() + b"\n")
        found.append(digest.hexdigest())
    return found


def named(messages: Iterable[NewMessage]) -> list[NewMessage]:
    """Messages that have no id of their own, each with one: of what it says, and how often it was said before. So those
    of a longer history, or of its end, have the same."""
    found: list[NewMessage] = []
    count: Counter[str] = Counter()
    for message in messages:
        if message.get("external_id"):
            found.append(message)
            continue
        said = [message["role"], message.get("content"), message.get("tool_calls"), message.get("tool_call_id")]
        text = json.dumps(said, sort_keys=True, default=str)
        count[text] += 1
        found.append({**message, "external_id": hashlib.sha256(f"{count[text]} {text}".encode()).hexdigest()})
    return found


def _asked(query: str | None) -> str | None:
    return str(sendable(query or "")).strip()[:LONGEST_QUERY] or None


def _is_of_a_message(error: ProblemError) -> bool:
    if isinstance(error, BadRequestError):
        return bool(error.errors) and all(one.pointer.startswith("/messages") for one in error.errors)
    return not isinstance(error, ConflictError) or error.code == "external_id_reused"


def logged(error: MemoryHubError) -> str:
    """For a log: nothing of what the request said."""
    return f"{error.status} {error.code}" if isinstance(error, ProblemError) else type(error).__name__


def field_of(context: Any, name: str) -> str | None:
    """The field of a run's context, whatever that is."""
    found = context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
    return str(found) if found else None
