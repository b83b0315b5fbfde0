"""Bad input of every kind to every operation that takes some: the stated problem, never a 5xx, and nothing changes."""

from io import BytesIO
from typing import Any

import pytest
from django.apps import apps
from django.conf import LazySettings
from gunicorn.http.errors import InvalidChunkSize

from memories.models import Turn
from memories.text.secrets import effort
from tests.api.calls import CALLS, Ids
from tests.api.client import BASE, operations, schema
from tests.api.conftest import Hub

# One for each way of being wrong; test_parsers.py has all that is no JSON.
BODIES = {
    "not JSON": b"user_id=u1",
    "an unknown field": b'{"no_such_field": 1}',
    "NUL": b'{"user_id": "a\\u0000b"}',
    "invalid UTF-8": b'{"user_id": "\xff\xfe"}',
    "huge number": b'{"max_tokens": 1e400}',
    "deep arrays": b'{"metadata": ' + b"[" * 100_000,
    "an array": b"[1]",
}
QUERIES = {
    "NUL": "user_id=a%00b",
    "twice": "user_id=a&user_id=b",
    "page_size 201": "page_size=201",
    "cursor of words": "cursor=abc",
    "NUL in a name": "a%00b=1",
    "invalid UTF-8": "user_id=%FF%FE",
    "surrogate": "user_id=%ED%A0%80",
    "raw bytes": "user_id=\xff",
    "limit": "limit=-1",
    "page_size -1": "page_size=-1",
    "page_size 0": "page_size=0",
    "page_size 1e9": "page_size=1000000000",
    "page_size huge": "page_size=" + "9" * 5000,
    "page_size a word": "page_size=all",
    "many": "&".join(f"p{n}=1" for n in range(60)),
    "too many for Django": "&".join(f"p{n}=1" for n in range(1100)),
    "NUL cursor": "cursor=%00",
    "cursor like theirs": "cursor=cj0xJnA9NDg3",
    "cursor signed by nobody": "cursor=WyJ4Il0:AAAA",
    "long": "q=" + "x" * 5000,
}


JSON = "application/json"
BODIES_OF: dict[str, Any] = {
    name: body for name, (method, path) in operations().items()
    if (body := schema()["paths"][path][method.lower()].get("requestBody"))
}  # fmt: skip


# These are tried with every operation, the others with one: one parser and one pagination serve all.
EVERYWHERE = ("not JSON", "an unknown field", "NUL", "twice", "page_size 201", "cursor of words")


def with_body() -> list[str]:
    """Those that read JSON. createImport takes a file of any type: see below."""
    return [name for name, body in BODIES_OF.items() if JSON in body["content"]]


def address(operation: str) -> tuple[str, str]:
    method, template = operations()[operation]
    return method, template.removeprefix(BASE).format(**CALLS[operation](Ids()).path)


def rows() -> dict[str, int]:
    return {model.__name__: model._default_manager.count() for model in apps.get_app_config("memories").get_models()}


def test_bodies(hub: Hub) -> None:
    before = rows()
    assert len(with_body()) >= 7
    for kind, body in BODIES.items():
        for operation in with_body() if kind in EVERYWHERE else ["getContext"]:
            method, path = address(operation)
            answer = hub.client.call(method, path, body, query=CALLS[operation](Ids()).query)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid"), (kind, operation)
            assert answer.json()["errors"]
    assert rows() == before


def test_queries(hub: Hub) -> None:
    before = rows()
    lists = [
        name for name, (method, path) in operations().items()
        if method == "GET" and "page_size" in str(schema()["paths"][path])
    ]  # fmt: skip
    assert len(lists) >= 15
    for kind, query in QUERIES.items():
        for operation in lists if kind in EVERYWHERE else ["listFacts"]:
            # The object of the path is looked up before the cursor is read.
            if not ("{" in operations()[operation][1] and kind.startswith("cursor ")):
                answer = hub.client.call("GET", address(operation)[1], query=query)
                assert (answer.status_code, answer.json()["code"]) == (400, "invalid"), (kind, operation)
    assert rows() == before


