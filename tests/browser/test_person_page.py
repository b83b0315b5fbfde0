"""The page for the person in a browser: without scripts, by day and night, on a phone, and framed by another site."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from django.conf import settings
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from tests import factories
from tests.browser import axe
from tests.browser.conftest import DESK, PHONE, Open
from tests.person_page.conftest import Own, own_page
from tests.profiles.defining import define

pytestmark = pytest.mark.browser


@pytest.fixture
def own(transactional_db: None) -> Own:
    person = factories.end_user(factories.tenant(name="Acme", person_color="#ffe066"), display_name="王小明")
    talk = factories.session(person, [("user", "I bake bread every Sunday"), ("assistant", "长" * 300)])
    fact = factories.fact(person, "Bakes bread")
    factories.evidence(fact, talk.turns.get(number=1))
    factories.fact(person, "Likes tea", status="pending")
    factories.profile_section(person)
    factories.logged_context(person, [fact])
    return own_page(person)


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def test_it_can_be_read_by_everybody(open_page: Open, own: Own) -> None:
    define(own.person.tenant)
    factories.fact(own.person, "Flies from Eindhoven", key="profile.travel.home_airport", value="Eindhoven")
    forms = [f"profiles/travel/{name}" for name in ("home_airport", "seat", "languages", "passport_until")]
    for size, scheme, language in ((DESK, "light", "en"), (PHONE, "dark", "zh-hans")):
        page = open_page(size=size, scheme=scheme)
        page.goto(own.link(language=language)[1])
        fact, talk = own.person.facts.get(content="Bakes bread"), own.person.sessions.get()
        paths = ["", f"facts/{fact.pk}", "conversations", f"conversations/{talk.pk}", "readers", "data"]
        # A form is a few fields below each other, however wide the page is.
        for path in [*paths, *(forms if size == PHONE else [])]:
            page.goto(f"/me/{path}")
            assert fits(page), (size, path)
            assert axe.faults(page) == [], (scheme, path)


def test_it_needs_no_script(chromium: Browser, live_server: LiveServer, own: Own) -> None:
    context = chromium.new_context(java_script_enabled=False, base_url=live_server.url)
    page = context.new_page()
    page.goto(own.link(language="en")[1])
    # The link is gone from the address.
    assert page.url == f"{live_server.url}/me/"
    page.get_by_text("Why?", exact=True).first.click()
    expect(page.get_by_text("I bake bread every Sunday")).to_be_visible()
    page.get_by_role("link", name="Correct: Bakes bread").click()
    page.get_by_label("What is right?").fill("Bakes rye bread")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("Corrected")
    page.get_by_role("button", name="Forget: Bakes rye bread").click()
    expect(page.get_by_role("status")).to_contain_text("Forgotten")
    page.get_by_role("button", name="Remember again: Bakes rye bread").click()
    expect(page.get_by_text("Bakes rye bread")).to_be_visible()
    page.get_by_role("button", name="Close this page").click()
    expect(page.get_by_text("closed the page")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("Bakes rye bread")).to_be_hidden()
    context.close()


class _Framing(BaseHTTPRequestHandler):
    """A site that shows the address of its query in a frame, or has a form that sends there."""

    def do_GET(self) -> None:
        how, _, address = self.path.partition("?")
        framed = f'<iframe src="{address}" width="600" height="600"></iframe>'
        form = f'<form method="post" action="{address}"><input name="token"><button>Win a prize</button></form>'
        body = (form if how == "/form" else framed).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def site() -> Iterator[str]:
    """The origin of another site."""
    server = HTTPServer(("127.0.0.1", 0), _Framing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_declared_sites_alone_show_it(chromium: Browser, live_server: LiveServer, own: Own, site: str) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{site}/?{live_server.url}{own.link(language='en', embed_origins=[site])[1]}")
    frame = page.frame_locator("iframe")
    frame.get_by_role("button", name="Forget: Bakes bread").click()
    expect(frame.get_by_role("status")).to_contain_text("Forgotten")
    for origins in ([], ["https://app.example.org"]):
        page.goto(f"{site}/?{live_server.url}{own.link(language='en', embed_origins=origins)[1]}")
        expect(frame.get_by_text("What is remembered")).to_have_count(0)
    assert not [cookie for cookie in context.cookies() if cookie["name"] == settings.SESSION_COOKIE_NAME]
    context.close()


def test_another_sites_form_changes_nothing(chromium: Browser, live_server: LiveServer, own: Own, site: str) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(live_server.url + own.link(language="en")[1])
    fact = own.person.facts.get(content="Bakes bread")
    page.goto(f"{site}/form?{live_server.url}/me/facts/{fact.pk}/forget")
    page.get_by_role("button", name="Win a prize").click()
    expect(page.get_by_text("Forgotten")).to_have_count(0)
    fact.refresh_from_db()
    assert fact.status == "active"
    # The session is still there, and its own form does it.
    page.goto(f"{live_server.url}/me/")
    page.get_by_role("button", name="Forget: Bakes bread").click()
    expect(page.get_by_role("status")).to_contain_text("Forgotten")
    context.close()
