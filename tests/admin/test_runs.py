"""Extraction runs: what a run did, and the retry of a batch that failed."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from memories.models import AuditEvent, ExtractionRun, Session, SessionQueue
from tests import factories
from tests.admin.pages import list_of, page_of, text_of


@pytest.fixture
def session(db: None, settings: Settings) -> Session:
    settings.MEMORYHUB_LLM = "openai"
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    return factories.session(factories.end_user(display_name="Katherine"), [("user", "Hi"), ("assistant", "Hello")])


@pytest.fixture
def parked(session: Session) -> ExtractionRun:
    failed = {"parked_at": timezone.now(), "due_at": None, "attempts": 5, "failure": "model_timeout"}
    SessionQueue.objects.filter(pk=session.pk).update(**failed)
    return factories.run(session, status="parked", failure="model_timeout")


def test_the_page_shows_range_outcome_refusals_and_costs(admin: Client, session: Session) -> None:
    run = factories.run(
        session,
        outcome={"stored": 2, "confirmed": 1},
        refusals={"low_confidence": 3, "bad_content": 1},
        prompt_version="memory_update-7",
        prompt_tokens=1240,
        completion_tokens=211,
        cost="0.000312",
    )
    factories.fact(session.end_user, "Lives in Leiden", extraction=run)
    page = text_of(admin.get(page_of(run)))
    for shown in (
        "Turns 1–2",
        "Done",
        "Confidence too low",
        "Mentioned again",
        "bad_content",
        "memory_update-7",
        "1240",
        "211",
        "$0.0003",
        "Lives in Leiden",
    ):
        assert shown in page
    assert page_of(run, "retry") not in page


def test_a_failed_run_says_what_went_wrong(admin: Client, parked: ExtractionRun) -> None:
    page = text_of(admin.get(page_of(parked)))
    assert "model_timeout" in page
    assert "took longer than MEMORYHUB_LLM_TIMEOUT" in page


def test_retry_makes_the_batch_due(admin: Client, parked: ExtractionRun) -> None:
    assert page_of(parked, "retry") in text_of(admin.get(page_of(parked)))
    response = admin.post(page_of(parked, "retry"))
    assert response.status_code == 302
    queue = SessionQueue.objects.get(pk=parked.session_id)
    assert (queue.parked_at, queue.attempts) == (None, 0)
    assert queue.due_at is not None
    assert AuditEvent.objects.get(object_id=parked.pk).verb == "retry"


def test_there_is_nothing_to_retry_twice(admin: Client, parked: ExtractionRun) -> None:
    SessionQueue.objects.update(extracted_number=2, parked_at=None, failure="")
    response = admin.post(page_of(parked, "retry"))
    assert response.status_code == 409
    assert "There is nothing to retry" in text_of(response)
    assert not AuditEvent.objects.exists()


def test_the_list_is_filtered_by_status(admin: Client, session: Session) -> None:
    runs = {state: factories.run(session, status=state) for state in ("committed", "failed", "running")}
    for status, run in runs.items():
        assert list(admin.get(list_of(ExtractionRun), {"status__exact": status}).context["cl"].result_list) == [run]


def test_facts_are_shown_to_those_who_may_see_facts(session: Session, staff_who_may: Callable[..., Client]) -> None:
    run = factories.run(session)
    factories.fact(session.end_user, "Lives in Leiden", extraction=run)
    assert "Lives in Leiden" not in text_of(staff_who_may("view_extractionrun").get(page_of(run)))
    assert "Lives in Leiden" in text_of(staff_who_may("view_extractionrun", "view_fact").get(page_of(run)))
