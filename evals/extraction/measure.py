"""One dialogue through what the hub does with a batch: redaction, feed, prompt, model, gate. No database."""

import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from evals.extraction.corpus import SENT_AT, TODAY, ZONES, Dialogue
from evals.extraction.matching import Found
from evals.extraction.scores import Judged, judge
from memories import conf
from memories.embedding import similarity
from memories.exceptions import ModelError
from memories.llm import client
from memories.llm.calls import Completion
from memories.llm.prompts import memory_update
from memories.llm.prompts.framing import Message
from memories.llm.prompts.memory_update import MemoryUpdate, TurnInput
from memories.llm.prompts.memory_update_text import is_example
from memories.models import Role, Status, Trust, Turn
from memories.reconcile import gate, references
from memories.reconcile.batches import ShownFact, TurnBatch
from memories.reconcile.gate import Accepted, Admitted, BatchEvidence
from memories.text import signals
from memories.text.secrets.redaction import redact_text
from memories.text.transcript import fed

# As the hub: over the last six turns that are fed.
_TURNS_WITH_SIGNALS = 6


@dataclass
class Measured:
    """A dialogue with its counts; `failure` is the code of a call that gave no answer, which finds nothing."""

    dialogue: Dialogue
    judged: Judged
    seconds: float
    refusals: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    failure: str = ""
    # Those of served facts.
    triples: int = 0


def measure(dialogues: Iterable[Dialogue], config: conf.LLMConfig, *, with_triples: bool = False) -> Iterator[Measured]:
    """Ask about each, as many at once as the hub would; in order."""
    with ThreadPoolExecutor(max_workers=max(1, config.concurrency)) as pool:
        yield from pool.map(lambda dialogue: _measure(dialogue, config, with_triples), dialogues)


def evidence_of(dialogue: Dialogue) -> BatchEvidence:
    """The turns as they would be stored and fed."""
    turns = [
        Turn(
            number=number, role=role, content=redact_text(words)[0], metadata={}, timestamp=SENT_AT, created_at=SENT_AT
        )
        for number, (role, words) in enumerate(dialogue.turns, start=1)
    ]
    tools = frozenset(turn.number for turn in turns if turn.role == Role.TOOL)
    return BatchEvidence(
        fed={turn.number: turn for turn in fed(turns)},
        tool_numbers=tools,
        tools=tuple(turn.content for turn in turns if turn.role == Role.TOOL),
        existing=tuple(fact.content for fact in dialogue.existing),
        embed=similarity.vectors,
    )


def messages_of(dialogue: Dialogue, evidence: BatchEvidence, *, with_triples: bool = False) -> list[Message]:
    """The call for it."""
    turns = list(evidence.fed.values())
    texts = [turn.text for turn in turns[-_TURNS_WITH_SIGNALS:] if turn.is_user]
    return memory_update.build(
        turns=[TurnInput(turn.number, turn.turn.role, turn.text, turn.at) for turn in turns],
        existing_facts=dialogue.existing,
        sections={},
        today=TODAY,
        time_zone=ZONES[dialogue.language],
        signals=signals.find(texts),
        guidance="",
        with_triples=with_triples,
    )


def _measure(dialogue: Dialogue, config: conf.LLMConfig, with_triples: bool) -> Measured:
    evidence, begun = evidence_of(dialogue), time.monotonic()
    try:
        completion: Completion[MemoryUpdate] = client.complete(
            messages=messages_of(dialogue, evidence, with_triples=with_triples),
            answer=memory_update.ANSWER_WITH_TRIPLES if with_triples else memory_update.ANSWER,
            max_calls=conf.hub_rules().max_model_calls,
            config=config,
        )
    except ModelError as error:
        return Measured(dialogue, judge(dialogue, []), time.monotonic() - begun, failure=error.code)
    judged, admitted = _judged(dialogue, completion.answer, evidence, with_triples=with_triples)
    return Measured(
        dialogue,
        judged,
        time.monotonic() - begun,
        +admitted.refusals,
        completion.prompt_tokens,
        completion.completion_tokens,
        completion.calls,
        triples=sum(len(one.triples) for one in admitted.candidates if one.status == Status.ACTIVE),
    )


def _judged(
    dialogue: Dialogue, answer: MemoryUpdate, evidence: BatchEvidence, *, with_triples: bool
) -> tuple[Judged, Admitted]:
    rules = replace(conf.hub_rules(), triples=with_triples)
    admitted = gate.admit(answer.new_facts, evidence=evidence, rules=rules)
    served = [one for one in admitted.candidates if one.status == Status.ACTIVE]
    judged = judge(dialogue, [_found(one) for one in served])
    judged.score.held = len(admitted.candidates) - len(served)
    judged.score.wrongly_removed = _wrongly_removed(dialogue, answer, evidence)
    judged.score.echoed = sum(map(_is_echo, answer.new_facts))
    return judged, admitted


def _found(candidate: Accepted) -> Found:
    days = candidate.expires_in.total_seconds() / 86_400 if candidate.expires_in else None
    return Found(candidate.content, str(candidate.category), candidate.key, days)


def _wrongly_removed(dialogue: Dialogue, answer: MemoryUpdate, evidence: BatchEvidence) -> int:
    """Facts that the person's own turns would close though they hold."""
    shown = tuple(ShownFact(uuid.UUID(int=number), b"") for number in range(1, len(dialogue.existing) + 1))
    tools = dict.fromkeys(evidence.tool_numbers, uuid.UUID(int=0))
    turns = tuple(evidence.fed.values())
    batch = TurnBatch(first_number=1, last_number=len(dialogue.turns), turns=turns, tool_turns=tools, shown_facts=shown)
    named, _ = references.judge(answer, batch)
    removed = [one.shown.fact_id.int for one in named if one.removes and one.trust == Trust.USER]
    return sum(number not in dialogue.outdated for number in removed)


def _is_echo(raw: Any) -> bool:
    texts = [raw.get("content"), raw.get("quote")] if isinstance(raw, dict) else []
    return any(isinstance(text, str) and is_example(text) for text in texts)
