"""Calls of tools that pass through the gateway become one trajectory of their session, where the tenant wants it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from memories.models import Fact, Tenant, Trajectory, TrajectoryStep, Turn
from tests.gateway.conftest import Client
from tests.gateway.test_dialects import response
from tests.llm.endpoint import Endpoint, sends

TASK, COMMAND, OUTPUT = "Make the tests pass.", {"command": "pytest -q"}, "Exit code: 0\n3 passed"
HEADERS = {"user": "u1", "session": "s1", "agent": "coder"}


def answers(endpoint: Endpoint, *documents: dict[str, Any]) -> None:
    endpoint.responds(*(sends(json.dumps(one).encode()) for one in documents))


def _choice(message: dict[str, Any]) -> dict[str, Any]:
    return {"id": "x", "choices": [{"index": 0, "message": message}]}


def chat(client: Client, endpoint: Endpoint) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "shell", "arguments": json.dumps(COMMAND)}}
    called = {"role": "assistant", "content": "I run them.", "tool_calls": [call]}
    answers(endpoint, *(_choice(one) for one in (called, {"role": "assistant", "content": "They pass."})))
    messages: list[Any] = [{"role": "user", "content": TASK}]
    client.post({"model": "m", "messages": messages}, **HEADERS)
    messages += [called, {"role": "tool", "tool_call_id": "c1", "content": OUTPUT}]
    client.post({"model": "m", "messages": messages}, **HEADERS)


def responses(client: Client, endpoint: Endpoint) -> None:
    call = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "shell", "arguments": json.dumps(COMMAND)}
    called = response("", output=[*response("I run them.")["output"], call])
    answers(endpoint, called, response("They pass."))
    items: list[Any] = [{"role": "user", "content": TASK}]
    client.post({"model": "m", "input": items}, path="/responses", **HEADERS)
    items += [*called["output"], {"type": "function_call_output", "call_id": "c1", "output": OUTPUT}]
    client.post({"model": "m", "input": items}, path="/responses", **HEADERS)


def messages(client: Client, endpoint: Endpoint) -> None:
    use = {"type": "tool_use", "id": "c1", "name": "shell", "input": COMMAND}
    called = [{"type": "text", "text": "I run them."}, use]
    last = [{"type": "text", "text": "They pass."}]
    answers(endpoint, *({"id": "x", "content": content} for content in (called, last)))
    said: list[Any] = [{"role": "user", "content": TASK}]
    client.post({"model": "m", "max_tokens": 9, "messages": said}, path="/messages", **HEADERS)
    result = {"type": "tool_result", "tool_use_id": "c1", "content": OUTPUT}
    said += [{"role": "assistant", "content": called}, {"role": "user", "content": [result]}]
    client.post({"model": "m", "max_tokens": 9, "messages": said}, path="/messages", **HEADERS)


@pytest.mark.parametrize("talk", [chat, responses, messages])
def test_each_call_and_its_result_once(
    tenant: Tenant, client: Client, endpoint: Endpoint, talk: Callable[[Client, Endpoint], None]
) -> None:
    tenant.numbers = {"gateway_trajectories": True}
    tenant.save()
    talk(client, endpoint)
    row = Trajectory.objects.get()
    assert (row.road, row.task, row.agent_id, row.session_id) == ("gateway", TASK, "coder", "s1")
    assert (row.outcome, row.outcome_source) == ("succeeded", "tests")
    steps = list(row.steps.values_list("kind", "tool", "call_id", "content", "exit_code"))
    assert steps == [
        ("message", "", "", "I run them.", None),
        ("tool_call", "shell", "c1", "", None),
        ("tool_result", "", "c1", OUTPUT, 0),
        ("message", "", "", "They pass.", None),
    ]
    assert row.steps.get(position=2).arguments == COMMAND
    # The person's words are turns, and no steps; nothing of it is a fact.
    assert Turn.objects.said().get().content == TASK
    assert row.steps.filter(content__contains=TASK).count() == 0
    assert not Fact.objects.exists()


def test_nothing_is_made_of_it_unless_the_tenant_wants_it(client: Client, endpoint: Endpoint) -> None:
    chat(client, endpoint)
    turns = list(Turn.objects.order_by("number").values_list("role", "content"))
    assert [role for role, _ in turns] == ["user", "assistant", "tool", "assistant"], turns
    assert not Trajectory.objects.exists()


def test_turns_are_kept_where_a_trajectory_is_full(tenant: Tenant, client: Client, endpoint: Endpoint) -> None:
    tenant.numbers = {"gateway_trajectories": True, "trajectory_steps": 10}
    tenant.save()
    calls = [{"id": f"c{at}", "type": "function", "function": {"name": "ls", "arguments": "{}"}} for at in range(11)]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    answers(endpoint, _choice(message))
    client.post({"model": "m", "messages": [{"role": "user", "content": TASK}]}, **HEADERS)
    assert (Turn.objects.count(), TrajectoryStep.objects.count()) == (2, 0)
