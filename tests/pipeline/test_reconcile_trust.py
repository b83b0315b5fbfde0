"""Reconciliation: whose word counts against whose (rules.md, 4.2 and 4.3); through whole attempts."""

from typing import Any

import pytest

from memories.models import EndUser
from tests import factories
from tests.pipeline.model import candidate
from tests.pipeline.reconciling import CITY, Extractor, only, state


def test_suggestion_said_again_by_an_assistant(extract: Extractor, person: EndUser) -> None:
    extract(candidate(evidence=[2]))
    assert extract(candidate(evidence=[2])).outcome == {"reinforced": 1}
    assert (only(person).status, only(person).mentions) == ("pending", 2)


def test_suggestion_that_the_person_confirms_becomes_a_fact(extract: Extractor, person: EndUser) -> None:
    extract(candidate(evidence=[2], confidence=0.7))
    old = factories.fact(person, "Lives in Paris", **CITY, value="Paris")
    run = extract(candidate(evidence=[1], quote="live in Leiden", **CITY, value="Leiden"))
    fact = only(person, content="Lives in Leiden")
    assert run.outcome == {"confirmed": 1, "superseded": 1}
    assert (fact.status, fact.trust, fact.source, fact.confidence) == ("active", "user", "explicit_user_input", 0.9)
    assert (fact.mentions, fact.raw, fact.extraction) == (2, "live in Leiden", run)
    assert (fact.key, fact.value) == ("home_city", "Leiden")
    old.refresh_from_db()
    assert (old.status, old.superseded_by) == ("superseded", fact)


def test_suggestion_that_loses_to_a_fact_stays_one(extract: Extractor, person: EndUser) -> None:
    extract(candidate(evidence=[2]))
    factories.fact(person, "Lives in Paris", **CITY, value="Paris", confidence=1.0)
    assert extract(candidate(evidence=[1], **CITY, value="Leiden")).outcome == {"conflicts": 1}
    assert only(person, content="Lives in Leiden").status == "pending"


@pytest.mark.parametrize("evidence", [[2], [3], [], [99], [1, 2]])
@pytest.mark.parametrize("had", [{}, {"category": "identity", "key": "home_city", "value": "Leiden"}])
def test_lower_trust_leaves_a_fact_as_it_is(
    extract: Extractor, person: EndUser, evidence: list[int], had: dict[str, Any]
) -> None:
    known = factories.fact(person, **had)
    before = state(known)
    assert extract(candidate(evidence=evidence, **CITY, value="Leiden")).outcome == {"outranked": 1}
    assert state(known) == before
    assert not known.evidence.exists()


def test_assistant_does_not_reinforce_its_own_word_once_it_is_approved(extract: Extractor, person: EndUser) -> None:
    before = state(factories.fact(person, trust="assistant"))
    assert extract(candidate(evidence=[2])).outcome == {"outranked": 1}
    assert state(only(person)) == before


def test_lower_trust_supersedes_nothing(extract: Extractor, person: EndUser) -> None:
    known = factories.fact(person, "Lives in Paris", **CITY, value="Paris", confidence=0.7)
    before = state(known)
    assert extract(candidate(evidence=[2], confidence=1.0, **CITY, value="Leiden")).outcome == {"suggested": 1}
    assert state(known) == before


def test_a_tool_does_not_add_to_what_an_assistant_said(extract: Extractor, person: EndUser) -> None:
    extract(candidate(evidence=[2]))
    assert extract(candidate(evidence=[3])).outcome == {"outranked": 1}
    assert extract(candidate(evidence=[2])).outcome == {"reinforced": 1}
    assert only(person).trust == "assistant"


def test_persons_word_does_not_supersede_an_operators(extract: Extractor, person: EndUser) -> None:
    before = state(factories.fact(person, "Lives in Paris", **CITY, value="Paris", trust="operator"))
    assert extract(candidate(confidence=1.0, **CITY, value="Leiden")).outcome == {"outranked": 1}
    assert state(only(person)) == before
