"""Reconciliation: what an operator said or refused stays (rules.md, 5.5); through whole attempts."""

from collections.abc import Callable
from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.facts.adding import FactDraft, add_fact
from memories.curation.facts.editing import correct_fact
from memories.curation.facts.forgetting import delete_fact, forget_fact
from memories.curation.review.suggestions import approve_fact, reject_fact
from memories.models import EndUser, Fact, FactRefusal
from tests import factories
from tests.factories import COMMAND, NOW
from tests.model import candidate
from tests.reconcile.reconciling import CITY, Extractor, facts, items, only, relations, state

SAME_TEXT = candidate("lives in leiden", confidence=1.0)
SAME_VALUE = candidate("Leiden is home", confidence=1.0, **CITY, value="Leiden")
OTHER_VALUE = candidate("Lives in Utrecht", confidence=1.0, **CITY, value="Utrecht")
NO_VALUE = candidate("Lives elsewhere", confidence=1.0, **CITY)


# What protects a fact, and who says something else.
@pytest.mark.parametrize(
    ("mark", "evidence", "newcomer"),
    [
        ({"binding": True}, [1], SAME_TEXT),
        ({"pinned": True}, [2], SAME_VALUE),
        ({"locked": True}, [1], SAME_VALUE),
    ],
    ids=["binding", "pinned", "locked"],
)
def test_what_repeats_an_operators_word_is_only_counted(
    extract: Extractor, person: EndUser, mark: dict[str, bool], evidence: list[int], newcomer: dict[str, Any]
) -> None:
    known = factories.fact(person, "Lives in Leiden", **CITY, value="Leiden", **mark)
    before = state(known)
    run = extract(newcomer | {"evidence": evidence}, candidate("Drinks tea"))
    assert run.outcome == {"operator_word": 1, "stored": 1}
    assert state(known) == before
    assert (known.revisions.count(), known.evidence.count()) == (0, 0)
    assert {fact.content for fact in facts(person)} == {"Lives in Leiden", "Drinks tea"}
    assert items(person) == []


@pytest.mark.parametrize(
    ("mark", "evidence", "agent_id", "newcomer"),
    [
        ({"binding": True}, [1], "", OTHER_VALUE),
        ({"pinned": True}, [2], "support", NO_VALUE),
        ({"locked": True}, [1], "", OTHER_VALUE),
    ],
    ids=["binding", "pinned", "locked"],
)
def test_what_contradicts_an_operators_word_is_asked_about(
    extract: Extractor,
    person: EndUser,
    mark: dict[str, bool],
    evidence: list[int],
    agent_id: str,
    newcomer: dict[str, Any],
) -> None:
    known = factories.fact(person, "Lives in Leiden", **CITY, value="Leiden", agent_id=agent_id, **mark)
    before = state(known)
    run = extract(newcomer | {"evidence": evidence}, candidate("Drinks tea"))
    assert run.outcome == {"conflicts": 1, "stored": 1}
    assert state(known) == before
    assert (known.revisions.count(), known.evidence.count()) == (0, 0)
    waiting = only(person, status="pending")
    assert waiting.content == newcomer["content"]
    assert items(person) == [("conflict", "operators_word", waiting, known)]
    assert relations(waiting) == [("contradicts", known)]


def test_a_correction_outlasts_many_contradictions(extract: Extractor, person: EndUser) -> None:
    extract(candidate("Lives in Leiden", **CITY, value="Leiden"))
    corrected = only(person)
    correct(corrected)
    before = state(corrected)
    for number in range(4):
        city = f"City {number % 2}"
        newcomer = candidate(f"Lives in {city}", **CITY, value=city, confidence=1.0, evidence=[1 + number % 3])
        assert sum(extract(newcomer).outcome.values()) == 1
    assert state(corrected) == before
    assert only(person, status="active") == corrected
    asked = [(reason, fact and fact.content, known) for _, reason, fact, known in items(person)]
    assert sorted(asked, key=str) == [("operators_word", f"Lives in City {n}", corrected) for n in range(2)]


def test_somebodys_unprotected_word_is_changed(extract: Extractor, person: EndUser) -> None:
    """The control: without the mark the same newcomer wins."""
    factories.fact(person, "Lives in Leiden", **CITY, value="Leiden")
    newcomer = candidate("Lives in Utrecht", confidence=1.0, **CITY, value="Utrecht", quote="Utrecht or Delft")
    assert extract(newcomer).outcome == {"stored": 1, "superseded": 1}


