"""DeerFlow's memory in a hub: `HubMemoryManager` for its setting `memory.manager_class`.

    memory:
      manager_class: memoryhub_client.deerflow:HubMemoryManager
      backend_config: {base_url: "http://127.0.0.1:8000", key_env: MEMORYHUB_KEY}

A thread of DeerFlow is a session of the hub, an agent's name its `agent_id`. `add` is given the whole conversation each
time and never waits for the hub: what is new is put into an outbox, and a thread of its own posts it. Where DeerFlow is
not installed the class can be used by itself; where it is, the class is a `MemoryManager` of it.
"""

import asyncio
import logging
import math
import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar, get_args

from memoryhub_client._outbox import ConversationKey, Outbox, digest, hashed
from memoryhub_client._retrying import Retries
from memoryhub_client.client import MemoryHub
from memoryhub_client.errors import (
    BadRequestError,
    ConflictError,
    ConnectionFailedError,
    MemoryHubError,
    NotFoundError,
    ProblemError,
    ServerError,
    UnauthorizedError,
    UnexpectedAnswerError,
    VersionMismatchError,
)
from memoryhub_client.models import Category, DocumentFact, Fact, Include, MemoryDocument, NewMessage, StatedBy

try:
    from deerflow.agents.memory.manager import (  # type: ignore[import-not-found,unused-ignore]
        MemoryConflictError,
        MemoryCorruptionError,
        MemoryManager,
        MemoryManagerError,
    )
except ModuleNotFoundError as missing:
    if not (missing.name or "").startswith("deerflow"):
        raise

    class MemoryManagerError(RuntimeError):  # type: ignore[no-redef]
        """The hub could not do it."""

    class MemoryConflictError(MemoryManagerError):  # type: ignore[no-redef,misc,unused-ignore]
        """What is stored does not allow the change."""

    class MemoryCorruptionError(MemoryManagerError):  # type: ignore[no-redef,misc,unused-ignore]
        """What answered is not a hub's memory."""

    class MemoryManager:  # type: ignore[no-redef]
        """What is needed of DeerFlow's class of this name."""

        def __init__(
            self, *, backend_config: dict[str, Any] | None = None, mode: str = "middleware", callbacks: Any = None
        ) -> None:
            self.backend_config, self.mode, self.callbacks = backend_config or {}, mode, callbacks
            self.model_post_init(None)

        def model_post_init(self, context: Any, /) -> None: ...


__all__ = ["HubMemoryManager", "MemoryConflictError", "MemoryCorruptionError", "MemoryManager", "MemoryManagerError"]
T = TypeVar("T")
logger = logging.getLogger(__name__)
ROLES: dict[str, Literal["user", "assistant"]] = {
    "human": "user", "user": "user", "ai": "assistant", "assistant": "assistant",
}  # fmt: skip
CATEGORIES = frozenset(get_args(Category))
# What a search finds at most.
MOST_FOUND = 100


