"""One attempt at a session's working memory: what is too much leaves the window and is folded into the running summary;
what has left, or all of a session that has ended, becomes an episode. One short fenced transaction writes both."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from django.db import transaction
from django.db.models.functions import Now

from memories import conf
from memories.exceptions import LeaseLost, ModelError, PersonRestricted
from memories.llm import client
from memories.llm.prompts import session_summary
from memories.models import ModelUse, SessionQueue, Turn
from memories.pipeline import debounce, endpoint, episodes, running_summary, spending, whose_fault, working_memory
from memories.pipeline.batches import bounded
from memories.pipeline.episodes import Draft
from memories.pipeline.feed import FedTurn
from memories.pipeline.leaving import Leaving, leaving
from memories.pipeline.reading import fed_turns, paged
from memories.pipeline.setbacks import Setback, whole_setback
from memories.pipeline.spending import Spent
from memories.pipeline.whose_fault import Calling
from memories.pipeline.working_memory import Claim, Done


@dataclass(frozen=True)
class Stretch:
    """Turns `first_number`..`last_number` of a session to sum up, of which `turns` are fed: none are, or they make an
    episode. `is_all`: nothing more has to be summed up now."""

    first_number: int
    last_number: int
    turns: tuple[FedTurn, ...] = ()
    is_all: bool = True


@dataclass(frozen=True)
class Work:
    """What one attempt is to do: let turns leave, of which `left` are fed, and sum up a stretch."""

    leaving: Leaving | None
    left: tuple[FedTurn, ...]
    stretch: Stretch | None


@dataclass
class Attempt(Calling):
    """A claim of a working memory, with the calls made for it and what their answers took."""

    claim: Claim
    is_committed: bool = field(default=False, kw_only=True)
    spent: Spent = field(default_factory=Spent, kw_only=True)

    def before_call(self) -> None:
        working_memory.renew(self.claim)
        self.calls += 1


@dataclass(frozen=True)
class Answers:
    """What the model made of it: the running summary ("": it stays as it was), and the draft of the episode."""

    summary: str = ""
    extractor: str = ""
    draft: Draft | None = None


def compact(*, session_id: uuid.UUID, now: datetime) -> bool:
    """Do what the session's working memory is due for; True when something was committed.

    A failing model postpones or parks it; any other error postpones it and is raised. No transaction is open while the
    model is asked.
    """
    if conf.llm().mode == conf.LLM_OFF:
        return False
    claim = working_memory.claim(session_id)
    if claim is None:
        return False
    attempt = Attempt(claim, now)
    with _given_back_on_error(attempt):
        work = gather(claim)
        if work.leaving:
            _hurry_extraction(claim, work.leaving.last_number)
        answers = _ask(attempt, work)
        if answers:
            _commit(attempt, work, answers)
    return attempt.is_committed


def gather(claim: Claim) -> Work:
    """What there is to do; of the turns it reads those that leave or are summed up, and a page besides."""
    gone = _leaving(claim)
    left: tuple[FedTurn, ...] = ()
    if gone and client.is_configured():
        unread = fed_turns(claim.session, after=claim.row.left_number, last=gone.last_number)
        # Only a single round can be larger than a prompt: its end is told by extraction and episodes alone.
        left, _ = bounded(unread, claim.rules.batch_tokens)
    return Work(gone, left, _stretch(claim, gone))


def _leaving(claim: Claim) -> Leaving | None:
    if not claim.window.is_over(claim.rules):
        return None
    turns = Turn.objects.filter(session=claim.session).only(*debounce.COUNTED)
    return leaving(paged(turns, after=claim.row.left_number), claim.window, claim.rules)


def _stretch(claim: Claim, gone: Leaving | None) -> Stretch | None:
    """What is to be summed up of the turns that have left, or of all when the session closes; None: it may wait."""
    done = claim.row.episode_number
    left_number = gone.last_number if gone else claim.row.left_number
    last = claim.session.turn_count if claim.closing else left_number
    if last <= done:
        return None
    turns, is_all = bounded(fed_turns(claim.session, after=done, last=last), claim.rules.batch_tokens)
    if not is_all:
        return Stretch(done + 1, turns[-1].number, turns, is_all=False)
    if turns and not _qualifies(claim, len(turns)):
        return None
    return Stretch(done + 1, last, turns)


def _qualifies(claim: Claim, count: int) -> bool:
    """Whether a stretch of so many fed turns makes an episode: a few do at the end of a session that has enough."""
    enough = claim.rules.episode_turns
    if count >= enough or not claim.closing:
        return count >= enough
    said = fed_turns(claim.session, after=0, last=claim.session.turn_count)
    return len(list(islice(said, enough))) == enough


def _hurry_extraction(claim: Claim, last_number: int) -> None:
    """What leaves the window is extracted at once (rules.md, 6.1), unless that is under way or backs off."""
    waiting = SessionQueue.objects.unclaimed().filter(pk=claim.session.pk, pending_user=True, attempts=0)
    waiting.filter(extracted_number__lt=last_number, due_at__gt=Now()).update(due_at=Now(), woken_at=None)


def _ask(attempt: Attempt, work: Work) -> Answers | None:
    """The model's part; None when it failed, and the attempt is given back."""
    try:
        return _answers(attempt, work)
    except ModelError as error:
        down = whose_fault.note(attempt, error)
        _note_spent(attempt)
        working_memory.postpone(attempt.claim, whole_setback(error, endpoint_down=down), now=attempt.now())
        return None


