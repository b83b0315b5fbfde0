"""Episodes: what happened in a stretch of a session, summed up by the model or, without one, in the person's own words.

A poor summary is asked for once more, with the reason; what stays poor waits for a person (rules.md, 6.2 and 6.3).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from memories import conf
from memories.conf import Rules
from memories.exceptions import ModelError
from memories.llm import client
from memories.llm.calls import Completion
from memories.llm.prompts import episode_summary
from memories.llm.prompts.episode_summary import EpisodeSummary
from memories.llm.prompts.memory_update import TurnInput
from memories.models import Episode, EpisodeStatus, ReviewItem, Session
from memories.pipeline import episode_drafts, review_items, signal_phrases
from memories.pipeline.batches import bounded
from memories.pipeline.episode_drafts import Draft
from memories.pipeline.feed import FedTurn
from memories.pipeline.review_items import Question

__all__ = ["Draft", "draft", "store", "stretches"]


def stretches(turns: Sequence[FedTurn], *, budget: int) -> list[list[FedTurn]]:
    """`turns` in parts of at most `budget` tokens as prompts show them, each of whole rounds where it can be; pure."""
    parts: list[list[FedTurn]] = []
    rest = list(turns)
    while rest:
        taken, _ = bounded(rest, budget)
        parts.append(list(taken))
        rest = rest[len(taken) :]
    return parts


def draft(
    *,
    turns: Sequence[FedTurn],
    session: Session,
    max_calls: int,
    before_call: Callable[[], None],
    rules: Rules,
) -> Draft:
    """Sum up `turns`, at least one, by at most `max_calls` HTTP calls, each announced through `before_call`.

    Raises ModelError when the first try fails; exceptions of `before_call` pass. Opens no transaction.
    """
    patterns = signal_phrases.patterns_of(session.tenant.signal_phrases)
    if conf.llm().mode == conf.LLM_RULES:
        return episode_drafts.of_words(turns, patterns, rules)
    ask = partial(_ask, turns=turns, session=session, before_call=before_call)
    completion = ask(max_calls=max_calls)
    best = episode_drafts.of_answer(completion, turns, rules)
    if best.is_poor and completion.calls < max_calls:
        best = _second_try(best, partial(ask, max_calls=max_calls - completion.calls), turns, rules)
    return episode_drafts.with_words(best, turns, patterns, rules)


def _second_try(
    first: Draft, ask: Callable[..., Completion[EpisodeSummary]], turns: Sequence[FedTurn], rules: Rules
) -> Draft:
    try:
        completion = ask(objections=first.objections)
    except ModelError as error:
        # The first one is there to be stored.
        return replace(first, failure=error)
    return episode_drafts.better(first, episode_drafts.of_answer(completion, turns, rules))


def _ask(
    *,
    turns: Sequence[FedTurn],
    session: Session,
    max_calls: int,
    before_call: Callable[[], None],
    objections: Sequence[str] = (),
) -> Completion[EpisodeSummary]:
    return client.complete(
        messages=episode_summary.build(
            turns=[TurnInput(turn.number, turn.turn.role, turn.text, turn.at) for turn in turns],
            guidance=session.tenant.extraction_guidance,
            objections=objections,
        ),
        answer=episode_summary.ANSWER,
        max_calls=max_calls,
        before_call=before_call,
    )


def store(
    *, draft: Draft, session: Session, first_number: int, last_number: int, turns: Sequence[FedTurn], now: datetime
) -> Episode:
    """Store the episode of turns `first_number`..`last_number`, of which `turns` were fed, inside the caller's
    transaction; a poor one waits for a person. IntegrityError when one begins at this turn already."""
    # A client's clock may be wrong, and nothing has happened later than now.
    moments = [min(turn.at, now) for turn in turns]
    episode = _made_of(draft, session)
    episode.first_number, episode.last_number, episode.fed_turns = first_number, last_number, len(turns)
    episode.started_at, episode.ended_at = min(moments), max(moments)
    episode.created_at = episode.updated_at = now
    episode.refresh_decay(now=now, rules=conf.rules(session.tenant))
    episode.save(force_insert=True)
    if draft.is_poor:
        review_items.ask(Question(ReviewItem.Reason.POOR_QUALITY, episode=episode), run=None, now=now)
    return episode


def _made_of(draft: Draft, session: Session) -> Episode:
    episode = Episode(
        tenant=session.tenant,
        end_user=session.end_user,
        session=session,
        key_topics=draft.key_topics,
        actions_taken=draft.actions_taken,
        outcomes=draft.outcomes,
        importance=draft.importance,
        quality=draft.quality,
        flaws=list(draft.flaws),
        extractor=draft.extractor,
        prompt_version=draft.prompt_version,
        status=EpisodeStatus.PENDING if draft.is_poor else EpisodeStatus.ACTIVE,
    )
    episode.say(draft.summary)
    return episode
