"""What sources yield: conversations, facts, files and items, with whose they are and when; why the rest is left out.

Every reader is a function of what was given (`places.Given`) that yields these. It checks nothing that the hub checks:
a record goes through the checks of the operation of the API that would store it (`runs.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from memories.imports import raw_documents
from memories.imports.raw_documents import RefusedDocumentError
from memories.models import ImportedRow

# Why something is left out. A file or folder whose name begins with a dot: tools keep their logins there.
HIDDEN = "hidden"
# Words of a model, of another speaker, of a program.
ASSISTANTS, OTHERS, TOOLS = "assistants_words", "others_words", "tool"
THOUGHTS, NOT_SHOWN, OTHER_BRANCH, NO_TEXT = "thoughts", "not_shown", "other_branch", "no_text"
UNWANTED, OTHER_FILE, NOBODY, MEDIA = "do_not_remember", "other_file", "nobody", "media"
# It has another form than its source gives it; it has the id of another that stands before it; what a project holds.
OTHER_FORM, SAME_ID, PROJECT = raw_documents.OTHER_FORM, "same_id", "project"


class Owner(NamedTuple):
    """Person and agent; "" where the system names nobody."""

    user_id: str = ""
    agent_id: str = ""


NO_ONE = Owner()


class LeftOut(NamedTuple):
    """So many messages, memories or files that are not for the hub, and why, as a code."""

    reason: str
    number: int = 1


@dataclass(frozen=True)
class Said:
    """A conversation: the messages of `POST /turns` in order, and the other members of that body.

    `is_whole`: the source keeps branches, and these are all the messages of the one that was shown last; `elsewhere`
    are the ids of those on others. `is_own`: somebody wrote it for the hub, and can mend it.
    """

    body: Mapping[str, Any]
    messages: Any
    is_whole: bool = False
    elsewhere: frozenset[str] = frozenset()
    is_own: bool = False


@dataclass(frozen=True)
class StoredMemory:
    """A fact of a memory document, as `PUT /memory` takes it, with its end; or the sections of a profile."""

    fact: Mapping[str, Any] = field(default_factory=dict)
    sections: Mapping[str, Any] = field(default_factory=dict)
    whose: Owner = NO_ONE
    ends: datetime | None = None
    is_own: bool = False


@dataclass(frozen=True)
class KeptFile:
    """A memory file with its dates."""

    whose: Owner
    path: str
    data: bytes
    created_at: datetime | None = None
    modified_at: datetime | None = None


@dataclass(frozen=True)
class StoredItem:
    """An item as LangGraph's store keeps it."""

    namespace: Sequence[str]
    key: str
    value: Any
    created_at: Any = None
    updated_at: Any = None
    expires_at: Any = None
    ttl_minutes: float | None = None
    # The paths that were embedded; None: nobody knows.
    index: Sequence[str] | None = None


# What is told, in the transaction that stored them, of rows that an import made: `made_by` is not set yet.
Note = Callable[[Sequence[ImportedRow]], None]


def ignore_rows(_rows: Sequence[ImportedRow]) -> None:
    """Nobody asks."""


@dataclass(frozen=True)
class ExportedRows:
    """Some rows of a list of a hub's own export, as they stand there. `links`: only what they say of one another."""

    name: str
    rows: Sequence[Mapping[str, Any]]
    links: bool = False


Record = Said | StoredMemory | KeptFile | StoredItem | ExportedRows | LeftOut | RefusedDocumentError
