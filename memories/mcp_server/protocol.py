"""The protocol, by the official SDK: tools, resources and the prompt over stateless streamable HTTP, in every version.

Loaded some seconds after the start of a web process: the SDK takes longer to load than all the rest of it.
"""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import mcp_types as types
from django.db import close_old_connections
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from memories.db import tenancy
from memories.mcp_server.callers import MCPCaller
from memories.mcp_server.calls import ToolResult, carry_out
from memories.mcp_server.tools import (
    DOCUMENT_OF,
    DOCUMENTS,
    INSTRUCTIONS,
    TEMPLATE,
    TOOL_OF,
    TOOLS,
    Document,
    Template,
    Tool,
)
from memories.telemetry import traces
from memories.telemetry.families import MCP_CALLS
from memories.telemetry.log_fields import TENANT

NAME, VERSION = "memory-hub", "1"
# Where the request's scope has who asks.
ASKER = "memory_hub.asker"
Context = ServerRequestContext[Any, Any]
# Runs a function in one of the server's threads.
Run = Callable[..., Any]
# It tells of hosts and sessions that clients name.
logging.getLogger("mcp").setLevel(logging.ERROR)


def transport(run: Run, *, most_bytes: int) -> StreamableHTTPSessionManager:
    """What answers requests whose scope names the asker."""
    MCP_CALLS.expect((name, result) for name in TOOL_OF for result in ("ok", "error"))
    server: Server[Any] = Server(
        NAME,
        version=VERSION,
        title="Memory Hub",
        instructions=INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=partial(_call_tool, run),
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_resource_templates,
        on_read_resource=partial(_read_resource, run),
        on_list_prompts=_list_prompts,
        on_get_prompt=partial(_get_prompt, run),
    )
    return StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        max_request_body_size=most_bytes,
        # The hub has looked at Host and Origin already (mounted.py), by its own settings.
        security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )


async def _list_tools(ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    """The tools that the key's scopes open."""
    scopes = _asker(ctx).caller.key.scopes
    return types.ListToolsResult(tools=[_shown(tool) for tool in TOOLS if tool.scope in scopes])


def _shown(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.takes,
        output_schema=tool.gives,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent or tool.is_read_only,
            open_world_hint=False,
        ),
    )


async def _call_tool(run: Run, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    tool = TOOL_OF.get(params.name)
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"There is no such tool. There are: {', '.join(TOOL_OF)}.")
    done = await _done(run, ctx, tool, params.arguments or {})
    MCP_CALLS.count(tool.name, "error" if done.is_error else "ok")
    return types.CallToolResult(
        content=[types.TextContent(text=done.text)],
        structured_content=None if done.is_error else done.data,
        is_error=done.is_error,
    )


async def _list_resources(ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    scopes = _asker(ctx).caller.key.scopes
    return types.ListResourcesResult(
        resources=[
            types.Resource(
                uri=one.uri, name=one.name, title=one.title, description=one.description, mime_type="text/plain"
            )
            for one in DOCUMENTS
            if one.scope in scopes
        ]
    )


async def _list_resource_templates(
    _: Context, __: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[])


async def _read_resource(run: Run, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    document = DOCUMENT_OF.get(uri)
    if document is None:
        raise MCPError(types.INVALID_PARAMS, f"There is no such resource. There are: {', '.join(DOCUMENT_OF)}.")
    done = _or_error(await _done(run, ctx, document, {}))
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=done.text)]
    )


async def _list_prompts(ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    if TEMPLATE.scope not in _asker(ctx).caller.key.scopes:
        return types.ListPromptsResult(prompts=[])
    task = types.PromptArgument(name=TEMPLATE.argument, description=TEMPLATE.argument_description, required=False)
    prompt = types.Prompt(name=TEMPLATE.name, title=TEMPLATE.title, description=TEMPLATE.description, arguments=[task])
    return types.ListPromptsResult(prompts=[prompt])


async def _get_prompt(run: Run, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    if params.name != TEMPLATE.name:
        raise MCPError(types.INVALID_PARAMS, f"There is no such prompt. There is: {TEMPLATE.name}.")
    given = params.arguments or {}
    done = _or_error(await _done(run, ctx, TEMPLATE, given))
    texts = [text for text in (done.text, given.get(TEMPLATE.argument, "")) if text.strip()]
    return types.GetPromptResult(
        description=TEMPLATE.description,
        messages=[types.PromptMessage(role="user", content=types.TextContent(text=text)) for text in texts],
    )


async def _done(run: Run, ctx: Context, asked: Tool | Document | Template, given: Mapping[str, Any]) -> ToolResult:
    asker, headers = _asker(ctx), ctx.request.headers if ctx.request else {}

    def in_thread() -> ToolResult:
        # A thread keeps its connection; one that broke would fail for ever.
        close_old_connections()
        with tenancy.of_tenant(asker.caller.key.tenant_id), traces.request(headers) as span:
            if span is not None:
                span.update_name(f"mcp {asked.name}")
                span.set_attribute(TENANT, asker.tenant.slug)
            done = carry_out(asker, asked.scope, given, asked.work)
            if span is not None:
                span.set_attribute("result", "error" if done.is_error else "ok")
            return done

    outcome: ToolResult = await run(in_thread)
    return outcome


def _or_error(done: ToolResult) -> ToolResult:
    """Resources and prompts have no errors of their own, as tools have."""
    if done.is_error:
        raise MCPError(types.INVALID_PARAMS, done.text)
    return done


def _asker(ctx: Context) -> MCPCaller:
    request: Any = ctx.request
    asker: MCPCaller = request.scope[ASKER]
    return asker
