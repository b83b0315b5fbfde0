"""One attempt at a session's due batch: claim it, gather it, ask the model or apply the rules mode, commit the result.

The commit is one short transaction that checks the lease.
"""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial

from django.db import transaction

from memories import conf, content_policy, outbox
from memories.db import tenancy
from memories.exceptions import ModelError
from memories.extraction import gathering, rules_mode, screening
from memories.extraction.turn_reader import traced
from memories.llm import client
from memories.llm.prices import cost_of
from memories.llm.prompts import memory_update
from memories.llm.prompts.memory_update import MemoryUpdate
from memories.models import Event, ExtractionRun, SessionQueue
from memories.outbox import WebhookEvent
from memories.queue import circuit_breaker, queue_rows, session_queue
from memories.queue.attempts import Attempt
from memories.queue.leases import WORKER_LOST
from memories.queue.retry_policy import RESTRICTED, RetryDecision
from memories.queue.session_queue import Claim
from memories.reconcile import gate, judgement, neighbours, profile, reconcile
from memories.reconcile.batches import TurnBatch
from memories.reconcile.gate import Accepted
from memories.reconcile.judgement import Verdicts
from memories.telemetry import traces
from memories.telemetry.families import ATTEMPTS

RunStatus = ExtractionRun.RunStatus
# In the counts of a run: a request to remember something that the rules could not read.
UNREAD = "unread_request"
# Turns that the model was not shown whole, and how many of their characters it was not shown.
SHORTENED, LEFT_OUT = "shortened", "left_out"


@dataclass
class ExtractionAttempt(Attempt):
    """A claim with the run that records it."""

    claim: Claim
    run: ExtractionRun | None = None

    def before_call(self) -> None:
        queue_rows.renew(self.claim)
        self.calls += 1

    def start(self, batch: TurnBatch) -> ExtractionRun:
        """Commit the record of the attempt before its first call."""
        session, llm = self.claim.session, self.claim.config
        with transaction.atomic():
            queue_rows.fence(self.claim)
            extractor = prompt_version = rules_mode.EXTRACTOR
            if llm.mode != conf.LLM_RULES:
                extractor = f"llm:{llm.model}"
                prompt_version = memory_update.version(
                    with_triples=self.claim.rules.triples,
                    with_policy=content_policy.in_force(session.tenant) is not None,
                    with_fields=bool(batch.fields),
                )
            self.run = ExtractionRun.objects.create(
                tenant=session.tenant,
                end_user=session.end_user,
                session=session,
                first_number=batch.first_number,
                last_number=batch.last_number,
                fed_turns=len(batch.turns),
                attempt=self.claim.row.attempts,
                extractor=extractor,
                prompt_version=prompt_version,
                guidance_version=session.tenant.guidance_version,
                started_at=self.begun_at,
            )
        return self.run

    def end(self, status: RunStatus, failure: str) -> None:
        """Record how it failed."""
        run = self.run
        if run is None:
            return
        run.status, run.failure = status, failure
        run.calls, run.finished_at = self.calls, self.now()
        run.cost = self.cost()
        names = ("status", "failure", "calls", "prompt_tokens", "completion_tokens", "cost", "finished_at")
        # Not save(): an erasure may have deleted the row.
        ExtractionRun.objects.filter(pk=run.pk).update(**{name: getattr(run, name) for name in names})

    def spend(self, prompt_tokens: int, completion_tokens: int) -> None:
        if self.run is None:
            return
        self.run.prompt_tokens += prompt_tokens
        self.run.completion_tokens += completion_tokens
        super().spend(prompt_tokens, completion_tokens)

    def cost(self) -> Decimal | None:
        if self.run is None or not self.calls:
            return None
        return cost_of(self.run.prompt_tokens, self.run.completion_tokens, self.claim.config.prices)

    def release(self, retry: RetryDecision) -> None:
        """Postpone or park the batch. One transaction: the lease never ends before the run does."""
        status = RunStatus.DISCARDED if retry is RESTRICTED else RunStatus.FAILED
        limit = retry.batch_limit or self.claim.row.batch_limit
        with transaction.atomic():
            parked = queue_rows.postpone(self.claim, retry, now=self.now(), batch_limit=limit)
            self.end(RunStatus.PARKED if parked else status, retry.failure)

    def discard(self, failure: str) -> None:
        self.end(RunStatus.DISCARDED, failure)


