"""Compaction: one attempt at a session's working memory.

Rounds that exceed the limits leave the window and are folded into the running summary. What has left becomes an
episode, and so does the rest of a session that has ended. One short transaction under the lease writes both.
"""

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from django.db import transaction
from django.db.models.functions import Now

from memories import conf, content_policy
from memories.content_policy import Drop
from memories.db import tenancy
from memories.embedding import similarity
from memories.episodes import creation, extractive, screening
from memories.episodes.creation import Draft
from memories.episodes.supported_sentences import fit_running_summary
from memories.exceptions import ModelError
from memories.extraction.turn_reader import fed_turns, paged, traced
from memories.llm import client
from memories.llm.prompts import session_summary
from memories.llm.prompts.memory_update import TurnInput
from memories.models import ModelUse, SessionQueue, Turn
from memories.queue import circuit_breaker, queue_rows, session_queue, spending, window_queue
from memories.queue.attempts import Attempt
from memories.queue.eviction import Eviction, evict
from memories.queue.retry_policy import RetryDecision
from memories.queue.spending import Spent
from memories.queue.window_queue import Compacted, WindowClaim
from memories.reconcile.batches import bounded
from memories.telemetry import traces
from memories.telemetry.families import ATTEMPTS
from memories.text import attribution
from memories.text.injection import detection
from memories.text.transcript import TranscriptTurn


@dataclass(frozen=True)
class EpisodeRange:
    """A segment to sum up: turns `first_number`..`last_number`, of which the model reads `turns`.

    Without `turns` it makes no episode. `is_all`: nothing more has to be summed up now.
    """

    first_number: int
    last_number: int
    turns: tuple[TranscriptTurn, ...] = ()
    is_all: bool = True


@dataclass(frozen=True)
class CompactionWork:
    """The work of one attempt: turns that leave the window, those of them that the model reads, and an episode."""

    leaving: Eviction | None
    left: tuple[TranscriptTurn, ...]
    segment: EpisodeRange | None

    @property
    def numbers(self) -> tuple[int, int]:
        """The first and the last turn that is summed up; (0, 0): none."""
        read = [turn.number for turn in (*self.left, *(self.segment.turns if self.segment else ()))]
        return min(read, default=0), max(read, default=0)


@dataclass
class CompactionAttempt(Attempt):
    """A claim of a working memory, with its calls and their tokens."""

    claim: WindowClaim
    is_committed: bool = field(default=False, kw_only=True)
    spent: Spent = field(default_factory=Spent, kw_only=True)

    def before_call(self) -> None:
        queue_rows.renew(self.claim)
        self.calls += 1

    def release(self, retry: RetryDecision) -> None:
        queue_rows.postpone(self.claim, retry, now=self.now())

    def spend(self, prompt_tokens: int, completion_tokens: int) -> None:
        self.spent.add(prompt_tokens, completion_tokens)
        super().spend(prompt_tokens, completion_tokens)


@dataclass(frozen=True)
class ModelAnswers:
    """The running summary ("": it stays as it was), and the draft of the episode."""

    summary: str = ""
    extractor: str = ""
    draft: Draft | None = None
    # What the content policy took out of both; nothing may be left of the draft.
    dropped: tuple[Drop, ...] = ()
    is_emptied: bool = False


def compact(*, session_id: uuid.UUID, now: datetime) -> bool:
    """Compact the session's working memory if it is due; True when something was committed.

    When the model fails, the row is postponed or parked; any other error postpones it and is raised. No transaction is
    open during calls.
    """
    if conf.llm().mode == conf.LLM_OFF:
        return False
    claim = window_queue.claim(session_id)
    if claim is None:
        return False
    attempt = CompactionAttempt(claim, now)
    with tenancy.of_tenant(claim.session.tenant_id), queue_rows.given_back_on_error(attempt):
        work = gather(claim)
        if work.leaving:
            # Turns that leave the window are extracted at once (rules.md, 6.1), unless that is running or backs off.
            waiting = SessionQueue.objects.unclaimed().filter(pk=claim.session.pk, pending_user=True, attempts=0)
            waiting = waiting.filter(extracted_number__lt=work.leaving.last_number, due_at__gt=Now())
            waiting.update(due_at=Now(), woken_at=None)
        with traced("compaction", claim.session, work.numbers, attempt=claim.row.attempts):
            _carry_out(attempt, work)
    return attempt.is_committed


def gather(claim: WindowClaim) -> CompactionWork:
    """The work. It reads only the turns that leave or are summed up, and a page more."""
    gone: Eviction | None = None
    left: tuple[TranscriptTurn, ...] = ()
    if claim.window.is_over(claim.rules):
        turns = Turn.objects.filter(session=claim.session).current().only(*session_queue.COUNTED)
        gone = evict(paged(turns, after=claim.row.left_number), claim.window, claim.rules)
    if gone:
        unread = fed_turns(claim.session, after=claim.row.left_number, last=gone.last_number)
        # Only a single round can exceed a prompt. Its end is read by extraction and episodes alone.
        left, _ = bounded(unread, claim.rules.batch_tokens)
    return CompactionWork(gone, left, _segment(claim, gone))


def _carry_out(attempt: CompactionAttempt, work: CompactionWork) -> None:
    try:
        answers = _call_model(attempt, work)
    except ModelError as error:
        attempt.spend(error.prompt_tokens, error.completion_tokens)
        retry = circuit_breaker.record_failure(attempt, error)
        _note_spent(attempt)
        attempt.release(retry)
    else:
        _commit(attempt, work, answers)


