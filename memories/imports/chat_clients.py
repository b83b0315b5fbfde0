"""Exports of other services and of chat programs, each in its own form: DeepSeek, Gemini, Grok, Mistral, Open WebUI,
LibreChat, LobeChat, Cherry Studio; and JSON lines of the form of `POST /turns`."""

import hashlib
import html
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from memories.imports import trees
from memories.imports.messages import Talk
from memories.imports.places import Given, Part, dated
from memories.imports.raw_documents import RefusedDocumentError
from memories.imports.records import MEDIA, NOT_SHOWN, OTHERS, THOUGHTS, TOOLS, LeftOut, Record, Said

# What Gemini's activity puts before what was asked, in some of its languages.
_PROMPTED = re.compile(
    r"^(?:Prompted|Said|Asked|Used|Envoi de la requête|Mensaje enviado:?|Eingegebener Prompt:?|提示|输入的提示词：?)\s+"
)
_TAG = re.compile(r"<[^<>]*>")
_BREAK = re.compile(r"<(?:br|/p|/li|/h\d|/div|/tr)\b[^<>]*>", re.IGNORECASE)
_REST = ("user_id", "agent_id", "session_id")
Made = Callable[[Given, dict[str, Any]], Iterator[Record]]


def reader(made: Made, *dates: str) -> Callable[[Given, list[Part]], Iterator[Record]]:
    """Reads files of conversations, each by `made`, the oldest first by the first member of `dates` that it has."""

    def read(given: Given, parts: list[Part]) -> Iterator[Record]:
        for found in dated(given, parts, lambda one: next((one[name] for name in dates if one.get(name)), None)):
            if isinstance(found, RefusedDocumentError):
                yield found
            else:
                yield from made(given, found)

    return read


def jsonl(given: Given, parts: list[Part]) -> Iterator[Record]:
    """Each line is a conversation. A message without an id gets its place in its session, so that it is stored once."""
    places: dict[tuple[str, ...], int] = defaultdict(int)
    for part in parts:
        for line in given.documents(part):
            if isinstance(line, RefusedDocumentError):
                yield line
                continue
            key = tuple(str(line.get(name)) for name in _REST)
            messages = line.pop("messages", None)
            for message in messages if isinstance(messages, list) else ():
                places[key] += 1
                if isinstance(message, dict) and not message.get("external_id"):
                    message["external_id"] = f"import-{places[key]}"
            yield Said(line, messages, is_own=True)


def deepseek(given: Given, one: dict[str, Any]) -> Iterator[Record]:
    """A tree as ChatGPT's; a message has fragments, and the newest branch is shown."""
    nodes = {name: node for name, node in _object(one, "mapping").items() if isinstance(node, dict)}
    messages = {name: _object(node, "message") for name, node in nodes.items()}
    at = {name: str(given.moment(message.get("inserted_at")) or "") for name, message in messages.items()}
    tree = {name: trees.Node(node.get("parent"), at[name]) for name, node in nodes.items()}
    shown = trees.branch(tree, one.get("current_node"))
    talk = Talk(given, one.get("id"), began=one.get("inserted_at"))
    for name in shown:
        kinds: dict[str, list[str]] = defaultdict(list)
        for fragment in _objects(messages[name], "fragments"):
            kinds[str(fragment.get("type")).upper()].append(str(fragment.get("content") or ""))
        role = "user" if "REQUEST" in kinds else "assistant"
        if text := "\n".join(kinds.get("REQUEST") or kinds.get("RESPONSE") or ()):
            talk.say(role, text, f"{one.get('id')}-{name}", messages[name].get("inserted_at"))
        if "THINK" in kinds:
            talk.omit(THOUGHTS)
    others = [name for name in nodes.keys() - set(shown) if messages[name].get("fragments")]
    if others:
        talk.on_other_branches(*(f"{one.get('id')}-{name}" for name in others))
    yield from talk.records(is_whole=True)


def open_webui(given: Given, parts: list[Part]) -> Iterator[Record]:
    """An administrator's export has the chats of everybody: of these only those of `given.user` are taken."""
    documents = (one for part in parts for one in given.documents(part) if isinstance(one, dict))
    owners = {str(one["user_id"]) for one in documents if one.get("user_id")}

    def made(given: Given, one: dict[str, Any]) -> Iterator[Record]:
        is_others = len(owners) > 1 and str(one.get("user_id")) != given.user
        yield from [LeftOut(OTHERS)] if is_others else _open_webui_chat(given, one)

    yield from reader(made, "created_at")(given, parts)


