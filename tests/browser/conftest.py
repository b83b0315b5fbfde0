"""A real chromium that may talk to the live server alone; whatever it complains about fails the test."""

import os
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from memories.models import Operator
from tests import factories
from tests.admin.conftest import signed_in
from tests.browser import chromium as local

DESK, PHONE = local.DESK, local.PHONE
# Generous: the machine may be busy with other things.
PATIENCE_MS = 120_000

Open = Callable[..., Page]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """One chromium for all tests here. Without any this fails: a skipped browser test proves nothing."""
    # Playwright keeps an event loop in this thread, and Django would refuse to reach the database beside it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=local.chromium_path(), args=local.FLAGS)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def operator(transactional_db: None) -> Operator:
    return factories.operator(username="ana", password="correct horse battery")


@pytest.fixture
def complaints() -> list[str]:
    """What the browser complained about; a test that expects a complaint removes it."""
    return []


@pytest.fixture
def open_page(chromium: Browser, live_server: LiveServer, complaints: list[str]) -> Iterator[Open]:
    """Open a page: its size, colour scheme and who is signed in can be named."""
    contexts = []

    def open_page(*, size: tuple[int, int] = DESK, scheme: str = "light", who: Operator | None = None) -> Page:
        viewport = {"width": size[0], "height": size[1]}
        context = chromium.new_context(base_url=live_server.url, viewport=viewport, color_scheme=scheme)  # type: ignore[arg-type]
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        # Listened to and not routed: a browser whose requests are routed keeps no style sheet.
        context.on("request", _only_from(live_server.url, complaints))
        if who is not None:
            cookie = signed_in(who).cookies[settings.SESSION_COOKIE_NAME].value
            context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": live_server.url}])
        page = context.new_page()
        _listen(page, complaints)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints


def _only_from(home: str, complaints: list[str]) -> Callable[[Request], None]:
    def note(request: Request) -> None:
        where = urlsplit(request.url)
        if where.scheme.startswith("http") and where.netloc != urlsplit(home).netloc:
            complaints.append(f"asked for {request.url}")

    return note


def _listen(page: Page, complaints: list[str]) -> None:
    page.on("pageerror", lambda error: complaints.append(f"script error: {error}"))
    page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
    page.on("console", lambda message: _note(message.type, message.text, complaints))


def _note(kind: str, text: str, complaints: list[str]) -> None:
    if kind in ("error", "warning"):
        complaints.append(f"console {kind}: {text}")
