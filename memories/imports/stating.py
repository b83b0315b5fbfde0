"""A memory of another system as a fact of a memory document."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from memories.imports.raw_documents import unsendable_in
from memories.imports.records import NO_ONE, NO_TEXT, LeftOut, Owner, StoredMemory
from memories.models import Category

# Without a word of the other system's own. A memory that it serves is believed, and no more than that.
CONFIDENCE = 0.7
# No id and no category of a fact is longer.
_LONGEST_ID, _LONGEST_CATEGORY = 255, 100
# What systems, and people's own files, call a memory's text; the first that is there counts.
TEXTS = ("content", "text", "memory", "fact", "data", "statement")


def memory(
    source: str,
    key: Any,
    text: Any,
    at: Any,
    *,
    category: Any = None,
    confidence: Any = None,
    whose: Owner = NO_ONE,
    ends: datetime | None = None,
) -> StoredMemory | LeftOut:
    """The fact, or why there is none. `at`: when it was stated, as text; a time without a zone is UTC."""
    if not isinstance(text, str) or not text.strip():
        return LeftOut(NO_TEXT)
    if ends and ends <= datetime.now(UTC):
        return LeftOut("expired")
    is_text = isinstance(category, str) and 0 < len(category) <= _LONGEST_CATEGORY
    fact = {
        "id": name_of(source, key, text),
        "content": text.strip(),
        "category": category if is_text and not unsendable_in(category) else Category.OTHER.value,
        "confidence": CONFIDENCE if confidence is None else confidence,
        "createdAt": at.isoformat() if isinstance(at, datetime) else at,
    }
    return StoredMemory(fact=fact, whose=whose, ends=ends)


def owner_of(user_id: Any, agent_id: Any = None) -> Owner | None:
    """Whose a memory is by the members that name them; None where these are no names."""
    names = [one if one not in (None, "") else "" for one in (user_id, agent_id)]
    if any(isinstance(one, bool) or not isinstance(one, str | int) for one in names):
        return None
    return Owner(*map(str, names))


def name_of(source: str, key: Any, text: Any) -> str:
    """The id that a fact has here: its own there, or one made of its text."""
    has_key = key not in (None, "")
    if has_key and not unsendable_in(str(key)) and len(f"{source}:{key}") <= _LONGEST_ID:
        return f"{source}:{key}"
    # Of a key that none can be like.
    named = str(key).encode("utf-8", "surrogatepass") if has_key else str(text).encode("utf-8", "replace")
    return f"{source}:{hashlib.sha256(named).hexdigest()[:32]}"


def named_text(value: Mapping[str, Any]) -> str | None:
    """The member of a memory that is called as its text is."""
    return next((value[name] for name in TEXTS if isinstance(value.get(name), str) and value[name]), None)


def text_in(value: Mapping[str, Any]) -> str | None:
    """The text of an item: a member that is called so, the only text it has, or the members of a profile."""
    inner = value.get("content")
    if isinstance(inner, dict):
        # LangMem's: {"kind": "Memory", "content": {"content": "…"}}
        return text_in(inner)
    if (named := named_text(value)) is not None:
        return named
    about = {name: member for name, member in value.items() if not _is_beside(name)}
    texts = [member for member in about.values() if isinstance(member, str) and member.strip()]
    if len(texts) == len(about) == 1:
        return str(texts[0])
    lines = []
    for name, member in about.items():
        values = member if isinstance(member, list) else [member]
        if all(isinstance(one, str | int | float | None) for one in values):
            lines.append(f"{name.replace('_', ' ')}: {', '.join(map(str, values))}")
    return "; ".join(lines) if lines and len(lines) == len(about) and texts else None


def _is_beside(name: str) -> bool:
    """Whether the member says something of the memory, not of the person."""
    return name == "id" or name.endswith(("_id", "_at", "_ids"))
