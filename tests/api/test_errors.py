"""Problem documents: one shape for every error, from wherever it comes."""

from typing import Any

import pytest
from django.core.exceptions import DisallowedHost
from django.db import InterfaceError, OperationalError, connection
from django.http import RawPostDataException, UnreadablePostError
from django.test import Client, RequestFactory
from pytest_django import Settings
from rest_framework.exceptions import ErrorDetail

from memories.api import errors, lookups
from memories.capture import ingest
from memories.exceptions import LeaseLost
from tests.api.client import PROBLEM_MEMBERS, HubClient
from tests.api.conftest import Hub


def test_the_shape(hub: Hub) -> None:
    answer = hub.client.call("GET", "/facts", query={"page_size": "0"}, headers={"X-Request-ID": "r1"})
    assert answer.json() == {
        "type": "about:blank",
        "title": "Bad Request",
        "status": 400,
        "detail": "The request is not valid; see the listed errors.",
        "instance": "/api/v1/facts",
        "code": "invalid",
        "request_id": "r1",
        "errors": [
            {
                "pointer": "page_size",
                "code": "min_value",
                "detail": "Ensure this value is greater than or equal to 1.",
            },
            {"pointer": "user_id", "code": "required", "detail": "This field is required."},
        ],
    }


@pytest.mark.parametrize("debug", [False, True])
def test_unknown_addresses(db: None, settings: Settings, debug: bool) -> None:
    settings.DEBUG = debug
    for path in ("/api", "/api/", "/api/v2/turns", "/api/v1/turns/", "/api/v1/nó", "/api/%00"):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"):
            answer = Client().generic(method, path, b"{}", content_type="application/json")
            assert (answer.status_code, answer.headers["Content-Type"]) == (404, errors.MEDIA_TYPE), (method, path)
            assert set(answer.json()) == PROBLEM_MEMBERS, (method, path)


def test_the_instance_is_an_escaped_path(db: None) -> None:
    assert Client().get("/api/v1/n%C3%B3%00?user_id=somebody").json()["instance"] == "/api/v1/n%C3%B3%00"


def test_methods_that_are_not_there(hub: Hub) -> None:
    for method, path in (("GET", "/turns"), ("DELETE", "/facts"), ("OPTIONS", "/facts"), ("FOO", "/users")):
        answer = hub.client.call(method, path, {})
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed"), (method, path)
        assert answer.headers["Allow"]


def test_answers_are_json_or_nothing(hub: Hub) -> None:
    for accept, status in [("application/xml", 406), ("*/*", 200), ("application/json", 200), ("x", 406)]:
        assert hub.client.call("GET", "/users", headers={"Accept": accept}).status_code == status, accept


@pytest.mark.parametrize("trouble", [OperationalError, InterfaceError])
def test_a_database_that_is_gone_is_503(hub: Hub, monkeypatch: pytest.MonkeyPatch, trouble: type[Exception]) -> None:
    def fail(**_: Any) -> None:
        raise trouble("connection to 10.0.0.7 refused: 我的秘密")

    monkeypatch.setattr(ingest, "store_turns", fail)
    body = {"user_id": "u1", "session_id": "s1", "messages": [{"role": "user", "content": "x"}]}
    answer = hub.client.post("/turns", body)
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert int(answer.headers["Retry-After"]) > 0
    assert "10.0.0.7" not in answer.content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_server_that_takes_no_writes_is_503_and_its_connection_is_given_up(hub: Hub) -> None:
    """As one does that was the primary until somebody took over."""
    body = {"user_id": "u1", "session_id": "s1", "messages": [{"role": "user", "content": "x"}]}
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only TO on")
    connection.close_at = None
    # Though no use of its key can be noted.
    assert hub.client.get("/users").status_code == 200
    answer = hub.client.post("/turns", body)
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert int(answer.headers["Retry-After"]) > 0
    connection.close_if_unusable_or_obsolete()
    assert hub.client.post("/turns", body).status_code == 202


@pytest.mark.parametrize("trouble", [RuntimeError("secret 我的秘密"), LeaseLost()])
def test_an_error_of_ours_says_nothing_but_its_id(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, trouble: Exception
) -> None:
    def fail(**_: Any) -> None:
        raise trouble

    monkeypatch.setattr(lookups, "find_person", fail)
    client = HubClient(hub.client.plaintext)
    client.http = Client(raise_request_exception=False)
    answer = client.http.get("/api/v1/facts?user_id=x", headers={"Authorization": f"Bearer {client.plaintext}"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert "secret" not in answer.content.decode()
    assert answer.headers["X-Request-ID"] in caplog.text


def test_a_foreign_host_is_refused(db: None) -> None:
    answer = Client().get("/api/v1/users", headers={"Host": "evil.example"})
    assert (answer.status_code, answer.headers["Content-Type"]) == (400, errors.MEDIA_TYPE)


def test_what_django_refuses_outside_of_the_api_stays_djangos() -> None:
    request = RequestFactory().get("/admin/")
    assert errors.bad_request(request, DisallowedHost()).headers["Content-Type"].startswith("text/html")
    assert errors.server_error(request).headers["Content-Type"].startswith("text/html")


def test_what_nobody_raises_on_purpose_is_no_problem() -> None:
    assert errors.problem_of(RawPostDataException()) is None
    assert errors.problem_of(UnreadablePostError()) is not None


def test_nested_errors_become_pointers() -> None:
    detail = {
        "messages": [{}, {"role": [ErrorDetail("bad", code="x")]}],
        "a/b~c": {"non_field_errors": [ErrorDetail("whole", code="y")]},
        "tags": {3: [ErrorDetail("third", code="z")]},
    }
    found = [(fault.pointer, fault.code) for fault in errors.faults_of(detail)]
    assert found == [("/messages/1/role", "x"), ("/a~1b~0c", "y"), ("/tags/3", "z")]


def test_errors_do_not_repeat_the_input(hub: Hub) -> None:
    said = "我的密码是 hunter2"
    message = {"role": said, "content": {"x": said}, "timestamp": said}
    body = {"user_id": "u1", "session_id": "s1", "messages": [message]}
    answer = hub.client.post("/turns", body)
    assert answer.status_code == 400
    assert "hunter2" not in answer.content.decode()
