"""A one-time link in a browser: the page, the button, the file, and the page again; and the file's page for people."""

from pathlib import Path

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from memories.audit import Actor
from memories.models import ActorKind
from memories.privacy.exports import downloads
from tests import factories
from tests.browser.conftest import PHONE, Open
from tests.privacy import exports

pytestmark = pytest.mark.browser


@pytest.fixture
def link(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> str:
    person = exports.somebody(display_name="王小明", language="zh-CN")
    factories.fact(person, "对花生过敏 " + "长" * 300)
    token = downloads.link_for(exports.made(person), Actor(kind=ActorKind.OPERATOR, id="1"), timezone.now())
    return f"/exports/{token}"


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def test_a_link_is_used_once(open_page: Open, link: str, complaints: list[str], tmp_path: Path) -> None:
    for size, scheme in ((PHONE, "light"), (PHONE, "dark")):
        page = open_page(size=size, scheme=scheme)
        page.goto(link)
        assert fits(page)
    button = page.get_by_role("button", name="Download")
    with page.expect_download() as begun:
        button.click()
    path = tmp_path / begun.value.suggested_filename
    begun.value.save_as(path)
    assert path.name.startswith("export-")
    readable = tmp_path / "readable.html"
    readable.write_text(exports.unpacked(path.read_bytes())["readable.html"], encoding="utf-8")
    page.goto(link)
    expect(page.get_by_role("heading", level=1)).to_have_text("This link was already used or has expired")
    # The browser says of the page that it was answered 410.
    assert ["410" in one for one in complaints] == [True]
    complaints.clear()
    look_at(open_page(size=PHONE), readable)


def look_at(page: Page, readable: Path) -> None:
    """The file's page: no script, nothing loaded, and narrow enough."""
    page.set_content(readable.read_text(encoding="utf-8"))
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_text("对花生过敏").first).to_be_visible()
    assert fits(page)
    assert page.locator("script, img, link, iframe").count() == 0
