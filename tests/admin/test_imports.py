"""The pages of imports: a file is uploaded and checked, started for whom its authors become, reported and undone."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from memories.curation.imports.verbs import resume
from memories.imports import tasks
from memories.models import Fact, Import, Turn
from tests import factories
from tests.admin.pages import HOSTILE, list_of, page_of, said, shows_harmless, text_of
from tests.imports.test_sources import chatgpt
from tests.imports.test_sources import said as turned
from tests.imports.test_uploaded import chats, facts

UPLOAD = reverse("admin:memories_import_add")


@pytest.fixture(autouse=True)
def home(settings: Settings, tmp_path: Path) -> None:
    settings.HOME = tmp_path


def uploaded(client: Client, content: bytes, name: str, **fields: Any) -> Import:
    tenant = factories.tenant()
    given = {"tenant": str(tenant.pk), "source": "auto", "file": SimpleUploadedFile(name, content), **fields}
    answer = client.post(UPLOAD, given)
    assert answer.status_code == 302, text_of(answer)
    while not tasks.import_some():
        """Another slice."""
    row = Import.objects.get(tenant=tenant)
    assert answer["Location"] == page_of(row)
    return row


def test_a_file_is_checked_started_for_somebody_reported_and_undone(admin_client: Client) -> None:
    assert "imports-drop" in text_of(admin_client.get(UPLOAD))
    row = uploaded(admin_client, chats(), "export.zip")
    page = text_of(admin_client.get(page_of(row)))
    assert all(text in page for text in ("ChatGPT", "nobody is named", "I keep 2 bees in Delft", "Messages stored"))
    assert "<dt>By</dt><dd><bdi>admin</bdi></dd>" in page
    refused = admin_client.post(page_of(row, "start"), {"author_0": "a\x07b"})
    assert (refused.status_code, Turn.objects.count()) == (400, 0)
    assert admin_client.post(page_of(row, "start"), {"author_0": "anna"}).status_code == 302
    assert "In progress" in text_of(admin_client.get(page_of(row))) or "in progress" in text_of(
        admin_client.get(page_of(row))
    )
    while not tasks.import_some():
        """Another slice."""
    row.refresh_from_db()
    assert (row.state, row.counts["messages"], Turn.objects.count()) == ("done", 6, 6)
    assert text_of(admin_client.get(list_of(Import))).count("ChatGPT") == 1
    person = Turn.objects.first()
    assert person
    told = text_of(admin_client.get(page_of(person.end_user)))
    assert page_of(row) in told
    answer = admin_client.post(page_of(row, "undo"))
    assert "is being taken back" in said(answer)
    while not tasks.import_some():
        """Another slice."""
    assert (Import.objects.get().state, Turn.objects.count()) == ("undone", 0)
    assert page_of(row) not in text_of(admin_client.get(page_of(person.end_user)))


def test_whose_it_is_can_be_said_without_a_dry_run(admin_client: Client) -> None:
    row = uploaded(admin_client, chats(), "export.zip")
    # As an application uploads a file: without a dry run, and without a person.
    resume(import_id=row.pk, tenant=None, actor=factories.COMMAND, now=timezone.now())
    Import.objects.update(preview={})
    while not tasks.import_some():
        """Another slice."""
    assert "Name the end user" in text_of(admin_client.get(page_of(row)))
    assert admin_client.post(page_of(row, "start"), {"author_0": "anna"}).status_code == 302
    while not tasks.import_some():
        """Another slice."""
    assert (Import.objects.get().state, Turn.objects.count()) == ("done", 6)


def test_a_dry_run_whose_workers_were_lost_has_stored_nothing_and_is_started(admin_client: Client) -> None:
    row = uploaded(admin_client, chats(), "export.zip", user="anna")
    Import.objects.update(state="failed", failure="worker_lost", position=3, preview={}, counts={"messages": 1234})
    page = text_of(admin_client.get(page_of(row)))
    assert ("Start the import" in page, "Continue</button>" in page, "1,234" in page) == (True, False, True)
    assert "1234" not in text_of(admin_client.get(list_of(Import)))
    # Of one that was begun it is what is stored.
    Import.objects.update(started_at=timezone.now())
    page = text_of(admin_client.get(page_of(row)))
    assert ("Start the import" in page, "Continue</button>" in page) == (False, True)
    assert "1234" in text_of(admin_client.get(list_of(Import)))


def test_reasons_of_the_same_words_are_one_and_what_is_undone_is_not_stored(admin_client: Client) -> None:
    row = uploaded(admin_client, chats(), "export.zip", user="anna")
    counts = {"messages": 1234, "messages_undone": 1000}
    Import.objects.update(left_out={"nul": 2, "surrogate": 3}, started_at=timezone.now(), state="undone", counts=counts)
    page = text_of(admin_client.get(page_of(row)))
    assert page.count("Characters that no text can have") == 1
    assert ">234<" in text_of(admin_client.get(list_of(Import)))


def test_one_that_was_paused_before_anything_was_taken_goes_on(admin_client: Client) -> None:
    row = uploaded(admin_client, chats(), "export.zip", user="anna")
    admin_client.post(page_of(row, "start"), {"author_0": "anna"})
    admin_client.post(page_of(row, "pause"))
    page = text_of(admin_client.get(page_of(row)))
    assert ("Continue</button>" in page, "Undo the import" in page) == (True, True)
    admin_client.post(page_of(row, "resume"))
    while not tasks.import_some():
        """Another slice."""
    assert (Import.objects.get().state, Turn.objects.count()) == ("done", 6)


def test_authors_become_people_and_hostile_ones_are_shown_harmless(admin_client: Client) -> None:
    rows = [
        {"id": "1", "text": f"Keeps bees {HOSTILE}", "user_id": HOSTILE},
        {"id": "2", "text": "Rows on Sundays", "user_id": "u-b"},
    ]
    row = uploaded(admin_client, facts(*rows), "facts.jsonl")
    page = admin_client.get(page_of(row))
    assert shows_harmless(page)
    assert [one.initial for one in page.context["forms"]["start"].authors()] == [HOSTILE, "u-b"]
    admin_client.post(page_of(row, "start"), {"author_0": "anna", "author_1": ""})
    while not tasks.import_some():
        """Another slice."""
    [fact] = Fact.objects.all()
    assert fact.end_user.external_id == "anna"
    assert Import.objects.get().left_out == {"not_chosen": 1}
    assert "Of people who were left out" in text_of(admin_client.get(page_of(row)))


def test_what_is_no_file_is_told(admin_client: Client, settings: Settings) -> None:
    settings.MEMORYHUB_IMPORT_MEGABYTES = 1
    tenant = factories.tenant()
    given: dict[str, Any] = {"tenant": str(tenant.pk), "source": "auto"}
    assert admin_client.post(UPLOAD, given).status_code == 400
    large = SimpleUploadedFile("x.json", b" " * ((1 << 20) + 1))
    assert admin_client.post(UPLOAD, {**given, "file": large}).status_code == 413
    assert not Import.objects.exists()
    row = uploaded(admin_client, b"[1", "x.json")
    assert "<code>" in text_of(admin_client.get(page_of(row)))
    assert "no kind that the hub knows" in text_of(admin_client.get(page_of(row)))


def test_why_a_file_is_not_taken_is_said_without_its_words(admin_client: Client) -> None:
    cut = json.dumps([chatgpt(turned("user", "Secret words"))])
    for content, told in (
        (b'[{"threads": [], "Secret words": 1, "secret_words": 2}]', "Found members threads."),
        (b"<html><body>Secret words", "It is HTML. Ask the service for JSON."),
        (b"PK\x03\x04Secret words", "The archive is damaged. Download it again."),
        (
            cut[:-30].encode(),
            f"File 1 ends early, at byte {len(cut) - 30:,}, within what begins at byte 1; 0 before it",
        ),
    ):
        row = uploaded(admin_client, content, "x.json")
        page = text_of(admin_client.get(page_of(row)))
        assert told in page, page
        assert "ecret" not in page.replace("import-", "")
        # There is nothing to take back.
        assert "Undo the import" not in page
        assert row.findings
