"""deepagents on memory files of a fresh hub, as its own StoreBackend does the same."""

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import RunningHub
from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend, StoreBackend
from deepagents.backends.protocol import BackendProtocol
from deepagents.middleware.memory import MemoryMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from scripted import Scripted

from memoryhub_client import AsyncMemoryHub, ConnectionFailedError, MemoryHub, MemoryHubError, Retries
from memoryhub_client._retrying import httpx
from memoryhub_client.deepagents import UNREAD, HubBackend, thread_folder
from memoryhub_client.testing import FakeMemoryHub

TEXT = "one\ntwo\nthree\r\nfour two\n"


@pytest.fixture
def backend(hub: MemoryHub, user_id: str) -> HubBackend:
    """Below a folder of its own, without the first file."""
    return HubBackend(hub, user_id=user_id, agent_id="writer", root="/notes")


@pytest.fixture
def both(backend: HubBackend) -> list[BackendProtocol]:
    return [backend, StoreBackend(store=InMemoryStore(), namespace=lambda _: ("files",))]


def undated(result: Any) -> Any:
    """Without times, which differ, and without the size of what is no text: a store's is that of its base64."""
    if isinstance(result, dict):
        left_out = {"modified_at", "created_at", *(["size"] if str(result.get("path")).endswith(".bin") else [])}
        return {name: undated(one) for name, one in result.items() if name not in left_out}
    if isinstance(result, list):
        # Matches of a search: the hub's are in the order of paths, those of a store as the files were written.
        found = [undated(one) for one in result]
        return sorted(found, key=_place) if found and isinstance(found[0], dict) and "line" in found[0] else found
    return {"": type(result).__name__, **undated(vars(result))} if hasattr(result, "__dict__") else result


def _place(match: dict[str, Any]) -> tuple[str, int]:
    return match["path"], match["line"]


def life(backend: BackendProtocol) -> Iterator[Any]:
    yield backend.ls("/")
    yield backend.write("/a.md", TEXT)
    yield backend.write("/sub/b.md", "two")
    yield backend.write("/sub/.hidden.md", "two")
    yield backend.write("/blank.md", " \n")
    yield backend.write("/picture.png", "no text")
    for path in ("/", "/sub", "/sub/", "/none", "/a.md"):
        yield backend.ls(path)
    for offset, limit in ((0, 2000), (1, 2), (-1, 1), (0, 0), (3, 9), (4, 1), (99, 1)):
        yield backend.read("/a.md", offset, limit)
        yield backend.read("/blank.md", offset, limit)
        yield backend.read("/picture.png", offset, limit)
    yield backend.read("/none.md")
    for pattern in ("*.md", "**/*.md", "/*.md", "sub/*", ".*", "*.{png,md}", "[!a].md", "../*", "none"):
        yield sorted(undated(backend.glob(pattern).matches or []), key=str)
        yield backend.glob(pattern).error
        yield backend.glob(pattern, "/sub").error
        yield backend.grep("two", glob=pattern)
    for place in (None, "/", "/sub", "sub", "/a.md", "/none"):
        yield backend.grep("two", place)
    for most in (0, 1, 2, 99):
        yield backend.grep("two", "/a.md", max_count=most)
    for old, new, every in (
        ("one", "1", False), ("two", "2", False), ("two", "2", True), ("none", "", False), ("", "x", False),
        ("1\n2", "1\n2", False),
    ):  # fmt: skip
        yield backend.edit("/a.md", old, new, every)
        yield backend.edit("/none.md", old, new, every)
    yield backend.write("/end.md", "x\nend")
    yield backend.edit("/end.md", "end\n", "", replace_all=True)
    yield backend.write("/end.md", "end\nend")
    yield backend.edit("/end.md", "end\n\n", "")
    yield backend.write("/ends.md", "end end")
    yield backend.edit("/ends.md", "end\n", "")
    yield backend.upload_files([("/u.md", "文".encode()), ("/u.bin", b"\xff\x00")])
    yield backend.download_files(["/u.md", "/u.bin", "/none", "/a.md"])
    yield backend.edit("/u.bin", "a", "b")
    yield backend.delete("/none")
    yield backend.delete("/sub")
    yield backend.delete("/a.md")
    yield backend.delete("/a.md")
    yield backend.ls("/")
    yield backend.delete("/")
    yield backend.ls("/")


