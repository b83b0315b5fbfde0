"""What an answer says of facts that the model was shown: stated again, or no longer true (rules.md, 5.4)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from memories.llm.prompts.memory_update import MemoryUpdate, ReinforcedFact, RemovedFact
from memories.models import Fact, ReviewItem, Trust
from memories.reconcile import gate
from memories.reconcile.batches import ShownFact, TurnBatch
from memories.reconcile.changes import FactChanges
from memories.reconcile.gate import Refused
from memories.text.cleaning import clean
from memories.text.secrets.redaction import redact_text

Reason = ReviewItem.Reason
LONGEST_REASON = 500


@dataclass(frozen=True)
class Reference:
    """A fact that the answer names, as it was shown; `turns` are the cited ones, `replaced_by` a candidate's index."""

    shown: ShownFact
    removes: bool
    reason: str
    trust: Trust
    turns: list[int]
    replaced_by: int | None


def judge(answer: MemoryUpdate, batch: TurnBatch) -> tuple[list[Reference], Counter[str]]:
    """The references that count, and how many were refused by reason."""
    judged = [_judge(raw, ReinforcedFact, batch) for raw in answer.reinforced]
    judged += [_judge(raw, RemovedFact, batch) for raw in answer.removed]
    references = [item for item in judged if isinstance(item, Reference)]
    return references, Counter(item.reason for item in judged if isinstance(item, Refused))


def apply(changes: FactChanges, references: Iterable[Reference]) -> None:
    """After the candidates were decided. A fact that changed since the model saw it is left alone."""
    for reference in references:
        fact = changes.existing.fact(reference.shown.fact_id, reference.shown.content_hash)
        if fact is None and reference.removes and reference.shown.fact_id in changes.over:
            # A candidate has superseded it already.
            changes.count("repeated")
        elif fact is None:
            changes.refuse("fact_changed")
        elif reference.removes:
            _remove(changes, fact, reference)
        else:
            _reinforce(changes, fact, reference)


def _judge(raw: Any, kind: type[ReinforcedFact] | type[RemovedFact], batch: TurnBatch) -> Reference | Refused:
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


def _reinforce(changes: FactChanges, fact: Fact, reference: Reference) -> None:
    if fact.protected:
        changes.count("operator_word")
    elif gate.rank(reference.trust) < gate.rank(fact.trust):
        changes.count("outranked")
    elif fact.pk in changes.touched:
        changes.writer.cite_turns(fact, reference.turns)
        changes.count("repeated")
    else:
        changes.writer.confirm(fact, reference.turns)
        changes.touched.add(fact.pk)
        changes.count("named_reinforced")


def _remove(changes: FactChanges, fact: Fact, reference: Reference) -> None:
    """The person's word closes it. With less trust, or if it is an operator's word, a person is asked."""
    place = reference.replaced_by
    successor = None if place is None else changes.placed.get(place)
    is_enough = reference.trust == Trust.USER and gate.rank(reference.trust) >= gate.rank(fact.trust)
    if place is not None and successor in {None, fact}:
        changes.refuse("replacement_not_stored")
    elif changes.writer.times_of(reference.turns)[-1] < fact.last_confirmed_at:
        changes.refuse("said_since")
    elif successor and not changes.existing.may_replace(fact):
        # The agent is told its own instead, if both say something of one key. The other agents are told what they were.
        changes.count("beside")
    elif fact.protected or not is_enough or not changes.existing.may_replace(fact):
        changes.ask(Reason.OPERATORS_WORD if fact.protected else Reason.REMOVAL, known=fact)
        changes.count("removal_conflicts")
    else:
        changes.writer.remove(fact, by=successor, reason=reference.reason, turns=reference.turns)
        changes.over.add(fact.pk)
        changes.count("named_removed")
