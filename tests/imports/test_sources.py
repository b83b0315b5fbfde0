"""What each source yields of small exports in its form, and how it is recognised. What becomes of it is tested with the
command (tests/commands/test_import_memories.py)."""

import json
import sqlite3
import time
import zipfile
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from memoryhub_client import hook

from memories.imports import coding_agents, sources
from memories.imports.messages import Talk
from memories.imports.places import Given, opened
from memories.imports.records import KeptFile, LeftOut, Record, Said, StoredMemory
from memories.imports.sources import SOURCES
from tests.each import each

NOW = datetime(2026, 6, 1, tzinfo=UTC)
AT = 1770000000


def chatgpt(*messages: dict[str, Any], **over: Any) -> dict[str, Any]:
    """A conversation of one branch."""
    mapping: dict[str, Any] = {"root": {"message": None, "parent": None}}
    above = "root"
    for place, message in enumerate(messages):
        name = f"n{place}"
        usual = {"id": f"m{place}", "create_time": AT + place, "recipient": "all", "metadata": {}}
        mapping[name] = {"parent": above, "message": {**usual, **message}}
        above = name
    return {"conversation_id": "c1", "create_time": AT, "mapping": mapping, "current_node": above, **over}


def said(role: str, *parts: Any, kind: str = "text", **more: Any) -> dict[str, Any]:
    return {"author": {"role": role}, "content": {"content_type": kind, "parts": list(parts)}, **more}


def claude(*messages: dict[str, Any], **over: Any) -> dict[str, Any]:
    return {"uuid": "k1", "created_at": "2026-03-01T10:00:00Z", "chat_messages": list(messages), **over}


def block(sender: str, *blocks: dict[str, Any], name: str = "", above: str = "", **more: Any) -> dict[str, Any]:
    return {"uuid": name or sender, "sender": sender, "content": list(blocks), "parent_message_uuid": above, **more}