def test_it_behaves_as_a_store_backend(both: list[BackendProtocol]) -> None:
    ours, theirs = ([undated(one) for one in life(backend)] for backend in both)
    assert ours == theirs
    assert len(ours) > 100


def test_the_fake_hub_behaves_as_a_hub() -> None:
    fake = FakeMemoryHub()
    backends: list[BackendProtocol] = [
        HubBackend(fake.client(), user_id="u1", agent_id="writer", root="/notes"),
        StoreBackend(store=InMemoryStore(), namespace=lambda _: ("files",)),
    ]
    ours, theirs = ([undated(one) for one in life(backend)] for backend in backends)
    assert ours == theirs
    versions = fake.client().list_file_history("/notes/a.md", user_id="u1", agent_id="Writer")
    assert [one.verb for one in versions] == ["delete", "edit", "edit", "edit", "write"]


async def alife(backend: BackendProtocol) -> list[Any]:
    return [
        await backend.awrite("/a.md", TEXT),
        await backend.aread("/a.md", 1, 1),
        await backend.aread("/none"),
        await backend.als("/"),
        await backend.aglob("*.md"),
        await backend.agrep("two"),
        await backend.aedit("/a.md", "two", "2"),
        await backend.aedit("/a.md", "two", "2", replace_all=True),
        await backend.aupload_files([("/b.bin", b"\xff")]),
        await backend.adownload_files(["/b.bin", "/none"]),
        await backend.adelete("/a.md"),
        await backend.adelete("/a.md"),
    ]


async def test_async_twins(both: list[BackendProtocol], running: RunningHub, key: str, user_id: str) -> None:
    async with AsyncMemoryHub(key, base_url=running.base_url) as hub:
        own = HubBackend(MemoryHub(key), user_id=user_id, agent_id="coder", async_hub=hub)
        await own.adelete("/memories/AGENTS.md")
        ours, theirs, asynchronous = [undated(await alife(backend)) for backend in (*both, own)]
    assert ours == theirs == asynchronous


def test_what_the_hub_refuses_is_said_to_the_agent(backend: HubBackend, user_id: str) -> None:
    assert "begins with a slash" in str(backend.write("notes.md", "x").error)
    assert "`..`" in str(backend.write("/../other/notes.md", "x").error)
    assert str(backend.read("notes.md").error).startswith("File 'notes.md' not found")
    assert str(backend.delete("../x").error).startswith("Error: File '../x' not found")
    assert "at most" in str(backend.write("/large.md", "many words " * 20_000).error)
    assert [one.error for one in backend.upload_files([("x", b""), ("/ok", b"")])] == ["invalid_path", None]
    assert backend.download_files(["x"])[0].error == "invalid_path"
    away = HubBackend(
        MemoryHub("mh_any", base_url="http://127.0.0.1:9", retries=Retries(times=0)), user_id=user_id, root="/notes"
    )
    results: list[Any] = [away.read("/a"), away.write("/a", ""), away.edit("/a", "b", "c"), away.edit("/a", "", "")]
    results += [away.ls("/"), away.glob("*"), away.grep("x"), away.delete("/a")]
    results += away.upload_files([("/a", b"")])
    for result in results:
        assert "cannot be reached" in str(result.error)


# When the hub cannot be had


class Line(httpx.BaseTransport):
    """The way to a hub, which can be cut: before a request arrives, or behind it."""

    def __init__(self) -> None:
        self._whole = httpx.HTTPTransport()
        self.is_cut = False
        self.loses_answers = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.is_cut:
            raise httpx.ConnectError("cut", request=request)
        answer = self._whole.handle_request(request)
        if self.loses_answers:
            raise httpx.ReadError("cut", request=request)
        return answer


@pytest.fixture
def line() -> Line:
    return Line()


@pytest.fixture
def cuttable(running: RunningHub, key: str, line: Line) -> MemoryHub:
    return MemoryHub(key, base_url=running.base_url, retries=Retries(times=0), transport=line)


MEMORY = "/memories/AGENTS.md"