class HubMemoryManager(MemoryManager):  # type: ignore[misc]
    """DeerFlow's memory of people and agents, kept by a hub."""

    supports_search: ClassVar[bool] = True
    # The hub extracts from conversations: also in tool mode it is to be given them.
    requires_passive_writes_in_tool_mode: ClassVar[bool] = True

    _settings: Any = None
    _hub: Any = None
    _outbox: Any = None
    _keeps_hidden: Any = None

    def model_post_init(self, context: Any, /) -> None:  # noqa: ARG002  # pydantic's
        self._settings = Settings.of(self.backend_config)
        self._keeps_hidden = self.backend_config.get("should_keep_hidden_message") or is_clarification
        self._hub = self._settings.client()
        self._outbox = Outbox(self._hub)

    @classmethod
    def from_config(
        cls,
        backend_config: dict[str, Any],
        *,
        mode: Literal["middleware", "tool"] = "middleware",
        **host_hooks: Any,
    ) -> "HubMemoryManager":
        """What DeerFlow makes the manager with. It asks the hub nothing; `warm` does."""
        given = dict(backend_config or {})
        if hook := host_hooks.get("should_keep_hidden_message"):
            given.setdefault("should_keep_hidden_message", hook)
        return cls(backend_config=given, mode=mode, callbacks=host_hooks.get("callbacks"))

    # Conversations

    def add(
        self,
        thread_id: str,
        messages: list[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,  # noqa: ARG002  # of a model that is not asked here
    ) -> None:
        """Post what of the conversation is new, in the background."""
        self._put(thread_id, messages, agent_name, user_id, flush=False)

    def add_nowait(
        self, thread_id: str, messages: list[Any], *, agent_name: str | None = None, user_id: str | None = None
    ) -> None:
        """As `add`, and have the hub extract at once: DeerFlow is about to drop these messages."""
        self._put(thread_id, messages, agent_name, user_id, flush=True)

    def end(self, thread_id: str, *, agent_name: str | None = None, user_id: str | None = None) -> None:
        """The thread is over, as when it is deleted. The hub hears it in the background, behind what waits, and makes
        an episode at once. A new message reopens the session.
        """
        self._outbox.put(ConversationKey(self._person(user_id), _agent(agent_name), thread_id), [], end=True)

    def shutdown_flush(self, timeout: float) -> bool:
        """Post what waits. False if `timeout` seconds were not enough."""
        return bool(self._outbox.flush(timeout))

    def close(self) -> None:
        """End the thread that posts, and close the connections. Call `shutdown_flush` first."""
        self._outbox.close()
        self._hub.close()

    def _put(
        self, thread_id: str, messages: Sequence[Any], agent_name: str | None, user_id: str | None, *, flush: bool
    ) -> None:
        to = ConversationKey(self._person(user_id), _agent(agent_name), thread_id)
        self._outbox.put(to, list(to_post(messages, self._keeps_hidden)), flush=flush)

    # What is remembered

    def get_context(self, user_id: str | None, *, agent_name: str | None = None, thread_id: str | None = None) -> str:
        """What is remembered about the person, without the tags that DeerFlow puts around it.

        In tool mode it is the profile alone: the agent searches for facts.
        """
        include: list[Include] = ["profile"] if self.mode == "tool" else self._settings.include
        return self._reading(
            "",
            lambda: (
                self._hub.get_context(
                    user_id=self._person(user_id),
                    agent_id=_agent(agent_name),
                    session_id=thread_id,
                    max_tokens=self._settings.max_tokens,
                    tokenizer=self._settings.tokenizer,
                    include=include,
                )
                .memory.strip()
                .removeprefix("<memory>")
                .removesuffix("</memory>")
                .strip()
            ),
        )

    def search(
        self,
        query: str,
        top_k: int = 5,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        category: str | None = None,
    ) -> list[dict[str, Any]]:
        """The facts that answer the query best, as `get_memory` has them."""
        if not query.strip() or top_k <= 0:
            return []
        return self._reading([], lambda: self._search(query, top_k, user_id, agent_name, category))

    def _search(
        self, query: str, top_k: int, user_id: str | None, agent_name: str | None, category: str | None
    ) -> list[dict[str, Any]]:
        own = category if category in CATEGORIES else None
        found = self._hub.search(
            user_id=self._person(user_id),
            query=query[:20_000],
            kinds=["fact"],
            # Among facts whose category is the document's own word the right ones are picked here.
            limit=MOST_FOUND if category and not own else min(top_k, MOST_FOUND),
            filters={
                **({"category": own} if own else {}),
                **({"agent_id": _agent(agent_name)} if agent_name else {}),
            }
            or None,
        ).results
        document = self._document(user_id, agent_name) if found else {}
        stored = {one["content"]: one for one in document.get("facts", ())}
        facts = [
            {
                "id": one.id,
                "content": one.text,
                "category": one.category or "context",
                "confidence": one.confidence or 0.0,
                "createdAt": one.created_at.isoformat(),
                "source": one.session_id or "manual",
                **stored.get(one.text, {}),
                "score": one.score,
            }
            for one in found
        ]
        return [one for one in facts if own or not category or one["category"] == category][:top_k]

    def get_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """The memory document."""
        return _called(lambda: self._document(user_id, agent_name))

    def export_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """The memory document."""
        return self.get_memory(user_id=user_id, agent_name=agent_name)

    def reload_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """The memory document: nothing of it is kept here."""
        return self.get_memory(user_id=user_id, agent_name=agent_name)

    def import_memory(
        self, memory_data: dict[str, Any], *, user_id: str | None = None, agent_name: str | None = None
    ) -> dict[str, Any]:
        """Take a document in, with an agent as that agent's own: facts and summaries. What it leaves out stays.

        What waits for an operator is not in the answer; `pending` counts it, where there is any, and the log says it.
        """
        if not isinstance(memory_data, dict):
            raise ValueError("memory_data")
        waiting = self._take(memory_data, user_id, agent_name).get("pending") or {}
        return self.get_memory(user_id=user_id, agent_name=agent_name) | _pending(waiting)

    def clear_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """Move facts and episodes to the trash and empty the profile; with an agent, only what is that agent's.

        What an agent is given still, `stays` of the answer counts, and the log says it: what all agents share, which
        is what was said to this one, too, unless the memory is the agent's (`--memory-of agent`).
        """
        document = _called(
            lambda: dict(self._hub.clear_memory(user_id=self._person(user_id), agent_id=_agent(agent_name)))
        )
        stays = _counts(document) if agent_name else {}
        if not any(stays.values()):
            return document
        logger.warning(
            "%d facts and %d summaries stay, because they are not this agent's own. All agents share what people say, "
            "unless the key was made with --memory-of agent.",
            stays["facts"],
            stays["sections"],
        )
        return document | {"stays": stays}

    def delete_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> None:
        """As `clear_memory`."""
        self.clear_memory(user_id=user_id, agent_name=agent_name)

    def warm(self) -> bool:
        """Whether the hub answers, and knows the key."""
        try:
            self._hub.list_users(page_size=1).page()
        except (ConnectionFailedError, UnauthorizedError, ServerError, UnexpectedAnswerError) as error:
            logger.warning("The hub cannot be used: %s", error)
            return False
        except ProblemError:
            # It knows the key, which may not list people.
            return True
        return True

    # Facts

    def create_fact(
        self,
        content: str,
        category: str = "context",
        confidence: float = 0.5,
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
    ) -> tuple[dict[str, Any], str | None]:
        """State a fact. The id is None if there is no room for it. A fact that waits for an operator has its id, and
        is not in the document yet.
        """
        fact_id = f"fact_{uuid.uuid4().hex}"
        fact: DocumentFact = {
            "id": fact_id,
            "content": _content(content),
            "category": category.strip() or "context",
            "confidence": _confidence(confidence),
        }
        try:
            document = self._take({"facts": [fact]}, user_id, agent_name)
        except MemoryConflictError as error:
            if getattr(error.__cause__, "code", "") != "capacity":
                raise
            return self.get_memory(user_id=user_id, agent_name=agent_name), None
        waits = document.pop("pending", {}).get("facts", 0)
        if not waits and fact_id not in {one["id"] for one in document["facts"]}:
            raise ValueError("Duplicate fact")
        return document, fact_id

    def update_fact(
        self,
        fact_id: str,
        content: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
    ) -> dict[str, Any]:
        """Change what is given. KeyError if the person, or the agent, has no such fact."""
        fact = _called(lambda: self._fact(fact_id, user_id, agent_name))
        changed: dict[str, Any] = {
            **({} if content is None else {"content": _content(content)}),
            **({} if category is None else {"category": category.strip() or "context"}),
            **({} if confidence is None else {"confidence": _confidence(confidence)}),
        }
        if not changed:
            return self.get_memory(user_id=user_id, agent_name=agent_name)
        if changed.get("category", "context") in CATEGORIES:
            _called(lambda: self._hub.change_fact(fact.id, agent_id=fact.agent_id, **changed))
            return self.get_memory(user_id=user_id, agent_name=agent_name)
        # A category of the host's own is kept by documents alone.
        whole = {"content": fact.content, "confidence": fact.confidence, **changed, "id": fact.external_id or fact.id}
        document = self._take({"facts": [whole]}, user_id, fact.agent_id)
        if document.pop("pending", None):
            raise MemoryConflictError("The change waits for an operator.")
        return document

    def delete_fact(self, fact_id: str, *, agent_name: str | None = None, user_id: str | None = None) -> dict[str, Any]:
        """Move a fact to the trash. KeyError if the person, or the agent, has no such fact."""
        fact = _called(lambda: self._fact(fact_id, user_id, agent_name))
        _called(lambda: self._hub.delete_fact(fact.id, agent_id=fact.agent_id))
        return self.get_memory(user_id=user_id, agent_name=agent_name)

    def _fact(self, fact_id: str, user_id: str | None, agent_name: str | None) -> Fact:
        """By the hub's id, or by the one that it has in documents."""
        person, agent = self._person(user_id), _agent(agent_name)
        found = [self._by_own_id(fact_id, agent)] if _is_uuid(fact_id) else []
        # With an agent the list is of that agent's facts alone.
        for whose in dict.fromkeys((agent, None)):
            if not any(found):
                listed = self._hub.list_facts(user_id=person, agent_id=whose, status="all", page_size=200)
                found = [one for one in listed if one.external_id == fact_id and one.status in {"active", "pending"}]
        for one in found:
            # An id alone says nothing of whose it is.
            if one and person in {None, one.user_id} and one.agent_id in {None, "", agent}:
                return one
        raise KeyError(fact_id)

    def _by_own_id(self, fact_id: str, agent: str | None) -> Fact | None:
        try:
            fact: Fact = self._hub.get_fact(fact_id, agent_id=agent)
        except NotFoundError:
            return None
        return fact if fact.status in {"active", "pending"} else None

    # Async twins: the client is a synchronous one, and these do not hold up the loop.

    async def aadd(
        self,
        thread_id: str,
        messages: list[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """As `add`, which waits for nothing."""
        self.add(thread_id, messages, agent_name=agent_name, user_id=user_id, trace_id=trace_id)

    async def aget_context(
        self, user_id: str | None, *, agent_name: str | None = None, thread_id: str | None = None
    ) -> str:
        """As `get_context`."""
        return await asyncio.to_thread(self.get_context, user_id, agent_name=agent_name, thread_id=thread_id)

    async def asearch(
        self,
        query: str,
        top_k: int = 5,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        category: str | None = None,
    ) -> list[dict[str, Any]]:
        """As `search`."""
        return await asyncio.to_thread(
            self.search, query, top_k, user_id=user_id, agent_name=agent_name, category=category
        )

    # Asking the hub

    def _person(self, user_id: str | None) -> str | None:
        return user_id or self._settings.user_id

    def _document(self, user_id: str | None, agent_name: str | None) -> dict[str, Any]:
        return dict(self._hub.get_memory(user_id=self._person(user_id), agent_id=_agent(agent_name)))

    def _take(self, document: Mapping[str, Any], user_id: str | None, agent_name: str | None) -> dict[str, Any]:
        sent: MemoryDocument = {**document}  # type: ignore[typeddict-item]
        return _called(
            lambda: dict(
                self._hub.put_memory(
                    sent,
                    user_id=self._person(user_id),
                    agent_id=_agent(agent_name),
                    stated_by=self._settings.stated_by,
                )
            )
        )

    def _reading(self, otherwise: T, ask: Callable[[], T]) -> T:
        """An answer goes on without memory when the hub cannot be asked, unless the policy says otherwise."""
        try:
            return _called(ask)
        except MemoryManagerError as error:
            if self._settings.fail_closed:
                raise
            logger.warning("The agent goes on without memory: %s", error)
            return otherwise


def _pending(waiting: Mapping[str, int]) -> dict[str, Any]:
    """What an answer says of what waits for an operator; nothing where nothing does."""
    if not any(waiting.values()):
        return {}
    logger.warning(
        "%d facts and %d summaries of the imported memory wait for an operator, and are not served.",
        waiting.get("facts", 0),
        waiting.get("sections", 0),
    )
    return {"pending": dict(waiting)}


# Settings


@dataclass(frozen=True)
class Settings:
    """DeerFlow's `memory.backend_config`."""

    base_url: str | None = None
    # Where the key is: it has no place in a file of settings.
    key_env: str = "MEMORYHUB_KEY"
    # Whose memory it is where DeerFlow names nobody; None for a key that is for one person.
    user_id: str | None = None
    max_tokens: int = 2000
    tokenizer: str | None = None
    include: list[Include] = field(default_factory=lambda: ["profile", "facts", "episodes"])
    stated_by: StatedBy | None = None
    timeout_seconds: float = 10.0
    fail_closed: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Settings":
        """Errors: ValueError for a name that means nothing here, because a misspelt one would change what is kept."""
        # DeerFlow gives these to every backend.
        settings = {name: one for name, one in given.items() if name not in HOST}
        policy = settings.pop("failure_policy", None) or {}
        unknown = sorted(set(settings) - set(NAMES)) + sorted(set(policy) - {"read"})
        if unknown:
            raise ValueError(f"backend_config has names that HubMemoryManager does not know: {', '.join(unknown)}")
        if policy.get("read", "fail_open") not in {"fail_open", "fail_closed"}:
            raise ValueError("failure_policy.read is fail_open or fail_closed")
        return cls(**settings, fail_closed=policy.get("read") == "fail_closed")

    def client(self) -> MemoryHub:
        """Errors: ValueError without a key."""
        key = os.environ.get(self.key_env, "").strip()
        if not key:
            raise ValueError(f"A key of the hub is needed in the environment variable {self.key_env}.")
        # A person waits for the answer meanwhile.
        retries = Retries(times=1, longest_wait=1.0)
        return MemoryHub(key, base_url=self.base_url, timeout=self.timeout_seconds, retries=retries)


HOST = {"storage_path", "should_keep_hidden_message"}
NAMES = [name for name in Settings.__dataclass_fields__ if name != "fail_closed"]


# Messages of DeerFlow


def to_post(messages: Sequence[Any], keeps_hidden: Callable[[Any], bool]) -> Iterator[NewMessage]:
    """What people and agents said to each other: no calls of tools, no answers of tools, nothing hidden."""
    without_id: Counter[str] = Counter()
    for message in messages:
        role = ROLES.get(str(_of(message, "type") or _of(message, "role") or ""))
        given = _of(message, "additional_kwargs")
        added: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        hidden = added.get("hide_from_ui") and not keeps_hidden(added)
        text = _text(_of(message, "content"))
        if role is None or hidden or not text.strip() or (role == "assistant" and _of(message, "tool_calls")):
            continue
        found: NewMessage = {"role": role, "content": text}
        name = str(_of(message, "id") or "")
        if not name:
            # Known again by what it says; the second time that it is said it is another one.
            name = f"content:{digest(found)[:32]}"
            without_id[name] += 1
            name = f"{name}:{without_id[name]}"
        # What is hidden, and kept by another rule than ours, is whose the hub says.
        if role == "user" and (not added.get("hide_from_ui") or is_clarification(added)):
            found["author"] = "person"
        yield {**found, "external_id": name if len(name) <= 200 else f"long:{hashed(name)}"}


def _of(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [one if isinstance(one, str) else _of(one, "text") for one in parts]
    return "\n".join(one for one in texts if isinstance(one, str))


def is_clarification(added: Any) -> bool:
    """Whether a hidden message is a person's answer to a question of the agent's. DeerFlow says so itself if it can."""
    answer = added.get("human_input_response") if isinstance(added, Mapping) else None
    return isinstance(answer, Mapping) and bool(str(answer.get("value") or "").strip())


# Arguments and answers


def _called(ask: Callable[[], T]) -> T:
    """With DeerFlow's errors for the client's."""
    try:
        return ask()
    except NotFoundError as error:
        raise KeyError(str(error)) from error
    except BadRequestError as error:
        raise ValueError(str(error)) from error
    except (ConflictError, VersionMismatchError) as error:
        raise MemoryConflictError(str(error)) from error
    except UnexpectedAnswerError as error:
        raise MemoryCorruptionError(str(error)) from error
    except MemoryHubError as error:
        raise MemoryManagerError(str(error)) from error


def _agent(agent_name: str | None) -> str | None:
    # DeerFlow's names of agents are the same in any case.
    return agent_name.lower() if agent_name else None


def _counts(document: Mapping[str, Any]) -> dict[str, int]:
    """How much a document has."""
    sections = [one for part in ("user", "history") for one in document.get(part, {}).values()]
    return {
        "facts": len(document.get("facts", ())),
        "sections": sum(bool(one.get("summary")) for one in sections),
    }


def _content(text: str) -> str:
    if not text.strip():
        raise ValueError("content")
    return text.strip()


def _confidence(value: float) -> float:
    if not math.isfinite(value) or not 0 <= value <= 1:
        raise ValueError("confidence")
    return value


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
