"""How much a request may say, for every operation of the document that takes a body: each of its lists is bounded, and
too much of anything is refused without being built or validated. The bound on the processor is in proportion to what
reading the same bytes costs on this machine, at this moment."""

import gc
import json
from collections.abc import Iterator
from time import process_time
from types import SimpleNamespace
from typing import Any

import pytest

from memories.api import parsers, shapes
from memories.exceptions import InvalidInput
from tests.api.calls import CALLS, Ids
from tests.api.client import BASE, HubClient, all_operations, schema
from tests.api.conftest import Hub

SIZE = 320_000
# What a request costs that is refused at once, and how many times as much as reading its bytes takes what is not.
AT_ONCE, TIMES = 0.15, 30
KEYS = b", ".join(b'"k%d": 1' % number for number in range(SIZE // 11))
# A document of another program may have keys that the hub does not know.
IGNORING = ("putMemory",)
# Operations with a body of JSON, and the schema of it. A file that is uploaded: tests/api/test_hostile_input.py.
BODIES: dict[str, Any] = {}
for _name, (_method, _path) in all_operations().items():
    _content = schema()["paths"][_path][_method.lower()].get("requestBody", {}).get("content", {})
    if "application/json" in _content:
        BODIES[_name] = _content["application/json"]["schema"]
TENANTS = [name for name in BODIES if name in CALLS]


def resolved(part: Any) -> Any:
    while "$ref" in part:
        part = schema()["components"]["schemas"][part["$ref"].rpartition("/")[2]]
    if "allOf" in part and len(part["allOf"]) == 1:
        return resolved(part["allOf"][0])
    return part


def lists(part: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Where a document has lists, with their schemas; `*` stands for a member or a key."""
    part = resolved(part)
    for one in part.get("oneOf", ()):
        yield from lists(one, at)
    if "array" in str(part.get("type")):
        yield at, part
        yield from lists(part.get("items", {}), (*at, "*"))
    for name, one in part.get("properties", {}).items():
        yield from lists(one, (*at, name))
    if isinstance(part.get("additionalProperties"), dict):
        yield from lists(part["additionalProperties"], (*at, "*"))


def with_list(body: Any, at: tuple[str, ...], members: Any) -> Any:
    """The body with these members at the place; where there is nothing on the way to it, an object or a list."""
    if not at:
        return members
    step, *rest = at
    if step == "*":
        first = body[0] if isinstance(body, list) and body else {}
        return [with_list(first, tuple(rest), members)]
    found = dict(body) if isinstance(body, dict) else {}
    return {**found, step: with_list(found.get(step, {}), tuple(rest), members)}


def hostile(operation: str) -> Iterator[tuple[str, bytes]]:
    """The same bad inputs for each operation, of SIZE or more."""
    valid = CALLS[operation](Ids()).body or {}
    yield "unknown keys", json.dumps({**valid, "KEYS": 1}).encode().replace(b'"KEYS": 1', KEYS)
    yield "a long key", json.dumps({**valid, "k" * SIZE: 1}).encode()
    yield "deep", json.dumps(valid).encode()[:-1] + b',"k":' + b"[" * (SIZE // 2) + b"]" * (SIZE // 2) + b"}"
    for at, part in lists(BODIES[operation]):
        place = "/".join(at)
        for name, member in (("objects", {}), ("texts", "x")):
            written, whole = json.dumps(member), json.dumps(with_list(valid, at, "MEMBERS"))
            for how, count in (("one more", part["maxItems"] + 1), ("many", SIZE // (len(written) + 2))):
                members = f"[{', '.join([written] * count)}]"
                yield f"{place} {how}: {name}", whole.replace('"MEMBERS"', members).encode()


def floor(body: bytes) -> float:
    """What reading the same bytes costs: built, and each value looked at once."""
    began = process_time()
    try:
        waiting = [json.loads(body)]
    except (ValueError, RecursionError):
        waiting = []
    while waiting:
        one = waiting.pop()
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return process_time() - began


@pytest.mark.parametrize("operation", BODIES)
def test_each_list_of_each_document_has_a_most(operation: str) -> None:
    for at, part in lists(BODIES[operation]):
        assert part.get("maxItems"), (operation, at)


def test_there_are_lists() -> None:
    assert sum(bool(list(lists(body))) for body in BODIES.values()) > 15


@pytest.fixture
def nobody_collects_garbage() -> Iterator[None]:
    """A collection takes most of a second of whichever request it meets."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("nobody_collects_garbage")
def test_too_much_is_refused_at_once(hub: Hub) -> None:
    for operation in TENANTS:
        method, template = all_operations()[operation]
        call = CALLS[operation](Ids())
        path = template.removeprefix(BASE).format(**call.path)
        # What the first request loads is not its own cost.
        hub.client.call(method, path, call.body if operation in IGNORING else b'{"x":1}', query=call.query)
        for name, body in hostile(operation):
            what = (operation, name, len(body))
            began = process_time()
            response = hub.client.call(method, path, body, query=call.query)
            took = process_time() - began
            assert took < AT_ONCE or took < AT_ONCE + TIMES * floor(body), (what, took)
            assert len(response.content) < 50_000, what
            if operation in IGNORING and name.startswith(("unknown", "a long")):
                assert response.status_code == 200, what
                continue
            assert response.status_code in (400, 413), (what, response.content[:300])
            assert 1 <= len(response.json()["errors"]) <= shapes.MOST_FAULTS, what


@pytest.mark.django_db
def test_a_list_that_is_too_long_is_told_with_its_place_alone(client: HubClient) -> None:
    refused = client.post("/search", {"user_id": "u", "query": 5, "kinds": ["x"] * 1_000}).json()["errors"]
    assert [(one["pointer"], one["code"]) for one in refused] == [("/kinds", "max_length")]
    # And one that is not, is told of each member.
    refused = client.post("/search", {"user_id": "u", "query": "q", "kinds": ["x", "fact"]}).json()["errors"]
    assert [(one["pointer"], one["code"]) for one in refused] == [("/kinds/0", "invalid_choice")]


@pytest.mark.django_db
def test_nothing_is_built_of_a_body_with_too_many_values(client: HubClient, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    decoder = parsers._DECODER

    def decode(text: str) -> Any:
        built.append(text[:20])
        return decoder.decode(text)

    monkeypatch.setattr(parsers, "_DECODER", SimpleNamespace(decode=decode))
    refused = client.post("/search", {"user_id": "u", "query": "q", "x": [1] * (shapes.MOST_VALUES + 1)})
    assert [one["code"] for one in refused.json()["errors"]] == ["max_values"]
    assert built == []
    known = client.post("/search", {"user_id": "u", "query": "q", "x": [1]}).json()["errors"]
    assert known[0]["code"] == "unknown_field"
    assert len(built) == 1


@pytest.mark.django_db
def test_beyond_what_an_answer_shows_nothing_is_looked_for(client: HubClient, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    note = shapes.note_faults

    def noted(number: int) -> None:
        looked.append(number)
        note(number)

    monkeypatch.setattr(shapes, "note_faults", noted)
    body = {"user_id": "u", "session_id": "s", "messages": [{"role": "user", "content": 5}] * 500}
    refused = client.post("/turns", body).json()["errors"]
    assert [one["pointer"] for one in refused] == [f"/messages/{number}/content" for number in range(100)]
    assert len(looked) <= shapes.MOST_FAULTS + 1


@pytest.mark.parametrize(
    ("body", "depth"),
    [
        (b'{"a": "[[[[,,,,", "b": [1, [2]]}', 3),
        (b'{"a": "\\"[[\\\\", "b": [[]]}', 3),
        (b'{"a": "\\\\\\"[[[[[", "b": []}', 2),
        (b"{}", 1),
        (b'{"[{": 1}', 1),
    ],
)
def test_what_stands_in_texts_does_not_count(body: bytes, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsers, "MAX_DEPTH", 0)
    assert parsers.measure(body, most=100) == depth


@pytest.mark.parametrize("chunk", [1, 2, 7, 1_000])
def test_pieces_of_a_body_are_counted_as_the_whole(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsers, "_CHUNK", chunk)
    monkeypatch.setattr(parsers, "MAX_DEPTH", 0)
    body = json.dumps({"a": ['x\\",[', {"b": [[1, 2], {}]}], "花": ["[", "\\"]}).encode()
    assert parsers.measure(body, most=1_000) == 5
    values = body.count(b",") - 1 + 7
    assert parsers.measure(body, most=values)
    with pytest.raises(InvalidInput):
        parsers.measure(body, most=values - 1)
