"""manage.py import_memories, on small exports in the forms of ChatGPT, of Claude and of POST /turns."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import CommandError, call_command
from django.utils import timezone

from memories.capture import ingest
from memories.imports import conversation_import
from memories.invariants import check
from memories.models import Session, Tenant, Turn
from memories.retrieval.search import TURN, SearchFilters, SearchRequest, search
from tests import factories

# 2023-03-08 22:30 UTC.
THEN = 1678314600.0


def _node(
    name: str, parent: str | None, role: str, *parts: Any, at: float | None = None, **over: Any
) -> dict[str, Any]:
    message = {
        "id": f"m-{name}",
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": at,
        "content": {"content_type": over.pop("content_type", "text"), "parts": list(parts)},
        "metadata": over.pop("metadata", {}),
        "recipient": over.pop("recipient", "all"),
    }
    return {"id": name, "message": message, "parent": parent, "children": []}


# A tree: the second question was asked anew, and the assistant looked something up.
CHATGPT = [
    {
        "conversation_id": "c-1",
        "title": "Moving",
        "create_time": THEN,
        "current_node": "a2b",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["sys"]},
            "sys": _node("sys", "root", "system", "", metadata={"is_visually_hidden_from_conversation": True}),
            "u1": _node("u1", "sys", "user", "I moved to Leiden. My password is Tr0ub4dor-9x", at=THEN),
            "a1": _node("a1", "u1", "assistant", "How nice!", at=THEN + 5),
            "u2a": _node("u2a", "a1", "user", "And I like tee", at=THEN + 60),
            "a2a": _node("a2a", "u2a", "assistant", "Golf?", at=THEN + 65),
            "u2b": _node("u2b", "a1", "user", "And I like tea", {"asset_pointer": "file://x"}, at=THEN + 90,
                         content_type="multimodal_text"),
            "call": _node("call", "u2b", "assistant", "search('tea')", at=THEN + 91, recipient="browser"),
            "tool": _node("tool", "call", "tool", "Tea is a drink", at=THEN + 92),
            "think": _node("think", "tool", "assistant", "Hm", at=THEN + 93, content_type="thoughts"),
            "a2b": _node("a2b", "think", "assistant", "Noted.", at=None),
        },
    },
    {"conversation_id": "c-0", "title": "Empty", "create_time": THEN - 9, "mapping": {}, "current_node": None},
]  # fmt: skip
CLAUDE = [
    {
        "uuid": "k-1",
        "name": "Tea",
        "created_at": "2023-03-08T22:30:00.000000Z",
        "account": {"uuid": "0"},
        "chat_messages": [
            {
                "uuid": "k-m1",
                "sender": "human",
                "text": "I drink tea",
                "content": [{"type": "text", "text": "I drink tea"}],
                "created_at": "2023-03-08T22:30:00.000000Z",
                "attachments": [{"file_name": "tea.txt", "extracted_content": "All about tea"}],
            },
            {
                "uuid": "k-m2",
                "sender": "assistant",
                "text": "",
                "content": [{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Green or black?"}],
                "created_at": "2023-03-08T22:30:05.000000Z",
            },
        ],
    }
]
LINES = [
    {"user_id": "u-7", "session_id": "s1", "messages": [{"role": "user", "content": "I live in Delft"}] * 2},
    {"user_id": "u-7", "session_id": "s1", "messages": [{"role": "user", "content": "I live in Delft"}]},
    {"user_id": "u-8", "session_id": "s1", "agent_id": "A", "messages": [{"role": "user", "content": "我喜欢喝茶"}]},
]


@pytest.fixture
def tenant(db: None) -> Tenant:
    return factories.tenant(slug="acme")


def run(path: Path, source: str, *more: str) -> str:
    said = StringIO()
    call_command("import_memories", str(path), "--from", source, "--tenant", "acme", *more, stdout=said)
    return said.getvalue()


def written(tmp_path: Path, content: Any) -> Path:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def lines(tmp_path: Path, given: list[Any]) -> Path:
    path = tmp_path / "conversations.jsonl"
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in given) + "\n\n", encoding="utf-8")
    return path


def turns(name: str) -> list[tuple[str, str]]:
    return list(Turn.objects.filter(session__external_id=name).order_by("number").values_list("role", "content"))


def test_the_branch_of_chatgpt_that_was_shown_last(tenant: Tenant, tmp_path: Path) -> None:
    said = run(written(tmp_path, CHATGPT), "chatgpt", "--user", "u-1")
    assert said.startswith("2 conversations: 4 messages stored, 0 were there already, 1 secret")
    assert turns("c-1") == [
        ("user", "I moved to Leiden. My password is [redacted:password]"),
        ("assistant", "How nice!"),
        ("user", "And I like tea"),
        ("assistant", "Noted."),
    ]
    first, *_, last = Turn.objects.order_by("number")
    assert (first.sent_at.timestamp(), last.sent_at.timestamp(), first.external_id) == (THEN, THEN, "m-u1")
    assert Session.objects.get().queue.pending_rounds == 2


def test_claudes_messages_and_what_was_attached_to_them(tenant: Tenant, tmp_path: Path) -> None:
    run(written(tmp_path, CLAUDE), "claude", "--user", "u-1")
    assert turns("k-1") == [("user", "I drink tea"), ("user", "All about tea"), ("assistant", "Green or black?")]
    assert list(Turn.objects.order_by("number").values_list("author", flat=True)) == ["person", "application", "model"]
    assert Turn.objects.get(number=1).sent_at.timestamp() == THEN


def test_lines_name_their_people_and_sessions(tenant: Tenant, tmp_path: Path) -> None:
    run(lines(tmp_path, LINES), "jsonl")
    sessions = Session.objects.order_by("created_at").values_list("end_user__external_id", "agent_id", "turn_count")
    assert list(sessions) == [("u-7", "", 3), ("u-8", "a", 1)]


@pytest.mark.parametrize(("source", "content"), [("chatgpt", CHATGPT), ("claude", CLAUDE), ("jsonl", LINES)])
def test_a_second_time_stores_nothing_more(tenant: Tenant, tmp_path: Path, source: str, content: list[Any]) -> None:
    path = lines(tmp_path, content) if source == "jsonl" else written(tmp_path, content)
    dry = run(path, source, "--user", "u-1", "--dry-run")
    assert not Turn.objects.exists()
    first = run(path, source, "--user", "u-1")
    stored = Turn.objects.count()
    assert f": {stored} messages stored, 0 were there" in first
    assert f": {stored} messages would be stored, 0 were there" in dry
    assert f": 0 messages stored, {stored} were there already" in run(path, source, "--user", "u-1")
    assert f": 0 messages would be stored, {stored} were" in run(path, source, "--user", "u-1", "--dry-run")
    assert Turn.objects.count() == stored


def test_after_a_break_it_goes_on(tenant: Tenant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, calls = ingest.store_lacking, []

    def broken(**given: Any) -> Any:
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return store(**given)

    long = [{"session_id": "long", "messages": [{"role": "user", "content": f"Number {n}"} for n in range(1001)]}]
    path = lines(tmp_path, long)
    monkeypatch.setattr(ingest, "store_lacking", broken)
    with pytest.raises(KeyboardInterrupt):
        run(path, "jsonl", "--user", "u-1")
    assert Turn.objects.count() == 1000
    assert ": 1 message stored, 1,000 were there already" in run(path, "jsonl", "--user", "u-1")
    assert [text for _, text in turns("long")] == [f"Number {n}" for n in range(1001)]


def test_an_imported_history_is_found_by_until(tenant: Tenant, tmp_path: Path) -> None:
    run(written(tmp_path, CLAUDE), "claude", "--user", "u-1")
    run(lines(tmp_path, [{**LINES[0], "user_id": "u-1", "session_id": "new"}]), "jsonl")

    def found(**by: Any) -> set[str]:
        wanted = SearchRequest("u-1", "tea Delft", kinds=[TURN], filters=SearchFilters(**by))
        return {one.text for one in search(tenant=tenant, search=wanted, now=timezone.now()).results}

    assert {"I drink tea", "I live in Delft"} <= found()
    until = timezone.now().replace(year=2024)
    assert "I drink tea" in found(until=until)
    assert "I live in Delft" not in found(until=until)


def test_what_the_api_refuses_is_refused_by_its_place(
    tenant: Tenant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = [
        {"session_id": "s1", "messages": [{"role": "king", "content": "Secret words"}]},
        "no conversation",
        {"session_id": "s2", "messages": [{"role": "user", "content": "x" * (1024 * 1024 + 1)}]},
        {"session_id": "s3", "messages": [{"role": "user", "content": "Fine"}]},
    ]
    with pytest.raises(CommandError, match="not stored"):
        run(lines(tmp_path, bad), "jsonl", "--user", "u-1")
    told = capsys.readouterr().err
    assert [line.split(":")[0] for line in told.splitlines()] == ["Conversation 1", "Conversation 2"]
    assert "/messages/0/role" in told
    assert "Secret" not in told
    assert [turn.content for turn in Turn.objects.all()] == ["Fine"]


def test_what_is_nested_too_deeply_is_refused_by_its_place(
    tenant: Tenant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, deep = tmp_path / "export.jsonl", '{"a":' * 700 + "1" + "}" * 700
    told = '{"session_id": "%s", "messages": [{"role": "user", "content": "Fine", "metadata": {"a": %s}}]}\n'
    path.write_text(told % ("s1", deep) + told % ("s2", 1))
    with pytest.raises(CommandError, match="not stored"):
        run(path, "jsonl", "--user", "u-1")
    assert capsys.readouterr().err.startswith("Conversation 1: ")
    assert [turn.session.external_id for turn in Turn.objects.select_related("session")] == ["s2"]


def test_a_conversation_is_posted_in_parts_that_a_request_can_have(
    tenant: Tenant, tmp_path: Path, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A hundredth of what they are.
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE //= 100
    monkeypatch.setattr(conversation_import, "_PART", conversation_import._PART // 100)
    messages = [{"role": "user", "content": f"{at} {'bread ' * 800}", "external_id": str(at)} for at in range(30)]
    path = tmp_path / "export.jsonl"
    path.write_text(json.dumps({"session_id": "s1", "messages": messages}))
    assert path.stat().st_size > settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert "30 messages stored" in run(path, "jsonl", "--user", "u-1")
    assert list(Turn.objects.order_by("number").values_list("external_id", flat=True)) == [str(at) for at in range(30)]


@pytest.mark.parametrize("content", ["", "{", "{}", '"text"', "[1, null]", "[" * 20_000])
def test_a_file_of_something_else(tenant: Tenant, tmp_path: Path, content: str) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(content)
    for source in ("chatgpt", "claude", "auto"):
        with pytest.raises(CommandError, match=r"not as it should be|was recognised"):
            run(path, source, "--user", "u-1")


def _chat(*nodes: dict[str, Any], shown: str) -> list[dict[str, Any]]:
    mapping = {"root": {"message": None, "parent": None}, **{node["id"]: node for node in nodes}}
    return [{"conversation_id": "c-1", "create_time": THEN, "current_node": shown, "mapping": mapping}]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [("a\x00b", "nul"), ("a\ud83d", "surrogate"), ("x" * (1024 * 1024 + 1), "too_large"),
     ("pw " * 60_000, "too_many_secrets")],
)  # fmt: skip
@pytest.mark.parametrize("source", ["chatgpt", "jsonl"])
def test_a_bad_message_is_left_out_alone(tenant: Tenant, tmp_path: Path, source: str, bad: str, reason: str) -> None:
    """Nobody can mend it, so it is no failure; a dry run says the same."""
    texts = ["I live in Delft", bad, "I like tea"]
    if source == "jsonl":
        path = tmp_path / "conversations.jsonl"
        path.write_text(
            json.dumps({"session_id": "c-1", "messages": [{"role": "user", "content": one} for one in texts]})
        )
    else:
        nodes = [_node(str(at), str(at - 1) if at else "root", "user", text, at=THEN) for at, text in enumerate(texts)]
        path = tmp_path / "conversations.json"
        path.write_text(json.dumps(_chat(*nodes, shown="2")))
    for verb in ("would be stored", "stored"):
        said = run(path, source, "--user", "u-1", *(["--dry-run"] if verb != "stored" else []))
        assert f"1 conversation: 2 messages {verb}, 0 were there" in said
        assert f"1 left out: {reason}" in said
    assert turns("c-1") == [("user", "I live in Delft"), ("user", "I like tea")]


def test_messages_with_many_values_come_in_several_requests(tenant: Tenant, tmp_path: Path) -> None:
    messages = [{"role": "user", "content": f"I row {at}", "metadata": {"x": [1] * 1000}} for at in range(250)]
    assert "250 messages stored" in run(
        lines(tmp_path, [{"session_id": "s", "messages": messages}]), "jsonl", "--user", "u"
    )


def test_names_say_who_of_several_spoke(tenant: Tenant, tmp_path: Path) -> None:
    nodes = [_node(who, "root", "user", f"I am {who}", at=THEN) for who in ("Tomas", "mara")]
    nodes[1]["parent"] = "Tomas"
    for node in nodes:
        node["message"]["author"]["name"] = node["id"]
    run(written(tmp_path, _chat(*nodes, shown="mara")), "chatgpt", "--user", "mara")
    authors = Turn.objects.order_by("number").values_list("content", "author")
    assert list(authors) == [("I am Tomas", "other"), ("I am mara", "person")]


def test_a_later_export_leaves_the_old_branch(tenant: Tenant, tmp_path: Path) -> None:
    first = [_node("u1", "root", "user", "I work at the mill", at=THEN), _node("a1", "u1", "assistant", "ok", at=THEN)]
    second = [_node("u2", "root", "user", "I work at the harbour", at=THEN + 9)]
    left = Turn.objects.exclude(left_at=None).values_list("content", flat=True)
    old, new = _chat(*first, shown="a1"), _chat(*first, *second, shown="u2")
    run(written(tmp_path, old), "chatgpt", "--user", "u-1")
    dry = run(written(tmp_path, new), "chatgpt", "--user", "u-1", "--dry-run")
    assert not left.all()
    said = run(written(tmp_path, new), "chatgpt", "--user", "u-1")
    assert "2 turns are of a branch that the conversation has left since." in said
    assert dry.replace("would be stored", "stored") == said
    assert list(left.order_by("number")) == ["I work at the mill", "ok"]
    assert Turn.objects.get(content="I work at the harbour").follows == 0
    # An older export, imported later, knows less.
    run(written(tmp_path, old), "chatgpt", "--user", "u-1")
    assert left.all().count() == 2
    # The person went back to the first.
    run(written(tmp_path, _chat(*first, *second, shown="a1")), "chatgpt", "--user", "u-1")
    assert list(left.all()) == ["I work at the harbour"]
    # What is hidden there since does not make it an older export.
    hidden = {**first[1], "message": {**first[1]["message"], "weight": 0}}
    third = _node("a3", "a1", "assistant", "Which mill?", at=THEN + 20)
    run(written(tmp_path, _chat(first[0], hidden, *second, third, shown="a3")), "chatgpt", "--user", "u-1")
    assert sorted(left.all()) == ["I work at the harbour", "ok"]
    assert check() == []


def test_a_file_of_another_source_is_an_error_that_names_it(tenant: Tenant, tmp_path: Path) -> None:
    path = written(tmp_path, CLAUDE)
    with pytest.raises(CommandError, match="it looks like claude"):
        run(path, "chatgpt", "--user", "u-1", "--dry-run")
    assert run(path, "auto", "--user", "u-1").startswith("This is of claude.\n1 conversation: 3 messages stored")


def test_where_capture_is_off_nothing_is_said_to_be_stored(tenant: Tenant, tmp_path: Path) -> None:
    Tenant.objects.update(capture=False)
    with pytest.raises(CommandError, match="not stored"):
        run(written(tmp_path, CLAUDE), "claude", "--user", "u-1")


def test_it_wants_a_person_and_a_file(tenant: Tenant, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="--user"):
        run(written(tmp_path, CLAUDE), "claude")
    with pytest.raises(CommandError, match="cannot be read"):
        run(tmp_path / "none.json", "claude", "--user", "u-1")
    factories.end_user(tenant, external_id="u-9", restricted_at=factories.NOW)
    with pytest.raises(CommandError, match="Conversation 1"):
        run(written(tmp_path, CLAUDE), "claude", "--user", "u-9")


def test_a_dry_run_of_two_exports_of_a_conversation_counts_as_the_run(tenant: Tenant, tmp_path: Path) -> None:
    """The second leaves what the first would have stored."""
    first = [_node("u1", "root", "user", "I work at the mill", at=THEN)]
    second = [*first, _node("u2", "root", "user", "I work at the harbour", at=THEN + 9)]
    for name, content in (("a", _chat(*first, shown="u1")), ("b", _chat(*second, shown="u2"))):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    dry = run(tmp_path, "auto", "--user", "u-1", "--dry-run")
    said = run(tmp_path, "auto", "--user", "u-1")
    assert "1 turn is of a branch that the conversation has left since." in said
    assert dry.replace("would be stored", "stored") == said


@pytest.mark.parametrize("source", ["auto", "chatgpt"])
def test_of_a_file_that_ends_early_what_is_whole_comes_in(
    tenant: Tenant, tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str
) -> None:
    talks = [
        {**_chat(_node("u", "root", "user", text, at=THEN), shown="u")[0], "conversation_id": text} for text in "abc"
    ]
    whole = json.dumps(talks)
    path = tmp_path / "conversations.json"
    path.write_text(whole[:-40])
    for verb in ("would be stored", "stored"):
        with pytest.raises(CommandError, match="Mend it"):
            run(path, source, "--user", "u-1", *(["--dry-run"] if verb != "stored" else []))
        told = capsys.readouterr().err
        assert told.startswith(
            f"1 refused: cut_off – the file ends early, at byte {len(whole) - 40:,}, within what begins at"
        )
        assert told.endswith("; 2 before it are whole\n")
    assert Turn.objects.count() == 2
    path.write_text(whole)
    assert "1 message stored, 2 were there already" in run(path, source, "--user", "u-1")


def test_faults_of_messages_are_told_by_their_place(
    tenant: Tenant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = [{"role": "user", "content": f"Fine {at}"} for at in range(600)]
    messages: list[Any] = [*good, "Secret words", {"role": "king", "content": "x"}, *([7] * 9)]
    with pytest.raises(CommandError, match="not stored"):
        run(lines(tmp_path, [{"session_id": "s", "messages": messages}]), "jsonl", "--user", "u-1")
    told = capsys.readouterr().err
    assert told.startswith("Conversation 1: /messages/600 ")
    assert "/messages/601/role" in told
    assert told.endswith("and of 6 more messages\n")
    assert "Secret" not in told
    assert Turn.objects.count() == 600
