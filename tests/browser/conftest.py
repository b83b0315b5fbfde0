"""A real chromium that may talk to the live server alone; whatever it complains about fails the test."""

import os
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Error, Page, Request, expect, sync_playwright
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


class Seat:
    """A page in a context of its own, which tests use one after the other: a new one takes four times as long as a page
    that it opens, because its caches are empty."""

    def __init__(self, browser: Browser, home: str) -> None:
        self._home, self._complaints = home, list[str]()
        self.context = browser.new_context(base_url=home)
        self.context.set_default_timeout(PATIENCE_MS)
        # Listened to and not routed: a browser whose requests are routed keeps no style sheet.
        self.context.on("request", self._only_from_home)
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda error: self._complaints.append(f"script error: {error}"))
        self.page.on("dialog", lambda dialog: self._complaints.append(f"dialog: {dialog.message}"))
        self.page.on("console", lambda message: self._note(message.type, message.text))

    def take(self, size: tuple[int, int], scheme: str, who: Operator | None, complaints: list[str]) -> Page:
        self._complaints = complaints
        self.page.set_viewport_size({"width": size[0], "height": size[1]})
        self.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        if who is not None:
            cookie = signed_in(who).cookies[settings.SESSION_COOKIE_NAME].value
            self.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": self._home}])
        return self.page

    def leave(self) -> bool:
        """Whether it is as it was before it was taken, but for its caches."""
        if self.context.pages != [self.page] or not self.page.url.startswith(self._home):
            return False
        try:
            self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
            self.page.goto("about:blank")
        except Error:
            return False
        self.context.clear_cookies()
        self.context.clear_permissions()
        return True

    def _only_from_home(self, request: Request) -> None:
        where = urlsplit(request.url)
        if where.scheme.startswith("http") and where.netloc != urlsplit(self._home).netloc:
            self._complaints.append(f"asked for {request.url}")

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self._complaints.append(f"console {kind}: {text}")


@pytest.fixture(scope="package")
def seats(chromium: Browser) -> list[Seat]:
    """Those that nobody uses."""
    return []


@pytest.fixture
def open_page(chromium: Browser, live_server: LiveServer, seats: list[Seat], complaints: list[str]) -> Iterator[Open]:
    """Open a page: its size, colour scheme and who is signed in can be named.

    `own`: nobody uses it afterwards, because the test changes what stays (its clock, for example).
    """
    taken = []

    def open_page(
        *, size: tuple[int, int] = DESK, scheme: str = "light", who: Operator | None = None, own: bool = False
    ) -> Page:
        seat = Seat(chromium, live_server.url) if own or not seats else seats.pop()
        taken.append((seat, own))
        return seat.take(size, scheme, who, complaints)

    yield open_page
    for seat, own in taken:
        if not own and seat.leave():
            seats.append(seat)
        else:
            seat.context.close()
    assert not complaints
