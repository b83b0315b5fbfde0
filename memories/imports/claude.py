"""Claude's exports: conversations with their branches, what was pasted or spoken, and what it remembers of a person."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from memories.files import paths
from memories.imports import trees
from memories.imports.messages import Talk, objects_in
from memories.imports.namespaces import is_hidden
from memories.imports.places import Given, dated, strangers
from memories.imports.raw_documents import RefusedDocumentError
from memories.imports.records import (
    HIDDEN,
    MEDIA,
    NO_TEXT,
    OTHER_FORM,
    OTHERS,
    PROJECT,
    THOUGHTS,
    TOOLS,
    KeptFile,
    LeftOut,
    Owner,
    Record,
)
from memories.imports.stating import memory
from memories.imports.unpacking import Part

# What was typed, and what was spoken.
_SAID = ("text", "voice_note")
_PLACEHOLDER = re.compile(r"(?:```\s*)?This block is not supported on your current device yet\.\s*(?:```)?")
_HEADING = re.compile(r"\A(?:\*\*[^*\n]+\*\*:?|#[^\n]+|#+\s+\S[^\n]*)\Z")
_LIST = re.compile(r"^\s*(?:[-*•]|\d+\.)\s+", re.MULTILINE)
_LONGEST_FACT = 2000
# The members of what it remembers.
_REMEMBERED = {"conversations_memory", "project_memories", "memory_files"}
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*")


def read(given: Given, parts: list[Part]) -> Iterator[Record]:
    """The conversations, each with the branch of its last message. The export of an organisation has those of all its
    members: of these only those of `given.user` are taken."""
    others = strangers(given, parts, _account)
    for conversation in dated(given, parts, lambda one: one.get("created_at")):
        if isinstance(conversation, RefusedDocumentError):
            yield conversation
        elif _account(conversation) in others:
            yield LeftOut(OTHERS)
        elif isinstance(conversation.get("chat_messages"), list):
            yield from _conversation(given, conversation)
        else:
            yield LeftOut(OTHER_FORM)


def read_memories(given: Given, parts: list[Part], projects: Mapping[str, str]) -> Iterator[Record]:
    """What Claude remembers: of the person as facts, a paragraph each; of a project with its name; files as files."""
    strange = strangers(given, parts, _account)
    for part in parts:
        for found in given.documents(part):
            if isinstance(found, RefusedDocumentError):
                yield found
                continue
            if _account(found) in strange:
                yield LeftOut(OTHERS)
                continue
            of_projects = found.get("project_memories")
            is_other = not isinstance(of_projects, dict | None) or not _REMEMBERED & found.keys()
            yield from _paragraphs(found.get("conversations_memory"), "")
            for name, text in of_projects.items() if isinstance(of_projects, dict) else ():
                yield from _paragraphs(text, projects.get(name, ""))
            files, others = objects_in(found, "memory_files")
            yield from (_file(given, file) for file in files)
            if others or is_other:
                yield LeftOut(OTHER_FORM, others + is_other)


def _account(document: Mapping[str, Any]) -> str:
    """Whose a conversation, or what is remembered, is; "" where nobody says it."""
    account = document.get("account")
    own = account.get("uuid") if isinstance(account, dict) else document.get("account_uuid")
    return "" if own is None else str(own)


def project_names(given: Given, parts: list[Part]) -> dict[str, str]:
    """What projects are called by their id."""
    found = (one for part in parts for one in given.documents(part) if isinstance(one, dict))
    return {str(one.get("uuid")): str(one.get("name") or "") for one in found}


def read_projects(given: Given, parts: list[Part]) -> Iterator[Record]:
    """Projects and the documents that they hold, all of which are left out."""
    for part in parts:
        for one in given.documents(part):
            if isinstance(one, RefusedDocumentError):
                yield one
            else:
                held = one.get("docs")
                yield LeftOut(PROJECT, 1 + (len(held) if isinstance(held, list) else 0))


def _conversation(given: Given, conversation: dict[str, Any]) -> Iterator[Record]:
    talk = Talk(given, conversation.get("uuid"), began=conversation.get("created_at"))
    by_id = talk.by_id((message.get("uuid"), message) for message in talk.objects(conversation, "chat_messages"))
    tree = _tree(given, by_id)
    shown = trees.branch(tree, conversation.get("current_leaf_message_uuid") or next(reversed(by_id), None))
    for name in shown:
        _say(talk, by_id[name])
    others = by_id.keys() - set(shown)
    if others:
        talk.on_other_branches(*others)
        for name in others:
            attachments = by_id[name].get("attachments")
            number = len(attachments) if isinstance(attachments, list) else 0
            talk.elsewhere |= {f"{name}-attachment-{at + 1}" for at in range(number)}
    yield from talk.records(shown=shown)


def _tree(given: Given, messages: Mapping[str, dict[str, Any]]) -> dict[str, trees.Node]:
    """Where no message says which one it follows, each follows the one before it. An answer follows something."""
    named = {name: str(one.get("parent_message_uuid") or "") for name, one in messages.items()}
    is_tree = any(parent in messages for parent in named.values())
    tree: dict[str, trees.Node] = {}
    before = None
    for name, one in messages.items():
        is_missing = named[name] not in messages and (not is_tree or one.get("sender") == "assistant")
        tree[name] = trees.Node(before if is_missing else named[name], str(given.moment(one.get("created_at")) or ""))
        before = name
    return tree


def _say(talk: Talk, message: dict[str, Any]) -> None:
    """The message, and beside it what was attached to it as text, as what it is: a program put it there. What was
    pasted with no word beside it is the message."""
    sender, at, name = message.get("sender"), message.get("created_at"), message.get("uuid")
    before = talk.left_out.total()
    blocks, attachments = talk.objects(message, "content"), talk.objects(message, "attachments")
    texts = [one.get("text") for one in blocks if one.get("type") in _SAID]
    text = "\n".join(one for one in texts if isinstance(one, str) and one.strip())
    older = message.get("text")
    talk.omit(OTHER_FORM, sum(not isinstance(one, str | None) for one in [*texts, older]))
    if not text.strip() and all(one.get("type") in _SAID for one in blocks) and isinstance(older, str):
        # Older exports have no blocks, or empty ones.
        text = older
    is_said = bool(text.strip())
    text = _PLACEHOLDER.sub("", text) if sender == "assistant" else text
    attached = [one for one in attachments if one.get("extracted_content")]
    # Files of which the service kept no text.
    talk.omit(MEDIA, len(attachments) - len(attached) + len(talk.objects(message, "files")))
    if text.strip():
        talk.say(sender, text, name, at)
    elif attached and _is_pasted(attached[0]):
        talk.say(sender, attached.pop(0)["extracted_content"], name, at)
    elif not attached and talk.left_out.total() == before:
        kinds = {str(one.get("type")) for one in blocks}
        talk.omit(THOUGHTS if kinds == {"thinking"} else TOOLS if is_said or kinds - set(_SAID) else NO_TEXT)
    for place, one in enumerate(attached, start=1):
        more: dict[str, Any] = {"author": "application", "metadata": {"attachment": _shown(one.get("file_name"))}}
        own = f"{name}-attachment-{place}" if name else None
        talk.say(sender, one["extracted_content"], own, at, **(more if sender == "human" else {}))


def _shown(name: Any) -> str:
    """The name of a file; what no text can hold is not in it."""
    return str(name or "")[:255].replace("\0", "").encode("utf-8", "ignore").decode()


def _is_pasted(attachment: Mapping[str, Any]) -> bool:
    """Whether the service made a file of what was too long for its field."""
    name = str(attachment.get("file_name") or "").lower()
    return not name or name.startswith(("paste", "clipboard"))


def _paragraphs(text: Any, project: str) -> Iterator[Record]:
    """A fact for each paragraph or entry of a list; headings only say where they stand."""
    if not isinstance(text, str | None):
        yield LeftOut(OTHER_FORM)
    for paragraph in re.split(r"\n\s*\n", text) if isinstance(text, str) else ():
        for entry in _LIST.split(paragraph):
            if not entry.strip() or _HEADING.match(entry.strip()):
                continue
            for piece in _pieces(entry.strip()):
                yield memory("claude", None, f"{project}: {piece}" if project else piece, None)


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that a fact can be, divided between sentences."""
    piece = ""
    for sentence in _SENTENCE.split(text) if len(text) > _LONGEST_FACT - 255 else [text]:
        if piece and len(piece) + len(sentence) >= _LONGEST_FACT - 255:
            yield piece
            piece = ""
        piece = f"{piece} {sentence}".strip()
    if piece:
        yield piece


def _file(given: Given, file: Mapping[str, Any]) -> Record:
    path, content = file.get("path") or file.get("name"), file.get("content")
    if not isinstance(path, str) or not isinstance(content, str):
        return LeftOut("unreadable")
    changed = given.moment(file.get("updated_at") or file.get("created_at"))
    name = f"{given.to_folder.rstrip('/')}/{path.lstrip('/')}"
    if is_hidden(path):
        return LeftOut(HIDDEN)
    if paths.fault_of_file(name):
        # Nobody can mend it in what another program wrote.
        return LeftOut(OTHER_FORM)
    return KeptFile(Owner(agent_id=given.agent or ""), name, content.encode("utf-8", "replace"), None, changed)