def typed(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def written(path: Path, content: Any, *, lines: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(map(json.dumps, content)) + "\n" if lines else json.dumps(content)
    path.write_text(content if isinstance(content, str) else text, encoding="utf-8")
    return path


def found(source: str, *paths: Path, **options: Any) -> list[Record]:
    with opened([str(path) for path in paths], now=NOW, **options) as given:
        parts, others = sources.chosen(given, source)
        return [*SOURCES[source].read(given, parts), *others]


def texts(records: list[Record]) -> list[str]:
    """`role: text` of messages with who wrote them where it is declared, and facts and files."""
    told: list[str] = []
    for one in records:
        if isinstance(one, Said):
            for message in one.messages:
                by = f" ({message['author']})" if "author" in message else ""
                told.append(f"{message['role']}{by}: {message['content']}")
        elif isinstance(one, StoredMemory):
            told.append(f"fact: {one.fact.get('content')}")
        elif isinstance(one, KeptFile):
            told.append(f"{one.path}: {one.data.decode()}")
    return told


def left_out(records: list[Record]) -> Counter[str]:
    counts = Counter[str]()
    for one in records:
        if isinstance(one, LeftOut):
            counts[one.reason] += one.number
    return counts


VOICE = {"content_type": "audio_transcription", "text": "My sister lives in Porto", "direction": "in"}
ABOUT = {"content_type": "user_editable_context", "user_profile": "I keep goats", "user_instructions": "Be brief"}
LISTED = "1. [2025-11-02]. Keeps bees.\n2. [2025-12-01]. Is allergic\nto walnuts."
TOLD = ("The user provided the following information about themselves. It is shown to you in all conversations.\n"
        "User profile:\n```I keep goats```")  # fmt: skip
# Source, what is in the file, what comes of it, what is left out.
CASES: list[tuple[str, Any, list[str], dict[str, int]]] = [
    ("chatgpt", [chatgpt(said("user", VOICE, {"content_type": "audio_asset_pointer"}, kind="multimodal_text"),
                         said("assistant", {**VOICE, "text": "How nice"}, kind="multimodal_text"))],
     ["user: My sister lives in Porto", "assistant: How nice"], {}),
    ("chatgpt", [chatgpt(said("user", {"content_type": "image_asset_pointer"}, kind="multimodal_text"),
                         said("assistant", "A fern \ue200cite\ue202turn0search1\ue201."),
                         said("assistant", "old", weight=0), said("assistant", "f()", recipient="python"),
                         said("assistant", "Hm", kind="thoughts"), said("system", "Be kind"))],
     ["assistant: A fern ."], {"media": 1, "not_shown": 1, "tool": 1, "thoughts": 1, "system": 1}),
    ("chatgpt", [chatgpt(said("user", "secret"), is_do_not_remember=True)], [], {"do_not_remember": 1}),
    # No such year is one of a conversation: it is of when that began.
    ("chatgpt", [chatgpt(said("user", "One", create_time="0001-01-01T00:00:00Z"))], ["user: One"], {}),
    # Nobody says which was shown, nor when anything was said.
    ("chatgpt", [chatgpt(said("user", "One", create_time=None), said("assistant", "Two", create_time=None),
                         current_node=None, create_time=None)], ["user: One", "assistant: Two"], {}),
    ("chatgpt", [chatgpt({"author": {"role": "user"}, "content": ABOUT,
                          "metadata": {"is_visually_hidden_from_conversation": True}})],
     ["user (person): I keep goats", "user (person): Be brief"], {}),
    ("chatgpt", [chatgpt({"author": {"role": "user"}, "content": {**ABOUT, "user_profile": TOLD},
                          "metadata": {"user_context_message_data": {"about_user_message": "I keep goats"}}})],
     ["user (person): I keep goats", "user (person): Be brief"], {}),
    # What is older than the newest list, and not on it, was forgotten there.
    ("chatgpt", [chatgpt(said("assistant", "Has a boat", recipient="bio", create_time=AT - 9),
                         {"author": {"role": "system"}, "content": {"content_type": "model_editable_context",
                                                                    "model_set_context": LISTED}},
                         said("assistant", "Has a cat", recipient="bio"))],
     ["fact: Keeps bees.", "fact: Is allergic\nto walnuts.", "fact: Has a cat"], {"forgotten": 1}),
    ("claude", [claude(block("human", typed("I live in Ghent"), name="a"), block("assistant", name="b", above="a"),
                       block("human", typed("I live in Bruges"), name="c"),
                       block("assistant", typed("Noted"), name="d", above="c"))],
     ["user: I live in Bruges", "assistant: Noted"], {"other_branch": 2}),
    # Exports without branches: all follow the root, or nothing says what they follow.
    ("claude", [claude(block("human", typed("One"), name="a"), block("assistant", typed("Two"), name="b"))],
     ["user: One", "assistant: Two"], {}),
    ("claude", [claude(block("human", typed("Draw")), block("assistant", {"type": "tool_use"}, above="human",
                text="```\nThis block is not supported on your current device yet.\n```"))],
     ["user: Draw"], {"tool": 1}),
    ("claude", [claude(block("human", {"type": "voice_note", "text": "I sail"}, text="", files=[{"file_uuid": "f"}]),
                       {"uuid": "o", "sender": "assistant", "text": "Where to?"})],
     ["user: I sail", "assistant: Where to?"], {"media": 1}),
    ("claude", [claude(block("human", typed(""), attachments=[
        {"file_name": "paste.txt", "extracted_content": "I was born in Lund"},
        {"file_name": "b.md", "extracted_content": "A report"}]))],
     ["user: I was born in Lund", "user (application): A report"], {}),
    ("claude", [claude(block("human", typed("Sum it up"), attachments=[{"extracted_content": "Dear Ann, I moved"}]))],
     ["user: Sum it up", "user (application): Dear Ann, I moved"], {}),
    ("claude", [{"conversations_memory": "**Work**\n\nRuns a bakery.\n\n- Has two dogs\n- Sails", "account_uuid": "x"}],
     ["fact: Runs a bakery.", "fact: Has two dogs", "fact: Sails"], {}),
    ("deepseek", [{"id": "d", "inserted_at": "2026-04-30T19:00:00+08:00", "mapping": {
        "root": {"parent": None, "message": None},
        "1": {"parent": "root", "message": {"fragments": [{"type": "REQUEST", "content": "我住在苏州"}],
                                            "inserted_at": "2026-04-30T19:00:01+08:00"}},
        "2": {"parent": "1", "message": {"fragments": [{"type": "RESPONSE", "content": "old"}],
                                         "inserted_at": "2026-04-30T19:00:02+08:00"}},
        "3": {"parent": "1", "message": {"fragments": [{"type": "THINK", "content": "Hm"},
              {"type": "RESPONSE", "content": "好"}], "inserted_at": "2026-04-30T19:00:03+08:00"}}}}],
     ["user: 我住在苏州", "assistant: 好"], {"other_branch": 1, "thoughts": 1}),
    ("open-webui", [{"id": "o", "chat": {"history": {"currentId": "b", "messages": {
        "a": {"id": "a", "parentId": None, "role": "user", "content": "I grow roses", "timestamp": AT},
        "x": {"id": "x", "parentId": "a", "role": "assistant", "content": "old", "timestamp": AT},
        "b": {"id": "b", "parentId": "a", "role": "assistant",
              "content": '<details type="reasoning" done="true">Hm</details>\nLovely', "timestamp": AT}}}}}],
     ["user: I grow roses", "assistant: Lovely"], {"other_branch": 1}),
    ("librechat", {"conversationId": "l", "messages": [{"messageId": "1", "isCreatedByUser": True, "text": "I bake",
        "children": [{"messageId": "2", "isCreatedByUser": False, "text": "",
                      "content": [typed("Bread?"), {"type": "think", "think": "Hm"}], "children": []}]}]},
     ["user: I bake", "assistant: Bread?"], {}),
    ("lobechat", {"version": 7, "state": {"messages": [
        {"id": "b", "role": "assistant", "content": "Hello", "topicId": "t", "createdAt": (AT + 1) * 1000},
        {"id": "a", "role": "user", "content": "I ski", "topicId": "t", "createdAt": AT * 1000}]}},
     ["user: I ski", "assistant: Hello"], {}),
    ("cherry-studio", {"localStorage": {}, "indexedDB": {
        "topics": [{"id": "t", "messages": [{"id": "a", "role": "user", "blocks": ["1"]},
                                            {"id": "b", "role": "assistant", "blocks": ["2", "3"]}]}],
        "message_blocks": [{"id": "1", "type": "main_text", "content": "I row"},
                           {"id": "2", "type": "thinking", "content": "Hm"},
                           {"id": "3", "type": "main_text", "content": "Where?"}]}},
     ["user: I row", "assistant: Where?"], {}),
    ("grok", {"conversations": [{"conversation": {"id": "g"}, "responses": [
        {"response": {"_id": "1", "sender": "human", "message": "I paint",
                      "create_time": {"$date": {"$numberLong": str(AT * 1000)}}}},
        {"response": {"_id": "2", "sender": "ASSISTANT", "message": "Oils?", "create_time": {}}}]}]},
     ["user: I paint", "assistant: Oils?"], {}),
    ("mistral", [{"id": "2", "chatId": "c", "role": "assistant", "content": "Ja", "createdAt": "2026-01-01T00:00:02Z"},
                 {"id": "1", "chatId": "c", "role": "user", "content": "I knit", "createdAt": "2026-01-01T00:00:01Z"}],
     ["user: I knit", "assistant: Ja"], {}),
    ("gemini", [{"header": "Gemini Apps", "title": "Prompted I climb", "time": "2026-01-01T10:00:00.000Z",
                 "safeHtmlItem": [{"html": "<p>Where &amp; when?</p><p>Rope?</p>"}]},
                {"header": "Gemini Apps", "title": "Gave feedback", "time": "2026-01-01T11:00:00Z"},
                {"header": "Gemini-Apps", "title": "Eingegebener Prompt: Ich laufe", "time": "2026-01-01T12:00:00Z"},
                {"header": "YouTube", "title": "Said something else", "time": "2026-01-01T12:00:00Z"},
                {"header": "Maps", "title": "Used Maps", "time": "2026-01-01T12:00:00Z"}],
     ["user: I climb", "assistant: Where & when?\nRope?", "user: Ich laufe"], {"not_shown": 1, "other_file": 2}),
    ("graphiti", [{"uuid": "1", "fact": "Lives in Nantes", "group_id": "u1", "valid_at": "2020-01-01T00:00:00"},
                  {"uuid": "2", "fact": "Lives in Lyon", "group_id": "u1", "invalid_at": "2025-01-01T00:00:00"}],
     ["fact: Lives in Nantes"], {"no_longer_true": 1}),
    ("hindsight", {"items": [{"id": "1", "text": "Sails", "bank_id": "u1", "mentioned_at": "2026-01-01T00:00:00Z"},
                             {"id": "2", "text": "Rows", "bank_id": "u1", "state": "invalidated"}], "total": 2},
     ["fact: Sails"], {"no_longer_true": 1}),
    ("honcho", {"items": [{"id": "1", "content": "Sails", "observer_id": "bot", "observed_id": "u1"}]},
     ["fact: Sails"], {}),
    ("memobase", {"profiles": [{"id": "1", "content": "Nantes", "topic": "basic_info", "sub_topic": "city"}]},
     ["fact: basic info city: Nantes"], {}),
    ("mem0", [{"id": "1", "memory": "I sail", "user_id": "mara", "role": "user", "actor_id": "Mara"},
              {"id": "2", "memory": "I row", "user_id": "mara", "role": "user", "actor_id": "Tomas"},
              {"id": "3", "memory": "I remind you", "user_id": "mara", "role": "assistant"},
              {"id": "4", "memory": "Take the trail", "user_id": "mara", "metadata": {"attributed_to": "assistant"}},
              {"id": "5", "memory": "I call", "user_id": "mara", "role": None, "metadata": {"role": "assistant"}},
              {"id": "6", "memory": "I sew", "user_id": "mara", "actor_id": "", "metadata": {"actor_id": "Tomas"}}],
     ["fact: I sail"], {"others_words": 2, "assistants_words": 3}),
    ("langgraph", [{"namespace": ["m"], "key": "a", "value": {"food_preferences": "I like olives"}},
                   {"namespace": ["m"], "key": "b", "value": {"kind": "Me", "content": {"name": "Mara", "age": 4}}},
                   {"namespace": ["m"], "key": "c", "value": {"text": "Parcel"}, "expires_at": "2026-05-01T00:00:00Z"},
                   {"namespace": ["m"], "key": "d", "value": {"n": 5}}],
     ["fact: I like olives", "fact: name: Mara; age: 4"], {"expired": 1, "no_text": 1}),
    ("facts", "text,user_id,date\nKeeps bees,u1,2026-01-01\n\"Sails, often\",u2,\n",
     ["fact: Keeps bees", "fact: Sails, often"], {}),
    ("facts", "User_ID;Text;Ends\nu1;Keeps bees;2020-01-01\nu1;Sails, often;\n", ["fact: Sails, often"],
     {"expired": 1}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "content", "expected", "left"), CASES, ids=[f"{place}-{one[0]}" for place, one in enumerate(CASES)]
)
def test_what_comes_in_and_what_is_left_out(
    tmp_path: Path, source: str, content: Any, expected: list[str], left: dict[str, int]
) -> None:
    path = written(tmp_path / ("x.csv" if isinstance(content, str) else "x.json"), content)
    records = found(source, path)
    assert texts(records) == expected
    assert left_out(records) == left
    with opened([str(path)]) as given:
        assert sources.detected(given) == source


@each(
    ("value", "expected"),
    [
        ("2026-03-01T10:00:00", "2026-03-01T09:00:00+00:00"),
        ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00+00:00"),
        (AT, "2026-02-02T02:40:00+00:00"),
        (AT * 1000, "2026-02-02T02:40:00+00:00"),
        (str(AT), "2026-02-02T02:40:00+00:00"),
        ("2031-03-01T10:00:00Z", NOW.isoformat()),
        ("no date", None),
        (True, None),
        # No number of milliseconds makes seconds of these.
        (float("inf"), None),
        ("9" * 400, None),
    ],
)
def test_times_are_never_later_than_now(value: Any, expected: str | None) -> None:
    moment = Given(zone=ZoneInfo("Europe/Berlin"), now=NOW).moment(value)
    assert (moment.isoformat() if moment else None) == expected


def test_thoughts_are_cut_out_in_one_pass() -> None:
    """Otherwise beginnings without an end would each look through the rest."""
    thought = '<details type="reasoning" done="true">x</details>\n'
    message = f"{thought}A <think>b</think>\nc <thinking>d </thinking>e " + "<think>" * 300_000
    talk = Talk(Given(now=NOW), "s")
    talk.say("assistant", message, "1")
    assert talk.messages[0]["content"] == "A c e " + "<think>" * 300_000


def test_what_repeats_a_beginning_is_read_in_one_pass(tmp_path: Path) -> None:
    """Patterns that look through the rest at each beginning would take hours for these."""
    much = 100_000
    piped = "<stdin>\n" * much
    assert coding_agents.typed(f"Mend it\n{piped}</stdin>\n") == "Mend it\n"
    assert coding_agents.typed(f"Mend it\n{piped}").startswith("Mend it\n<stdin>")
    assert coding_agents.typed("<stdin>\nx</stdin>") == ""
    assert coding_agents.typed("<command-name>" * much).startswith("<command-name>")
    command = "<command-name>/fix</command-name><command-args>the bees</command-args>"
    assert (coding_agents.typed(command), coding_agents.typed(command + "<command-args>" * much)) == (
        "/fix the bees",
    ) * 2
    told = {**ABOUT, "user_profile": "The user provided " + "``` " * much}
    context = {"content_type": "model_editable_context", "model_set_context": "\n" * much + LISTED}
    by_model = {"author": {"role": "assistant"}}
    talk = chatgpt({"author": {"role": "user"}, "content": told}, {**by_model, "content": context})
    path = written(tmp_path / "x.json", [talk])
    assert texts(found("chatgpt", path))[-2:] == ["fact: Keeps bees.", "fact: Is allergic\nto walnuts."]
    kept = {"conversations_memory": "#" * much + "\nKeeps bees\nand wasps\n\n# Work\n\n**Home**\n\n#\nSea\n\nSails"}
    [first, *others] = texts(found("claude", written(tmp_path / "memories.json", [kept])))
    assert (first[:8], others) == ("fact: ##", ["fact: Sails"])


def test_a_day_ends_when_it_is_over(tmp_path: Path) -> None:
    """So what ends today still holds; what ends later keeps its end."""
    rows = [{"text": "Lent the key", "user_id": "u1", "expires_at": day} for day in ("2026-05-31", "2099-06-01")]
    [fact] = [one for one in found("facts", written(tmp_path / "x.json", rows)) if isinstance(one, StoredMemory)]
    assert fact.ends == datetime(2099, 6, 2, tzinfo=UTC)
    assert Given(now=NOW).end("2026-06-01") == datetime(2026, 6, 2, tzinfo=UTC)


class TestForms:
    """An export comes as an archive, a folder, or as several files."""

    PARTS = ([chatgpt(said("user", "First"))], [chatgpt(said("user", "Second"), conversation_id="c2")])

    def folder(self, base: Path) -> Path:
        for place, content in enumerate(self.PARTS):
            written(base / f"conversations-00{place}.json", content)
        written(base / "user.json", {"id": "u"})
        written(base / "group_chats.json", [chatgpt(said("user", "Of somebody else"), conversation_id="c3")])
        written(base / ".state/conversations.json", [chatgpt(said("user", "Hidden"))])
        (base / "voice.wav").write_bytes(b"RIFF")
        return base

    def test_each(self, tmp_path: Path) -> None:
        base = self.folder(tmp_path / "export")
        archive = tmp_path / "export.zip"
        with zipfile.ZipFile(archive, "w") as packed:
            for path in base.rglob("*.*"):
                packed.write(path, path.relative_to(base))
            packed.write(base / "user.json", "../../outside.json")
        files = sorted(base.glob("conversations-*.json"))
        for paths in ([base], [archive], files):
            records = found("chatgpt", *paths)
            assert texts(records) == ["user: First", "user: Second"]
            with opened([str(path) for path in paths]) as given:
                assert sources.detected(given) == "chatgpt"
        assert not (tmp_path / "outside.json").exists()

    def test_conversations_come_in_the_order_of_their_dates(self, tmp_path: Path) -> None:
        old = chatgpt(said("user", "Old"), create_time=1)
        records = found("chatgpt", written(tmp_path / "x.json", [*self.PARTS[0], old, {"mapping": {}}]))
        assert texts(records) == ["user: Old", "user: First"]

    def test_of_an_export_of_several_people_one_is_taken(self, tmp_path: Path) -> None:
        def chat(owner: str) -> dict[str, Any]:
            return {"id": owner, "user_id": owner, "chat": {"messages": [{"role": "user", "content": f"I am {owner}"}]}}

        records = found("open-webui", written(tmp_path / "x.json", [chat("ann"), chat("bo")]), user="bo")
        assert (texts(records), left_out(records)) == (["user: I am bo"], {"others_words": 1})
        assert texts(found("open-webui", written(tmp_path / "y.json", [chat("ann")]), user="bo")) == ["user: I am ann"]

    def test_of_an_organisations_export_one_member_is_taken(self, tmp_path: Path) -> None:
        def talk(owner: str) -> dict[str, Any]:
            return claude(block("human", typed(f"I am {owner}"), name=owner), uuid=owner, account={"uuid": owner})

        def kept(owner: str) -> dict[str, Any]:
            return {"conversations_memory": f"Is {owner}", "account_uuid": owner}

        told = written(tmp_path / "conversations.json", [*map(talk, ("ann", "bo")), claude(block("human", typed("?")))])
        known = written(tmp_path / "memories.json", [*map(kept, ("ann", "bo"))])
        records = found("claude", told, known, user="bo")
        # Nor is what names nobody the member's.
        assert (texts(records), left_out(records)) == (["user: I am bo", "fact: Is bo"], {"others_words": 3})
        assert left_out(found("claude", told, known, user="u-1")) == {"others_words": 5}
        # Two accounts of one person, each with a file of its own.
        several = [written(tmp_path / f"{owner}.json", [talk(owner)]) for owner in ("ann", "bo")]
        assert texts(found("claude", *several, user="u-1")) == ["user: I am ann", "user: I am bo"]

    def test_group_chats_are_left_out_however_they_come(self, tmp_path: Path) -> None:
        for name in ("group_chats.json", "group_chats-003.json"):
            path = written(tmp_path / name, [chatgpt(said("user", "Of somebody else"))])
            own = written(tmp_path / "conversations-000.json", self.PARTS[0])
            archive = tmp_path / "export.zip"
            with zipfile.ZipFile(archive, "w") as packed:
                packed.write(path, name)
            for given in ([path], [archive], [own, path]):
                records = found("chatgpt", *given)
                assert texts(records) == (["user: First"] if own in given else [])
                assert left_out(records) == {"others_words": 1}

    def test_a_conversation_without_an_id_is_known_by_its_beginning(self, tmp_path: Path) -> None:
        names = set()
        for place, more in enumerate([[], [block("assistant", typed("Hi"), name="b", above="a")]]):
            one = claude(block("human", typed("I ski"), name="a"), *more, uuid=None)
            [conversation] = found("claude", written(tmp_path / f"{place}.json", [one]))
            assert isinstance(conversation, Said)
            names.add(conversation.body["session_id"])
        assert len(names) == 1

    def test_what_it_looks_like_is_told_without_its_texts(self, tmp_path: Path) -> None:
        for content, told in (
            (self.PARTS[0], "it looks like chatgpt"),
            (
                [{"thread": "Secret words", "turns": [], "Ann Lee": 1, "mara": 2}],
                "found members thread, turns, 2 of other names",
            ),
            ("<!DOCTYPE html><p>Secret words", "found HTML: ask the service for JSON"),
            (json.dumps(self.PARTS[0])[:-9], "it looks like chatgpt; the file ends early, at byte"),
            ([{"role": "user", "content": "Secret words", "id": 1}], "found members role, content, id"),
            (
                [{"type": "message", "user": "U1", "text": "Secret words", "ts": "1.2"}],
                "found members type, user, text",
            ),
            ([], "no source has such a form"),
        ):
            with opened([str(written(tmp_path / "x.json", content))]) as given:
                assert str(sources.found_instead(given)).startswith(told)


class TestCodingAgents:
    SESSION = "0b5ad607-a27a-4c86-ae59-cd815d3c085c"
    CLAUDE: tuple[dict[str, Any], ...] = (
        {"type": "user", "uuid": "a", "sessionId": SESSION, "timestamp": "2026-01-01T10:00:00Z",
         "message": {"role": "user", "content": "Fix it <system-reminder>Be brief</system-reminder>"}},
        {"type": "assistant", "uuid": "b", "sessionId": SESSION,
         "message": {"content": [typed("Done"), {"type": "tool_use", "id": "t"}]}},
        {"type": "user", "uuid": "c", "sessionId": SESSION, "message": {"content": [{"type": "tool_result"}]}},
        {"type": "assistant", "uuid": "d", "isSidechain": True, "sessionId": SESSION, "message": {"content": "Sub"}},
        {"type": "user", "uuid": "e", "sessionId": SESSION, "message": {
            "content": "<command-name>/plan</command-name><command-args>the roof</command-args>"}},
    )  # fmt: skip
    CODEX: tuple[dict[str, Any], ...] = (
        {"type": "session_meta", "payload": {"id": SESSION}},
        {"type": "event_msg", "timestamp": "2026-01-01T10:00:00Z",
         "payload": {"type": "user_message", "message": "Fix it"}},
        {"type": "response_item", "payload": {"type": "message", "role": "developer", "content": []}},
        {"type": "event_msg", "payload": {"type": "item_completed", "item": {
            "type": "AgentMessage", "content": [{"type": "Text", "text": "Ok"}]}}},
    )  # fmt: skip

    def test_claude_code(self, tmp_path: Path) -> None:
        written(tmp_path / "projects/-home-a/one.jsonl", self.CLAUDE, lines=True)
        records = found("claude-code", tmp_path / "projects")
        assert texts(records) == ["user (person): Fix it", "assistant (model): Done", "user (person): /plan the roof"]
        assert records[0].body == {"session_id": self.SESSION}  # type: ignore[union-attr]
        assert left_out(records) == {"tool": 1, "not_shown": 1}

    def test_codex(self, tmp_path: Path) -> None:
        path = written(tmp_path / f"sessions/2026/rollout-2026-01-01-{self.SESSION}.jsonl", self.CODEX, lines=True)
        records = found("codex", path)
        assert texts(records) == ["user (person): Fix it", "assistant (model): Ok"]
        assert records[0].body == {"session_id": self.SESSION}  # type: ignore[union-attr]

    def test_ids_and_texts_are_those_of_the_hook(self, tmp_path: Path) -> None:
        """So what one of them stored is known to the other."""
        for read, content in ((coding_agents.claude_code, self.CLAUDE), (coding_agents.codex, self.CODEX)):
            path = written(tmp_path / f"rollout-{self.SESSION}.jsonl", content, lines=True)
            posted = [line.message for line in hook.said(path, 0)]
            with opened([str(path)]) as given:
                [conversation, *_] = read(given, given.parts)
            assert isinstance(conversation, Said)
            assert [(one["external_id"], one["content"], one["author"]) for one in conversation.messages] == [
                (one["external_id"], one["content"], one["author"]) for one in posted
            ]
        for text in (
            "a <x-y>b</x-y>",
            "```\n<x-y>\n```",
            "<ide_file>x</ide_file>y",
            "<x-y> never",
            "<stdin>\na</stdin>",
        ):
            assert coding_agents.typed(text) == hook.typed(text)


class TestFolders:
    def test_markdown(self, tmp_path: Path) -> None:
        for name in ("human.md", "trips/leiden.md", ".git/x.md", "pic.png"):
            written(tmp_path / name, "Likes tea")
        records = found("markdown", tmp_path, agent="writer")
        assert texts(records) == ["/memories/human.md: Likes tea", "/memories/trips/leiden.md: Likes tea"]
        assert left_out(records) == {"other_file": 1, "hidden": 1}
        with opened([str(tmp_path)]) as given:
            assert sources.detected(given) == "markdown"

    def test_a_palace_of_the_exact_backend(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """MemPalace writes the time on its machine's clock, without the zone."""
        with closing(sqlite3.connect(tmp_path / "sqlite_exact.sqlite3")) as database, database:
            database.execute("CREATE TABLE collections (id INTEGER PRIMARY KEY, name TEXT)")
            database.execute(
                "CREATE TABLE documents (collection_id INTEGER, id TEXT, document TEXT, metadata_json TEXT)"
            )
            members = {"wing": "home", "source_file": "a/notes.md", "chunk_index": 0, "filed_at": "2026-05-31T23:30:00"}
            for number, collection in enumerate(("mempalace_drawers", "mempalace_closets")):
                database.execute("INSERT INTO collections VALUES (?, ?)", (number, collection))
                row = (number, json.dumps(members))
                database.execute("INSERT INTO documents VALUES (?, 'd', 'She bakes', ?)", row)
        monkeypatch.setenv("TZ", "Asia/Shanghai")
        try:
            for zone, at in ((None, "15:30"), (ZoneInfo("Asia/Tokyo"), "14:30")):
                time.tzset()
                [conversation] = found("mempalace", tmp_path, zone=zone)
                assert isinstance(conversation, Said)
                assert [(one["content"], one["timestamp"]) for one in conversation.messages] == [
                    ("She bakes", f"2026-05-31T{at}:00+00:00")
                ]
        finally:
            monkeypatch.undo()
            time.tzset()

    def test_drawers_as_services_give_them(self, tmp_path: Path) -> None:
        """Points of Qdrant with their payload, and rows of Milvus."""
        about = {"wing": "home", "room": "kitchen", "source_file": "/n/a.md", "filed_at": "2026-05-31T23:30:00"}
        hidden = {**about, "source_file": "/n/.keys/b.md"}
        drawers = [("1", "She bakes", about), ("2", "She rows", about), ("3", "Key", hidden), ("4", "", about)]
        points = [
            {"id": f"p{name}", "payload": {"mempalace_id": name, "document": text, "metadata": more}}
            for name, text, more in drawers
        ]
        rows = [{"id": name, "document": text, "metadata": more} for name, text, more in drawers]
        for content in (points, {"items": rows}):
            path = written(tmp_path / "x.json", content)
            records = found("mempalace", path, zone=ZoneInfo("UTC"))
            assert texts(records) == ["tool: She bakes", "tool: She rows"]
            assert left_out(records) == {"hidden": 1, "no_text": 1}
            [conversation, *_] = records
            assert isinstance(conversation, Said)
            assert conversation.messages[0] == {
                "role": "tool", "content": "She bakes", "external_id": "1", "timestamp": "2026-05-31T23:30:00+00:00",
                "metadata": {"wing": "home", "room": "kitchen", "source": "a.md"},
            }  # fmt: skip
            with opened([str(path)]) as given:
                assert sources.detected(given) == "mempalace"
        # A folder without a database of a palace.
        written(tmp_path / "palace/config.yaml", "x")
        with pytest.raises(ValueError, match="Qdrant"):
            found("mempalace", tmp_path / "palace")

    def test_a_relation_that_ends_some_day_still_holds(self, tmp_path: Path) -> None:
        path = tmp_path / "knowledge_graph.sqlite3"
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("CREATE TABLE entities (id TEXT, name TEXT)")
            database.execute(
                "CREATE TABLE triples (id TEXT, subject TEXT, predicate TEXT, object TEXT, valid_from TEXT, "
                "valid_to TEXT, confidence REAL, extracted_at TEXT)"
            )
            for name, until in (("t1", "2099-12-31"), ("t2", "2026-05-31"), ("t3", "soon")):
                database.execute(
                    "INSERT INTO triples VALUES (?, 'Max', 'rents', 'a flat', '', ?, 1, '')", (name, until)
                )
        records = found("mempalace", path)
        assert [one.ends for one in records if isinstance(one, StoredMemory)] == [datetime(2100, 1, 1, tzinfo=UTC)]
        assert left_out(records) == {"no_longer_true": 2}

    def test_a_sqlite_store(self, tmp_path: Path) -> None:
        with closing(sqlite3.connect(tmp_path / "store.db")) as database, database:
            database.execute("CREATE TABLE store (prefix TEXT, key TEXT, value BLOB, created_at TEXT)")
            value = json.dumps({"text": "Likes tea"}).encode()
            database.execute("INSERT INTO store VALUES ('memories.u1', 'a', ?, '2026-01-01 10:00:00')", (value,))
        [fact] = found("langgraph", tmp_path / "store.db", namespace="memories,{user}")
        assert isinstance(fact, StoredMemory)
        assert (fact.fact["content"], fact.whose.user_id) == ("Likes tea", "u1")
        assert fact.fact["createdAt"] == "2026-01-01T10:00:00+00:00"
        with opened([str(tmp_path / "store.db")]) as given:
            assert sources.detected(given) == "langgraph"