def call(name: str, **given: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": given, "id": f"call-{name}-{len(given)}"}])


def agent_of(model: Scripted, **given: Any) -> Any:
    mounted = HubBackend(root="/memories", **given)
    backend = CompositeBackend(default=StateBackend(), routes={"/memories/": mounted, "/skills/": mounted})
    return create_deep_agent(model, backend=backend, memory=[MEMORY], skills=["/skills/"], checkpointer=InMemorySaver())


def ask(agent: Any, text: str, thread: str) -> list[str]:
    """What the tools of this run answered."""
    run = agent.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": thread}})
    since = max(place for place, one in enumerate(run["messages"]) if one.type == "human")
    return [str(one.content) for one in run["messages"][since:] if isinstance(one, ToolMessage)]


def prompt_of(model: Scripted) -> str:
    return str(model.asked[-1][0].content)


def test_a_hub_that_is_killed_in_the_middle_of_a_run_ends_no_run(
    cuttable: MemoryHub, line: Line, user_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    model = Scripted()
    agent = agent_of(model, hub=cuttable, user_id=user_id, agent_id="writer")
    cuttable.write_file(MEMORY, "Wants short answers.\n", user_id=user_id, agent_id="writer")

    def killed(name: str, **given: Any) -> AIMessage:
        line.is_cut = True
        return call(name, **given)

    model.answers = [
        call("edit_file", file_path=MEMORY, old_string="short", new_string="very short"),
        lambda: killed("write_file", file_path="/memories/trip.md", content="Leaves on Friday."),
        call("edit_file", file_path=MEMORY, old_string="very short", new_string="long"),
        call("read_file", file_path=MEMORY),
        call("ls", path="/memories/"),
        call("grep", pattern="Friday", path="/memories/"),
        call("write_file", file_path="/plan.md", content="Of the thread."),
        "Done.",
    ]
    edited, *lost, read, listed, searched, own = ask(agent, "Short answers, please.", "t1")
    assert "Wants short answers." in prompt_of(model)
    assert "Error" not in edited + own
    assert [text.startswith("Error: Nothing was kept.") for text in lost] == [True, True]
    assert all("cannot be reached" in text for text in (read, listed, searched))
    # A run that begins without it knows that there may be something.
    model.answers = [call("write_file", file_path=MEMORY, content=f"{UNREAD} …)\nLikes tea.\n"), "Done."]
    [refused] = ask(agent, "Hello again.", "t2")
    assert UNREAD in prompt_of(model)
    assert "cannot be reached" in prompt_of(model)
    assert "read the file first" in refused
    assert caplog.text.count("goes on without its memory files") >= 6
    assert "Friday" not in caplog.text
    # And when it is back.
    line.is_cut = False
    model.answers = [call("read_file", file_path=MEMORY), "Done."]
    [read] = ask(agent, "And now?", "t2")
    assert "Wants very short answers." in read
    ask(agent, "Hello.", "t3")
    assert "Wants very short answers." in prompt_of(model)
    assert UNREAD not in prompt_of(model)


@pytest.mark.parametrize(("status", "code"), [(401, "unauthorized"), (403, "scope"), (423, "restricted"), (500, "x")])
async def test_a_key_or_a_person_without_memory_ends_no_run(status: int, code: str) -> None:
    fake = FakeMemoryHub()
    model = Scripted()
    given: dict[str, Any] = {"hub": fake.client(), "async_hub": fake.async_client(), "user_id": "u1"}
    said = {"messages": [("user", "Hello")]}, {"configurable": {"thread_id": "t"}}
    fake.refuse(status, code, times=9)
    answer = await agent_of(model, **given).ainvoke(*said)
    assert answer["messages"][-1].content == "Answer 1."
    assert UNREAD in prompt_of(model)
    # Strictly it does. The skills come first.
    strict = agent_of(model, **given, failure_policy="fail_closed")
    with pytest.raises(MemoryHubError):
        await strict.ainvoke(*said)
    fake._refusals.clear()
    assert (await strict.ainvoke(*said))["messages"][-1].content == "Answer 2."
    with pytest.raises(ValueError, match="failure_policy"):
        HubBackend(fake.client(), user_id="u1", failure_policy="open")  # type: ignore[arg-type]


def test_strictly_a_run_ends_with_the_hub(cuttable: MemoryHub, line: Line, user_id: str) -> None:
    backend = HubBackend(cuttable, user_id=user_id, root="/notes", failure_policy="fail_closed")
    assert backend.write("/a.md", "one").error is None
    # What is about a file is no reason to end.
    assert "not found" in str(backend.read("/none.md").error)
    assert "begins with a slash" in str(backend.write("x", "y").error)
    line.is_cut = True
    for change in (lambda: backend.write("/a.md", "two"), lambda: backend.read("/a.md"), lambda: backend.ls("/")):
        with pytest.raises(ConnectionFailedError):
            change()


def test_of_a_change_whose_answer_is_lost_nobody_knows(cuttable: MemoryHub, line: Line, user_id: str) -> None:
    backend = HubBackend(cuttable, user_id=user_id, root="/notes")
    line.loses_answers = True
    assert "Nobody knows whether this was kept" in str(backend.write("/a.md", "one").error)
    assert "Nobody knows whether this was deleted" in str(backend.delete("/b.md").error)
    line.loses_answers = False
    assert backend.download_files(["/a.md"])[0].content == b"one"
    line.is_cut = True
    assert str(backend.delete("/a.md").error).startswith("Error: Nothing was deleted.")


def test_many_files_at_once(backend: HubBackend) -> None:
    files = [(f"/many/{number}.md", str(number).encode()) for number in range(205)]
    assert {one.error for one in backend.upload_files(files)} == {None}
    found = backend.download_files([path for path, _ in files])
    assert [(one.path, one.content) for one in found] == files


def test_files_are_a_persons_and_an_agents(hub: MemoryHub, user_id: str) -> None:
    mine = HubBackend(hub, user_id=user_id, agent_id="writer", root="/notes/")
    assert mine.write("/a.md", "Mine.").error is None
    others: list[dict[str, Any]] = [
        {"user_id": f"{user_id}-2", "agent_id": "writer"}, {"user_id": user_id, "agent_id": "coder"},
        {"user_id": user_id},
    ]  # fmt: skip
    for whose in others:
        assert HubBackend(hub, root="/notes", **whose).read("/a.md").error == "File '/a.md' not found"
    whole = HubBackend(hub, user_id=user_id, agent_id="writer")
    assert whole.read("/notes/a.md").file_data


def test_the_first_file_is_there_for_the_middleware(hub: MemoryHub, user_id: str) -> None:
    backend = CompositeBackend(
        default=StateBackend(), routes={"/memories/": HubBackend(hub, user_id=user_id, root="/memories")}
    )
    middleware = MemoryMiddleware(backend=backend, sources=["/memories/AGENTS.md", "/memories/none.md"])
    runtime: Any = SimpleNamespace(context=None, store=None)
    update = middleware.before_agent({"messages": []}, runtime, {})
    assert update
    assert "Memory" in update["memory_contents"]["/memories/AGENTS.md"]
    assert "/memories/none.md" not in update["memory_contents"]


def test_whose_files_may_be_told_by_the_run(hub: MemoryHub, user_id: str) -> None:
    backend = HubBackend(hub, user_id=lambda runtime: runtime.context["user"], root=thread_folder)
    with pytest.raises(RuntimeError, match="outside a LangGraph graph execution"):
        backend.ls("/")
    from langgraph.graph import END, START, StateGraph

    def work(state: dict[str, Any]) -> dict[str, Any]:
        assert backend.write("/plan.md", "Draft.").error is None
        return {"seen": backend.ls("/").entries}

    graph: Any = StateGraph(dict, context_schema=dict)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    run = graph.compile()
    found = run.invoke({}, {"configurable": {"thread_id": "t/1"}}, context={"user": user_id})
    assert [one["path"] for one in found["seen"]] == ["/plan.md"]
    scratch = hub.read_file("/temp/t%2F1/plan.md", user_id=user_id)
    assert scratch.expires_at
    # Another thread has files of its own.
    other = run.invoke({}, {"configurable": {"thread_id": "t2"}}, context={"user": user_id})
    assert len(other["seen"]) == 1
