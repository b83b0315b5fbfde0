"""What an answer says of known facts: that they were said again, or are no longer true (rules.md, 5.4)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from memories.llm.prompts.memory_update import MemoryUpdate, ReinforcedFact, RemovedFact
from memories.models import Fact, ReviewItem, Trust
from memories.pipeline import gate
from memories.pipeline.batches import Batch, ShownFact
from memories.pipeline.cleaning import clean
from memories.pipeline.desk import Desk
from memories.pipeline.gate import Refused
from memories.pipeline.redaction import redact_text

Reason = ReviewItem.Reason
LONGEST_REASON = 500


@dataclass(frozen=True)
class Reference:
    """A known fact that the answer names, as it was shown; `turns` are those cited, `replaced_by` an index."""

    shown: ShownFact
    removes: bool
    reason: str
    trust: Trust
    turns: list[int]
    replaced_by: int | None


def judge(answer: MemoryUpdate, batch: Batch) -> tuple[list[Reference], Counter[str]]:
    """The references that may count, and the counts of the refused by reason."""
    judged = [_judge(raw, ReinforcedFact, batch) for raw in answer.reinforced]
    judged += [_judge(raw, RemovedFact, batch) for raw in answer.removed]
    references = [item for item in judged if isinstance(item, Reference)]
    return references, Counter(item.reason for item in judged if isinstance(item, Refused))


def apply(desk: Desk, references: Iterable[Reference]) -> None:
    """After the candidates were placed; what has changed since the model saw it is left alone."""
    for reference in references:
        fact = desk.known.fact(reference.shown.fact_id, reference.shown.content_hash)
        if fact is None and reference.removes and reference.shown.fact_id in desk.over:
            # The newcomer has taken its place already.
            desk.count("repeated")
        elif fact is None:
            desk.refuse("fact_changed")
        elif reference.removes:
            _remove(desk, fact, reference)
        else:
            _reinforce(desk, fact, reference)


def _judge(raw: Any, kind: type[ReinforcedFact] | type[RemovedFact], batch: Batch) -> Reference | Refused:
    """It must name one of the shown facts (1, 2, …), a reason, and turns of the batch: to reinforce, the person's."""
    try:
        named = kind.model_validate(raw)
    except ValidationError:
        return Refused("malformed")
    if not 1 <= named.fact <= len(batch.shown_facts):
        return Refused("unknown_fact")
    if not clean(named.reason):
        return Refused("no_reason")
    trust = gate.trust_of(named.evidence, batch.evidence)
    is_cited = bool(named.evidence) and batch.turn_ids.keys() >= set(named.evidence)
    if trust != Trust.USER and not (is_cited and isinstance(named, RemovedFact)):
        return Refused("weak_evidence")
    return Reference(
        shown=batch.shown_facts[named.fact - 1],
        removes=isinstance(named, RemovedFact),
        reason=redact_text(clean(named.reason))[0][:LONGEST_REASON],
        trust=trust,
        turns=batch.evidence.cited(named.evidence),
        replaced_by=named.replaced_by if isinstance(named, RemovedFact) else None,
    )


def _reinforce(desk: Desk, fact: Fact, reference: Reference) -> None:
    if fact.protected:
        desk.count("operator_word")
    elif gate.rank(reference.trust) < gate.rank(fact.trust):
        desk.count("outranked")
    elif fact.pk in desk.touched:
        desk.writer.cite_turns(fact, reference.turns)
        desk.count("repeated")
    else:
        desk.writer.confirm(fact, reference.turns)
        desk.touched.add(fact.pk)
        desk.count("named_reinforced")


def _remove(desk: Desk, fact: Fact, reference: Reference) -> None:
    """A person's word closes it; less than that, or an operator's word on the other side, is asked about."""
    place = reference.replaced_by
    successor = None if place is None else desk.placed.get(place)
    is_enough = reference.trust == Trust.USER and gate.rank(reference.trust) >= gate.rank(fact.trust)
    if place is not None and successor in {None, fact}:
        desk.refuse("replacement_not_stored")
    elif fact.protected or not is_enough:
        desk.ask(Reason.OPERATORS_WORD if fact.protected else Reason.REMOVAL, known=fact)
        desk.count("removal_conflicts")
    else:
        desk.writer.remove(fact, by=successor, reason=reference.reason, turns=reference.turns)
        desk.over.add(fact.pk)
        desk.count("named_removed")
