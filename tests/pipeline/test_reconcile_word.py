"""Reconciliation: what an operator said or refused stays (rules.md, 5.5); through whole attempts."""

from typing import Any

import pytest

from memories import curation
from memories.audit import Actor
from memories.models import EndUser, FactRefusal
from tests import factories
from tests.factories import COMMAND, NOW
from tests.pipeline.model import candidate
from tests.pipeline.reconciling import CITY, Extractor, facts, only, state

PROTECTED = [{"binding": True}, {"pinned": True}, {"locked": True}]


@pytest.mark.parametrize("mark", PROTECTED)
@pytest.mark.parametrize("evidence", [[1], [2]])
@pytest.mark.parametrize(
    "newcomer",
    [
        candidate("lives in leiden", confidence=1.0),
        candidate("Leiden is home", confidence=1.0, **CITY, value="Leiden"),
        candidate("Lives in Utrecht", confidence=1.0, **CITY, value="Utrecht"),
        candidate("Lives elsewhere", confidence=1.0, **CITY),
    ],
    ids=["same text", "same value", "other value", "no value"],
)
def test_protected_fact_is_never_changed(
    extract: Extractor, person: EndUser, mark: dict[str, bool], evidence: list[int], newcomer: dict[str, Any]
) -> None:
    known = factories.fact(person, "Lives in Leiden", **CITY, value="Leiden", **mark)
    before = state(known)
    run = extract(newcomer | {"evidence": evidence}, candidate("Drinks tea"))
    assert run.outcome == {"operator_word": 1, "stored": 1}
    assert state(known) == before
    assert (known.revisions.count(), known.evidence.count()) == (0, 0)
    assert {fact.content for fact in facts(person)} == {"Lives in Leiden", "Drinks tea"}


@pytest.mark.parametrize(("evidence", "reason"), [([1], "refused_by_operator"), ([2], "dropped_after_refusal")])
def test_what_an_operator_set_right_does_not_come_back(
    extract: Extractor, person: EndUser, evidence: list[int], reason: str
) -> None:
    extract(candidate("Lives in Leiden"))
    actor = Actor.operator(factories.operator())
    curation.correct_fact(
        fact_id=only(person).pk, tenant=None, content="Lives in Delft", reason="moved", actor=actor, now=NOW
    )
    run = extract(candidate("Lives in Leiden", evidence=evidence), candidate("Lives in Delft"))
    assert (run.outcome, run.refusals) == ({"operator_word": 1}, {reason: 1})
    assert (only(person).content, only(person).mentions) == ("Lives in Delft", 1)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize(
    ("evidence", "reason"),
    [([1], "refused_by_operator"), ([2], "dropped_after_refusal"), ([3], "dropped_after_refusal")],
)
@pytest.mark.parametrize(
    "newcomer",
    [candidate("LIVES in Leiden"), candidate("Lives in Utrecht", **CITY, value="Utrecht")],
    ids=["same text", "same key"],
)
def test_forgotten_fact_does_not_come_back(
    extract: Extractor, person: EndUser, hard: bool, evidence: list[int], reason: str, newcomer: dict[str, Any]
) -> None:
    extract(candidate("Lives in Leiden", **CITY, value="Leiden"))
    forget = curation.delete_fact if hard else curation.forget_fact
    forget(fact_id=only(person).pk, tenant=None, actor=Actor.operator(factories.operator()), now=NOW)
    run = extract(newcomer | {"evidence": evidence}, candidate("Drinks tea"))
    assert (run.outcome, run.refusals) == ({"stored": 1}, {reason: 1})
    assert only(person, status="active").content == "Drinks tea"


def test_a_refusal_holds_for_one_person_only(extract: Extractor, person: EndUser) -> None:
    forgotten = factories.fact(factories.end_user(person.tenant), "Lives in Leiden")
    curation.forget_fact(fact_id=forgotten.pk, tenant=None, actor=COMMAND, now=NOW)
    assert FactRefusal.objects.exists()
    assert extract(candidate("Lives in Leiden")).outcome == {"stored": 1}