@pytest.mark.parametrize("query", ["user_id=%00", "page_size=-1"])
def test_no_operation_breaks_on_a_query(hub: Hub, query: str) -> None:
    answers = {name: hub.client.call(*address(name), {}, query=query).status_code for name in CALLS}
    assert {name: status for name, status in answers.items() if status not in (400, 404)} == {}


def test_an_operation_without_parameters_takes_none(hub: Hub) -> None:
    paths = schema()["paths"]
    refused = set()
    for operation in CALLS:
        method, template = operations()[operation]
        described = paths[template][method.lower()].get("parameters", [])
        if not any(one["in"] == "query" for one in described):
            answer = hub.client.call(*address(operation), CALLS[operation](Ids()).body, query="user=u1")
            assert answer.status_code == 400, operation
            assert [(one["pointer"], one["code"]) for one in answer.json()["errors"]] == [("user", "unknown_field")]
            refused.add(operation)
    assert {"postTurns", "getContext", "deleteSession", "getEpisode", "takePrivacyExport"} <= refused
    assert hub.client.call("POST", "/context", {"user_id": "u1"}, query="user=").status_code == 200


TYPES = [
    "", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml",
    "application/json; charset=latin-1", "application/json; charset=nonsense",
    "application/jsonl", "nonsense", "*/*", "/",
]  # fmt: skip


def test_content_types(hub: Hub) -> None:
    before = rows()
    tried = [(operation, "text/plain") for operation in with_body()] + [("getContext", one) for one in TYPES]
    for operation, content_type in tried:
        method, path = address(operation)
        query = CALLS[operation](Ids()).query
        answer = hub.client.call(method, path, b'{"user_id": "u1"}', query=query, content_type=content_type)
        assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type"), operation
    assert rows() == before
    for content_type in ("application/json", "application/json; charset=UTF-8"):
        assert hub.client.call("POST", "/context", {"user_id": "u1"}, content_type=content_type).status_code == 200


def form(**parts: bytes) -> bytes:
    written = b"".join(
        b'--x\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n'
        % (name.encode(), b'; filename="f.jsonl"' if name == "file" else b"", part)
        for name, part in parts.items()
    )
    return written + b"--x--\r\n"


FORM, FILE = "multipart/form-data; boundary=x", b'{"text": "Keeps bees", "category": "other"}'
# Uploads that are none: body, type, and the code of the problem.
UPLOADS: dict[str, tuple[bytes, str, int, str]] = {
    "nothing": (b"", "application/zip", 400, "invalid"),
    "a form without boundary": (form(file=FILE), "multipart/form-data", 400, "invalid"),
    "a form that is none": (b"[1]", FORM, 400, "invalid"),
    "a form without file": (form(user_id=b"u1"), FORM, 400, "invalid"),
    "an empty file": (form(file=b""), FORM, 400, "invalid"),
    "an unknown field": (form(file=FILE, no_such_field=b"1"), FORM, 400, "invalid"),
    "NUL": (form(file=FILE, user_id=b"a\x00b"), FORM, 400, "invalid"),
    "invalid UTF-8": (form(file=FILE, time_zone=b"\xff\xfe"), FORM, 400, "invalid"),
    "deep": (form(file=FILE, authors=b"[" * 100_000), FORM, 400, "invalid"),
    "no object": (form(file=FILE, authors=b"[1]"), FORM, 400, "invalid"),
    "many fields": (form(file=FILE, **{f"p{n}": b"1" for n in range(1100)}), FORM, 400, "invalid"),
    "a long field": (form(file=FILE, authors=b"[" * (11 << 20)), FORM, 400, "invalid"),
    "too much": (b" " * ((2 << 20) + 1), "application/zip", 413, "import_too_large"),
    "a large file": (form(file=b" " * ((1 << 20) + 1)), FORM, 413, "import_too_large"),
}


