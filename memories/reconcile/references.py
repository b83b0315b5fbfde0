"""What an answer says of facts that the model was shown: stated again, or no longer true (rules.md, 5.4)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from memories.categories import END_BY_PEOPLE
from memories.llm.prompts.memory_update import MemoryUpdate, ReinforcedFact, RemovedFact
from memories.models import Fact, ReviewItem, Status, Trust
from memories.reconcile import gate
from memories.reconcile.batches import ShownFact, TurnBatch
from memories.reconcile.changes import FactChanges
from memories.reconcile.gate import Refused
from memories.text.cleaning import clean
from memories.text.reading import endings
from memories.text.secrets.redaction import redact_text
from memories.trust import rank

Reason = ReviewItem.Reason
LONGEST_REASON = 500


@dataclass(frozen=True)
class Reference:
    """A fact that the answer names, as it was shown; `turns` are the cited ones, `replaced_by` a candidate's index.
    `is_over`: the person says themselves that it is over or other."""

    shown: ShownFact
    removes: bool
    reason: str
    trust: Trust
    turns: list[int]
    replaced_by: int | None
    is_over: bool = False


def judge(answer: MemoryUpdate, batch: TurnBatch) -> tuple[list[Reference], Counter[str]]:
    """The references that count, and how many were refused by reason."""
    judged = [_judge(raw, ReinforcedFact, batch) for raw in answer.reinforced]
    judged += [_judge(raw, RemovedFact, batch) for raw in answer.removed]
    references = [item for item in judged if isinstance(item, Reference)]
    return references, Counter(item.reason for item in judged if isinstance(item, Refused))


def apply(changes: FactChanges, references: Iterable[Reference]) -> None:
    """After the candidates were decided. A fact that changed since the model saw it is left alone."""
    references = list(references)
    # A model that runs wild takes everything away: of several that nothing replaces a person decides each.
    ended = {one.shown.fact_id for one in references if one.removes and one.replaced_by is None}
    for reference in references:
        fact = changes.shown(reference.shown)
        if fact is None and reference.removes and changes.is_over(reference.shown):
            # A candidate has superseded it already.
            changes.count("repeated")
        elif fact is None:
            changes.refuse("fact_changed")
        elif reference.removes:
            _remove(changes, fact, reference, is_one_of_many=len(ended) > 1 and reference.replaced_by is None)
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
    shown, removes = batch.shown_facts[named.fact - 1], isinstance(named, RemovedFact)
    return Reference(
        shown=shown,
        removes=removes,
        reason=redact_text(clean(named.reason))[0][:LONGEST_REASON],
        trust=trust,
        turns=batch.evidence.cited(named.evidence),
        replaced_by=named.replaced_by if isinstance(named, RemovedFact) else None,
        is_over=removes and endings.is_over(shown.content, batch.evidence.heard, batch.evidence.embed),
    )


def _reinforce(changes: FactChanges, fact: Fact, reference: Reference) -> None:
    if fact.protected:
        changes.count("operator_word")
    elif rank(reference.trust) < rank(fact.trust):
        changes.count("outranked")
    elif fact.pk in changes.touched:
        changes.cite(fact, reference.turns)
        changes.count("repeated")
    else:
        changes.confirm(fact, reference.turns)
        changes.count("named_reinforced")


def _remove(changes: FactChanges, fact: Fact, reference: Reference, *, is_one_of_many: bool) -> None:
    """The person's word closes it. With less trust, or if it is an operator's word, somebody is asked. So they are if
    the person did not say that it is over and nothing takes its place, for a constraint, and for several at once."""
    place = reference.replaced_by
    successor = None if place is None else changes.placed.get(place)
    is_enough = reference.trust == Trust.USER and rank(reference.trust) >= rank(fact.trust)
    if place is not None and successor in {None, fact}:
        changes.refuse("replacement_not_stored")
    elif _is_restated(changes, fact, successor):
        changes.refuse("restated")
    elif changes.statements.times_of(reference.turns)[-1] < fact.last_confirmed_at:
        changes.refuse("said_since")
    elif successor and not changes.may_end(fact):
        # The agent is told its own instead, if both say something of one key. The other agents are told what they were.
        changes.count("beside")
    elif fact.protected or not (is_enough and changes.may_end(fact)):
        changes.ask(Reason.OPERATORS_WORD if fact.protected else Reason.REMOVAL, fact)
        changes.count("removal_conflicts")
    elif is_one_of_many or fact.category in END_BY_PEOPLE or not _is_over(fact, reference, successor):
        changes.ask(Reason.REMOVAL, fact)
        changes.count("removal_conflicts")
    else:
        changes.end(fact, by=successor, reason=reference.reason, turns=reference.turns)
        changes.count("named_removed")


def _is_restated(changes: FactChanges, fact: Fact, successor: Fact | None) -> bool:
    """Whether the same answer states or reinforces it, in its words or in others."""
    if fact.pk in changes.touched:
        return True
    stated = (one for one in changes.placed.values() if one is not successor and one.status == Status.ACTIVE)
    return any(endings.is_restated(fact.content, one.content) for one in stated)


def _is_over(fact: Fact, reference: Reference, successor: Fact | None) -> bool:
    """Whether the person says so, or something about the same takes its place."""
    if reference.is_over or successor is None:
        return reference.is_over
    is_same_kind = successor.category == fact.category
    return is_same_kind or endings.replaces(fact.content, successor.content)
