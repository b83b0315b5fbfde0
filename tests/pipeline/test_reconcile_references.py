"""Reconciliation: what is said of known facts (rules.md, 5.4); through whole attempts."""

from memories.models import EndUser
from tests import factories
from tests.pipeline.model import candidate
from tests.pipeline.reconciling import Extractor, state


def test_reinforced_and_removed_are_counted_and_not_applied(extract: Extractor, person: EndUser) -> None:
    known = factories.fact(person, "Drinks coffee")
    before = state(known)
    good = {"fact": 1, "reason": "said again", "evidence": [1]}
    unknown, unreasoned = good | {"fact": 7}, good | {"reason": ""}
    run = extract(
        candidate("Drinks tea"),
        candidate(confidence=0.1),
        reinforced=[good, unknown, "nonsense"],
        removed=[good | {"replaced_by": 0}, good | {"replaced_by": 1}, good | {"replaced_by": None}, unreasoned],
    )
    assert state(known) == before
    assert run.outcome == {"stored": 1, "named_reinforced": 1, "named_removed": 2}
    assert run.refusals == {
        "low_confidence": 1, "unknown_fact": 1, "malformed": 1, "replacement_not_stored": 1, "no_reason": 1,
    }  # fmt: skip
