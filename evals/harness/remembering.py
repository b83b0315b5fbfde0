"""What the adapters ask of a hub: to keep conversations of a benchmark's people, and what it then tells an agent.

It needs the hub's Python client (`pip install ./clients/python`), MEMORYHUB_URL, and in MEMORYHUB_KEY a key with the
scopes ingest, read and write. MEMORYHUB_MAX_TOKENS (4000) is the budget of a context.
"""

import hashlib
import os
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

from memoryhub_client import MemoryHub

MOST_MESSAGES = 500
INCLUDE = ("profile", "facts", "groups", "episodes", "turns")


class Remembering:
    """A hub as a benchmark sees it. Every run needs people of its own."""

    def __init__(self) -> None:
        self.hub = MemoryHub(timeout=120)
        self.max_tokens = int(os.environ.get("MEMORYHUB_MAX_TOKENS", "4000"))

    def say(self, user_id: str, session_id: str, said: Iterable[dict[str, Any]]) -> None:
        """Post what was said, each once. `said`: role, content, and perhaps author, and at, a datetime or its ISO form.

        What the hub extracts with a model comes later: wait until `GET /readyz` or the admin says that nothing waits.
        """
        messages = [_message(one, number) for number, one in enumerate(said) if str(one["content"]).strip()]
        for at in range(0, len(messages), MOST_MESSAGES):
            some: Any = messages[at : at + MOST_MESSAGES]
            self.hub.post_turns(user_id=user_id, session_id=session_id, messages=some, flush=True)

    def told(self, user_id: str, query: str) -> str:
        """The context that an agent gets for a question, as any application gets it."""
        return (
            self.hub.get_context(user_id=user_id, query=query, max_tokens=self.max_tokens, include=INCLUDE).memory or ""
        )

    def forget(self, user_id: str) -> None:
        """Delete all sessions of a person, with what rests on them alone."""
        for session in list(self.hub.list_sessions(user_id=user_id)):
            self.hub.delete_session(session.id)


def _message(one: dict[str, Any], number: int) -> dict[str, Any]:
    role = one["role"] if one["role"] in {"user", "assistant"} else "user"
    content = str(one["content"])
    said = hashlib.sha256(f"{number} {role} {content}".encode()).hexdigest()
    message: dict[str, Any] = {"role": role, "content": content, "external_id": said}
    if role == "user":
        message["author"] = one.get("author") or "person"
    if at := _moment(one.get("at")):
        # Benchmarks date sessions, not messages.
        message["timestamp"] = (at + timedelta(seconds=number)).isoformat()
    return message


def _moment(at: Any) -> datetime | None:
    if not at:
        return None
    moment = at if isinstance(at, datetime) else datetime.fromisoformat(str(at))
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)  # noqa: UP017  # Python 3.10
