"""What a person's export says, in the forms of other systems: the general form for facts, conversations as
`POST /turns` takes them, what mem0's `get_all` answers, and items as LangGraph's `Item.dict()` gives them.

All is read from `data.json` of the export, so a form has what the export has. Which kinds have a text, and of which
columns it is made, is said by memories/kinds, which columns there are by memories/models/columns.py.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from memories.imports.raw_documents import Documents, RefusedDocumentError, lists_in
from memories.kinds import EMBEDDED, Kind
from memories.kinds.facts import FACT
from memories.models.columns import columns_of

Row = Mapping[str, Any]
Lists = Mapping[str, Documents]
# What a form says in a member of its own, or what no other system has a use for.
_TOLD = frozenset({"id", "agent_id", "created_at", "updated_at", "expires_at", "triples", "document"})


def lines(form: str, data: Path, *, user_id: str, now: datetime) -> Iterator[str]:
    """The file in this form, in parts. Errors: KeyError for a form that there is not, OSError."""
    yield from FORMS[form](lists_in(data), user_id, now)


def _facts(lists: Lists, user_id: str, now: datetime) -> Iterator[str]:
    for row in _present(lists, FACT, now):
        ends = row.get("expires_at") or row.get("valid_to")
        yield _line(
            {
                "id": row["id"],
                "text": _text(FACT, row),
                "user_id": user_id,
                **_agent(row),
                "date": row["first_observed_at"],
                **({"ends": ends} if ends else {}),
                "category": row["category"],
                "confidence": row["confidence"],
            }
        )


def _conversations(lists: Lists, user_id: str, _: datetime) -> Iterator[str]:
    """Without turns of a branch that the conversation has left."""
    sessions = {row["id"]: row for row in _rows(lists, "sessions")}
    current = (row for row in _rows(lists, "turns") if not row.get("left_at"))
    for key, turns in groupby(current, key=lambda row: row["session"]):
        talk = sessions[key]
        messages = [_message(turn) for turn in turns]
        yield _line({"user_id": user_id, "session_id": talk["external_id"], **_agent(talk), "messages": messages})


def _message(turn: Row) -> dict[str, Any]:
    more = {name: turn[name] for name in ("tool_calls", "tool_call_id", "name", "metadata") if turn.get(name)}
    author = {"author": turn["author"]} if turn["role"] == "user" and turn.get("author") else {}
    return {
        "role": turn["role"],
        "content": turn.get("parts") or turn["content"],
        "external_id": turn.get("external_id") or turn["id"],
        "timestamp": turn.get("timestamp") or turn["created_at"],
        **author,
        **more,
    }


def _mem0(lists: Lists, user_id: str, now: datetime) -> Iterator[str]:
    """An expiry there is a day, of which all counts: the last whole one."""
    lead = '{"results": [\n'
    for row in _present(lists, FACT, now):
        text = _text(FACT, row)
        ends = _moment(row.get("expires_at"))
        last_day = {"expiration_date": (ends - timedelta(days=1)).date().isoformat()} if ends else {}
        one = {
            "id": row["id"],
            "memory": text,
            "hash": hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
            "metadata": _beside(FACT, row),
            "created_at": row["first_observed_at"],
            "updated_at": row["updated_at"],
            "user_id": user_id,
            **_agent(row),
            **last_day,
        }
        yield lead + json.dumps(one, ensure_ascii=False)
        lead = ",\n"
    yield ("" if lead == ",\n" else lead) + "\n]}\n"


def _langgraph(lists: Lists, user_id: str, now: datetime) -> Iterator[str]:
    """Items of each kind that has a text, below the name of the kind and the person's. A label there has no period."""
    lead = "[\n"
    label = user_id.replace("%", "%25").replace(".", "%2E")
    for kind in EMBEDDED:
        for row in _present(lists, kind, now):
            one = {
                "namespace": [kind.plural, label],
                "key": row["id"],
                "value": {"content": _text(kind, row), **_agent(row), **_beside(kind, row)},
                "created_at": row["created_at"],
                "updated_at": row.get("updated_at") or row["created_at"],
                **({"expires_at": row["expires_at"]} if row.get("expires_at") else {}),
            }
            yield lead + json.dumps(one, ensure_ascii=False)
            lead = ",\n"
    yield ("" if lead == ",\n" else lead) + "\n]\n"


FORMS: dict[str, Callable[[Lists, str, datetime], Iterator[str]]] = {
    "facts": _facts,
    "jsonl": _conversations,
    "mem0": _mem0,
    "langgraph": _langgraph,
}


SUFFIXES = {"facts": "jsonl", "jsonl": "jsonl", "mem0": "json", "langgraph": "json"}


def _rows(lists: Lists, name: str) -> Iterator[Row]:
    yield from (row for row in lists.get(name, ()) if not isinstance(row, RefusedDocumentError))


def _present(lists: Lists, kind: Kind, now: datetime) -> Iterator[Row]:
    """The rows that count now: none that waits, has ended or is in the trash."""
    for row in _rows(lists, kind.plural):
        ends = [_moment(row.get(name)) for name in ("expires_at", "valid_to")]
        is_over = row.get("trashed_at") or any(moment and moment <= now for moment in ends)
        if row.get("status", "active") == "active" and not is_over:
            yield row


def _text(kind: Kind, row: Row) -> str:
    """What the row is found by."""
    values = [row.get(name) for name in kind.embedded.columns] if kind.embedded else []
    return "\n".join(text for one in values for text in (one if isinstance(one, list) else [one]) if text)


def _beside(kind: Kind, row: Row) -> dict[str, Any]:
    """What the hub says besides of it, as far as it is not empty."""
    said = (*_TOLD, *(kind.embedded.columns if kind.embedded else ()))
    names = [name for name in columns_of(kind.model).exported if name not in said]
    return {name: row[name] for name in names if row.get(name) not in ("", None, [], {}, False)}


def _agent(row: Row) -> dict[str, str]:
    return {"agent_id": row["agent_id"]} if row.get("agent_id") else {}


def _moment(value: Any) -> datetime | None:
    return datetime.fromisoformat(value).astimezone(UTC) if isinstance(value, str) else None


def _line(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False) + "\n"
