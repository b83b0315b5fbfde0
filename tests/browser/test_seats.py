"""A page that tests use one after the other keeps nothing of the test before."""

import pytest
from django.urls import reverse
from playwright.sync_api import Browser
from pytest_django.live_server_helper import LiveServer

from memories.models import Operator
from tests.browser.conftest import DESK, PHONE, Seat

pytestmark = pytest.mark.browser


def test_nothing_stays_of_who_sat_there(chromium: Browser, live_server: LiveServer, operator: Operator) -> None:
    seat = Seat(chromium, live_server.url)
    page = seat.take(DESK, "light", operator, [])
    page.goto(reverse("admin:index"))
    assert page.url.endswith(reverse("admin:index"))
    page.evaluate("localStorage.kept = sessionStorage.kept = 1")
    assert seat.leave()
    page = seat.take(PHONE, "dark", None, [])
    page.goto(reverse("admin:index"))
    assert reverse("admin:login") in page.url
    assert page.evaluate("[localStorage.kept, sessionStorage.kept]") == [None, None]
    assert page.evaluate("[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]") == [PHONE[0], True]
    seat.context.new_page()
    assert not seat.leave()
    seat.context.close()


def test_complaints_go_to_who_sits_there(chromium: Browser, live_server: LiveServer, operator: Operator) -> None:
    seat = Seat(chromium, live_server.url)
    first, second = list[str](), list[str]()
    seat.take(DESK, "light", None, first).goto(reverse("admin:login"))
    assert seat.leave()
    page = seat.take(DESK, "light", None, second)
    page.goto(reverse("admin:login"))
    page.evaluate("console.error('broken')")
    page.wait_for_timeout(200)
    assert (first, second) == ([], ["console error: broken"])
    seat.context.close()
