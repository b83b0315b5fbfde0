"""What a candidate is to the existing facts near it: nearness only proposes, a model's verdict decides."""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from memories.conf import LLMConfig
from memories.exceptions import ModelError
from memories.facts.candidate import NearbyFact, Verdict
from memories.llm import client, tokens
from memories.llm.prompts import fact_judgement
from memories.llm.prompts.fact_judgement import CandidateInput, FactJudgement
from memories.llm.prompts.framing import Message
from memories.llm.prompts.memory_update import NumberedFact
from memories.reconcile.gate import Accepted

# By Accepted.index, nearest first: at most three active facts, and the nearest refused one.
Verdicts = Mapping[int, Sequence[NearbyFact]]


@dataclass(frozen=True)
class Neighbour:
    """An existing fact near a candidate as it was read, before the judgement."""

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
    """A candidate with the existing facts near it, nearest first."""

    candidate: Accepted
    neighbours: Sequence[Neighbour]

    @property
    def to_judge(self) -> list[Neighbour]:
        """Those that the model judges."""
        return [neighbour for neighbour in self.neighbours if not neighbour.refused]


@dataclass(frozen=True)
class Judgements:
    """The verdicts; if a model gave them, its prompt's version and tokens; if it failed, why."""

    near: Verdicts
    prompt_version: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    failure: ModelError | None = None


def judge(
    *,
    proposals: Sequence[Proposal],
    max_calls: int,
    max_tokens: int,
    before_call: Callable[[], None],
    config: LLMConfig | None = None,
) -> Judgements:
    """Judge all pairs by one question of at most `max_calls` HTTP calls and about `max_tokens` of their texts.

    Pairs beyond that, and all of them without a model, without a call left or when the call fails, are not_judged.
    Exceptions of `before_call` pass. Opens no transaction. `config` names the model (default: the hub's).
    """
    asked = _within(proposals, max_tokens)
    if not asked or max_calls < 1 or not client.is_configured(config):
        return Judgements(_near(proposals, {}))
    sheet = _JudgementSheet(asked)
    try:
        completion = client.complete(
            messages=sheet.messages,
            answer=fact_judgement.ANSWER,
            max_calls=max_calls,
            before_call=before_call,
            config=config,
        )
    except ModelError as error:
        # The batch is not lost: its candidates are stored, and a person is asked.
        return Judgements(
            _near(proposals, {}),
            prompt_tokens=error.prompt_tokens,
            completion_tokens=error.completion_tokens,
            failure=error,
        )
    return Judgements(
        _near(proposals, sheet.verdicts(completion.answer)),
        prompt_version=fact_judgement.VERSION,
        prompt_tokens=completion.prompt_tokens,
        completion_tokens=completion.completion_tokens,
    )


class _JudgementSheet:
    """The question, in which candidates and facts have small numbers."""

    def __init__(self, proposals: Sequence[Proposal]) -> None:
        self.proposals = proposals
        self.facts = list({fact.fact_id: fact for proposal in proposals for fact in proposal.to_judge}.values())
        self.numbers = {fact.fact_id: number for number, fact in enumerate(self.facts, start=1)}

    @property
    def messages(self) -> list[Message]:
        return fact_judgement.build(
            candidates=[
                CandidateInput(
                    number=number,
                    content=proposal.candidate.content,
                    category=proposal.candidate.category,
                    near=[self.numbers[fact.fact_id] for fact in proposal.to_judge],
                )
                for number, proposal in enumerate(self.proposals, start=1)
            ],
            existing_facts=[
                NumberedFact(number, fact.content, fact.category, fact.key, fact.binding)
                for number, fact in enumerate(self.facts, start=1)
            ],
        )

    def verdicts(self, answer: FactJudgement) -> dict[tuple[int, uuid.UUID], Verdict]:
        """By the candidate's index and the fact's id."""
        pairs = {
            (number, self.numbers[fact.fact_id]): (proposal.candidate.index, fact.fact_id)
            for number, proposal in enumerate(self.proposals, start=1)
            for fact in proposal.to_judge
        }
        found = fact_judgement.verdicts_of(answer, pairs)
        return {pairs[pair]: Verdict(verdict) for pair, verdict in found.items()}


def _within(proposals: Sequence[Proposal], max_tokens: int) -> list[Proposal]:
    """The first proposals whose texts fit: a model that runs wild must not make the next call huge."""
    asked: list[Proposal] = []
    spent, shown = 0, set[uuid.UUID]()
    for proposal in (proposal for proposal in proposals if proposal.to_judge):
        new = [fact for fact in proposal.to_judge if fact.fact_id not in shown]
        spent += sum(map(tokens.count, [proposal.candidate.content, *(fact.content for fact in new)]))
        if asked and spent > max_tokens:
            break
        shown |= {fact.fact_id for fact in new}
        asked.append(proposal)
    return asked


def _near(proposals: Iterable[Proposal], verdicts: Mapping[tuple[int, uuid.UUID], Verdict]) -> Verdicts:
    return {
        proposal.candidate.index: [
            NearbyFact(
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