def _open_webui_chat(given: Given, one: dict[str, Any]) -> Iterator[Record]:
    chat = _object(one, "chat")
    history = _object(chat, "history")
    nodes = {name: node for name, node in _object(history, "messages").items() if isinstance(node, dict)}
    if not nodes:
        nodes = {str(node.get("id") or place): node for place, node in enumerate(_objects(chat, "messages"))}
    tree = {
        name: trees.Node(node.get("parentId"), str(given.moment(node.get("timestamp")) or ""))
        for name, node in nodes.items()
    }
    talk = Talk(given, one.get("id") or chat.get("id"), began=one.get("created_at"))
    yield from _shown(talk, nodes, tree, history.get("currentId"))


def _shown(
    talk: Talk, nodes: Mapping[str, dict[str, Any]], tree: Mapping[str, trees.Node], leaf: Any
) -> Iterator[Record]:
    """Messages with `role`, `content` and a time as most programs have them, of the branch that ends in `leaf`."""
    shown = trees.branch(tree, leaf)
    for name in shown:
        node = nodes[name]
        at = next((node[key] for key in ("timestamp", "createdAt", "created_at", "inserted_at") if node.get(key)), None)
        if node.get("role") in ("tool", "function", "system"):
            talk.omit(TOOLS if node["role"] != "system" else "system")
        else:
            talk.say(node.get("role"), _content(node.get("content")), name, at)
    others = nodes.keys() - set(shown)
    if others:
        talk.on_other_branches(*others)
    yield from talk.records(is_whole=True)


def _in_order(talk: Talk, nodes: Mapping[str, dict[str, Any]]) -> Iterator[Record]:
    """The same of a program that keeps no branches."""
    yield from _shown(talk, nodes, _in_a_row(nodes), next(reversed(list(nodes)), None))


def librechat(given: Given, one: dict[str, Any]) -> Iterator[Record]:
    """A tree of nested answers (`children`), or a list of messages of which each names the one before it."""
    nodes: dict[str, dict[str, Any]] = {}
    waiting: list[tuple[dict[str, Any], str | None]] = [(node, None) for node in reversed(_objects(one, "messages"))]
    while waiting:
        node, above = waiting.pop()
        name = str(node.get("messageId") or len(nodes))
        role = "user" if node.get("isCreatedByUser") else "assistant"
        text = _content(node.get("content")) or _content(node.get("text"))
        nodes[name] = {**node, "role": role, "content": text, "above": node.get("parentMessageId") or above}
        waiting += [(child, name) for child in reversed(_objects(node, "children"))]
    tree = {
        name: trees.Node(node["above"], str(given.moment(node.get("createdAt")) or "")) for name, node in nodes.items()
    }
    leaf = one.get("targetMessageId")
    yield from _shown(Talk(given, one.get("conversationId"), began=one.get("createdAt")), nodes, tree, leaf)


def lobechat(given: Given, one: dict[str, Any]) -> Iterator[Record]:
    """All messages in one list, each with its topic and session."""
    state = _object(one, "state") or _object(one, "data") or one
    talks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for message in _objects(state, "messages"):
        session = (
            message.get("topicId") or message.get("topic_id") or message.get("sessionId") or message.get("session_id")
        )
        talks[str(session or "inbox")].append(message)
    for session, messages in talks.items():
        messages.sort(
            key=lambda message: str(given.moment(message.get("createdAt") or message.get("created_at")) or "")
        )
        nodes = {str(message.get("id") or place): message for place, message in enumerate(messages)}
        yield from _in_order(Talk(given, f"lobechat-{session}"), nodes)


def cherry(given: Given, one: dict[str, Any]) -> Iterator[Record]:
    """`data.json` of a backup: messages name their blocks, of which those of text are what was said."""
    stored = _object(one, "indexedDB")
    blocks = {str(block.get("id")): block for block in _objects(stored, "message_blocks")}
    for topic in _objects(stored, "topics"):
        nodes: dict[str, dict[str, Any]] = {}
        for place, message in enumerate(_objects(topic, "messages")):
            named = message.get("blocks")
            own = [blocks.get(str(name), {}) for name in named] if isinstance(named, list) else []
            said = [
                block["content"]
                for block in own
                if block.get("type") == "main_text" and isinstance(block.get("content"), str)
            ]
            nodes[str(message.get("id") or place)] = {**message, "content": "\n".join(said) or message.get("content")}
        yield from _in_order(Talk(given, topic.get("id")), nodes)


