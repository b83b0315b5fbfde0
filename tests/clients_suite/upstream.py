"""The endpoint behind the hub: it answers in three protocols what a client's script says, and keeps what it was asked.

A script is a list of rules; the first that fits answers. `last` and `any` are regular expressions, searched in the text
of the request's last message and in the whole request; `tool` is a tool that it offers. An answer is `say`, a text, or
`call`, a tool with its arguments.
"""

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Rule = Mapping[str, Any]


class Upstream:
    """What it answers, and was asked, in the run of one client."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self._lock = threading.Lock()
        self.begin([])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def begin(self, script: Sequence[Rule]) -> None:
        """A new client: nothing was asked yet."""
        self.asked: list[Json] = []
        self._script = list(script)

    def answer(self, asked: Json) -> Json:
        """`say` or `call`, and `number`, for this request."""
        with self._lock:
            self.asked.append(asked)
            number = len(self.asked)
            found = next((rule for rule in self._script if _fits(rule, asked)), {"say": f"Noted, answer {number}."})
        return {**found, "number": number}


@contextmanager
def running(port: int) -> Iterator[Upstream]:
    server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    server.daemon_threads = True
    upstream = Upstream(server)
    _Handler.upstream = upstream
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield upstream
    finally:
        server.shutdown()
        server.server_close()


def items(asked: Json) -> list[Json]:
    """The messages of a request, of whatever protocol; the system prompt first."""
    head = [{"role": "system", "content": asked[name]} for name in ("system", "instructions") if asked.get(name)]
    given: str | list[Json] = asked["messages"] if "messages" in asked else asked.get("input") or []
    return head + ([{"role": "user", "content": given}] if isinstance(given, str) else given)


def text_of(item: Any) -> str:
    """All that a message says, of calls and results of tools too."""
    if isinstance(item, list):
        return "\n\n".join(filter(None, map(text_of, item)))
    if isinstance(item, dict):
        return text_of([item[name] for name in ("content", "text", "output") if item.get(name)])
    return item if isinstance(item, str) else ""


def _fits(rule: Rule, asked: Json) -> bool:
    said = items(asked)
    tools = [one.get("name") or one.get("function", {}).get("name") for one in asked.get("tools") or ()]
    return (
        re.search(rule.get("last", ""), text_of(said[-1]) if said else "", re.DOTALL) is not None
        and re.search(rule.get("any", ""), json.dumps(asked, ensure_ascii=False), re.DOTALL) is not None
        and ("tool" not in rule or rule["tool"] in tools)
    )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream: Upstream

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def do_GET(self) -> None:
        self._whole(
            {"object": "list", "data": [{"id": "gpt-4o", "object": "model", "created": 1, "owned_by": "suite"}]}
        )

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.split("?")[0]
        if path.endswith("/embeddings"):
            self._whole({"object": "list", "model": "m", "data": [{"index": 0, "embedding": [0.1] * 8}], "usage": {}})
            return
        answer = self.upstream.answer(asked)
        whole, events = _PROTOCOLS[path.rsplit("/", 1)[-1]]
        body = whole(answer, asked)
        if asked.get("stream"):
            self._events(events(body))
        else:
            self._whole(body)

    def _whole(self, body: Json) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _events(self, events: Iterator[tuple[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for name, data in events:
            head = f"event: {name}\n" if name else ""
            self.wfile.write(f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())
        self.close_connection = True


def _chat(answer: Json, asked: Json) -> Json:
    message: Json = {"role": "assistant", "content": answer.get("say")}
    if call := answer.get("call"):
        function = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
        message["tool_calls"] = [{"id": f"call_{answer['number']}", "type": "function", "function": function}]
    choice = {"index": 0, "finish_reason": "tool_calls" if call else "stop", "message": message}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    return {"id": f"chatcmpl-{answer['number']}", "object": "chat.completion", "created": 1_790_000_000,
            "model": asked.get("model", "m"), "choices": [choice], "usage": usage}  # fmt: skip


def _chat_events(body: Json) -> Iterator[tuple[str, Any]]:
    [choice] = body["choices"]
    head = {**body, "object": "chat.completion.chunk", "usage": None}
    delta = dict(choice["message"])
    if calls := delta.get("tool_calls"):
        delta["tool_calls"] = [{"index": at, **call} for at, call in enumerate(calls)]
    yield "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield "", {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    yield "", {**head, "choices": [], "usage": body["usage"]}
    yield "", "[DONE]"


def _response(answer: Json, asked: Json) -> Json:
    number = answer["number"]
    if call := answer.get("call"):
        output: Json = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}",
                        "name": call["name"], "arguments": json.dumps(call["arguments"]),
                        "status": "completed"}  # fmt: skip
    else:
        part = {"type": "output_text", "text": answer["say"], "annotations": []}
        output = {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "input_tokens_details": {"cached_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    return {"id": f"resp_{number}", "object": "response", "created_at": 1_790_000_000, "status": "completed",
            "error": None, "model": asked.get("model", "m"), "output": [output], "parallel_tool_calls": True,
            "tool_choice": "auto", "tools": [], "usage": usage,
            "incomplete_details": None, "instructions": None, "metadata": {}}  # fmt: skip


def _response_events(body: Json) -> Iterator[tuple[str, Any]]:
    [output] = body["output"]
    number = iter(range(99))

    def event(kind: str, **more: Any) -> tuple[str, Json]:
        return kind, {"type": kind, "sequence_number": next(number), **more}

    started = {**body, "status": "in_progress", "output": [], "usage": None}
    at = {"item_id": output["id"], "output_index": 0}
    yield event("response.created", response=started)
    if output["type"] == "function_call":
        yield event(
            "response.output_item.added", output_index=0, item={**output, "arguments": "", "status": "in_progress"}
        )
        yield event("response.function_call_arguments.delta", **at, delta=output["arguments"])
        yield event("response.function_call_arguments.done", **at, name=output["name"], arguments=output["arguments"])
    else:
        [part] = output["content"]
        place = {**at, "content_index": 0}
        yield event(
            "response.output_item.added", output_index=0, item={**output, "content": [], "status": "in_progress"}
        )
        yield event("response.content_part.added", **place, part={**part, "text": ""})
        yield event("response.output_text.delta", **place, delta=part["text"], logprobs=[])
        yield event("response.output_text.done", **place, text=part["text"], logprobs=[])
        yield event("response.content_part.done", **place, part=part)
    yield event("response.output_item.done", output_index=0, item=output)
    yield event("response.completed", response=body)


def _message(answer: Json, asked: Json) -> Json:
    if call := answer.get("call"):
        part: Json = {
            "type": "tool_use",
            "id": f"toolu_{answer['number']}",
            "name": call["name"],
            "input": call["arguments"],
        }
    else:
        part = {"type": "text", "text": answer["say"]}
    return {"id": f"msg_{answer['number']}", "type": "message", "role": "assistant", "model": asked.get("model", "m"),
            "content": [part], "stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 5}}  # fmt: skip


def _message_events(body: Json) -> Iterator[tuple[str, Any]]:
    [part] = body["content"]
    yield "message_start", {"type": "message_start", "message": {**body, "content": [], "stop_reason": None}}
    if part["type"] == "text":
        empty, delta = {**part, "text": ""}, {"type": "text_delta", "text": part["text"]}
    else:
        empty, delta = {**part, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(part["input"])}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": empty}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 5}}
    yield "message_stop", {"type": "message_stop"}


_PROTOCOLS = {
    "completions": (_chat, _chat_events),
    "responses": (_response, _response_events),
    "messages": (_message, _message_events),
}
