"""What a newcomer is to the known facts that lie near it: nearness only proposes, a judgement decides."""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from memories.exceptions import ModelError
from memories.llm import client, tokens
from memories.llm.calls import Completion
from memories.llm.prompts import fact_judgement
from memories.llm.prompts.fact_judgement import CandidateInput, FactJudgement
from memories.llm.prompts.framing import Message
from memories.llm.prompts.memory_update import KnownFact
from memories.pipeline.gate import Accepted


class Verdict(StrEnum):
    """What the newcomer is to the known fact; not_judged: nobody was there to say."""

    SAME = "same"
    REFINES = "refines"
    CONTRADICTS = "contradicts"
    UNRELATED = "unrelated"
    NOT_JUDGED = "not_judged"


@dataclass(frozen=True)
class Near:
    """A known fact near a candidate: `content_hash` of the text that was compared, cosine, and whether its text was
    refused (rejected or forgotten; those are never judged)."""

    fact_id: uuid.UUID
    content_hash: bytes
    similarity: float
    verdict: Verdict
    refused: bool


# By Accepted.index, nearest first: at most three active facts, and the nearest refused one.
Verdicts = Mapping[int, Sequence[Near]]


@dataclass(frozen=True)
class Neighbour:
    """A known fact near a candidate as it was read, before anybody judged."""

    fact_id: uuid.UUID
    content_hash: bytes
    content: str
    category: str
    key: str
    binding: bool
    similarity: float
    refused: bool


@dataclass(frozen=True)
class Proposal:
    """A candidate with the known facts near it, nearest first."""

    candidate: Accepted
    neighbours: Sequence[Neighbour]

    @property
    def asked(self) -> list[Neighbour]:
        """Those that a model is asked about."""
        return [neighbour for neighbour in self.neighbours if not neighbour.refused]


@dataclass(frozen=True)
class Judged:
    """The verdicts; the prompt's version where a model gave them, its tokens, and why it did not."""

    near: Verdicts
    prompt_version: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failure: ModelError | None = None


def judge(*, proposals: Sequence[Proposal], max_calls: int, max_tokens: int, before_call: Callable[[], None]) -> Judged:
    """Have all pairs judged by one question of at most `max_calls` HTTP calls and about `max_tokens` of their texts.

    Pairs beyond that, and all of them without a model, without a call left or when the call fails, are not_judged.
    Exceptions of `before_call` pass. Opens no transaction.
    """
    asked = _within(proposals, max_tokens)
    if not asked or max_calls < 1 or not client.is_configured():
        return Judged(_near(proposals, {}))
    sheet = _Sheet.of(asked)
    try:
        completion = client.complete(
            messages=sheet.messages, answer=fact_judgement.ANSWER, max_calls=max_calls, before_call=before_call
        )
    except ModelError as error:
        # The batch is not lost: its candidates are stored, and asked about.
        return Judged(_near(proposals, {}), failure=error)
    return _judged(proposals, sheet, completion)


@dataclass(frozen=True)
class _Sheet:
    """The question, in which candidates and facts go by small numbers."""

    proposals: Sequence[Proposal]
    numbers: Mapping[uuid.UUID, int]
    facts: Sequence[Neighbour]

    @classmethod
    def of(cls, proposals: Sequence[Proposal]) -> "_Sheet":
        facts = {fact.fact_id: fact for proposal in proposals for fact in proposal.asked}
        return cls(proposals, {fact_id: number for number, fact_id in enumerate(facts, start=1)}, list(facts.values()))

    @property
    def messages(self) -> list[Message]:
        return fact_judgement.build(
            candidates=[
                CandidateInput(
                    number=number,
                    content=proposal.candidate.content,
                    category=proposal.candidate.category,
                    near=[self.numbers[fact.fact_id] for fact in proposal.asked],
                )
                for number, proposal in enumerate(self.proposals, start=1)
            ],
            known_facts=[
                KnownFact(number, fact.content, fact.category, fact.key, fact.binding)
                for number, fact in enumerate(self.facts, start=1)
            ],
        )

    def verdicts(self, answer: FactJudgement) -> dict[tuple[int, uuid.UUID], Verdict]:
        """By the candidate's index and the fact's id."""
        pairs = {
            (number, self.numbers[fact.fact_id]): (proposal.candidate.index, fact.fact_id)
            for number, proposal in enumerate(self.proposals, start=1)
            for fact in proposal.asked
        }
        found = fact_judgement.verdicts_of(answer, pairs)
        return {pairs[pair]: Verdict(verdict) for pair, verdict in found.items()}


def _judged(proposals: Sequence[Proposal], sheet: _Sheet, completion: Completion[FactJudgement]) -> Judged:
    return Judged(
        _near(proposals, sheet.verdicts(completion.answer)),
        prompt_version=fact_judgement.VERSION,
        prompt_tokens=completion.prompt_tokens,
        completion_tokens=completion.completion_tokens,
    )


def _within(proposals: Sequence[Proposal], max_tokens: int) -> list[Proposal]:
    """The first proposals to ask about whose texts fit: a model that runs wild is not to make the next call huge."""
    asked: list[Proposal] = []
    spent, shown = 0, set[uuid.UUID]()
    for proposal in (proposal for proposal in proposals if proposal.asked):
        new = [fact for fact in proposal.asked if fact.fact_id not in shown]
        spent += sum(map(tokens.count, [proposal.candidate.content, *(fact.content for fact in new)]))
        if asked and spent > max_tokens:
            break
        shown |= {fact.fact_id for fact in new}
        asked.append(proposal)
    return asked


def _near(proposals: Iterable[Proposal], verdicts: Mapping[tuple[int, uuid.UUID], Verdict]) -> Verdicts:
    return {
        proposal.candidate.index: [
            Near(
                fact_id=fact.fact_id,
                content_hash=fact.content_hash,
                similarity=fact.similarity,
                verdict=verdicts.get((proposal.candidate.index, fact.fact_id), Verdict.NOT_JUDGED),
                refused=fact.refused,
            )
            for fact in proposal.neighbours
        ]
        for proposal in proposals
    }
