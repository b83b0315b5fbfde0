"""An import in a real browser, from the file to its undo: each state wide, and on a phone, dark and in Chinese."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.urls import reverse
from playwright.sync_api import Page, expect

from memories.imports import tasks
from memories.models import EndUser, Import, Operator, Turn
from tests import factories
from tests.admin.pages import page_of
from tests.browser.axe import faults
from tests.browser.conftest import DESK, PHONE, Open
from tests.browser.test_pages import fits
from tests.imports.test_uploaded import GROUP, facts

pytestmark = pytest.mark.browser
ADD = reverse("admin:memories_import_add")


@pytest.fixture
def look(operator: Operator) -> Callable[[Page], list[str]]:
    """What is wrong with the page as it is now; it is loaded for each way of looking, and left wide and English."""

    def found(page: Page) -> list[str]:
        wrong: list[str] = []
        for size, scheme, language in ((DESK, "light", "en"), (PHONE, "dark", "zh-hans")):
            page.set_viewport_size({"width": size[0], "height": size[1]})
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            Operator.objects.filter(pk=operator.pk).update(language=language)
            page.goto(page.url)
            assert page.locator("html").get_attribute("lang") == language
            wrong += [f"{scheme}, {language}: {fault}" for fault in faults(page)]
            wrong += [] if fits(page) else [f"{scheme}, {language}: scrolls sideways"]
        Operator.objects.filter(pk=operator.pk).update(language="en")
        page.set_viewport_size({"width": DESK[0], "height": DESK[1]})
        page.emulate_media(color_scheme="light")
        page.goto(page.url)
        return wrong

    return found


def work() -> None:
    while not tasks.import_some():
        """Another slice."""


def test_an_upload_is_seen_from_the_file_to_its_undo(
    open_page: Open, look: Callable[[Page], list[str]], operator: Operator, settings: LazySettings, tmp_path: Path
) -> None:
    settings.HOME = tmp_path
    factories.tenant(slug="acme")
    file = tmp_path / "group.jsonl"
    file.write_bytes(facts({"user_id": "team", "session_id": "g1", "messages": GROUP}))
    page = open_page(who=operator)
    # The page where it begins is one of those that tests/browser/test_pages.py looks at.
    page.goto(ADD)
    wrong = dict[str, list[str]]()
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_text("The file is being checked. Nothing is stored yet.")).to_be_visible()
    wrong["checking"] = look(page)
    work()
    # The page asks by itself.
    expect(page.get_by_role("heading", name="Who is in the file")).to_be_visible()
    wrong["checked"] = look(page)
    for name, user_id in {"Anna Müller": "anna", "Ben": "ben", "Carl": ""}.items():
        page.get_by_label(f"End user for “{name}”").fill(user_id)
    page.get_by_role("button", name="Start the import").click()
    expect(page.get_by_text("The import is in progress.")).to_be_visible()
    Import.objects.update(position=40, expected=1000, counts={"messages": 1200, "conversations": 40})
    page.goto(page.url)
    expect(page.get_by_role("progressbar")).to_be_visible()
    wrong["running"] = look(page)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    expect(page.get_by_role("progressbar")).to_be_visible()
    wrong["paused"] = look(page)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    # As far as that was only said.
    Import.objects.update(position=0, expected=0, counts={})
    work()
    row = Import.objects.get()
    expect(page.get_by_text("Messages stored")).to_be_visible()
    wrong["done"] = look(page)
    assert Turn.objects.count() == 6
    for name in ("anna", "ben"):
        page.goto(page_of(EndUser.objects.get(external_id=name)))
        expect(page.locator(f"a[href='{page_of(row)}']")).to_be_visible()
    page.goto(page_of(row))
    page.get_by_text("Undo the import").first.click()
    page.get_by_role("button", name="Undo all of it").click()
    expect(page.get_by_text("What it stored is being deleted.")).to_be_visible()
    wrong["undoing"] = look(page)
    work()
    expect(page.get_by_text("End users deleted again")).to_be_visible()
    wrong["undone"] = look(page)
    assert {state: found for state, found in wrong.items() if found} == {}
    assert EndUser.objects.count() == 0