def test_what_is_no_upload_is_refused_and_stores_nothing(hub: Hub, settings: LazySettings) -> None:
    assert set(BODIES_OF) - set(with_body()) == {"createImport"}
    settings.MEMORYHUB_IMPORT_MEGABYTES = 1
    before = rows()
    for kind, (body, content_type, status, code) in UPLOADS.items():
        # What is longer than a file may be is refused before it is read.
        settings.MEMORYHUB_IMPORT_MEGABYTES = 20 if kind == "a long field" else 1
        answer = hub.client.call("POST", "/imports", body, content_type=content_type)
        assert (answer.status_code, answer.json()["code"]) == (status, code), kind
    for query in ("user_id=a%00b", "user_id=a&user_id=b", "no_such_field=1", "authors=[", "folder=x"):
        answer = hub.client.call("POST", "/imports", FILE, query=query, content_type="application/jsonl")
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid"), query
    for body, content_type in ((FILE, "application/jsonl"), (form(file=FILE), FORM), (form(file=FILE)[:-30], FORM)):
        broken: dict[str, Any] = {"CONTENT_LENGTH": str(len(body) + 1), "wsgi.input": BytesIO(body)}
        answer = hub.client.call("POST", "/imports", body, content_type=content_type, **broken)
        assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "incomplete"), content_type
    assert rows() == before
    for body, content_type in ((FILE, "application/jsonl"), (FILE, "nonsense"), (form(file=FILE), FORM)):
        assert hub.client.call("POST", "/imports", body, content_type=content_type).status_code == 202, content_type


LIMIT = 10 * 1024 * 1024


def test_a_body_of_10_mb_is_read(hub: Hub) -> None:
    body = b'{"user_id": "u1"}'
    assert hub.client.call("POST", "/context", body + b" " * (LIMIT - len(body))).status_code == 200


def test_a_larger_one_is_refused_and_read_no_further_than_it_says(hub: Hub) -> None:
    answer = hub.client.call("POST", "/context", b" " * (LIMIT + 1))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert hub.client.call("POST", "/context", b"{}", CONTENT_LENGTH=str(LIMIT + 1)).status_code == 413


def chunked(hub: Hub, body: bytes, source: Any = None) -> Any:
    environ: dict[str, Any] = {
        "CONTENT_LENGTH": "",
        "HTTP_TRANSFER_ENCODING": "chunked",
        "wsgi.input": source or BytesIO(body),
        "wsgi.input_terminated": True,
    }
    return hub.client.call("POST", "/context", body, **environ)


def test_chunked_bodies_are_read_and_bounded_too(hub: Hub) -> None:
    assert chunked(hub, b'{"user_id": "u1"}').status_code == 200
    assert chunked(hub, b'{"user_id": ').status_code == 400
    assert chunked(hub, b" " * (LIMIT + 1)).status_code == 413


@pytest.mark.parametrize("trouble", [OSError("reset"), InvalidChunkSize(b"ZZ")])
def test_a_chunked_body_that_breaks_off_is_refused(hub: Hub, trouble: Exception) -> None:
    class Broken(BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise trouble

    answer = chunked(hub, b"", Broken())
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "incomplete")


def test_a_body_shorter_than_it_says_is_refused(hub: Hub) -> None:
    body = b'{"user_id": "u1"}'
    environ: dict[str, Any] = {"CONTENT_LENGTH": str(len(body) + 1), "wsgi.input": BytesIO(body)}
    answer = hub.client.call("POST", "/context", body, **environ)
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "incomplete")


def test_nothing_at_all_is_an_empty_object(hub: Hub) -> None:
    answer = hub.client.call("POST", "/context", b"")
    assert answer.json()["errors"][0] | {"detail": ""} == {"pointer": "/user_id", "code": "required", "detail": ""}


def test_a_request_of_too_much_is_refused_and_stores_nothing(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    def post(count: int) -> Any:
        said = [{"role": "user", "content": "pw " * 100} for _ in range(count)]
        return hub.client.post("/turns", {"user_id": "u", "session_id": "s", "messages": said})

    monkeypatch.setattr(effort, "MOST_PLACES", 1_000)
    refused = post(20)
    assert (refused.status_code, refused.json()["code"]) == (413, "too_many_secrets")
    assert not Turn.objects.exists()
    # Each request has as much again.
    assert [post(2).status_code for _ in range(8)] == [202] * 8