def _segment(claim: WindowClaim, gone: Eviction | None) -> EpisodeRange | None:
    """What to sum up of the turns that have left, or of all turns when the session ends; None: not yet."""
    done = claim.row.episode_number
    left_number = gone.last_number if gone else claim.row.left_number
    last = claim.session.turn_count if claim.closing else left_number
    if last <= done:
        return None
    turns, is_all = bounded(fed_turns(claim.session, after=done, last=last), claim.rules.batch_tokens)
    if not is_all:
        return EpisodeRange(done + 1, turns[-1].number, turns, is_all=False)
    if turns and not _makes_episode(claim, len(turns)):
        return None
    if not turns and Turn.objects.filter(session=claim.session, number__gt=done, left_at__isnull=False).exists():
        # They may come back, and then they are to be in an episode.
        return None
    return EpisodeRange(done + 1, last, turns)


def _makes_episode(claim: WindowClaim, count: int) -> bool:
    """Whether so many turns make an episode. Fewer do at the end of a session that has enough in all."""
    enough = claim.rules.episode_turns
    if count >= enough or not claim.closing:
        return count >= enough
    turns = fed_turns(claim.session, after=0, last=claim.session.turn_count)
    return len(list(islice(turns, enough))) == enough


def _call_model(attempt: CompactionAttempt, work: CompactionWork) -> ModelAnswers:
    summary, extractor, draft, config = "", "", None, attempt.claim.config
    turns = work.segment.turns if work.segment else ()
    if client.is_configured(config) and (work.left or turns):
        circuit_breaker.probe_if_open(attempt)
    if work.left:
        if client.is_configured(config):
            summary, extractor = _fold(attempt, work.left)
        else:
            summary, extractor = extractive.fold(attempt.claim.row.summary, work.left), extractive.EXTRACTOR
    if turns and attempt.calls_left:
        draft = creation.draft(
            turns=turns,
            session=attempt.claim.session,
            max_calls=attempt.calls_left,
            before_call=attempt.before_call,
            rules=attempt.claim.rules,
            config=config,
        )
        attempt.spend(draft.prompt_tokens, draft.completion_tokens)
    if draft and draft.failure and draft.failure.endpoint_wide:
        circuit_breaker.count_failure(
            attempt.claim.session.pk, retry_after=draft.failure.retry_after, owner=config.tenant_id
        )
    elif attempt.calls or not client.is_configured(config):
        # A pause left by a model that is no longer configured must not hold anybody back.
        circuit_breaker.close(config.tenant_id)
    else:
        circuit_breaker.release_probe(config.tenant_id)
    kept, screened, dropped = screening.screened(summary, draft, attempt.claim.session.tenant)
    return ModelAnswers(kept, extractor, screened, tuple(dropped), is_emptied=draft is not None and screened is None)


def _fold(attempt: CompactionAttempt, turns: tuple[TranscriptTurn, ...]) -> tuple[str, str]:
    """Fold `turns` into the running summary; the new one, and what wrote it."""
    earlier = attempt.claim.row.summary
    completion = client.complete(
        messages=session_summary.build(
            # An older version of the hub may have stored a summary that speaks to a model.
            summary="" if detection.speaks_to_model(attribution.plain(earlier)) else earlier,
            turns=[TurnInput(turn.number, turn.turn.role, turn.text, turn.at) for turn in turns],
        ),
        answer=session_summary.ANSWER,
        max_calls=attempt.calls_left,
        before_call=attempt.before_call,
        config=attempt.claim.config,
    )
    attempt.spend(completion.prompt_tokens, completion.completion_tokens)
    summary = completion.answer.summary
    fitted = fit_running_summary(summary, turns=turns, earlier=earlier, embed=similarity.vectors)
    return fitted, completion.extractor


def _commit(attempt: CompactionAttempt, work: CompactionWork, answers: ModelAnswers) -> None:
    """Write the summary, the episode and the watermarks in one transaction."""
    claim, segment, now = attempt.claim, work.segment, attempt.now()
    # Without calls left, the next attempt makes the episode.
    is_made = segment is not None and (answers.draft is not None or answers.is_emptied or not segment.turns)
    done = Compacted(
        evicted=work.leaving,
        summary=answers.summary or None,
        extractor=answers.extractor,
        prompt_version=session_summary.VERSION if answers.extractor != extractive.EXTRACTOR else "",
        episode_number=segment.last_number if segment and is_made else claim.row.episode_number,
        has_episode=answers.draft is not None,
        is_all=(not work.leaving or work.leaving.is_all) and (not segment or (is_made and segment.is_all)),
    )
    with traces.span("commit"), transaction.atomic():
        row = window_queue.lock_claimed(claim)
        if segment and answers.draft:
            creation.store(
                draft=answers.draft,
                session=claim.session,
                first_number=segment.first_number,
                last_number=segment.last_number,
                turns=segment.turns,
                now=now,
            )
        content_policy.add(claim.session.tenant_id, answers.dropped, now=now)
        window_queue.finish(claim, row, done, now=now)
        _note_spent(attempt)
    attempt.is_committed = True
    ATTEMPTS.count("working_memory", "committed")


def _note_spent(attempt: CompactionAttempt) -> None:
    spending.note(
        attempt.claim.session.tenant,
        ModelUse.Purpose.SUMMARIES,
        calls=attempt.calls,
        spent=attempt.spent,
        prices=attempt.claim.config.prices,
        now=attempt.now(),
    )