@pytest.mark.parametrize(
    ("evidence", "outcome", "refusals"),
    [([1], {"conflicts": 1}, {}), ([2], {}, {"dropped_after_refusal": 1})],
)
def test_what_an_operator_set_right_does_not_come_back(
    extract: Extractor,
    person: EndUser,
    evidence: list[int],
    outcome: dict[str, int],
    refusals: dict[str, int],
) -> None:
    extract(candidate("Lives in Leiden"))
    corrected = only(person)
    correct(corrected)
    run = extract(candidate("Lives in Leiden", evidence=evidence), candidate("Lives in Delft"))
    assert (run.outcome, run.refusals) == ({"operator_word": 1, **outcome}, refusals)
    served = only(person, status="active")
    assert (served.content, served.mentions) == ("Lives in Delft", 1)
    waiting = facts(person, status="pending")
    assert items(person) == [("conflict", "refused_before", fact, corrected) for fact in waiting]
    assert len(waiting) == len(outcome)


def correct(fact: Fact) -> None:
    actor = Actor.operator(factories.operator())
    correct_fact(fact_id=fact.pk, tenant=None, content="Lives in Delft", reason="", actor=actor, now=NOW)


def forget(fact: Fact) -> None:
    forget_fact(fact_id=fact.pk, tenant=None, actor=Actor.operator(factories.operator()), now=NOW)


def delete(fact: Fact) -> None:
    delete_fact(fact_id=fact.pk, tenant=None, actor=Actor.operator(factories.operator()), now=NOW)


def reject(fact: Fact) -> None:
    Fact.objects.filter(pk=fact.pk).update(status="pending")
    reject_fact(fact_id=fact.pk, actor=Actor.operator(factories.operator()), now=NOW)


TEXT_AGAIN, KEY_AGAIN = candidate("LIVES in Leiden"), candidate("Lives in Utrecht", **CITY, value="Utrecht")


@pytest.mark.parametrize(
    ("refuse", "newcomer"), [(forget, TEXT_AGAIN), (forget, KEY_AGAIN), (delete, KEY_AGAIN), (reject, TEXT_AGAIN)]
)
def test_refused_and_said_again_by_the_person(
    extract: Extractor, person: EndUser, refuse: Callable[[Fact], None], newcomer: dict[str, Any]
) -> None:
    extract(candidate("Lives in Leiden", **CITY, value="Leiden"))
    refuse(only(person))
    gone = {fact.pk: state(fact) for fact in facts(person)}
    for mentions in (1, 2):
        run = extract(newcomer, candidate("Drinks tea"))
        assert (run.outcome["conflicts"], run.refusals) == (1, {})
        waiting = only(person, status="pending")
        assert (waiting.mentions, waiting.content) == (mentions, newcomer["content"])
        assert items(person) == [("conflict", "refused_before", waiting, None)]
    assert only(person, status="active").content == "Drinks tea"
    assert {fact.pk: state(fact) for fact in facts(person) if fact.pk in gone} == gone


@pytest.mark.parametrize(
    ("refuse", "evidence", "newcomer"),
    [(forget, [2], TEXT_AGAIN), (delete, [3], KEY_AGAIN), (reject, [], KEY_AGAIN)],
)
def test_refused_and_said_again_by_others(
    extract: Extractor,
    person: EndUser,
    refuse: Callable[[Fact], None],
    newcomer: dict[str, Any],
    evidence: list[int],
) -> None:
    extract(candidate("Lives in Leiden", **CITY, value="Leiden"))
    refuse(only(person))
    run = extract(newcomer | {"evidence": evidence}, candidate("Drinks tea"))
    assert (run.outcome, run.refusals) == ({"stored": 1}, {"dropped_after_refusal": 1})
    assert (facts(person, status="pending"), items(person)) == ([], [])


def test_a_refused_text_that_an_operator_approved_since_is_a_fact_like_others(
    extract: Extractor, person: EndUser
) -> None:
    forget(factories.fact(person, "Lives in Leiden"))
    stated = add_fact(end_user=person, draft=FactDraft("Lives in Leiden", "identity"), actor=COMMAND, now=NOW).row
    assert stated.status == "pending"
    approve_fact(fact_id=stated.pk, actor=Actor.operator(factories.operator()), now=NOW)
    assert extract(candidate("Lives in Leiden")).outcome == {"reinforced": 1}


def test_a_pinned_suggestion_stays_as_it_is_though_its_text_was_refused(extract: Extractor, person: EndUser) -> None:
    forget(factories.fact(person, "Lives in Leiden"))
    pinned = factories.fact(person, "Lives in Leiden", status="pending", pinned=True)
    before = state(pinned)
    assert extract(candidate("Lives in Leiden")).outcome == {"operator_word": 1}
    assert state(pinned) == before


def test_a_refusal_holds_for_one_person_only(extract: Extractor, person: EndUser) -> None:
    forgotten = factories.fact(factories.end_user(person.tenant), "Lives in Leiden")
    forget_fact(fact_id=forgotten.pk, tenant=None, actor=COMMAND, now=NOW)
    assert FactRefusal.objects.exists()
    assert extract(candidate("Lives in Leiden")).outcome == {"stored": 1}