def _answers(attempt: Attempt, work: Work) -> Answers:
    summary, extractor, draft = "", "", None
    if client.is_configured() and (work.left or (work.stretch and work.stretch.turns)):
        whose_fault.ask_first(attempt)
    if work.left:
        row = attempt.claim.row
        completion = running_summary.ask(
            summary=row.summary, turns=work.left, max_calls=attempt.calls_left, before_call=attempt.before_call
        )
        attempt.spent.add_answer(completion)
        summary, extractor = running_summary.fit(completion.answer.summary), completion.extractor
    if work.stretch and work.stretch.turns and attempt.calls_left:
        draft = _draft(attempt, work.stretch)
    _note_answered(attempt, draft)
    return Answers(summary, extractor, draft)


def _draft(attempt: Attempt, stretch: Stretch) -> Draft:
    draft = episodes.draft(
        turns=stretch.turns,
        session=attempt.claim.session,
        max_calls=attempt.calls_left,
        before_call=attempt.before_call,
        rules=attempt.claim.rules,
    )
    attempt.spent.add(draft.prompt_tokens, draft.completion_tokens)
    return draft


def _note_answered(attempt: Attempt, draft: Draft | None) -> None:
    if draft and draft.failure and draft.failure.endpoint_wide:
        endpoint.failed(attempt.claim.session.pk, retry_after=draft.failure.retry_after)
    elif attempt.calls or not client.is_configured():
        # A pause left over from a model that was taken away holds nobody back.
        endpoint.answered()
    else:
        endpoint.not_asked()


def _commit(attempt: Attempt, work: Work, answers: Answers) -> None:
    """Summary, episode and watermarks together, or nothing."""
    claim, stretch, now = attempt.claim, work.stretch, attempt.now()
    # Without calls left its episode is made by the next attempt.
    is_made = stretch is not None and (answers.draft is not None or not stretch.turns)
    done = Done(
        leaving=work.leaving,
        summary=answers.summary or None,
        extractor=answers.extractor,
        prompt_version=session_summary.VERSION,
        episode_number=stretch.last_number if stretch and is_made else claim.row.episode_number,
        has_episode=answers.draft is not None,
        is_all=(not work.leaving or work.leaving.is_all) and (not stretch or (is_made and stretch.is_all)),
    )
    with transaction.atomic():
        row = working_memory.hold(claim)
        if stretch and answers.draft:
            episodes.store(
                draft=answers.draft,
                session=claim.session,
                first_number=stretch.first_number,
                last_number=stretch.last_number,
                turns=stretch.turns,
                now=now,
            )
        working_memory.finish(claim, row, done, now=now)
        _note_spent(attempt)
    attempt.is_committed = True


def _note_spent(attempt: Attempt) -> None:
    tenant = attempt.claim.session.tenant
    spending.note(tenant, ModelUse.Purpose.SUMMARIES, calls=attempt.calls, spent=attempt.spent, now=attempt.now())


@contextmanager
def _given_back_on_error(attempt: Attempt) -> Iterator[None]:
    """A lost lease ends the attempt, a restriction of the person postpones it until it is lifted; anything else, the
    task's own timeout too, postpones it and goes on up."""
    failure = "internal_error"
    try:
        yield
        failure = ""
    except LeaseLost:
        failure = ""
    except PersonRestricted as restricted:
        _give_back(attempt, Setback(restricted.code, counts=False))
        failure = ""
    finally:
        if failure:
            _give_back(attempt, Setback(failure))


def _give_back(attempt: Attempt, setback: Setback) -> None:
    if not attempt.calls:
        endpoint.not_asked()
    working_memory.postpone(attempt.claim, setback, now=attempt.now())
