"""What others wrote talks MCP with a hub: the SDK's client, OpenAI Agents, and desktop clients by stdio."""

import json
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from conftest import ROOT, RunningHub
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent, TextResourceContents

from memoryhub_client import MemoryHub

SOURCES = Path(__file__).parents[1] / "src"
TOOLS = {
    "search_memory",
    "get_context",
    "list_memories",
    "answer_question",
    "get_profile",
    "get_skills",
    "add_memory",
    "correct_memory",
    "forget_memory",
    "remember_conversation",
}


@pytest.fixture
def bound(running: RunningHub, key: str, user_id: str) -> str:
    """A key for somebody new who is known to live in Leiden."""
    with MemoryHub(key, base_url=running.base_url) as hub:
        hub.add_fact(user_id=user_id, content="Lives in Leiden", category="context")
    return running.key("--user", user_id)


@asynccontextmanager
async def client(running: RunningHub, key: str, mode: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{running.base_url}/mcp", http_client=http), mode=mode) as found,
    ):
        yield found


def text_of(result: Any) -> str:
    return "\n".join(map(text_in, result.content))


def text_in(part: object) -> str:
    assert isinstance(part, TextContent | TextResourceContents)
    return part.text


async def used(found: Client) -> None:
    """All that a client does with a hub."""
    assert {tool.name for tool in (await found.list_tools()).tools} == TOOLS
    searched = await found.call_tool("search_memory", {"query": "Which city?"})
    assert "Lives in Leiden" in text_of(searched)
    fact_id = searched.structured_content["results"][0]["id"]
    documents = await found.call_tool("search_memory", {"query": "Which city?", "kinds": ["document"]})
    assert documents.structured_content["results"] == []
    assert "Lives in Leiden" in text_of(await found.call_tool("get_context", {"query": "Which city?"}))
    proposed = await found.call_tool("correct_memory", {"id": fact_id, "content": "Lives in Delft"})
    assert proposed.structured_content["status"] == "pending"
    asked = await found.call_tool("forget_memory", {"id": fact_id})
    assert asked.structured_content["forgotten"] is False
    added = await found.call_tool("add_memory", {"content": "Likes tea", "category": "preference"})
    assert added.structured_content["status"] == "pending"
    gone = await found.call_tool("forget_memory", {"id": added.structured_content["id"]})
    assert gone.structured_content["forgotten"] is True
    said = [{"role": "user", "content": "I have a boat"}, {"role": "assistant", "content": "Noted"}]
    kept = await found.call_tool("remember_conversation", {"messages": said})
    assert kept.structured_content["stored"] == 2
    listed = await found.call_tool("list_memories", {})
    assert [row["text"] for row in listed.structured_content["results"]] == ["Lives in Leiden"]
    resources = {str(one.uri) for one in (await found.list_resources()).resources}
    assert resources == {f"memory://{name}" for name in ("profile", "profiles", "facts")}
    assert "Leiden" in text_in((await found.read_resource("memory://facts")).contents[0])
    [prompt] = (await found.list_prompts()).prompts
    filled = await found.get_prompt(prompt.name, {"task": "Where to shop?"})
    assert "Leiden" in text_in(filled.messages[0].content)
    assert text_in(filled.messages[1].content) == "Where to shop?"
    wrong = await found.call_tool("search_memory", {"query": "x", "limit": 0})
    assert wrong.is_error
    assert "limit" in text_of(wrong)


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
async def test_the_sdks_client(running: RunningHub, bound: str, mode: str) -> None:
    async with client(running, bound, mode) as found:
        await used(found)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_desktop_client_by_stdio(running: RunningHub, bound: str, mode: str) -> None:
    program = StdioServerParameters(
        command=sys.executable,
        args=["-m", "memoryhub_client.cli", "mcp"],
        env={"PYTHONPATH": str(SOURCES), "MEMORYHUB_URL": running.base_url, "MEMORYHUB_KEY": bound},
    )
    async with Client(program, mode=mode) as found:
        await used(found)


def test_stdio_says_why_a_hub_cannot_be_used(running: RunningHub) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    for url in (nobody, running.base_url):
        ended = subprocess.run(
            [sys.executable, "-m", "memoryhub_client.cli", "mcp", "--url", url, "--key", "mh_x"],
            env={"PYTHONPATH": str(SOURCES)},
            input="",
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (ended.returncode, ended.stdout) == (1, "")
        assert url in ended.stderr
        assert "Traceback" not in ended.stderr


def lines_of_the_page(running: RunningHub, key: str) -> dict[str, Any]:
    """What each client of the page is told: an address with headers, or a program."""
    page = (ROOT / "docs/mcp.md").read_text("utf-8").replace("http://127.0.0.1:8000", running.base_url)
    page = page.replace("mh_…", key).replace("${env:MEMORYHUB_KEY}", key).replace("${input:memory-key}", key)
    [line] = re.findall(r"^claude mcp add --transport http memory .*$", page, re.MULTILINE)
    *_, url, option, header = shlex.split(line)
    assert option == "--header"
    codex, *others = re.findall(r"^```(?:toml|json)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert codex.startswith("[mcp_servers.memory]\n")
    server = dict(re.findall(r'^(\w+) = "(.*)"$', codex, re.MULTILINE))
    assert server["bearer_token_env_var"] == "MEMORYHUB_KEY"
    cursor, code, desktop = map(json.loads, others)
    return {
        "claude-code": {"url": url, "headers": dict([header.split(": ")])},
        "codex": {"url": server["url"], "headers": {"Authorization": f"Bearer {key}"}},
        "cursor": cursor["mcpServers"]["memory"],
        "vs-code": code["servers"]["memory"],
        "claude-desktop": desktop["mcpServers"]["memory"],
    }


async def test_the_lines_of_the_page(running: RunningHub, bound: str) -> None:
    lines = lines_of_the_page(running, bound)
    program = lines.pop("claude-desktop")
    assert program["command"] == "memoryhub-client"
    run = [*["-m", "memoryhub_client.cli"], *program["args"]]
    environ = {**program["env"], "PYTHONPATH": str(SOURCES)}
    async with Client(StdioServerParameters(command=sys.executable, args=run, env=environ)) as found:
        assert {tool.name for tool in (await found.list_tools()).tools} == TOOLS
    for line in lines.values():
        async with (
            httpx2.AsyncClient(headers=line["headers"], timeout=60) as http,
            Client(streamable_http_client(line["url"], http_client=http)) as found,
        ):
            assert {tool.name for tool in (await found.list_tools()).tools} == TOOLS


async def test_openai_agents(running: RunningHub, bound: str) -> None:
    from agents.mcp import MCPServerStreamableHttp

    params: Any = {"url": f"{running.base_url}/mcp", "headers": {"Authorization": f"Bearer {bound}"}}
    async with MCPServerStreamableHttp(params=params, name="memory", client_session_timeout_seconds=60) as server:
        assert {tool.name for tool in await server.list_tools()} == TOOLS
        result = await server.call_tool("get_context", {"query": "Which city?"})
        assert "Lives in Leiden" in text_of(result)
