"""What an answer says of how new facts stand to each other and to facts that the model was shown (rules.md, 5.9)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from memories.llm.prompts.memory_update import RelatedFact
from memories.models import RelationType
from memories.reconcile.batches import ShownFact, TurnBatch
from memories.reconcile.changes import FactChanges
from memories.reconcile.gate import Accepted, Refused


@dataclass(frozen=True)
class Relation:
    """From the candidate with this index to a fact as it was shown, or to the candidate with the index `new`."""

    index: int
    type: RelationType
    shown: ShownFact | None = None
    new: int | None = None


def judge(candidates: Iterable[Accepted], batch: TurnBatch) -> tuple[list[Relation], Counter[str]]:
    """The relations that name what the model was shown or said, and how many were refused by reason."""
    candidates = list(candidates)
    new = {candidate.index for candidate in candidates}
    judged = [_judge(raw, one.index, new, batch) for one in candidates for raw in one.relations]
    relations = [item for item in judged if isinstance(item, Relation)]
    return relations, Counter(item.reason for item in judged if isinstance(item, Refused))


def apply(changes: FactChanges, relations: Iterable[Relation]) -> None:
    """After all else was decided. Only facts that this run made are related to others, and only to active ones.

    A fact that merely was said again keeps what it had, and one that waits for review changes nothing.
    """
    for relation in relations:
        fact = changes.placed.get(relation.index)
        if relation.shown:
            target = changes.shown(relation.shown)
        else:
            target = None if relation.new is None else changes.placed.get(relation.new)
        if fact is None or target is None or fact.pk == target.pk or fact.extraction_id != changes.run.pk:
            changes.refuse("relation_not_stored")
        else:
            changes.recorder.writer.relate((fact, relation.type, target))
            changes.count("related")


def _judge(raw: Any, index: int, new: set[int], batch: TurnBatch) -> Relation | Refused:
    try:
        named = RelatedFact.model_validate(raw)
    except ValidationError:
        return Refused("malformed_relation")
    kind = RelationType(named.type)
    if named.fact is not None and 1 <= named.fact <= len(batch.shown_facts):
        return Relation(index, kind, shown=batch.shown_facts[named.fact - 1])
    if named.fact is None and named.new_fact in new and named.new_fact != index:
        return Relation(index, kind, new=named.new_fact)
    return Refused("unknown_relation")
