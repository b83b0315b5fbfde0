"""`python -m tests.browser.screenshots DIR`: every page of a running hub, wide, on a phone, dark and in Chinese.

It signs in with what `manage.py seed_demo` wrote (or --name and --password), follows the links of the admin, opens one
page of each kind, and writes DIR/<page>-<look>.png for a person to look at. Nothing is posted but the sign-in. A person
with much to show is `seeded-0` of `manage.py seed_facts --talk`: --person takes the id that the palette looks for.
"""

import argparse
import json
import re
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.browser.chromium import DESK, FLAGS, PHONE, chromium_path

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=/)\d+(?=/)")
# Ends the sign-in, sends a file, or is no page.
LEFT_OUT = ("/logout/", "/jsi18n/", "/export/")

TALLEST = 4_000


class Look(NamedTuple):
    """How a page is opened."""

    size: tuple[int, int]
    scheme: str
    locale: str


LOOKS = {
    "wide": Look(DESK, "light", "en-GB"),
    "phone": Look(PHONE, "light", "en-GB"),
    "dark": Look(DESK, "dark", "en-GB"),
    "zh-hans": Look(DESK, "light", "zh-CN"),
}


class Access(NamedTuple):
    """Where the hub is, and who signs in."""

    url: str
    name: str
    password: str


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.screenshots", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--demo", type=Path, help="The hub's demo.json, in its MEMORYHUB_HOME.")
    parser.add_argument("--name")
    parser.add_argument("--password")
    parser.add_argument("--person", default="", help="The caller's id of a person whose page is opened, too.")
    parser.add_argument("--look", choices=LOOKS, action="append", help="Only this; may be given again.")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
        for name in given.look or LOOKS:
            count = _take_all(browser, _access(given), name, given.folder, given.person)
            sys.stdout.write(f"{name}: {count} pages\n")
        browser.close()


def _access(given: Any) -> Access:
    if given.demo:
        demo = json.loads(given.demo.read_text(encoding="utf-8"))
        return Access(given.url, demo["username"], demo["password"])
    return Access(given.url, given.name, given.password)


def _take_all(browser: Browser, access: Access, name: str, folder: Path, person: str) -> int:
    """Sign in and photograph each kind of page once; how many there are."""
    look = LOOKS[name]
    viewport = {"width": look.size[0], "height": look.size[1]}
    context = browser.new_context(
        base_url=access.url,
        viewport=viewport,  # type: ignore[arg-type]
        color_scheme=look.scheme,  # type: ignore[arg-type]
        locale=look.locale,
    )
    page = _signed_in(context, access)
    page.keyboard.press("Control+k")
    page.locator("[data-palette-hit]").first.wait_for()
    page.screenshot(path=folder / f"palette-{name}.png")
    start = [_person(page, person)] if person else []
    count = 0
    for address in _pages(page, [*start, "/admin/"]):
        _photograph(page, folder / f"{_named(address)}-{name}.png", look)
        count += 1
    context.close()
    return count


def _photograph(page: Page, path: Path, look: Look) -> None:
    """The whole page in a window as high as it is: what sticks to the window's end is at the end."""
    width, height = look.size
    tall = min(TALLEST, max(height, page.evaluate("document.documentElement.scrollHeight")))
    page.set_viewport_size({"width": width, "height": tall})
    page.screenshot(path=path)
    page.set_viewport_size({"width": width, "height": height})


def _signed_in(context: BrowserContext, access: Access) -> Page:
    page = context.new_page()
    page.goto("/admin/login/")
    page.locator("[name=username]").fill(access.name)
    page.locator("[name=password]").fill(access.password)
    page.locator("[name=password]").press("Enter")
    page.wait_for_url("**/admin/")
    return page


def _person(page: Page, words: str) -> str:
    """The address of a person's page, by way of the palette."""
    page.locator("#palette [name=words]").fill(words)
    page.locator("[data-palette-hit]", has_text=words).first.wait_for()
    return page.locator("[data-palette-hit]", has_text=words).first.get_attribute("href") or "/admin/"


def _pages(page: Page, start: list[str]) -> Iterator[str]:
    """Open one page of each kind, beginning with these; when it yields, the page is there."""
    waiting, seen = deque(start), set()
    while waiting:
        address = waiting.popleft()
        if _kind(address) in seen or any(part in address for part in LEFT_OUT):
            continue
        seen.add(_kind(address))
        answer = page.goto(address, wait_until="networkidle")
        if answer and answer.ok and "text/html" in answer.headers.get("content-type", ""):
            yield address
            links = page.locator("a[href]").evaluate_all("links => links.map(link => link.getAttribute('href'))")
            waiting += [link.split("#")[0] for link in links if link.startswith("/admin/")]


def _kind(address: str) -> str:
    """The address without ids and what follows a question mark: one page of each is enough."""
    return _ID.sub("id", address.split("?", maxsplit=1)[0])


def _named(address: str) -> str:
    return _kind(address).removeprefix("/admin/").strip("/").replace("/", "-") or "dashboard"


if __name__ == "__main__":
    main()