def grok(given: Given, one: dict[str, Any]) -> Iterator[Record]:
    about = _object(one, "conversation")
    nodes: dict[str, dict[str, Any]] = {}
    for place, entry in enumerate(_objects(one, "responses")):
        node = _object(entry, "response") or entry
        name = str(node.get("_id") or node.get("response_id") or f"{about.get('id')}-{place}")
        nodes[name] = {**node, "role": str(node.get("sender") or "").lower(), "content": node.get("message")}
    parents = {name: node.get("parent_response_id") for name, node in nodes.items()}
    at = {name: str(given.moment(node.get("create_time")) or "") for name, node in nodes.items()}
    is_tree = any(parent in nodes for parent in parents.values())
    tree = {name: trees.Node(parents[name], at[name]) for name in nodes} if is_tree else _in_a_row(nodes)
    timed = {name: {**node, "timestamp": node.get("create_time")} for name, node in nodes.items()}
    leaf = about.get("leaf_response_id") or (None if is_tree else next(reversed(nodes), None))
    yield from _shown(Talk(given, about.get("id"), began=about.get("create_time")), timed, tree, leaf)


def mistral(given: Given, parts: list[Part]) -> Iterator[Record]:
    """A file for each conversation: a list of messages that name their chat."""
    for part in parts:
        talks: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        for found in given.documents(part):
            if isinstance(found, RefusedDocumentError):
                yield found
            else:
                own = str(found.get("id") or len(talks))
                talks[str(found.get("chatId") or part.name)][own] = found
        for session, nodes in talks.items():
            rows = sorted(nodes.items(), key=lambda one: str(given.moment(one[1].get("createdAt")) or ""))
            kept = {name: {**node, "content": _mistral_text(node)} for name, node in rows}
            yield from _in_order(Talk(given, session), kept)


def _mistral_text(node: Mapping[str, Any]) -> str:
    chunks = [one for one in _objects(node, "contentChunks") if one.get("type") == "text"]
    return str(node.get("content") or "") or "\n".join(str(one.get("text") or "") for one in chunks)


def gemini(given: Given, parts: list[Part]) -> Iterator[Record]:
    """Takeout's `MyActivity.json`: each record is one question with its answer, and none says to which conversation it
    belongs. Those of a day are one conversation."""
    days: dict[str, Talk] = {}
    for found in dated(given, parts, lambda one: one.get("time")):
        if isinstance(found, RefusedDocumentError):
            yield found
            continue
        moment, title = given.moment(found.get("time")), str(found.get("title") or "")
        day = moment.date().isoformat() if moment else "undated"
        talk = days.setdefault(day, Talk(given, f"gemini-{day}"))
        answers = [one.get("html") for one in _objects(found, "safeHtmlItem")]
        if not _PROMPTED.match(title) and not answers:
            # Feedback, settings, created pictures.
            talk.omit(NOT_SHOWN)
            continue
        own = hashlib.sha256(json.dumps([found.get("time"), title]).encode()).hexdigest()[:32]
        talk.say("user", _PROMPTED.sub("", title), f"{own}-question", found.get("time"))
        for text in answers:
            talk.say("assistant", _plain(str(text or "")), f"{own}-answer", found.get("time"))
        if found.get("attachedFiles") or found.get("imageFile"):
            talk.omit(MEDIA)
    for talk in days.values():
        yield from talk.records()


def _plain(text: str) -> str:
    """HTML as text."""
    return re.sub(r"\n{3,}", "\n\n", html.unescape(_TAG.sub("", _BREAK.sub("\n", text)))).strip()


def _content(content: Any) -> str:
    """A text, or the parts of a message that are text."""
    if isinstance(content, str):
        return content
    parts = [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []
    texts: list[str] = []
    for part in parts:
        text = part.get("text") if part.get("type") in ("text", "input_text", "output_text") else None
        text = text.get("value") if isinstance(text, dict) else text
        texts += [text] if isinstance(text, str) else []
    return "\n".join(texts)


def _in_a_row(nodes: Mapping[str, Any]) -> dict[str, trees.Node]:
    names = list(nodes)
    return {name: trees.Node(before, "") for before, name in zip([None, *names], names, strict=False)}


def _object(whole: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = whole.get(name)
    return found if isinstance(found, dict) else {}


def _objects(whole: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = whole.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