def consolidate(*, session_id: uuid.UUID, now: datetime) -> ExtractionRun | None:
    """Extract the session's due batch; None when there was nothing to claim or nothing to feed.

    A failing model is recorded on the run, and the batch postponed or parked. Any other error postpones it and is
    raised. No transaction is open during a model call.
    """
    if conf.llm().mode == conf.LLM_OFF:
        return None
    claim = session_queue.claim(session_id)
    _end_lost_runs(session_id, is_ours=claim is not None, now=now)
    if claim is None:
        return None
    attempt = ExtractionAttempt(claim, now)
    with tenancy.of_tenant(claim.session.tenant_id), queue_rows.given_back_on_error(attempt):
        batch = gathering.gather(claim=claim, now=now)
        if batch.turns:
            numbers = (batch.first_number, batch.last_number)
            with traced("extraction", claim.session, numbers, turns=len(batch.turns), attempt=claim.row.attempts):
                _extract(attempt, batch)
        else:
            # Nothing of the range is fed: the watermark moves without a call.
            circuit_breaker.release_probe(claim.config.tenant_id)
            with transaction.atomic():
                queue = queue_rows.fence(claim)
                session_queue.finish(claim, queue, extracted_number=batch.last_number, now=attempt.now())
    return attempt.run


def read_by_rules(batch: TurnBatch) -> tuple[MemoryUpdate, dict[int, str], Counter[str]]:
    """What the rules make of a batch in the place of a model: the answer, the flags of new facts by place, and counts
    of what it leaves out."""
    found = rules_mode.extract(batch.turns, batch.patterns)
    removed = rules_mode.ended(batch.turns, batch.shown_facts)
    return MemoryUpdate(new_facts=found.new_facts, removed=removed), found.held, Counter({UNREAD: found.unread})


def _end_lost_runs(session_id: uuid.UUID, *, is_ours: bool, now: datetime) -> None:
    """End the runs that dead workers left behind: those of a session whose lease is over, or has just become ours."""
    runs = ExtractionRun.objects.filter(session=session_id, status=RunStatus.RUNNING)
    queues = SessionQueue.objects.filter(pk=session_id)
    if not is_ours:
        queues = queues.free()
    parked = queues.filter(parked_at__isnull=False).exists()
    status = RunStatus.PARKED if parked else RunStatus.FAILED
    runs.filter(session__queue__in=queues).update(status=status, failure=WORKER_LOST, finished_at=now)


def _extract(attempt: ExtractionAttempt, batch: TurnBatch) -> None:
    run = attempt.start(batch)
    if run.extractor == rules_mode.EXTRACTOR:
        # The model may have been taken away during a pause, which must not hold anybody back.
        circuit_breaker.close(attempt.claim.config.tenant_id)
        answer, held, refused = read_by_rules(batch)
        _commit(attempt, run, batch, answer, held=held, refused=refused)
    else:
        _ask(attempt, run, batch)


