"""/exports/<token>: a page that takes nothing, a button that takes all, and nothing of the token in any log."""

import logging
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from memories.audit import Actor
from memories.models import ActorKind, PrivacyExport
from memories.privacy.exports import downloads
from memories.web.server import QuietLogger
from memoryhub.log_lines import Masked, masked
from tests import factories

pytestmark = pytest.mark.django_db
SECRETIVE = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex, nofollow"}


@pytest.fixture
def export() -> PrivacyExport:
    case = factories.privacy_case(factories.end_user(external_id="u-42"), type="access", state="completed")
    now = timezone.now()
    return factories.privacy_export(case, content=b"PK zip", size=6, made_at=now, expires_at=now + timedelta(days=7))


@pytest.fixture
def address(export: PrivacyExport) -> str:
    actor = Actor(kind=ActorKind.OPERATOR, id="1")
    return f"/exports/{downloads.link_for(export, actor, timezone.now())}"


def test_scanners_take_nothing_and_the_button_takes_all(address: str, export: PrivacyExport) -> None:
    client = Client(enforce_csrf_checks=True)
    for method in ("GET", "HEAD", "GET"):
        assert client.generic(method, address).status_code == 200
    page = client.get(address).content.decode()
    assert '<form method="post">' in page
    assert "u-42" not in page
    taken = client.post(address)
    assert (taken.status_code, taken.getvalue()) == (200, b"PK zip")
    assert taken.headers["Content-Type"] == "application/zip"
    assert taken.headers["Content-Disposition"] == f'attachment; filename="export-{export.case_id}.zip"'
    for method in ("GET", "POST"):
        assert client.generic(method, address).status_code == 410


def test_every_answer_keeps_the_link_to_itself(address: str) -> None:
    client = Client()
    answers = [client.get(address), client.post(address), client.get(address), client.get("/exports/nothing")]
    assert [answer.status_code for answer in answers] == [200, 200, 410, 404]
    for answer in answers:
        assert SECRETIVE.items() <= dict(answer.headers).items()
        assert not answer.cookies
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "form-action 'self'" in policy
        assert "script-src" not in policy


def test_no_other_verb_and_no_guess(address: str, export: PrivacyExport) -> None:
    for verb in ("put", "patch", "delete", "options"):
        assert getattr(Client(), verb)(address).status_code == 405, verb
    for token in ("short", "a" * 43, "%00", "..%2f", "%FF"):
        for asked in (Client().get, Client().post):
            assert asked(f"/exports/{token}").status_code == 404, token
    export.refresh_from_db()
    assert export.state == "ready"


def test_who_is_signed_in_sees_the_same(address: str, admin: Client) -> None:
    assert admin.get(address).content == Client().get(address).content


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(factories.operator())
    return client


def test_the_page_speaks_the_browser_s_language(address: str) -> None:
    for asked, spoken in (("zh-CN,zh;q=0.9", "zh-hans"), ("de", "en")):
        assert f'<html lang="{spoken}">' in Client().get(address, headers={"Accept-Language": asked}).content.decode()


class Lines(logging.Handler):
    """What a handler with these filters would write."""

    def __init__(self, *filters: logging.Filter) -> None:
        super().__init__()
        self.said: list[str] = []
        for one in filters:
            self.addFilter(one)

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def test_no_log_holds_the_token(address: str) -> None:
    # The positive control: without the filter it would.
    bare, lines = Lines(), Lines(Masked())
    logger = logging.getLogger("django.request")
    for handler in (bare, lines):
        logger.addHandler(handler)
    try:
        Client().get("/exports/a-mistyped-token")
        Client().post(address)
        Client().get(address)
    finally:
        for handler in (bare, lines):
            logger.removeHandler(handler)
    assert lines.said == ["Not Found: /exports/…", "Gone: /exports/…"]
    assert bare.said == ["Not Found: /exports/a-mistyped-token", f"Gone: {address}"]


def test_all_handlers_of_the_settings_mask() -> None:
    logged: Any = settings.LOGGING
    handlers = logged["handlers"]
    assert handlers
    assert all("masked" in handler["filters"] for handler in handlers.values())


def test_nor_does_the_access_log() -> None:
    from gunicorn.config import Config

    answer, request = type("Answer", (), {"status": "200 OK", "sent": 1})(), None
    for path, said in {
        "/exports/abc": "/exports/%E2%80%A6",
        "/exports/abc/def": "/exports/%E2%80%A6/def",
        "/admin/exports": "/admin/exports",
        "/api/v1/facts": "/api/v1/facts",
    }.items():
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": path}
        assert QuietLogger(Config()).atoms(answer, request, environ, timedelta(milliseconds=3))["U"] == said


def test_what_is_masked() -> None:
    assert masked("Gone: /exports/abc?x") == "Gone: /exports/…?x"
    assert masked("nothing") == "nothing"
