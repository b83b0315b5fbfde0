"""One attempt at a session's due batch: claim, gather, ask the model (without one, apply simple rules), commit in one
short fenced transaction."""

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from memories import conf
from memories.exceptions import LeaseLost, ModelError, PersonRestricted
from memories.llm import client
from memories.llm.prompts import memory_update
from memories.llm.prompts.memory_update import MemoryUpdate
from memories.models import ExtractionRun, SessionQueue
from memories.pipeline import debounce, endpoint, extraction, gate, reconcile, rules_extraction
from memories.pipeline.batches import Batch
from memories.pipeline.debounce import Claim
from memories.pipeline.setbacks import Setback, setback

RunStatus = ExtractionRun.Status


def consolidate(*, session_id: uuid.UUID, now: datetime) -> ExtractionRun | None:
    """Extract the session's due batch; None when there was nothing to claim or nothing to feed.

    A failing model is recorded on the run and the batch postponed or parked; any other error postpones it and is
    raised. No transaction is open while the model is asked.
    """
    if conf.llm().mode == conf.LLM_OFF:
        return None
    claim = debounce.claim(session_id)
    _end_lost_runs(session_id, is_ours=claim is not None, now=now)
    if claim is None:
        return None
    attempt = _Attempt(claim, now)
    with _given_back_on_error(attempt):
        batch = extraction.gather(claim=claim, now=now)
        _extract(attempt, batch) if batch.turns else _pass_over(attempt, batch)
    return attempt.run


@dataclass
class _Attempt:
    """A claim with the run that records it."""

    claim: Claim
    begun_at: datetime
    run: ExtractionRun | None = None
    calls: int = 0
    # In this very attempt: once is enough.
    endpoint_asked: bool = False
    _begun: float = field(default_factory=time.monotonic)

    def now(self) -> datetime:
        """The moment of the caller's clock, moved on by the time that has passed since."""
        return self.begun_at + timedelta(seconds=time.monotonic() - self._begun)

    def before_call(self) -> None:
        debounce.renew(self.claim)
        self.calls += 1

    def start(self, batch: Batch) -> ExtractionRun:
        """Commit the record of the attempt before its first call."""
        session, llm = self.claim.session, conf.llm()
        extractor = rules_extraction.EXTRACTOR if llm.mode == conf.LLM_RULES else f"llm:{llm.model}"
        with transaction.atomic():
            debounce.hold(self.claim)
            self.run = ExtractionRun.objects.create(
                tenant=session.tenant,
                end_user=session.end_user,
                session=session,
                first_number=batch.first_number,
                last_number=batch.last_number,
                fed_turns=len(batch.turns),
                attempt=self.claim.attempt,
                extractor=extractor,
                prompt_version=memory_update.VERSION if extractor != rules_extraction.EXTRACTOR else extractor,
                guidance_version=session.tenant.guidance_version,
                started_at=self.begun_at,
            )
        return self.run

    def end(self, status: RunStatus, failure: str) -> None:
        """Record how it failed."""
        if self.run is None:
            return
        self.run.status, self.run.failure = status, failure
        self.run.calls, self.run.finished_at = self.calls, self.now()
        # Not save(): an erasure may have deleted the row.
        ended = ExtractionRun.objects.filter(pk=self.run.pk)
        ended.update(status=status, failure=failure, calls=self.calls, finished_at=self.run.finished_at)

    def give_back(self, setback: Setback, status: RunStatus = RunStatus.FAILED) -> None:
        """Postpone or park the batch. One transaction: the lease never ends before the run does."""
        with transaction.atomic():
            parked = debounce.postpone(self.claim, setback, now=self.now())
            self.end(RunStatus.PARKED if parked else status, setback.failure)


@contextmanager
def _given_back_on_error(attempt: _Attempt) -> Iterator[None]:
    """A lost lease ends the attempt, a restriction of the person postpones the batch until it is lifted; anything
    else, the task's own timeout too, postpones it and goes on up."""
    failure = "internal_error"
    try:
        yield
        failure = ""
    except LeaseLost as lost:
        attempt.end(RunStatus.DISCARDED, lost.code)
        failure = ""
    except PersonRestricted as restricted:
        _give_back(attempt, Setback(restricted.code, counts=False), RunStatus.DISCARDED)
        failure = ""
    finally:
        if failure:
            _give_back(attempt, Setback(failure), RunStatus.FAILED)


def _give_back(attempt: _Attempt, setback: Setback, status: RunStatus) -> None:
    if not attempt.calls:
        endpoint.not_asked()
    attempt.give_back(replace(setback, batch_limit=attempt.claim.batch_limit), status)