def _ask(attempt: ExtractionAttempt, run: ExtractionRun, batch: TurnBatch) -> None:
    try:
        circuit_breaker.probe_if_open(attempt)
        completion = client.complete(
            messages=batch.messages,
            answer=memory_update.answer_form(
                with_triples=attempt.claim.rules.triples,
                with_policy=content_policy.in_force(attempt.claim.session.tenant) is not None,
            ),
            max_calls=attempt.calls_left,
            before_call=attempt.before_call,
            config=attempt.claim.config,
        )
    except ModelError as error:
        attempt.spend(error.prompt_tokens, error.completion_tokens)
        # A long turn that is alone can still be cut to length.
        fed, limit = max(len(batch.turns), 2 if batch.has_long else 1), attempt.claim.row.batch_limit
        attempt.release(circuit_breaker.record_failure(attempt, error, fed_turns=fed, batch_limit=limit))
    else:
        circuit_breaker.close(attempt.claim.config.tenant_id)
        run.extractor = completion.extractor
        attempt.spend(completion.prompt_tokens, completion.completion_tokens)
        _commit(attempt, run, batch, completion.answer, held={})


def _commit(
    attempt: ExtractionAttempt,
    run: ExtractionRun,
    batch: TurnBatch,
    answer: MemoryUpdate,
    *,
    held: Mapping[int, str],
    refused: Counter[str] | None = None,
) -> None:
    """Commit results, run and watermark together; `held` are flags of new facts, by place; `refused` counts what the
    answer leaves out.
    """
    claim, given, prompt_version = attempt.claim, answer, run.prompt_version
    is_asked = True
    while is_asked:
        screened = screening.screen(given, run.tenant)
        answer, calls, run.prompt_version = screened.answer, attempt.calls, prompt_version
        admitted = gate.admit(
            answer.new_facts,
            evidence=batch.evidence,
            rules=claim.rules,
            held=held,
            forbidden=screened.forbidden,
            fields=batch.fields,
        )
        profile.prepare(batch.evidence, answer.profile)
        near = _compare(attempt, run, admitted.candidates)
        # Another policy may have come while the model compared.
        is_asked = attempt.calls > calls and screening.is_outdated(screened, run.tenant)
    now = attempt.now()
    with traces.span("commit"), transaction.atomic():
        queue = queue_rows.fence(claim)
        outcome = reconcile.apply(run=run, batch=batch, answer=answer, admitted=admitted, near=near, now=now)
        content_policy.add(run.tenant_id, screened.dropped, now=now)
        run.outcome, run.refusals = dict(outcome.done), dict(outcome.refusals + (refused or Counter()))
        if run.extractor != rules_mode.EXTRACTOR and batch.shortened:
            run.outcome |= {SHORTENED: batch.shortened, LEFT_OUT: batch.left_out}
        run.status, run.calls, run.finished_at = RunStatus.COMMITTED, attempt.calls, now
        run.cost = attempt.cost()
        run.save(force_update=True)
        session_queue.finish(claim, queue, extracted_number=batch.last_number, now=now)
        data = {"session_id": run.session_id, "run_id": run.pk, "person_id": run.end_user_id}
        extracted = WebhookEvent(Event.SESSION_EXTRACTED, data, person=run.end_user_id)
        outbox.publish(run.tenant_id, [extracted], now=now, tenant=run.tenant)
    ATTEMPTS.count("extraction", "committed")


def _compare(attempt: ExtractionAttempt, run: ExtractionRun, candidates: Sequence[Accepted]) -> Verdicts:
    """Judge the candidates against the facts near them, by at most one question. The batch survives a failing model."""
    claim = attempt.claim
    proposals = neighbours.propose(
        person=claim.session.end_user,
        candidates=candidates,
        now=attempt.now(),
        before_call=partial(queue_rows.renew, claim),
        agent_id=run.owner,
    )
    judged = judgement.judge(
        proposals=proposals,
        max_calls=attempt.calls_left,
        max_tokens=claim.rules.batch_tokens,
        before_call=attempt.before_call,
        config=claim.config,
    )
    attempt.spend(judged.prompt_tokens, judged.completion_tokens)
    if judged.failure and judged.failure.endpoint_wide:
        owner = claim.config.tenant_id
        circuit_breaker.count_failure(claim.session.pk, retry_after=judged.failure.retry_after, owner=owner)
    if judged.prompt_version:
        run.prompt_version = f"{run.prompt_version}+{judged.prompt_version}"
    return judged.near
