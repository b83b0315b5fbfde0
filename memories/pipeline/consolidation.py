"""One attempt at a session's due batch: claim, gather, ask the model (without one, apply simple rules), commit in one
short fenced transaction."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial

from django.db import transaction

from memories import conf
from memories.exceptions import LeaseLost, ModelError, PersonRestricted
from memories.llm import client
from memories.llm.prices import cost_of
from memories.llm.prompts import memory_update
from memories.llm.prompts.memory_update import MemoryUpdate
from memories.models import ExtractionRun, SessionQueue
from memories.models.leases import unleased
from memories.pipeline import (
    debounce,
    endpoint,
    extraction,
    gate,
    judgement,
    neighbours,
    reconcile,
    rules_extraction,
    whose_fault,
)
from memories.pipeline.attempts import Attempt, RunStatus
from memories.pipeline.batches import Batch
from memories.pipeline.gate import Accepted
from memories.pipeline.judgement import Verdicts
from memories.pipeline.setbacks import Setback, setback


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
    attempt = Attempt(claim, now)
    with _given_back_on_error(attempt):
        batch = extraction.gather(claim=claim, now=now)
        _extract(attempt, batch) if batch.turns else _pass_over(attempt, batch)
    return attempt.run


@contextmanager
def _given_back_on_error(attempt: Attempt) -> Iterator[None]:
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


def _give_back(attempt: Attempt, setback: Setback, status: RunStatus) -> None:
    if not attempt.calls:
        endpoint.not_asked()
    attempt.give_back(replace(setback, batch_limit=attempt.claim.batch_limit), status)


def _pass_over(attempt: Attempt, batch: Batch) -> None:
    """Nothing of the range is fed: the watermark moves without a call."""
    endpoint.not_asked()
    with transaction.atomic():
        queue = debounce.hold(attempt.claim)
        debounce.finish(attempt.claim, queue, extracted_number=batch.last_number, now=attempt.now())


def _extract(attempt: Attempt, batch: Batch) -> None:
    run = attempt.start(batch)
    if run.extractor == rules_extraction.EXTRACTOR:
        # A pause left over from a model that was taken away holds nobody back.
        endpoint.answered()
        found = rules_extraction.extract(batch.turns, batch.patterns)
        held = dict.fromkeys(found.suggested, rules_extraction.SUGGESTED)
        _commit(attempt, run, batch, MemoryUpdate(new_facts=found.new_facts), held=held)
    else:
        _ask(attempt, run, batch)


def _ask(attempt: Attempt, run: ExtractionRun, batch: Batch) -> None:
    try:
        whose_fault.ask_first(attempt)
        completion = client.complete(
            messages=batch.messages,
            answer=memory_update.ANSWER,
            max_calls=attempt.calls_left,
            before_call=attempt.before_call,
        )
    except ModelError as error:
        down = whose_fault.note(attempt, error)
        limit = attempt.claim.batch_limit
        attempt.give_back(setback(error, fed_turns=len(batch.turns), batch_limit=limit, endpoint_down=down))
    else:
        endpoint.answered()
        run.extractor = completion.extractor
        run.prompt_tokens, run.completion_tokens = completion.prompt_tokens, completion.completion_tokens
        _commit(attempt, run, batch, completion.answer, held={})


def _commit(
    attempt: Attempt, run: ExtractionRun, batch: Batch, answer: MemoryUpdate, *, held: Mapping[int, str]
) -> None:
    """Results, record and watermark together, or nothing; `held` are flags of new facts, by place."""
    claim = attempt.claim
    admitted = gate.admit(answer.new_facts, evidence=batch.evidence, rules=claim.rules, held=held)
    near = _compare(attempt, run, admitted.candidates)
    now = attempt.now()
    with transaction.atomic():
        queue = debounce.hold(claim)
        outcome = reconcile.apply(run=run, batch=batch, answer=answer, admitted=admitted, near=near, now=now)
        run.outcome, run.refusals = dict(outcome.done), dict(outcome.refusals)
        run.status, run.calls, run.finished_at = RunStatus.COMMITTED, attempt.calls, now
        run.cost = cost_of(run.prompt_tokens, run.completion_tokens) if attempt.calls else None
        run.save(force_update=True)
        debounce.finish(claim, queue, extracted_number=batch.last_number, now=now)


def _compare(attempt: Attempt, run: ExtractionRun, candidates: Sequence[Accepted]) -> Verdicts:
    """What the candidates are to the known facts near them, by at most one question; a failing model costs no batch."""
    claim = attempt.claim
    proposals = neighbours.propose(
        person=claim.session.end_user,
        candidates=candidates,
        now=attempt.now(),
        before_call=partial(debounce.renew, claim),
    )
    judged = judgement.judge(
        proposals=proposals,
        max_calls=attempt.calls_left,
        max_tokens=claim.rules.batch_tokens,
        before_call=attempt.before_call,
    )
    if judged.failure and judged.failure.endpoint_wide:
        endpoint.failed(claim.session.pk, retry_after=judged.failure.retry_after)
    if judged.prompt_version:
        run.prompt_version = f"{run.prompt_version}+{judged.prompt_version}"
    run.prompt_tokens += judged.prompt_tokens
    run.completion_tokens += judged.completion_tokens
    return judged.near


def _end_lost_runs(session_id: uuid.UUID, *, is_ours: bool, now: datetime) -> None:
    """Close what workers left behind that died: runs of a session whose lease is over, or has just become ours."""
    runs = ExtractionRun.objects.filter(session=session_id, status=RunStatus.RUNNING)
    queues = SessionQueue.objects.filter(pk=session_id)
    if not is_ours:
        queues = queues.filter(unleased())
    parked = queues.filter(parked_at__isnull=False).exists()
    status = RunStatus.PARKED if parked else RunStatus.FAILED
    runs.filter(session__queue__in=queues).update(status=status, failure="worker_lost", finished_at=now)
