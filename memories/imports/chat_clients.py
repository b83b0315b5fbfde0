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
from memories.imports.messages import Talk, object_in, objects_in
from memories.imports.places import Given, dated, strangers
from memories.imports.raw_documents import RefusedDocumentError
from memories.imports.records import (
    MEDIA,
    NO_TEXT,
    NOT_SHOWN,
    OTHER_FILE,
    OTHER_FORM,
    OTHERS,
    SAME_ID,
    THOUGHTS,
    TOOLS,
    LeftOut,
    Record,
    Said,
)
from memories.imports.unpacking import Part

# What Gemini's activity puts before what was asked, in some of its languages.
_PROMPTED = re.compile(
    r"^(?:Prompted|Said|Asked|Used|Envoi de la requête|Mensaje enviado:?|Eingegebener Prompt:?|提示|输入的提示词：?)\s+"
)
_PRODUCT = re.compile("gemini|bard", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_BREAK = re.compile(r"<(?:br|/p|/li|/h\d|/div|/tr)\b[^<>]*>", re.IGNORECASE)
_TIMES = ("timestamp", "createdAt", "created_at", "inserted_at", "create_time")
_REST = ("user_id", "agent_id", "session_id")
Made = Callable[[Given, dict[str, Any]], Iterator[Record]]


def reader(made: Made, *dates: str, holds: Callable[[dict[str, Any]], Any]) -> Callable[..., Iterator[Record]]:
    """Reads files of conversations, each by `made`, the oldest first by the first member of `dates` that it has. Where
    that what it `holds` is none it has another form."""

    def read(given: Given, parts: list[Part]) -> Iterator[Record]:
        for found in dated(given, parts, lambda one: next((one[name] for name in dates if one.get(name)), None)):
            if isinstance(found, RefusedDocumentError):
                yield found
            elif isinstance(holds(found), list | dict):
                yield from made(given, found)
            else:
                yield LeftOut(OTHER_FORM)

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
    mapping = object_in(one, "mapping")
    nodes = {
        name: node
        for name, node in mapping.items()
        if isinstance(node, dict) and isinstance(node.get("message"), dict | None)
    }
    messages = {name: object_in(node, "message") for name, node in nodes.items()}
    at = {name: str(given.moment(message.get("inserted_at")) or "") for name, message in messages.items()}
    tree = {name: trees.Node(node.get("parent"), at[name]) for name, node in nodes.items()}
    shown = trees.branch(tree, one.get("current_node"))
    talk = Talk(given, one.get("id"), began=one.get("inserted_at"))
    talk.omit(OTHER_FORM, len(mapping) - len(nodes))
    for name in shown:
        # The root of a tree has no message.
        if nodes[name].get("message") is not None:
            _say_fragments(talk, messages[name], f"{one.get('id')}-{name}")
    others = [name for name in nodes.keys() - set(shown) if nodes[name].get("message") is not None]
    if others:
        talk.on_other_branches(*(f"{one.get('id')}-{name}" for name in others))
    yield from talk.records(shown=[f"{one.get('id')}-{name}" for name in shown])


def _say_fragments(talk: Talk, message: dict[str, Any], own_id: str) -> None:
    """What was asked or answered; thoughts beside it are counted, and what is neither."""
    if message.get("fragments") is None:
        talk.omit(OTHER_FORM)
        return
    before = talk.left_out.total()
    kinds: dict[str, list[str]] = defaultdict(list)
    for fragment in talk.objects(message, "fragments"):
        if isinstance(content := fragment.get("content"), str | None):
            kinds[str(fragment.get("type")).upper()].append(content or "")
        else:
            talk.omit(OTHER_FORM)
    role = "user" if "REQUEST" in kinds else "assistant"
    if text := "\n".join(kinds.get("REQUEST") or kinds.get("RESPONSE") or ()):
        talk.say(role, text, own_id, message.get("inserted_at"))
    elif not kinds.keys() - {"REQUEST", "RESPONSE"}:
        talk.omit(NO_TEXT, talk.left_out.total() == before)
    elif kinds.keys() != {"THINK"}:
        talk.omit(TOOLS)
    if "THINK" in kinds:
        talk.omit(THOUGHTS)


def open_webui(given: Given, parts: list[Part]) -> Iterator[Record]:
    """An administrator's export has the chats of everybody: of these only those of `given.user` are taken."""
    others = strangers(given, parts, _owner)

    def made(given: Given, one: dict[str, Any]) -> Iterator[Record]:
        yield from [LeftOut(OTHERS)] if _owner(one) in others else _open_webui_chat(given, one)

    yield from reader(made, "created_at", holds=lambda one: one.get("chat"))(given, parts)


def _owner(chat: Mapping[str, Any]) -> str:
    return str(chat.get("user_id") or "")


def _open_webui_chat(given: Given, one: dict[str, Any]) -> Iterator[Record]:
    chat = object_in(one, "chat")
    history = object_in(chat, "history")
    talk = Talk(given, one.get("id") or chat.get("id"), began=one.get("created_at"))
    held = object_in(history, "messages")
    nodes = {name: node for name, node in held.items() if isinstance(node, dict)}
    talk.omit(OTHER_FORM, len(held) - len(nodes))
    if not nodes:
        nodes = talk.by_id((node.get("id"), node) for node in talk.objects(chat, "messages"))
    leaf = history.get("currentId")
    yield from _in_branches(talk, given, nodes, leaf, parent="parentId", at="timestamp")


def _shown(
    talk: Talk, nodes: Mapping[str, dict[str, Any]], tree: Mapping[str, trees.Node], leaf: Any
) -> Iterator[Record]:
    """Messages with `role`, `content` and a time as most programs have them, of the branch that ends in `leaf`."""
    shown = trees.branch(tree, leaf)
    for name in shown:
        node = nodes[name]
        at = next((node[key] for key in _TIMES if node.get(key)), None)
        if node.get("role") in ("tool", "function", "system"):
            talk.omit(TOOLS if node["role"] != "system" else "system")
        else:
            text, not_parts = _content(node.get("content"))
            talk.say(node.get("role"), text, name, at, others=not_parts)
    others = nodes.keys() - set(shown)
    if others:
        talk.on_other_branches(*others)
    yield from talk.records(shown=shown)


def _in_branches(
    talk: Talk, given: Given, nodes: Mapping[str, dict[str, Any]], leaf: Any, *, parent: str, at: str
) -> Iterator[Record]:
    """The same, where a member names the message that it follows; where none does they are in a row."""
    if not any(node.get(parent) for node in nodes.values()):
        yield from _in_order(talk, nodes)
        return
    tree = {name: trees.Node(node.get(parent), str(given.moment(node.get(at)) or "")) for name, node in nodes.items()}
    yield from _shown(talk, nodes, tree, leaf)


def _in_order(talk: Talk, nodes: Mapping[str, dict[str, Any]]) -> Iterator[Record]:
    """The same of a program that keeps no branches."""
    names = list(nodes)
    tree = {name: trees.Node(before, "") for before, name in zip([None, *names], names, strict=False)}
    yield from _shown(talk, nodes, tree, names[-1] if names else None)


def librechat(given: Given, one: dict[str, Any]) -> Iterator[Record]:
    """A tree of nested answers (`children`), or a list of messages of which each names the one before it."""
    talk = Talk(given, one.get("conversationId"), began=one.get("createdAt"))
    found: list[tuple[Any, dict[str, Any]]] = []
    waiting: list[tuple[dict[str, Any], Any]] = [(node, None) for node in reversed(talk.objects(one, "messages"))]
    while waiting:
        node, above = waiting.pop()
        own = node.get("messageId") or str(len(found))
        role = "user" if node.get("isCreatedByUser") else "assistant"
        is_in_parts = _content(node.get("content"))[0] or not node.get("text")
        said = node.get("content") if is_in_parts else node["text"]
        found.append((own, {**node, "role": role, "content": said, "above": node.get("parentMessageId") or above}))
        waiting += [(child, own) for child in reversed(talk.objects(node, "children"))]
    nodes = talk.by_id(found)
    yield from _in_branches(talk, given, nodes, one.get("targetMessageId"), parent="above", at="createdAt")


def lobechat(given: Given, one: dict[str, Any]) -> Iterator[Record]:
    """All messages in one list, each with its topic and session."""
    state = _state(one)
    talks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    messages, others = objects_in(state, "messages")
    if others:
        yield LeftOut(OTHER_FORM, others)
    for message in messages:
        session = (
            message.get("topicId") or message.get("topic_id") or message.get("sessionId") or message.get("session_id")
        )
        talks[str(session or "inbox")].append(message)
    for session, messages in talks.items():
        messages.sort(
            key=lambda message: str(given.moment(message.get("createdAt") or message.get("created_at")) or "")
        )
        talk = Talk(given, f"lobechat-{session}")
        yield from _in_order(talk, talk.by_id((message.get("id"), message) for message in messages))


def lobechat_messages(one: Mapping[str, Any]) -> Any:
    """The list of them, whatever it is."""
    return _state(one).get("messages")


def _state(one: Mapping[str, Any]) -> Mapping[str, Any]:
    return object_in(one, "state") or object_in(one, "data") or one


def cherry(given: Given, one: dict[str, Any]) -> Iterator[Record]:
    """`data.json` of a backup: messages name their blocks, of which those of text are what was said."""
    stored = object_in(one, "indexedDB")
    blocks_of, others = objects_in(stored, "message_blocks")
    topics, more = objects_in(stored, "topics")
    if others or more:
        yield LeftOut(OTHER_FORM, others + more)
    blocks = {str(block.get("id")): block for block in blocks_of}
    for topic in topics:
        talk = Talk(given, topic.get("id"))
        found: list[tuple[Any, dict[str, Any]]] = []
        for message in talk.objects(topic, "messages"):
            named = message.get("blocks")
            own = [blocks.get(str(name), {}) for name in named] if isinstance(named, list) else []
            said = [{"type": "text", "text": one.get("content")} for one in own if one.get("type") == "main_text"]
            talk.omit(OTHER_FORM, not isinstance(named, list | None))
            found.append((message.get("id"), {**message, "content": said or message.get("content")}))
        yield from _in_order(talk, talk.by_id(found))


def grok(given: Given, one: dict[str, Any]) -> Iterator[Record]:
    about = object_in(one, "conversation")
    talk = Talk(given, about.get("id"), began=about.get("create_time"))
    messages: list[tuple[Any, dict[str, Any]]] = []
    for place, entry in enumerate(talk.objects(one, "responses")):
        node = object_in(entry, "response") or entry
        name = node.get("_id") or node.get("response_id") or f"{about.get('id')}-{place}"
        messages.append((name, {**node, "role": node.get("sender"), "content": node.get("message")}))
    nodes = talk.by_id(messages)
    leaf = about.get("leaf_response_id")
    yield from _in_branches(talk, given, nodes, leaf, parent="parent_response_id", at="create_time")


def mistral(given: Given, parts: list[Part]) -> Iterator[Record]:
    """A file for each conversation: a list of messages that name their chat."""
    for part in parts:
        talks: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for found in given.documents(part):
            if isinstance(found, RefusedDocumentError):
                yield found
            elif "role" in found and isinstance(found.get("chatId"), str | int | None):
                talks[str(found.get("chatId") or part.name)].append(found)
            else:
                yield LeftOut(OTHER_FORM)
        for session, messages in talks.items():
            talk = Talk(given, session)
            rows = sorted(messages, key=lambda one: str(given.moment(one.get("createdAt")) or ""))
            said = ((node, node.get("content") or node.get("contentChunks")) for node in rows)
            nodes = talk.by_id((node.get("id"), {**node, "content": content}) for node, content in said)
            yield from _in_order(talk, nodes)


def gemini(given: Given, parts: list[Part]) -> Iterator[Record]:
    """Takeout's `MyActivity.json`: each record is one question with its answer, and none says to which conversation it
    belongs. Those of a day are one conversation. Activities of other products stand beside them in the same form."""
    days: dict[str, Talk] = {}
    seen = set[str]()
    for found in dated(given, parts, lambda one: one.get("time")):
        if isinstance(found, RefusedDocumentError):
            yield found
        elif not isinstance(found.get("title"), str) or not isinstance(found.get("time"), str | int | float | None):
            yield LeftOut(OTHER_FORM)
        elif not is_of_gemini(found):
            yield LeftOut(OTHER_FILE)
        else:
            moment = given.moment(found.get("time"))
            day = moment.date().isoformat() if moment else "undated"
            _say_activity(days.setdefault(day, Talk(given, f"gemini-{day}")), found, seen)
    for talk in days.values():
        yield from talk.records()


def is_of_gemini(activity: Mapping[str, Any]) -> bool:
    """By the product, whose name is the same in all languages; it was called Bard."""
    return not activity.get("header") or _PRODUCT.search(str(activity["header"])) is not None


def _say_activity(talk: Talk, activity: Mapping[str, Any], seen: set[str]) -> None:
    """The question and its answer. `seen`: those that were said."""
    title, at = activity["title"], activity.get("time")
    answers = [one.get("html") for one in talk.objects(activity, "safeHtmlItem")]
    own = hashlib.sha256(json.dumps([at, title]).encode()).hexdigest()[:32]
    if (not _PROMPTED.match(title) and not answers) or own in seen:
        # Feedback, settings, created pictures; the same record once more.
        talk.omit(SAME_ID if own in seen else NOT_SHOWN)
        return
    seen.add(own)
    talk.say("user", _PROMPTED.sub("", title), f"{own}-question", at)
    for place, text in enumerate(answers, start=1):
        answer = f"{own}-answer-{place}" if place > 1 else f"{own}-answer"
        talk.say("assistant", _plain(text) if isinstance(text, str) else text, answer, at)
    if activity.get("attachedFiles") or activity.get("imageFile"):
        talk.omit(MEDIA)


def _plain(text: str) -> str:
    """HTML as text."""
    return re.sub(r"\n{3,}", "\n\n", html.unescape(_TAG.sub("", _BREAK.sub("\n", text)))).strip()


def _content(content: Any) -> tuple[Any, int]:
    """A text, or the parts of a message that are text, and how many have another form than parts do; what is neither,
    as it is."""
    if not isinstance(content, list):
        return content, 0
    texts: list[Any] = []
    for part in content:
        text = part.get("text") if isinstance(part, dict) else part
        is_text = not isinstance(part, dict) or part.get("type") in ("text", "input_text", "output_text")
        texts += [text.get("value") if isinstance(text, dict) else text] if is_text else []
    said = [one for one in texts if isinstance(one, str)]
    return "\n".join(said), len(texts) - len(said)
