"""Whatever stands where a reader expects something else is counted: each thing of a file is stored or left out by its
reason, and what is right beside it comes in."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memories.api.v1.memory.serializers import DocumentFactSerializer
from memories.imports import working
from memories.imports.places import opened
from memories.imports.raw_documents import RefusedDocumentError, checked, unsendable_in
from memories.imports.records import KeptFile, LeftOut, Record, Said, StoredItem, StoredMemory
from memories.imports.sources import SOURCES, detected, found_instead
from tests.imports.test_sources import chatgpt, claude, found, left_out, said, texts, written

# What is no object, and objects of nothing that a reader knows.
OTHERS: tuple[Any, ...] = ("text", ["list"], None, 7, True, {}, {"unknown": 1})
TYPED = {"type": "text", "text": "I ski"}
CODE = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"content": "I ski"}}
CODEX = {"type": "event_msg", "payload": {"type": "user_message", "message": "I ski"}}
WEBUI = {"id": "a", "role": "user", "content": "I ski"}
LIBRE = {"messageId": "a", "isCreatedByUser": True, "text": "I ski"}
GROK = {"response": {"_id": "a", "sender": "human", "message": "I ski"}}
DEEPSEEK = {"parent": None, "message": {"fragments": [{"type": "REQUEST", "content": "I ski"}]}}
STORED = {"namespace": ["m"], "key": "k", "value": {"text": "Skis"}}
FILE = {"namespace": ["m"], "key": "/a.md", "value": {"content": "Skis", "modified_at": "2026-01-01T00:00:00Z"}}
# A document that holds one thing, by source; lines where the source has them.
DOCUMENTS: dict[str, Any] = {
    "chatgpt": chatgpt(said("user", "I ski")),
    "claude": claude({"uuid": "a", "sender": "human", "content": [TYPED]}),
    "claude-code": CODE,
    "codex": CODEX,
    "deepseek": {"id": "d", "mapping": {"1": DEEPSEEK}},
    "gemini": {"header": "Gemini Apps", "title": "Prompted I ski", "time": "2026-01-01T10:00:00Z"},
    "grok": {"conversation": {"id": "g"}, "responses": [GROK]},
    "mistral": {"id": "a", "chatId": "c", "role": "user", "content": "I ski"},
    "open-webui": {"id": "o", "chat": {"messages": [WEBUI]}},
    "librechat": {"conversationId": "l", "messages": [LIBRE]},
    "lobechat": {"state": {"messages": [WEBUI]}},
    "cherry-studio": {"indexedDB": {"topics": [{"id": "t", "messages": [WEBUI]}]}},
    "jsonl": {"session_id": "s", "messages": [{"role": "user", "content": "I ski"}]},
    "facts": {"text": "Skis", "user_id": "u"},
    "mem0": {"memory": "Skis", "user_id": "u"},
    "langgraph": STORED,
    "deepagents": FILE,
    "graphiti": {"fact": "Skis", "group_id": "u"},
    "hindsight": {"text": "Skis", "bank_id": "u"},
    "honcho": {"content": "Skis", "observed_id": "u"},
    "memobase": {"content": "Skis", "topic": "sport"},
    "mempalace": {"id": "d", "document": "She skis", "metadata": {"wing": "w", "source_file": "a.md"}},
}
LINES = ("claude-code", "codex", "jsonl", "facts")


def _tree(*nodes: Any) -> dict[str, Any]:
    """Each follows the one before it."""
    named = {}
    for place, node in enumerate(nodes):
        above = str(place - 1) if place else None
        named[str(place)] = {**node, "parent": above} if isinstance(node, dict) else node
    return named


def _branch(mapping: dict[str, Any]) -> dict[str, Any]:
    right = [name for name, node in mapping.items() if isinstance(node, dict)]
    return {"mapping": mapping, "current_node": right[-1]}


def _typed(role: Any, *parts: Any, **more: Any) -> dict[str, Any]:
    return {"message": {"id": "m", **said(role, *parts), **more}}


# Of a list inside of a document: how it is built, the right thing, and things of wrong forms that are objects, each
# with how many things of it there are.
INSIDE: list[tuple[str, Callable[..., Any], Any, list[tuple[Any, int]]]] = [
    ("chatgpt", lambda *all_: [{"id": "c", **_branch(_tree(*(one for one in all_ if isinstance(one, dict))))}],
     _typed("user", "I ski"),
     [(_typed(["user"], "x"), 1), (_typed("user", {"text": 7}), 1), (_typed("user", 7), 1), ({"message": "x"}, 1),
      ({"message": {}}, 1), ({"message": {"author": 1, "content": 2}}, 1), (_typed("user", "x", content="y"), 1),
      (_typed("user", "x", id={"a": 1}, create_time=["x"]), 1), (_typed("assistant", recipient="bio"), 1),
      (_typed("user", "x", content={"content_type": "text", "parts": "x"}), 1)]),
    ("claude", lambda *all_: [claude(*all_)], {"uuid": "a", "sender": "human", "content": [TYPED]},
     [({"uuid": "b", "sender": ["human"], "content": [TYPED]}, 1), ({"uuid": "c", "sender": "human", "content": 7}, 1),
      ({"uuid": "d", "sender": "human", "content": [7]}, 1), ({"uuid": "e", "sender": "human", "text": ["x"]}, 1),
      ({"uuid": "f", "sender": "human", "content": [{"type": "text", "text": {}}]}, 1), ({"uuid": "g"}, 1),
      ({"uuid": "h", "sender": "human", "content": [{"type": ["x"]}]}, 1),
      ({"uuid": "i", "sender": "human", "attachments": [{"extracted_content": ["x"]}]}, 1),
      ({"uuid": "j", "sender": "human", "attachments": [{"file_name": "x.pdf"}], "files": ["y", {}]}, 3)]),
    ("claude", lambda *all_: {"conversations_memory": None, "memory_files": list(all_)}, {"path": "a", "content": "x"},
     [({"path": 7, "content": "x"}, 1), ({"path": "b"}, 1)]),
    ("deepseek", lambda *all_: [{"id": "d", **_branch(_tree(*(one for one in all_ if isinstance(one, dict))))}],
     DEEPSEEK,
     [({"message": 7}, 1), ({"message": {}}, 1), ({"message": {"fragments": 7}}, 1),
      ({"message": {"fragments": [7]}}, 1), ({"message": {"fragments": []}}, 1),
      ({"message": {"fragments": [{"type": "REQUEST", "content": ["x"]}]}}, 1),
      ({"message": {"fragments": [{"type": "SEARCH", "content": "x"}]}}, 1)]),
    ("gemini", lambda *all_: list(all_), DOCUMENTS["gemini"],
     [({"title": 7}, 1), ({"title": "Prompted x", "time": {}}, 1),
      ({"title": "Prompted y", "time": "2026-01-01T11:00:00Z", "safeHtmlItem": [7, {"html": 7}]}, 3)]),
    ("grok", lambda *all_: [{"conversation": {"id": "g"}, "responses": list(all_)}], GROK,
     [({"response": {"_id": "b", "sender": 7, "message": "x"}}, 1), ({"response": {"_id": "b2", "sender": "human"}}, 1),
      ({"response": {"_id": "c", "sender": "human", "message": {"x": 1}}}, 1), (GROK, 1)]),
    ("mistral", lambda *all_: list(all_), DOCUMENTS["mistral"],
     [({"id": "b", "chatId": "c", "role": 7, "content": "x"}, 1), ({"id": "c", "chatId": ["c"], "role": "user"}, 1),
      ({"id": "d", "chatId": "c", "role": "user", "contentChunks": [7, {"type": "text", "text": 7}]}, 2),
      (DOCUMENTS["mistral"], 1)]),
    ("open-webui", lambda *all_: [{"id": "o", "chat": {"messages": list(all_)}}], WEBUI,
     [({"id": "b", "role": ["user"], "content": "x"}, 1), ({"id": "c", "role": "user", "content": 7}, 1),
      ({"id": "d", "role": "user", "content": [7]}, 1), (WEBUI, 1)]),
    ("librechat", lambda *all_: [{"conversationId": "l", "messages": list(all_)}], LIBRE,
     [({"messageId": "b", "text": 7}, 1), ({"messageId": "c", "text": "x", "children": [7]}, 2), (LIBRE, 1)]),
    ("lobechat", lambda *all_: {"state": {"messages": list(all_)}}, WEBUI,
     [({"id": "b", "role": "user", "content": {}}, 1), (WEBUI, 1)]),
    ("cherry-studio", lambda *all_: {"indexedDB": {"topics": [{"id": "t", "messages": list(all_)}]}}, WEBUI,
     [({"id": "b", "role": "user", "blocks": ["none"]}, 1), (WEBUI, 1)]),
    ("cherry-studio", lambda *all_: {"indexedDB": {"topics": list(all_)}}, {"id": "t", "messages": [WEBUI]},
     [({"id": "t2", "messages": "x"}, 1)]),
    ("claude-code", lambda *all_: all_, CODE,
     [({**CODE, "uuid": ""}, 1), ({**CODE, "message": "x"}, 1), ({**CODE, "message": {"content": 7}}, 1),
      ({**CODE, "type": ["user"]}, 1), ({"type": "system", "uuid": "x"}, 1)]),
    ("codex", lambda *all_: all_, CODEX,
     [({"type": "event_msg", "payload": "x"}, 1), ({"type": "event_msg", "payload": {"type": ["x"]}}, 1),
      ({"type": "response_item", "payload": {}}, 1)]),
    ("mem0", lambda *all_: {"results": list(all_)}, DOCUMENTS["mem0"],
     [({"memory": ["x"], "user_id": "u"}, 1), ({"memory": "x", "user_id": ["u"]}, 1), ({"payload": 7}, 1),
      ({"payload": {"data": "x", "user_id": {}}}, 1)]),
    ("langgraph", lambda *all_: list(all_), STORED,
     [({**STORED, "namespace": "m"}, 1), ({**STORED, "namespace": [["m"]]}, 1), ({**STORED, "key": None}, 1),
      ({**STORED, "value": "x"}, 1), ({**STORED, "value": {"n": [{}]}}, 1)]),
    ("deepagents", lambda *all_: list(all_), FILE,
     [({**FILE, "key": ["x"]}, 1), ({**FILE, "value": 7}, 1),
      ({**FILE, "value": {"content": 7, "modified_at": None}}, 1)]),
    ("graphiti", lambda *all_: {"edges": list(all_)}, DOCUMENTS["graphiti"],
     [({"fact": 7, "group_id": "u"}, 1), ({"fact": "x", "group_id": ["u"]}, 1)]),
    ("honcho", lambda *all_: {"items": list(all_)}, DOCUMENTS["honcho"],
     [({"content": {}, "observed_id": "u"}, 1), ({"content": "x", "observed_id": {}}, 1)]),
    ("mempalace", lambda *all_: {"items": list(all_)}, DOCUMENTS["mempalace"],
     [({"document": 7, "metadata": {}}, 1), ({"id": "e", "payload": 7}, 1), ({"document": "x", "metadata": 7}, 1)]),
    ("deerflow", lambda *all_: {"facts": list(all_)}, {"id": "a", "content": "Skis"}, []),
]  # fmt: skip


def accounted(records: list[Record]) -> tuple[int, int]:
    """How many things come in, and how many do not."""
    kept = others = 0
    for one in records:
        if isinstance(one, Said):
            is_list = isinstance(one.messages, list)
            kept, others = kept + (len(one.messages) if is_list else 0), others + (not is_list)
        elif isinstance(one, LeftOut):
            others += one.number
        else:
            is_kept = isinstance(one, StoredMemory | KeptFile | StoredItem)
            kept, others = kept + is_kept, others + (not is_kept)
            assert is_kept or isinstance(one, RefusedDocumentError)
    return kept, others


def read(source: str, content: Any, path: Path) -> list[Record]:
    lines = source in LINES
    named = path / ("memory.json" if source == "deerflow" else "x.jsonl" if lines else "x.json")
    if lines:
        return found(source, written(named, list(content), lines=True))
    return found(source, written(named, content))


@pytest.mark.parametrize("source", DOCUMENTS)
def test_documents_of_another_form_are_counted(tmp_path: Path, source: str) -> None:
    """And the source is recognised by what is right."""
    given = [DOCUMENTS[source], *OTHERS]
    assert accounted(read(source, given[:1], tmp_path)) == (1, 0)
    assert accounted(read(source, given, tmp_path)) == (1, len(OTHERS))
    [path] = tmp_path.iterdir()
    with opened([str(path)]) as one:
        assert detected(one) == source
    # Its end is missing, in the middle of what is wrong or of what is right.
    whole = path.read_bytes()
    for end in (len(whole) - 3, len(json.dumps(DOCUMENTS[source])) - 2):
        path.write_bytes(whole[:end])
        with opened([str(path)]) as one:
            # A file of deepagents without its dates is an item.
            assert detected(one) in (source, "", "langgraph" if source == "deepagents" else source), end
            assert detected(one) or "ends early" in str(found_instead(one))


@pytest.mark.parametrize("place", range(len(INSIDE)), ids=[f"{at}-{one[0]}" for at, one in enumerate(INSIDE)])
def test_what_stands_inside_of_a_document_is_counted(tmp_path: Path, place: int) -> None:
    source, build, right, wrong = INSIDE[place]
    assert accounted(read(source, build(right), tmp_path)) == (1, 0)
    for number, (one, count) in enumerate(wrong):
        kept, others = accounted(read(source, build(right, one), tmp_path))
        assert kept + others == 1 + count, (number, kept, others)
        assert kept >= 1, number
    if source not in ("chatgpt", "deepseek"):
        plain = [one for one in OTHERS if not isinstance(one, dict)]
        assert accounted(read(source, build(right, *plain), tmp_path)) == (1, len(plain))


@pytest.mark.parametrize("source", ["chatgpt", "deepseek", "open-webui"])
def test_nodes_of_another_form_are_counted(tmp_path: Path, source: str) -> None:
    plain = {f"w{at}": one for at, one in enumerate(OTHERS) if not isinstance(one, dict)}
    tree = {**_tree({"chatgpt": _typed("user", "I ski"), "deepseek": DEEPSEEK}.get(source, {})), **plain}
    content: Any = [{"id": "c", "mapping": tree, "current_node": "0"}]
    if source == "open-webui":
        content = [{"id": "o", "chat": {"history": {"messages": {"a": WEBUI, **plain}, "currentId": "a"}}}]
    assert accounted(read(source, content, tmp_path)) == (1, len(plain))


def test_every_source_of_documents_is_tried() -> None:
    """The others read folders and databases, and an export of the hub."""
    assert SOURCES.keys() - DOCUMENTS.keys() == {"markdown", "memory-hub", "deerflow"}


def test_ids_of_wrong_types_end_nothing(tmp_path: Path) -> None:
    """Also where they name the branch that was shown."""
    for wrong in ({"a": 1}, ["x"], 7, True):
        one = {"id": wrong, "mapping": _tree(_typed("user", "I ski")), "current_node": wrong, "create_time": wrong}
        other = claude({"uuid": wrong, "parent_message_uuid": wrong, "sender": "human", "content": [TYPED]}, uuid=wrong)
        web = {"id": wrong, "chat": {"messages": [{**WEBUI, "id": wrong, "parentId": wrong, "timestamp": wrong}]}}
        libre = {"conversationId": wrong, "messages": [{**LIBRE, "messageId": wrong, "parentMessageId": wrong}]}
        talks = {"chatgpt": one, "claude": other, "open-webui": web, "librechat": libre}
        for source, content in talks.items():
            assert accounted(read(source, [content], tmp_path)) == (1, 0), (source, wrong)


def test_a_list_of_lines_goes_on_behind_a_broken_one(tmp_path: Path) -> None:
    right = json.dumps(DOCUMENTS["jsonl"])
    for broken in ('{"session_id": "s', '"text"', "7", "{]", "no JSON"):
        path = written(tmp_path / "x.jsonl", f"{broken}\n{right}\n{broken}\n{right}\n")
        assert accounted(found("jsonl", path)) == (2, 2), broken


@pytest.mark.parametrize("bad", ["\0", "\ud83d", "x" * 300, "\n"])
def test_ids_that_no_id_here_can_be_like_lose_nothing(tmp_path: Path, bad: str) -> None:
    """They become others, the same each time; and what is only beside a text is left out of it."""
    talk = {"id": f"c{bad}", "mapping": _tree(_typed("user", "I ski", id=f"m{bad}")), "current_node": "0"}
    for _ in range(2):
        [conversation] = read("chatgpt", [talk], tmp_path)
        assert isinstance(conversation, Said)
        ids = [conversation.body["session_id"], conversation.messages[0]["external_id"]]
        assert all(one.startswith("import-") and len(one) == 39 for one in ids)
    pasted = {"file_name": f"a{bad}.md", "extracted_content": "Report"}
    about = claude({"uuid": "a", "sender": "human", "content": [TYPED], "attachments": [pasted]})
    [conversation] = read("claude", [about], tmp_path)
    assert isinstance(conversation, Said)
    assert unsendable_in(conversation.messages[1]["metadata"]["attachment"]) == ""
    row = {"id": f"1{bad}", "memory": "Skis", "user_id": "u", "metadata": {"category": f"x{bad}"}}
    [fact] = read("mem0", [row], tmp_path)
    assert isinstance(fact, StoredMemory)
    assert checked(DocumentFactSerializer, fact.fact)["content"] == "Skis"


def test_files_that_cannot_be_here_are_left_out(tmp_path: Path) -> None:
    files = [{"path": path, "content": "x"} for path in (".env", "../../x.md", "a//b.md", "notes/a.md")]
    records = read("claude", {"memory_files": files}, tmp_path)
    assert (texts(records), left_out(records)) == (["/memories/notes/a.md: x"], {"hidden": 1, "other_form": 2})


def test_a_bad_letter_is_that_of_what_it_stands_in(tmp_path: Path) -> None:
    """A raw NUL, a raw end of a line and bytes that are no UTF-8 do not end the conversation."""
    right = {"uuid": "b", "sender": "human", "content": [TYPED]}
    text = json.dumps([claude({"uuid": "a", "sender": "human", "text": "@"}, right)]).encode()
    for raw in (b"\0", b"\n", b"\xe9", b"\xed\xa0\xbd"):
        path = tmp_path / "x.json"
        path.write_bytes(text.replace(b"@", b"a" + raw + b"b"))
        assert accounted(found("claude", path)) == (2, 0), raw


def test_the_placeholder_of_a_tool_is_no_answer(tmp_path: Path) -> None:
    shown = "```\nThis block is not supported on your current device yet.\n```"
    answers = [
        {"uuid": "b", "sender": "assistant", "content": [{"type": "text", "text": text}]}
        for text in (shown, f"{shown}\n{shown}", f"{shown} Done")
    ]
    for at, one in enumerate(answers):
        records = read("claude", [claude({"uuid": "a", "sender": "human", "content": [TYPED]}, one)], tmp_path)
        assert texts(records) == ["user: I ski", *(["assistant: Done"] if at == 2 else [])]
        assert left_out(records) == ({} if at == 2 else {"tool": 1})


def test_what_the_person_wanted_forgotten_is_left_out_however_it_is_written(tmp_path: Path) -> None:
    for value, count in ((True, 1), ("true", 1), (1, 1), (False, 0), (None, 0), ("false", 0)):
        talk = chatgpt(said("user", "I ski"), is_do_not_remember=value)
        assert left_out(read("chatgpt", [talk], tmp_path)) == ({"do_not_remember": 1} if count else {})


def test_an_end_that_is_no_time_has_come_and_the_last_day_does_not_end_the_import(tmp_path: Path) -> None:
    ends = [0, "soon", {"a": 1}, "9999-12-31", None]
    items = [{**STORED, "key": str(at), "expires_at": one} for at, one in enumerate(ends)]
    records = read("langgraph", items, tmp_path)
    assert left_out(records) == {"expired": 3}
    assert [one.ends.year if one.ends else None for one in records if isinstance(one, StoredMemory)] == [9999, None]


@pytest.mark.parametrize(
    ("date", "said_at"),
    [("2026-02-30", ""), ("Jan 1 2026", ""), (1e30, ""), ("20260101", "2026-01-01"), (1770000000000, "2026-02-02")],
)
def test_a_date_of_an_own_row_that_is_none_is_refused(tmp_path: Path, date: Any, said_at: str) -> None:
    [one] = read("facts", [{"text": "Skis", "user_id": "u", "date": date}], tmp_path)
    if said_at:
        assert isinstance(one, StoredMemory)
        assert one.fact["createdAt"].startswith(said_at)
    else:
        assert str(one).startswith("/date invalid – expected")


def test_rows_of_csv_whose_cells_have_no_place_are_refused(tmp_path: Path) -> None:
    """Else the text would end at its first comma, and the rest would be whose it is."""
    text = 'text,user_id\nSails, often,u1\nRows,u2\n"Open cell,u3\n'
    records = found("facts", written(tmp_path / "x.csv", text))
    assert texts(records) == ["fact: Rows"]
    assert [str(one).split(", within")[0] for one in records if isinstance(one, RefusedDocumentError)] == [
        "columns – expected 2 cells, found 3",
        f"cut_off – the file ends early, at byte {len(text)}",
    ]
    path = tmp_path / "z.csv"
    path.write_bytes("text,user_id\nLives in Köln,u1\nRows,u2\n".encode("latin-1"))
    fault, row = found("facts", path)
    assert (str(fault), texts([row])) == ("other_encoding – save the file as UTF-8", ["fact: Rows"])
    assert isinstance(fault, RefusedDocumentError)
    # As the report counts it: a code with a digit would be none.
    assert (fault.code, working._code_of(str(fault))) == ("other_encoding", "other_encoding")
    [twice] = found("facts", written(tmp_path / "y.csv", "text,Text,user_id\nA,B,u1\n"))
    assert str(twice) == "columns – two columns have one name"
