"""Retrying a batch that failed."""

from typing import Any

import pytest
from django.db.models.functions import Now

from memories.curation.retries import retry_extraction
from memories.exceptions import Conflict
from memories.models import AuditEvent, ExtractionRun, Session, SessionQueue
from memories.queue import queue_rows, session_queue
from memories.queue.retry_policy import RetryDecision
from tests import factories
from tests.factories import KEY, NOW

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _with_a_model(settings: Any) -> None:
    settings.MEMORYHUB_LLM = "scripted"


@pytest.fixture
def talk() -> Session:
    return factories.session(factories.end_user(), [("user", "I live in Leiden"), ("assistant", "Noted")], flush=True)


def retry(run: ExtractionRun) -> None:
    retry_extraction(run=run, actor=KEY, now=NOW)


def failed(talk: Session, *, park: bool) -> ExtractionRun:
    claim = session_queue.claim(talk.pk)
    assert claim
    queue_rows.postpone(claim, RetryDecision("model_timeout", delay=200.0, park=park), now=NOW)
    return factories.run(talk, status="parked" if park else "failed", failure="model_timeout")


@pytest.mark.parametrize("park", [True, False])
def test_a_failed_batch_is_due_at_once_with_its_attempts_counted_anew(talk: Session, park: bool) -> None:
    run = failed(talk, park=park)
    assert session_queue.claim(talk.pk) is None
    retry(run)
    claim = session_queue.claim(talk.pk)
    assert claim
    assert claim.row.attempts == 1
    event = AuditEvent.objects.get()
    assert (event.verb, event.object_type, event.object_id) == ("retry", "ExtractionRun", run.pk)
    assert (event.actor_id, event.tenant_uuid, event.request_id) == ("4f1b", talk.tenant_id, "r-1")


def test_what_never_failed_is_not_retried(talk: Session) -> None:
    with pytest.raises(Conflict):
        retry(factories.run(talk))
    assert not AuditEvent.objects.exists()


def test_what_is_extracted_by_now_is_not_retried(talk: Session) -> None:
    run = failed(talk, park=True)
    SessionQueue.objects.update(extracted_number=2)
    before = SessionQueue.objects.values().get()
    with pytest.raises(Conflict):
        retry(run)
    assert SessionQueue.objects.values().get() == before
    assert not AuditEvent.objects.exists()


def test_what_is_being_extracted_is_not_retried(talk: Session) -> None:
    run = failed(talk, park=False)
    SessionQueue.objects.update(due_at=Now())
    assert session_queue.claim(talk.pk)
    with pytest.raises(Conflict):
        retry(run)


def test_a_second_retry_finds_nothing_to_do(talk: Session) -> None:
    run = failed(talk, park=True)
    retry(run)
    with pytest.raises(Conflict):
        retry(run)
    assert AuditEvent.objects.count() == 1