def _pass_over(attempt: _Attempt, batch: Batch) -> None:
    """Nothing of the range is fed: the watermark moves without a call."""
    endpoint.not_asked()
    with transaction.atomic():
        queue = debounce.hold(attempt.claim)
        debounce.finish(attempt.claim, queue, extracted_number=batch.last_number, now=attempt.now())


def _extract(attempt: _Attempt, batch: Batch) -> None:
    run = attempt.start(batch)
    if run.extractor == rules_extraction.EXTRACTOR:
        # A pause left over from a model that was taken away holds nobody back.
        endpoint.answered()
        found = rules_extraction.extract(batch.turns, batch.patterns)
        held = dict.fromkeys(found.suggested, rules_extraction.SUGGESTED)
        _commit(attempt, run, batch, MemoryUpdate(new_facts=found.new_facts), held=held)
    else:
        _ask(attempt, run, batch)


def _ask(attempt: _Attempt, run: ExtractionRun, batch: Batch) -> None:
    try:
        if endpoint.is_down():
            attempt.endpoint_asked = True
            client.check(before_call=attempt.before_call)
            endpoint.answered()
        completion = client.complete(
            messages=batch.messages,
            answer=memory_update.ANSWER,
            max_calls=attempt.claim.rules.max_model_calls - attempt.calls,
            before_call=attempt.before_call,
        )
    except ModelError as error:
        down = _note_failure(attempt, error)
        limit = attempt.claim.batch_limit
        attempt.give_back(setback(error, fed_turns=len(batch.turns), batch_limit=limit, endpoint_down=down))
    else:
        endpoint.answered()
        run.extractor, run.calls = completion.extractor, attempt.calls
        run.prompt_tokens, run.completion_tokens = completion.prompt_tokens, completion.completion_tokens
        _commit(attempt, run, batch, completion.answer, held={})


def _note_failure(attempt: _Attempt, error: ModelError) -> bool:
    """True when the endpoint fails others too: then the failure does not count against the batch."""
    if not error.endpoint_wide:
        endpoint.answered()
        return False
    down = endpoint.failed(attempt.claim.session.pk, retry_after=error.retry_after)
    if not down and _would_park(attempt, error):
        _ask_whose_fault(attempt)
    return down


def _would_park(attempt: _Attempt, error: ModelError) -> bool:
    return not error.retryable or attempt.claim.attempt >= attempt.claim.rules.max_attempts


def _ask_whose_fault(attempt: _Attempt) -> None:
    """Ask the endpoint something that has nothing to do with the batch, if the attempt has a call left.

    Fails it at that too, the batch goes on by itself once it answers again.
    """
    if attempt.endpoint_asked or attempt.calls >= attempt.claim.rules.max_model_calls:
        return
    try:
        client.check(before_call=attempt.before_call)
    except ModelError as error:
        endpoint.failed(attempt.claim.session.pk, retry_after=error.retry_after, surely=True)
    else:
        endpoint.answered()


def _commit(
    attempt: _Attempt, run: ExtractionRun, batch: Batch, answer: MemoryUpdate, *, held: Mapping[int, str]
) -> None:
    """Results, record and watermark together, or nothing; `held` are flags of new facts, by place."""
    claim, now = attempt.claim, attempt.now()
    admitted = gate.admit(answer.new_facts, evidence=batch.evidence, rules=claim.rules, held=held)
    with transaction.atomic():
        queue = debounce.hold(claim)
        outcome = reconcile.apply(run=run, batch=batch, answer=answer, admitted=admitted, now=now)
        run.outcome, run.refusals = dict(outcome.done), dict(outcome.refusals)
        run.status, run.finished_at = RunStatus.COMMITTED, now
        run.save(force_update=True)
        debounce.finish(claim, queue, extracted_number=batch.last_number, now=now)


def _end_lost_runs(session_id: uuid.UUID, *, is_ours: bool, now: datetime) -> None:
    """Close what workers left behind that died: runs of a session whose lease is over, or has just become ours."""
    runs = ExtractionRun.objects.filter(session=session_id, status=RunStatus.RUNNING)
    queues = SessionQueue.objects.filter(pk=session_id)
    if not is_ours:
        queues = queues.filter(Q(lease_until=None) | Q(lease_until__lte=Now()))
    parked = queues.filter(parked_at__isnull=False).exists()
    status = RunStatus.PARKED if parked else RunStatus.FAILED
    runs.filter(session__queue__in=queues).update(status=status, failure="worker_lost", finished_at=now)
