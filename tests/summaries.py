"""What models of tests say when they are to sum up turns: the beginning of each user turn, within bounds."""

import re
from html import unescape
from typing import Any

TURN = re.compile(r'<turn n="(\d+)" role="user" at="[^"]+">(.*?)</turn>')
_ANY_TURN = re.compile(r'<turn n="\d+" role="[^"]*" at="[^"]+">(.*?)</turn>')
_LONGEST_PART, _LONGEST = 24, 200
NAMES = ("episode_summary", "session_summary")


def of(name: str, said: str) -> dict[str, Any] | None:
    """The answer to a call of this name whose last message is `said`; None: it asks for no summary."""
    if name == "session_summary":
        return {"summary": _told(said)}
    if name == "episode_summary":
        return {**_EPISODE, "summary": _told(said)}
    return None


_EPISODE = {"key_topics": [], "actions_taken": [], "outcomes": [], "importance": 0.6, "quality": 0.9}


def _told(said: str) -> str:
    texts = [text for _, text in TURN.findall(said)] or _ANY_TURN.findall(said)
    parts = [unescape(text)[:_LONGEST_PART].strip() for text in texts]
    return f"Told: {'; '.join(parts)}"[:_LONGEST]
