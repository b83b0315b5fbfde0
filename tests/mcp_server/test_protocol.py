"""Every version of the protocol, from whom requests may come, and what is said to the others."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from memories.exceptions import HubBusy
from memories.mcp_server.mounted import MemoryServer
from memories.models import EndUser, Tenant
from memories.web.admission import Admission
from tests import factories
from tests.mcp_server.conftest import ALL, Hub, key_for, text_of

READING = {"search_memory", "get_context", "answer_question", "list_memories", "get_profile", "get_skills"}
WRITING = {"add_memory", "correct_memory", "forget_memory"}
TOOLS = READING | WRITING | {"remember_conversation"}


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def test_the_sdks_client_in_each_mode(hub: Hub, key: str, person: EndUser) -> None:
    factories.fact(person, "Lives in Leiden")

    async def talk(client: Any) -> Any:
        tools = (await client.list_tools()).tools
        return tools, await client.call_tool("get_context", {}), client.protocol_version

    for mode in ("auto", "legacy", "2026-07-28"):
        tools, context, version = hub.use(key, talk, mode=mode)
        assert {tool.name for tool in tools} == TOOLS, mode
        assert "Lives in Leiden" in text_of(context), mode
        assert "Lives in Leiden" in context.structured_content["memory"], mode
        assert (version == "2026-07-28") == (mode != "legacy")


def test_each_version_with_a_handshake(hub: Hub, key: str, person: EndUser) -> None:
    factories.fact(person, "Lives in Leiden")
    info = {"name": "test", "version": "1"}
    for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        bearer = {"authorization": f"Bearer {key}"}
        begun = hub.post(request("initialize", protocolVersion=version, capabilities={}, clientInfo=info), **bearer)
        assert begun.headers["content-type"] == "application/json"
        assert begun.json()["result"]["protocolVersion"] == version
        assert begun.json()["result"]["instructions"]
        assert "mcp-session-id" not in begun.headers
        bearer["mcp_protocol_version"] = version
        assert hub.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **bearer).status_code == 202
        called = hub.post(request("tools/call", name="get_context", arguments={}), **bearer)
        assert "Lives in Leiden" in called.json()["result"]["content"][0]["text"], version


def test_a_version_that_does_not_exist_is_told_those_that_do(hub: Hub, key: str) -> None:
    names = {"protocolVersion": "2099-01-01", "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in names.items()}
    headers = {"authorization": f"Bearer {key}", "mcp_protocol_version": "2099-01-01", "mcp_method": "tools/list"}
    answer = hub.post(request("tools/list", _meta=meta), **headers)
    assert answer.status_code == 400
    assert "2026-07-28" in answer.text


def test_hints_and_schemas_of_the_tools(hub: Hub, key: str) -> None:
    tools = {tool.name: tool for tool in hub.use(key, lambda client: client.list_tools()).tools}
    for tool in tools.values():
        assert tool.description
        assert len(tool.description) < 160
        assert tool.output_schema
        assert tool.annotations.open_world_hint is False
    read_only = {name for name, tool in tools.items() if tool.annotations.read_only_hint}
    assert read_only == READING
    assert {name for name, tool in tools.items() if tool.annotations.destructive_hint} == {"forget_memory"}


class TestKeys:
    def test_without_a_key_or_with_a_wrong_one(self, hub: Hub, tenant: Tenant) -> None:
        for headers in ({}, {"authorization": "Bearer mh_aaaaaaaaaa_x"}, {"authorization": "Basic abc"}):
            answer = hub.post(request("tools/list"), **headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert "valid key" in answer.json()["error"]["message"]

    def test_a_key_for_everybody_is_refused_unless_the_tenant_allows_it(self, hub: Hub, tenant: Tenant) -> None:
        _, everybody = factories.api_key(tenant, scopes=ALL)
        refused = hub.post(request("tools/list"), authorization=f"Bearer {everybody}", x_memory_user="u1")
        assert refused.status_code == 403
        assert "--user" in refused.json()["error"]["message"]

    def test_where_it_is_allowed_the_header_names_the_person(self, hub: Hub, transactional_db: None) -> None:
        open_tenant = factories.tenant(mcp_tenant_keys=True)
        person = factories.end_user(open_tenant, external_id="小明")
        factories.fact(person, "Lives in Leiden")
        _, everybody = factories.api_key(open_tenant, scopes=ALL)
        nobody = hub.post(request("tools/list"), authorization=f"Bearer {everybody}")
        assert (nobody.status_code, "X-Memory-User" in nobody.text) == (400, True)
        wrong = hub.post(request("tools/list"), authorization=f"Bearer {everybody}", x_memory_user="%ff")
        assert wrong.status_code == 400
        told = hub.call(everybody, "get_context", User="%E5%B0%8F%E6%98%8E")
        assert "Lives in Leiden" in text_of(told)
        other = hub.call(everybody, "get_context", User="somebody else")
        assert "Leiden" not in text_of(other)

    def test_a_key_for_one_person_names_no_other(self, hub: Hub, key: str, tenant: Tenant) -> None:
        other = factories.end_user(tenant)
        answer = hub.post(request("tools/list"), authorization=f"Bearer {key}", x_memory_user=other.external_id)
        assert answer.status_code == 403
        # The control, with the key in the other header.
        assert hub.post(request("tools/list"), x_api_key=key).status_code == 200


class TestScopes:
    def test_a_key_sees_and_uses_the_tools_of_its_scopes(self, hub: Hub, person: EndUser) -> None:
        inputs: dict[str, Any] = {
            "search_memory": {"query": "city"},
            "add_memory": {"content": "Likes tea"},
            "remember_conversation": {"messages": [{"role": "user", "content": "Hello there"}]},
        }

        async def all_of_them(client: Any) -> Any:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            return listed, {name: await client.call_tool(name, inputs.get(name, {})) for name in sorted(TOOLS)}

        for scope, names in (("read", READING), ("write", WRITING), ("ingest", {"remember_conversation"})):
            listed, results = hub.use(key_for(person, (scope,)), all_of_them)
            assert listed == names
            refused = {name for name, result in results.items() if "lacks the scope" in text_of(result)}
            assert refused == TOOLS - names
            assert all(results[name].is_error for name in refused)

    def test_resources_and_the_prompt_need_read(self, hub: Hub, person: EndUser) -> None:
        async def listed(client: Any) -> Any:
            return (await client.list_resources()).resources, (await client.list_prompts()).prompts

        resources, prompts = hub.use(key_for(person, ("write",)), listed)
        assert (resources, prompts) == ([], [])
        resources, prompts = hub.use(key_for(person, ("read",)), listed)
        assert {str(one.uri) for one in resources} == {f"memory://{name}" for name in ("profile", "profiles", "facts")}
        assert [one.name for one in prompts] == ["with_memory"]
        with pytest.raises(Exception, match="lacks the scope"):
            hub.read(key_for(person, ("write",)), "memory://facts")


class TestWhereRequestsMayComeFrom:
    def test_another_host_is_refused_before_anything_else(self, hub: Hub, key: str) -> None:
        answer = hub.post(request("tools/list"), authorization=f"Bearer {key}", host="evil.example")
        assert answer.status_code == 421

    def test_a_page_of_another_site_is_refused(self, hub: Hub, key: str) -> None:
        bearer = f"Bearer {key}"
        assert hub.post(request("tools/list"), authorization=bearer, origin="https://evil.example").status_code == 403
        assert hub.post(request("tools/list"), authorization=bearer, origin="null").status_code == 403
        assert hub.post(request("tools/list"), authorization=bearer, origin="http://localhost:6274").status_code == 200

    def test_the_hubs_allowed_hosts_hold(self, hub: Hub, key: str, settings: Any) -> None:
        settings.ALLOWED_HOSTS = [".hub.example"]
        bearer = f"Bearer {key}"
        assert hub.post(request("tools/list"), authorization=bearer, host="a.hub.example:8443").status_code == 200
        assert hub.post(request("tools/list"), authorization=bearer).status_code == 421


class TestBadInput:
    BODIES = [
        b"",
        b"{",
        b"[]",
        b"1",
        b'"x"',
        b"{}",
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add_memory","arguments":[]}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}',
        b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
        b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":"nothing/like/it"}',
        json.dumps(request("tools/call", name="add_memory", arguments={"content": "a\x00b"})).encode(),
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"\\ud800"}}',
        b"\xff\xfe",
    ]

    @pytest.mark.parametrize("version", ["", "2025-11-25", "2026-07-28"])
    def test_it_is_never_the_hubs_fault(self, hub: Hub, key: str, version: str) -> None:
        headers = {"authorization": f"Bearer {key}", **({"mcp_protocol_version": version} if version else {})}
        for body in self.BODIES:
            answer = hub.post(body, **headers)
            assert answer.status_code < 500, (body[:99], answer.text)
            # What looks like a notification is acknowledged, and means nothing.
            assert answer.status_code == 202 or answer.json().get("error"), body[:99]

    def test_other_methods_and_large_bodies(self, hub: Hub, key: str) -> None:
        headers = {"authorization": f"Bearer {key}"}
        for method in ("GET", "DELETE", "PUT", "OPTIONS"):
            answer = httpx2.request(method, hub.url, headers=headers, timeout=60)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        # More than the SDK's own limit passes, more than the hub's does not.
        large = {"messages": [{"role": "user", "content": "tree " * 190_000} for _ in range(5)]}
        taken = hub.post(request("tools/call", name="remember_conversation", arguments=large), **headers)
        assert taken.status_code == 200
        assert taken.json()["result"]["isError"] is False, taken.text[:300]
        too_large = {"messages": [{"role": "user", "content": "tree " * 190_000} for _ in range(12)]}
        refused = hub.post(request("tools/call", name="remember_conversation", arguments=too_large), **headers)
        assert refused.status_code == 413

    def test_too_many_values_are_refused_before_they_are_built(self, hub: Hub, key: str) -> None:
        many: dict[str, Any] = {"messages": [{}] * 20_000}
        refused = hub.post(request("tools/call", name="remember_conversation", arguments=many), x_api_key=key)
        assert (refused.status_code, "values" in refused.json()["error"]["message"]) == (400, True)
        # One list that is too long is told by itself.
        told = hub.call(key, "remember_conversation", {"messages": [{}] * 501})
        assert "messages: Ensure this field has no more than 500" in text_of(told)

    def test_while_the_hub_is_busy_it_says_when_to_come_again(
        self, hub: Hub, key: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def busy(*_: Any) -> None:
            raise HubBusy(7)

        monkeypatch.setattr(Admission, "ask", busy)
        answer = hub.post(request("tools/list"), x_api_key=key)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")

    WRONG: list[tuple[str, dict[str, Any], str]] = [
        ("search_memory", {}, "query: This field is required."),
        ("search_memory", {"query": "x", "limit": 1000}, "limit:"),
        ("search_memory", {"query": "x", "user_id": "other"}, "user_id: There is no such field."),
        ("get_context", {"max_tokens": "many"}, "max_tokens:"),
        ("get_context", {"tokenizer": "nonsense"}, "tokenizer: Use one of: o200k_base, cl100k_base, qwen3,"),
        ("list_memories", {"category": "nonsense"}, "category: Use one of"),
        ("list_memories", {"cursor": "nonsense"}, "cursor:"),
        ("add_memory", {"content": "  "}, "content:"),
        ("add_memory", {"content": "x", "trust": "operator"}, "trust: There is no such field."),
        ("remember_conversation", {"messages": []}, "messages:"),
        ("remember_conversation", {"messages": [{"role": "system", "content": "x"}]}, "messages/0/role: Use one"),
    ]

    def test_a_tool_says_what_is_wrong_and_where(self, hub: Hub, key: str) -> None:
        async def each(client: Any) -> list[Any]:
            return [await client.call_tool(name, arguments) for name, arguments, _ in self.WRONG]

        for result, (name, arguments, said) in zip(hub.use(key, each), self.WRONG, strict=True):
            assert result.is_error, (name, arguments)
            assert said in text_of(result), (name, arguments)

    def test_unknown_tools_and_resources_are_told_which_there_are(self, hub: Hub, key: str) -> None:
        with pytest.raises(Exception, match="search_memory"):
            hub.call(key, "approve_memory")
        with pytest.raises(Exception, match="memory://facts"):
            hub.read(key, "memory://secrets")


def test_a_key_is_throttled_by_scope(hub: Hub, person: EndUser, settings: Any) -> None:
    settings.MEMORYHUB_THROTTLES = {"read": (2, 3600)}
    key = key_for(person)

    async def three_times(client: Any) -> list[Any]:
        return [await client.call_tool("get_context", {}) for _ in range(3)]

    results = hub.use(key, three_times)
    assert [result.is_error for result in results] == [False, False, True]
    assert "Try again in" in text_of(results[-1])


def test_it_is_loaded_once_and_before_somebody_asks() -> None:
    loaded: list[str] = []

    async def run(call: Callable[[], Any]) -> Any:
        loaded.append("failed" if not loaded else "loaded")
        if loaded == ["failed"]:
            raise ImportError
        return call()

    async def life() -> None:
        server = MemoryServer(run, lambda *_: None)
        for _ in range(3):
            await server.preload()
        await server.end()

    asyncio.run(life())
    assert loaded == ["failed", "loaded"]
