"""Claude's memory tool on memory files of a fresh hub, beside the one of Anthropic's package on a folder."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool

from memoryhub_client import MemoryHub
from memoryhub_client.claude import AsyncHubMemoryTool, HubMemoryTool

NOTE = "/memories/note.md"


@pytest.fixture
def tool(hub: MemoryHub, user_id: str) -> HubMemoryTool:
    tool = HubMemoryTool(hub, user_id=user_id, agent_id="claude")
    # The hub's first file: a folder of the file system has none.
    hub.delete_file("/memories/AGENTS.md", user_id=user_id, agent_id="claude")
    return tool


def told(call: Callable[[Any], Any], **command: Any) -> str:
    try:
        return str(call(command))
    except ToolError as error:
        return f"ToolError: {error.content}"


def life(tool: Any) -> Iterator[str]:
    def do(command: str, **given: Any) -> str:
        return told(tool.call, command=command, **given)

    yield do("view", path=NOTE)
    yield do("create", path=NOTE, file_text="one\ntwo\nthree\nfour\nfive\ntwo words\n")
    yield do("create", path=NOTE, file_text="again")
    yield do("create", path="/memories/sub/deep/deeper/a.md", file_text="a")
    yield do("view", path=NOTE)
    yield do("view", path=NOTE, view_range=[2, 3])
    yield do("view", path=NOTE, view_range=[4, -1])
    yield do("str_replace", path=NOTE, old_str="three", new_str="3\n3")
    yield do("str_replace", path=NOTE, old_str="two", new_str="2")
    yield do("str_replace", path=NOTE, old_str="none", new_str="2")
    yield do("str_replace", path="/memories/none.md", old_str="none", new_str="2")
    yield do("str_replace", path="/memories/sub", old_str="none", new_str="2")
    yield do("insert", path=NOTE, insert_line=0, insert_text="zero\n")
    yield do("insert", path=NOTE, insert_line=8, insert_text="end")
    yield do("insert", path=NOTE, insert_line=99, insert_text="x")
    yield do("insert", path="/memories/none.md", insert_line=0, insert_text="x")
    yield do("view", path=NOTE)
    yield do("rename", old_path=NOTE, new_path="/memories/sub/deep/deeper/a.md")
    yield do("rename", old_path="/memories/none.md", new_path="/memories/x.md")
    yield do("rename", old_path=NOTE, new_path="/memories/renamed.md")
    yield do("rename", old_path="/memories/sub", new_path="/memories/other")
    yield do("view", path="/memories/renamed.md")
    yield do("view", path="/memories/other/deep/deeper/a.md")
    yield do("view", path="/memories/sub")
    yield do("delete", path="/memories")
    yield do("rename", old_path="/memories", new_path="/memories/x")
    yield do("delete", path="/memories/other")
    yield do("delete", path="/memories/other")
    for wrong in ("/etc/passwd", "/memories/../x"):
        yield do("view", path=wrong)
        yield do("create", path=wrong, file_text="x")
    yield str(tool.clear_all_memory())
    yield do("view", path="/memories/renamed.md")


def test_it_answers_as_anthropics_own_tool(tool: HubMemoryTool, tmp_path: Path) -> None:
    ours, theirs = list(life(tool)), list(life(BetaLocalFilesystemMemoryTool(str(tmp_path))))
    assert ours == theirs
    assert len(ours) > 30


def test_a_folder_is_shown_two_levels_deep(tool: HubMemoryTool) -> None:
    for path, text in (("a.md", "x" * 1536), ("sub/b.md", "b"), ("sub/deep/c.md", "c"), (".hidden/d.md", "d")):
        tool.call({"command": "create", "path": f"/memories/{path}", "file_text": text})
    assert str(tool.call({"command": "view", "path": "/memories"})).split("\n") == [
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:",
        "1.5K\t/memories",
        "1.5K\t/memories/a.md",
        "2B\t/memories/sub/",
        "1B\t/memories/sub/b.md",
        "1B\t/memories/sub/deep/",
    ]


def test_secrets_are_not_kept_and_refusals_are_said(tool: HubMemoryTool, hub: MemoryHub, user_id: str) -> None:
    tool.call({"command": "create", "path": NOTE, "file_text": "key: old\n"})
    token = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
    shown = tool.call({"command": "str_replace", "path": NOTE, "old_str": "old", "new_str": token})
    assert token not in str(shown)
    assert "[redacted:" in str(shown)
    assert "at most" in told(tool.call, command="create", path="/memories/l.md", file_text="many words " * 20_000)


def test_a_change_is_made_of_what_is_there_now(tool: HubMemoryTool, hub: MemoryHub, user_id: str) -> None:
    tool.call({"command": "create", "path": NOTE, "file_text": "one\n"})
    write: Any = hub.write_file
    whose: dict[str, Any] = {"user_id": user_id, "agent_id": "claude"}
    meanwhile = iter([("one", "one\ntwo")])

    class Between:
        """The hub, with somebody else's edit just before the write."""

        def __getattr__(self, name: str) -> Any:
            return getattr(hub, name)

        def write_file(self, *args: Any, **given: Any) -> Any:
            for old, new in meanwhile:
                hub.edit_file(NOTE, old, new, **whose)
            return write(*args, **given)

    late = HubMemoryTool(Between(), **whose)  # type: ignore[arg-type]
    late.call({"command": "insert", "path": NOTE, "insert_line": 0, "insert_text": "zero"})
    assert hub.read_file(NOTE, user_id=user_id, agent_id="claude").content == "zero\none\ntwo\n"


async def test_the_asynchronous_one_does_the_same(hub: MemoryHub, user_id: str) -> None:
    tool = AsyncHubMemoryTool(hub, user_id=user_id)
    assert tool.to_dict()["name"] == "memory"
    await tool.call({"command": "create", "path": NOTE, "file_text": "one"})
    assert "one" in str(await tool.call({"command": "view", "path": NOTE}))
