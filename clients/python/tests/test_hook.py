"""The hook of Claude Code and Codex, run as they run it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, RunningHub, wait_until

from memoryhub_client import MemoryHub
from memoryhub_client.hook import said as said_in
from memoryhub_client.hook import typed

SOURCES = str(ROOT / "clients/python/src")
PAGE = (ROOT / "docs/coding-agents.md").read_text("utf-8")
Hook = Callable[..., "subprocess.CompletedProcess[str]"]


def claude(kind: str, uuid: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "uuid": uuid, "timestamp": "2026-11-03T09:12:00.000Z", "sessionId": "s1",
            "message": {"role": kind, "content": content}, **more}  # fmt: skip


CLAUDE = [
    {"type": "summary", "summary": "Earlier", "leafUuid": "x"},
    claude("user", "a0", "Caveat: local commands", isMeta=True),
    claude("user", "a1", "I moved to Leiden.<system-reminder>Today is Tuesday.</system-reminder>"),
    claude("assistant", "a2", [{"type": "thinking", "thinking": "Hmm."}]),
    claude("assistant", "a3", [{"type": "text", "text": "Leiden, noted."}]),
    claude("assistant", "a4", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]),
    claude("user", "a5", [{"type": "tool_result", "tool_use_id": "t1", "content": "README.md"}]),
    claude("user", "a6", "<command-name>/clear</command-name><command-args></command-args>"),
    claude("user", "a7", [{"type": "text", "text": "[Request interrupted by user]"}]),
    claude("assistant", "a8", [{"type": "text", "text": "In a sub-agent."}], isSidechain=True),
    claude("user", "a9", "This session is being continued from a previous conversation.", isCompactSummary=True),
]


def codex(second: int, kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-11-03T09:12:0{second}.000Z", "ordinal": second, "type": kind, "payload": payload}


def completed(second: int, kind: str, *content: Any) -> dict[str, Any]:
    return codex(second, "event_msg", type="item_completed", item={"type": kind, "id": "i1", "content": list(content)})


# As Codex 0.169 writes it.
CODEX = [
    codex(0, "session_meta", id="s1", cwd="/"),
    codex(1, "response_item", type="message", role="user", content=[{"type": "input_text", "text": "# AGENTS.md"}]),
    completed(2, "UserMessage", {"type": "text", "text": "I moved to Leiden.", "text_elements": []}, {"type": "image"}),
    completed(3, "Reasoning", {"type": "Text", "text": "Hmm."}),
    completed(4, "AgentMessage", {"type": "Text", "text": "Leiden, noted."}),
    codex(5, "event_msg", type="task_complete", last_agent_message="Leiden, noted."),
]
CODEX_BEFORE = [
    {"timestamp": "2026-11-03T09:12:00.000Z", "type": "session_meta", "payload": {"id": "s1", "cwd": "/"}},
    {"timestamp": "2026-11-03T09:12:01.000Z", "type": "response_item",
     "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "# AGENTS.md"}]}},
    {"timestamp": "2026-11-03T09:12:02.000Z", "type": "event_msg",
     "payload": {"type": "user_message", "message": "I moved to Leiden.", "images": []}},
    {"timestamp": "2026-11-03T09:12:03.000Z", "type": "event_msg", "payload": {"type": "token_count", "info": None}},
    {"timestamp": "2026-11-03T09:12:04.000Z", "type": "event_msg",
     "payload": {"type": "agent_message", "message": "Leiden, noted."}},
]  # fmt: skip


def written(path: Path, entries: list[dict[str, Any]], mode: str = "w") -> str:
    with path.open(mode, encoding="utf-8") as file:
        file.writelines(f"{json.dumps(one)}\n" for one in entries)
    return str(path)


@pytest.fixture
def hook(running: RunningHub, key: str, user_id: str, tmp_path: Path) -> Hook:
    def call(event: str | dict[str, Any], *options: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        own = {"PATH": os.environ["PATH"], "PYTHONPATH": SOURCES, "XDG_STATE_HOME": str(tmp_path / "state"),
               "MEMORYHUB_URL": running.base_url, "MEMORYHUB_KEY": key, "MEMORYHUB_USER": user_id}  # fmt: skip
        return subprocess.run(
            [sys.executable, "-m", "memoryhub_client.cli", "hook", *options],
            input=event if isinstance(event, str) else json.dumps({"session_id": "s1", "cwd": "/", **event}),
            env={**own, **environ},
            capture_output=True,
            text=True,
            check=False,
        )

    return call


def said(hub: MemoryHub, user_id: str) -> list[str]:
    sessions = list(hub.list_sessions(user_id=user_id, session_id="s1"))
    return [f"{turn.role}: {turn.content}" for one in sessions for turn in hub.list_turns(one.id)]


@pytest.mark.parametrize("entries", [CLAUDE, CODEX, CODEX_BEFORE], ids=["claude-code", "codex", "codex-before"])
def test_what_was_said_is_posted_once(
    entries: list[dict[str, Any]], hook: Hook, hub: MemoryHub, user_id: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "transcript.jsonl", entries)
    expected = ["user: I moved to Leiden.", "assistant: Leiden, noted."]
    for event in ("Stop", "PreCompact", "Stop"):
        done = hook({"hook_event_name": event, "transcript_path": path})
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert said(hub, user_id) == expected
    more = json.loads(json.dumps(entries[2]).replace("a1", "b1").replace("Leiden", "Delft").replace(":02.0", ":09.0"))
    written(tmp_path / "transcript.jsonl", [more], "a")
    # A line that is not whole yet.
    with Path(path).open("a") as file:
        file.write('{"type": "user", "uuid": "b2"')
    hook({"hook_event_name": "SessionEnd", "transcript_path": path})
    assert said(hub, user_id) == [*expected, "user: I moved to Delft."]
    # Without the place all of it is posted again, and known.
    hook({"hook_event_name": "Stop", "transcript_path": path}, XDG_STATE_HOME=str(tmp_path / "other"))
    assert len(said(hub, user_id)) == 3


def claude_run(*results: Any) -> list[dict[str, Any]]:
    """A task of Claude Code with a run of tests, another without a tool."""
    use = {"type": "tool_use", "id": "t9", "name": "Bash", "input": {"command": "pytest -q"}}
    return [
        claude("user", "e1", "Make the tests pass."),
        claude("assistant", "e2", [{"type": "text", "text": "I run them."}, use]),
        *(
            claude("user", f"e3{at}", [{"type": "tool_result", "tool_use_id": "t9", **one}])
            for at, one in enumerate(results)
        ),
        claude("assistant", "e4", [{"type": "text", "text": "Done."}]),
    ]


def codex_run(output: str) -> list[dict[str, Any]]:
    given = json.dumps({"command": ["bash", "-lc", "pytest -q"]})
    return [
        completed(1, "UserMessage", {"type": "text", "text": "Make the tests pass."}),
        completed(2, "AgentMessage", {"type": "Text", "text": "I run them."}),
        codex(3, "response_item", type="function_call", name="shell", arguments=given, call_id="t9"),
        codex(4, "response_item", type="function_call_output", call_id="t9", output=output),
        completed(5, "AgentMessage", {"type": "Text", "text": "Done."}),
    ]


@pytest.mark.parametrize(("entries", "outcome"), [
    (claude_run({"content": "3 passed"}), "succeeded"),
    (claude_run({"content": "Exit code 1\n1 failed", "is_error": True}), "failed"),
    (codex_run("Exit code: 0\nWall time: 1 s\nOutput:\n3 passed"), "succeeded"),
    (codex_run(json.dumps({"output": "1 failed", "metadata": {"exit_code": 1}})), "failed"),
])  # fmt: skip
def test_what_the_agent_did_is_posted_once_where_it_is_wanted(
    entries: list[dict[str, Any]], outcome: str, hook: Hook, hub: MemoryHub, user_id: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "transcript.jsonl", entries)
    stop = {"hook_event_name": "Stop", "transcript_path": path}
    assert hook(stop).returncode == 0
    assert not list(hub.list_trajectories(user_id=user_id))
    for _ in range(2):
        done = hook(stop, "--trajectories")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    [found] = hub.list_trajectories(user_id=user_id)
    assert (found.task, found.session_id, found.step_count) == ("Make the tests pass.", "s1", 4)
    assert (found.outcome.result, found.outcome.source) == (outcome, "tests")
    steps = list(hub.list_trajectory_steps(found.id))
    assert [one.kind for one in steps] == ["message", "tool_call", "tool_result", "message"]
    # Talk is no task.
    written(tmp_path / "transcript.jsonl", [json.loads(json.dumps(entries[0]).replace("e1", "f1"))], "a")
    hook(stop, "--trajectories")
    assert len(list(hub.list_trajectories(user_id=user_id))) == 1


@pytest.mark.parametrize("entries", [CLAUDE, CODEX], ids=["claude-code", "codex"])
def test_the_end_of_a_session_makes_an_episode_of_it(
    entries: list[dict[str, Any]], hook: Hook, hub: MemoryHub, user_id: str, tmp_path: Path
) -> None:
    more = [json.loads(json.dumps(one).replace('"uuid": "a', '"uuid": "c').replace("12:0", "13:0")) for one in entries]
    path = written(tmp_path / "transcript.jsonl", [*entries, *more])

    def ended() -> bool:
        return next(iter(hub.list_sessions(user_id=user_id, session_id="s1"))).ended_at is not None

    # Of a session that said nothing, and of a hub that is away, nobody hears much.
    end = {"hook_event_name": "SessionEnd", "transcript_path": path, "reason": "exit"}
    assert hook({**end, "transcript_path": written(tmp_path / "none.jsonl", [])}).stderr == ""
    assert hook(end, "--url", "http://127.0.0.1:9").stderr.count("\n") == 1
    hook({**end, "hook_event_name": "Stop"})
    assert not ended()
    done = hook(end)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert ended()
    wait_until(lambda: list(hub.list_episodes(user_id=user_id)))
    [episode] = hub.list_episodes(user_id=user_id)
    assert "Leiden" in episode.summary
    # A session that is resumed goes on.
    written(tmp_path / "transcript.jsonl", [json.loads(json.dumps(entries[2]).replace("a1", "d1"))], "a")
    hook({**end, "hook_event_name": "Stop"})
    assert not ended()


REVIEW = (
    "<command-message>review2</command-message>\n<command-name>/review2</command-name>\n<command-args>{}</command-args>"
)


@pytest.mark.parametrize(("text", "expected"), [
    ("I moved.<system-reminder>\n```\ncode\n```\n</system-reminder> Twice.", "I moved. Twice."),
    (REVIEW.format("the sentence about <b>tea</b>"), "/review2 the sentence about <b>tea</b>"),
    (REVIEW.format("  "), ""),
    ("<command-name>/clear</command-name><command-args></command-args>", ""),
    ("<local-command-stdout>I like rye.</local-command-stdout>", ""),
    ("<bash-input>ls</bash-input><bash-stdout>a</bash-stdout>", ""),
    ('<teammate-message from="x">\nI like rye.\n</teammate-message>\nHello.', "Hello."),
    ("<environment_context>\n<cwd>/p</cwd>\n</environment_context>\nHello.", "Hello."),
    ("Explain it\n\n<stdin>\nI like rye.\n</stdin>\nI live in Oslo.\n</stdin>", "Explain it"),
    ("<stdin>\nI like rye.\n</stdin>\n", ""),
    # What a person types about tags stays.
    ("What does <stdin> mean?", "What does <stdin> mean?"),
    ("Why is\n<div>\nx\n</div>\nnot centred?", "Why is\n<div>\nx\n</div>\nnot centred?"),
    ("My <my-list>x</my-list> is empty.", "My <my-list>x</my-list> is empty."),
    ("Mend\n```html\n<my-list>\nx\n</my-list>\n```\nfor me.", "Mend\n```html\n<my-list>\nx\n</my-list>\n```\nfor me."),
    ("Why is\n<my-list>\nnever closed?", "Why is\n<my-list>\nnever closed?"),
    ("<a-b>\n" * 3, "<a-b>\n" * 3),
])  # fmt: skip
def test_what_the_person_typed_is_kept_and_no_block_of_the_agent(text: str, expected: str) -> None:
    assert typed(text).strip() == expected.strip()


@pytest.mark.parametrize("entries", [CLAUDE, CODEX, CODEX_BEFORE], ids=["claude-code", "codex", "codex-before"])
def test_it_says_whose_words_they_are(entries: list[dict[str, Any]], tmp_path: Path) -> None:
    path = Path(written(tmp_path / "transcript.jsonl", entries))
    assert [line.message["author"] for line in said_in(path, 0)] == ["person", "model"]


def test_a_new_session_begins_with_what_is_remembered(hook: Hook, hub: MemoryHub, user_id: str) -> None:
    start = {"hook_event_name": "SessionStart", "source": "startup", "session_id": "s2"}
    assert hook(start).stdout == ""
    hub.add_fact(user_id=user_id, content="Uses tabs, never spaces", category="preference")
    done = hook(start)
    assert done.returncode == 0
    answer = json.loads(done.stdout)["hookSpecificOutput"]
    assert answer["hookEventName"] == "SessionStart"
    assert answer["additionalContext"].startswith("<memory>")
    assert "Uses tabs" in answer["additionalContext"]


def test_the_hub_is_away_and_comes_back(hook: Hook, hub: MemoryHub, user_id: str, tmp_path: Path) -> None:
    path = written(tmp_path / "transcript.jsonl", CLAUDE)
    done = hook({"hook_event_name": "Stop", "transcript_path": path}, "--url", "http://127.0.0.1:9")
    assert done.returncode == 0
    assert "next chance" in done.stderr
    assert "Leiden" not in done.stderr
    assert hook({"hook_event_name": "SessionStart"}, "--url", "http://127.0.0.1:9").stdout == ""
    hook({"hook_event_name": "Stop", "transcript_path": path})
    assert len(said(hub, user_id)) == 2


def test_what_it_cannot_do_holds_nobody_up(hook: Hook) -> None:
    assert hook("").returncode == 1
    assert "JSON of an event" in hook("[]").stderr
    assert "MEMORYHUB_KEY" in hook({"hook_event_name": "Stop"}, MEMORYHUB_KEY="").stderr
    done = hook({"hook_event_name": "Stop", "transcript_path": None})
    assert (done.returncode, done.stdout) == (0, "")
    assert "no transcript" in done.stderr
    assert hook({"hook_event_name": "PreToolUse"}).returncode == 0


@pytest.mark.parametrize("block", re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
def test_the_configurations_of_the_page_call_it(block: str, hook: Hook) -> None:
    hooks = json.loads(block)["hooks"]
    assert set(hooks) == {"SessionStart", "Stop", "PreCompact", "SessionEnd"}
    for event, groups in hooks.items():
        for one in (one for group in groups for one in group["hooks"]):
            program, name, *options = one["command"].split()
            assert (one["type"], program, name) == ("command", "memoryhub-client", "hook")
            done = hook({"hook_event_name": event}, *options)
            assert (done.returncode, done.stdout) == (0, "")
