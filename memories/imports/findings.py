"""What is said of a file that is not taken, or not as a whole: codes, numbers and names that formats have, which no
text of the file can become. It is told as words by the command, and as these members by the API and the pages."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

Finding = dict[str, Any]
# So many findings of one import are told.
MOST = 20
# Members of formats, also of other systems than those that can be read: only these are repeated. Others may be words
# of the person's.
_OF_FORMATS = """
account action activity agent agent_id answer app_id archived assistant attachments attributes author bank_id
blocks body bot channel channel_id chat chatId chat_id chat_messages chats children choices code collection
completion contact content content_type contents conversation conversationId conversation_id conversations
conversations_memory createdAt create_time created created_at current_node currentId data date description
docs document documents edges embedding entities entries entry event events export exported_at fact facts
files folder format fragments from group_id hash header history html id indexedDB input inserted_at items key
kind label lang language last_message leafUuid mapping member memories memory memory_files mentioned_at
message messageId message_id messages meta metadata model models modified_at moderation name namespace nodes
object observed_id output owner page parent parentId parentMessageId parent_id participants parts path payload
people person points predicate profile profiles project project_memories projects prompt prompts properties
question questions records relations replies reply response responses result results role room rows
safeHtmlItem score sender session sessionId session_id sessions settings source state statement status steps
sub_topic subject subtitle summary system tags text texts thread thread_id threads time timestamp title
titleUrl to tool tools topic topics triples turn turns ts type update_time updatedAt updated_at url user
userId user_id users uuid value values vector version wing workspace
"""
NAMES = frozenset(_OF_FORMATS.split())
_MOST_NAMES = 8
_NAMED = re.compile(r"`(\w+)`")
# What a file is written or packed as that no reader takes; Takeout writes HTML unless it is asked for JSON.
FORMS = {
    "html": "HTML: ask the service for JSON",
    "pdf": "PDF",
    "packed": "an archive of another kind than ZIP: unpack it first",
    "no_text": "no file that can hold a text",
}
# Why nothing of a file can be read.
DAMAGED, TOO_MUCH, ENCRYPTED, PACKED = "damaged", "too_much", "encrypted", "packed_otherwise"
OTHER_BACKEND, TOO_MANY, VIEWS, OTHER_FORM = "other_backend", "too_many", "views", "other_form"
_WORDS = {
    DAMAGED: "the archive is damaged",
    TOO_MUCH: "the archive holds too much: give it in parts",
    ENCRYPTED: "the archive has a password: unpack it first",
    PACKED: "the archive is packed otherwise than ZIP archives of exports are: unpack it first",
    OTHER_BACKEND: "of a palace's backends Chroma and SQLite have files; give the table of pgvector by its DSN, the "
    "points of Qdrant and the rows of Milvus as JSON",
    TOO_MANY: "it holds too many documents: give it in parts",
    VIEWS: "the database has views: what they do when they are read, nobody knows",
    OTHER_FORM: "it has another form than its source gives it",
}


class UnreadableError(ValueError):
    """Why nothing of a file can be read, as a code with words that hold nothing of it."""

    def __init__(self, code: str) -> None:
        super().__init__(_WORDS[code])
        self.code = code


def unknown_source(source: str, expects: str, found: "Found") -> Finding:
    # The names of members alone: they are the same in all languages.
    named = {"source": source, "expected": _NAMED.findall(expects)}
    return {"code": "unknown_source", **{name: value for name, value in named.items() if value}, **found.as_json()}


class Found:
    """What a file looks like: of which source, or what it is packed or written as (FORMS), or which members its first
    object has. `ends_at`: the byte at which it ends early; 0 where it is whole."""

    def __init__(self, source: str = "", *, form: str = "", names: Sequence[str] = (), ends_at: int = 0) -> None:
        known = [name for name in names if name in NAMES]
        self.source, self.form, self.ends_at = source, form, ends_at
        self.names, self.more = known[:_MOST_NAMES], len(names) - len(known[:_MOST_NAMES])

    def as_json(self) -> Finding:
        told = {"looks_like": self.source, "form": self.form, "found": self.names, "ends_at": self.ends_at}
        told |= {"more": self.more if self.names or self.more else 0}
        return {name: value for name, value in told.items() if value}

    def __str__(self) -> str:
        others = f"{self.more} of other names" if self.more else ""
        names = f"found members {', '.join([*self.names, *([others] if others else [])])}"
        told = (
            f"it looks like {self.source}"
            if self.source
            else f"found {FORMS[self.form]}"
            if self.form
            else names
            if self.names or self.more
            else "no source has such a form"
        )
        return f"{told}; the file ends early, at byte {self.ends_at:,}" if self.ends_at else told


def together(before: Sequence[Finding], more: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Those before with those that are not among them, as many as are told."""
    return [*before, *(dict(one) for one in more if one not in before)][:MOST]
