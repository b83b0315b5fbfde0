"""A conversation of three messages and a tool, for the tests of several frameworks, and what the hub then has of it."""

from typing import Any

from memoryhub_client import MemoryHub

TALK = ["Where do I live?", "What is the weather there?", "Thanks, I like tea."]
SUNNY = "Leiden: sunny"
STORED = [
    ("user", "person", TALK[0]),
    ("assistant", "model", "Answer 1."),
    ("user", "person", TALK[1]),
    ("assistant", "model", ""),
    ("tool", "application", SUNNY),
    ("assistant", "model", "Answer 3."),
    ("user", "person", TALK[2]),
    ("assistant", "model", "Answer 4."),
]


def know(hub: MemoryHub, user_id: str) -> None:
    """Something that always stands, and something that the first message brings up."""
    hub.add_fact(user_id=user_id, content="Allergic to peanuts", category="constraint")
    hub.post_turns(user_id=user_id, session_id="s0", messages=[{"role": "user", "content": "I moved to Leiden."}])


def stored(hub: MemoryHub, user_id: str, session_id: str = "s1") -> list[tuple[str, Any, Any]]:
    [session] = hub.list_sessions(user_id=user_id, session_id=session_id)
    return [(one.role, one.author, one.content) for one in hub.list_turns(session.id)]
