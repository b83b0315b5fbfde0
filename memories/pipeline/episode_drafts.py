"""Drafts of episodes: what a model answered, or what was taken word for word, made fit to store and judged; pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memories.conf import Rules
from memories.exceptions import ModelError
from memories.llm.calls import Completion
from memories.llm.prompts import episode_summary
from memories.llm.prompts.episode_summary import EpisodeSummary
from memories.models.episodes import LONGEST_SUMMARY
from memories.pipeline import episode_quality, extractive, suspicion
from memories.pipeline.episode_texts import cleaned, items
from memories.pipeline.feed import FedTurn
from memories.pipeline.signals import Patterns

# Of a model that did not say.
_USUAL_IMPORTANCE = 0.5
_OBJECTIONS = {
    suspicion.INSTRUCTIONS: "it told a model what to do: tell what happened and repeat no instructions",
    suspicion.POSSIBLE_SECRET: "it held what may be a password or a key",
}
_OWN_OBJECTION = "you judged it to be poor yourself"


@dataclass(frozen=True)
class Draft:
    """What is to be stored of a stretch; importance and quality are 0 to 1, tokens those of all tries.

    `is_poor`: it is to wait for a person. `failure`: why a second try gave nothing.
    """

    summary: str
    key_topics: list[str]
    actions_taken: list[str]
    outcomes: list[str]
    importance: float
    quality: float
    flaws: tuple[str, ...]
    is_poor: bool
    extractor: str
    prompt_version: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failure: ModelError | None = None

    @property
    def is_suspicious(self) -> bool:
        """Whether it speaks to a model, or may hold a secret."""
        return not _OBJECTIONS.keys().isdisjoint(self.flaws)

    @property
    def objections(self) -> list[str]:
        """What to tell the model that is to write it anew."""
        words = {code: flaw.objection for code, flaw in episode_quality.FLAWS.items()} | _OBJECTIONS
        return [words[code] for code in self.flaws] or [_OWN_OBJECTION]


def of_answer(completion: Completion[EpisodeSummary], turns: Sequence[FedTurn], rules: Rules) -> Draft:
    """Of a model's answer about `turns`: the lower of its own judgement and the code's counts."""
    answer = completion.answer
    drafted = Draft(
        summary=cleaned(answer.summary, longest=LONGEST_SUMMARY),
        key_topics=items(answer.key_topics),
        actions_taken=items(answer.actions_taken),
        outcomes=items(answer.outcomes),
        importance=_USUAL_IMPORTANCE if answer.importance is None else answer.importance,
        quality=1.0 if answer.quality is None else answer.quality,
        flaws=(),
        is_poor=False,
        extractor=completion.extractor,
        prompt_version=episode_summary.VERSION,
        prompt_tokens=completion.prompt_tokens,
        completion_tokens=completion.completion_tokens,
    )
    return _judged(drafted, turns, rules)


def of_words(turns: Sequence[FedTurn], patterns: Patterns, rules: Rules) -> Draft:
    """Of the person's own words, without a model; signs by `patterns`."""
    found = extractive.extract(turns, patterns)
    drafted = Draft(
        summary=found.summary,
        key_topics=found.key_topics,
        actions_taken=[],
        outcomes=[],
        importance=found.importance,
        quality=1.0,
        flaws=(),
        is_poor=False,
        extractor=extractive.EXTRACTOR,
    )
    return _judged(drafted, turns, rules)


def better(first: Draft, second: Draft) -> Draft:
    """The one that speaks to no model, then the one of the higher quality, then the first; with the tokens of both."""
    best = max((first, second), key=lambda one: (not one.is_suspicious, one.quality))
    return replace(
        best,
        prompt_tokens=first.prompt_tokens + second.prompt_tokens,
        completion_tokens=first.completion_tokens + second.completion_tokens,
    )


def with_words(draft: Draft, turns: Sequence[FedTurn], patterns: Patterns, rules: Rules) -> Draft:
    """The draft; where the model said nothing, the person's own words stand in, as poor as it was."""
    if draft.summary:
        return draft
    words = of_words(turns, patterns, rules)
    return replace(
        draft,
        summary=words.summary,
        key_topics=words.key_topics,
        flaws=(*draft.flaws, *words.flaws),
        extractor=words.extractor,
        prompt_version="",
    )


def _judged(draft: Draft, turns: Sequence[FedTurn], rules: Rules) -> Draft:
    is_quoted = draft.extractor == extractive.EXTRACTOR
    judged = episode_quality.judge(draft.summary, turns, is_quoted=is_quoted)
    text = "\n".join([draft.summary, *draft.key_topics, *draft.actions_taken, *draft.outcomes])
    flaws = (*judged.flaws, *suspicion.flags(text, "", ""))
    drafted = replace(draft, quality=min(draft.quality, judged.quality), flaws=flaws)
    return replace(drafted, is_poor=drafted.is_suspicious or drafted.quality < rules.episode_quality)
