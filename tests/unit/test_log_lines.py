"""Lines of the log as JSON: one object each, with request id and tenant, and nothing that somebody said."""

import io
import json
import logging
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from gunicorn.config import Config

from memories.management.commands import up
from memories.management.demo import DemoAccess
from memories.telemetry import log_fields
from memories.telemetry.log_fields import ANSWERED_ID, ANSWERED_TENANT
from memories.web.front import Answer
from memories.web.server import ACCESS_LOG_FORMAT, QuietLogger
from memoryhub.log_lines import JsonFormatter
from tests import factories
from tests.api.conftest import hub_of


class Lines(logging.StreamHandler[io.StringIO]):
    def __init__(self) -> None:
        super().__init__(io.StringIO())
        self.setFormatter(JsonFormatter())

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


@pytest.fixture
def lines() -> Any:
    handler = Lines()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def test_an_error_is_one_line_without_its_message(lines: Lines) -> None:
    said = "what somebody said\u2028in two lines"
    try:
        raise ValueError(said)
    except ValueError:
        logging.getLogger("some.place").exception("It failed:\n%s", "acme", extra={"request": "what somebody said"})
    text = lines.stream.getvalue()
    assert text.count("\n") == 1
    assert said[:13] not in text
    assert "in two lines" not in text
    [line] = lines.read()
    assert list(line) == ["time", "level", "logger", "message", "trace"]
    assert (line["level"], line["logger"], line["message"]) == ("ERROR", "some.place", "It failed:\nacme")
    assert line["time"].endswith("Z")
    assert line["trace"].startswith("Traceback")
    assert "ValueError" in line["trace"]


def test_fields_are_those_of_the_work_at_hand(lines: Lines) -> None:
    log = logging.getLogger("some.place")
    with log_fields.at_work(log_fields.TASK, "forget"):
        log_fields.note_tenant("acme")
        log.warning("inside")
    log_fields.note_tenant("of nothing")
    log.warning("outside")
    inside, outside = lines.read()
    assert (inside["task"], inside["tenant"]) == ("forget", "acme")
    assert not {"task", "tenant"} & outside.keys()


@pytest.mark.django_db
def test_a_line_of_a_request_names_it_and_its_tenant(lines: Lines) -> None:
    hub = hub_of(factories.tenant(slug="acme-logs"))
    headers = {"Authorization": f"Bearer {hub.client.plaintext}", "X-Request-ID": "mine-7"}
    response = Client().get(f"/api/v1/facts/{hub.tenant.pk}", headers=headers)
    assert response.status_code == 404
    assert (response.wsgi_request.META[ANSWERED_ID], response.wsgi_request.META[ANSWERED_TENANT]) == (
        "mine-7",
        "acme-logs",
    )
    [line] = [line for line in lines.read() if line["logger"] == "django.request"]
    assert (line["request_id"], line["tenant"]) == ("mine-7", "acme-logs")
    assert log_fields.current() == {}


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_web_server_says_each_answer_in_the_same_form(form: str, settings: Any) -> None:
    settings.MEMORYHUB_LOG_FORMAT = form
    config = Config()
    config.set("accesslog", "-")
    config.set("access_log_format", ACCESS_LOG_FORMAT)
    logging.getLogger("gunicorn.access").handlers.clear()
    server = QuietLogger(config)
    [handler] = server.access_log.handlers
    handler.setStream(io.StringIO())
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/api/v1/x\n", ANSWERED_ID: "mine-7", ANSWERED_TENANT: "acme"}
    server.access(Answer("200 OK", [], b"", 12), None, environ, timedelta(milliseconds=3))
    text = handler.stream.getvalue()
    assert text.count("\n") == 1
    if form == "text":
        assert text.endswith('"POST /api/v1/x%0A" 200 12 bytes 3 ms\n')
        return
    line = json.loads(text)
    assert list(line)[:4] == ["time", "level", "logger", "message"]
    assert {name: line[name] for name in list(line)[4:]} == {
        "method": "POST",
        "path": "/api/v1/x%0A",
        "status": 200,
        "bytes": 12,
        "milliseconds": 3,
        "request_id": "mine-7",
        "tenant": "acme",
    }


def test_the_greeting_has_no_key_then(settings: Any) -> None:
    seeded = DemoAccess(username="demo", password="secret-word", api_key="mh_secret", user_id="ada")
    assert "mh_secret" in up.greeting(seeded)
    settings.MEMORYHUB_LOG_FORMAT = "json"
    assert "secret" not in up.greeting(seeded)
