"""Reconciliation: what is said of known facts (rules.md, 5.4); through whole attempts."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memories import conf
from memories.audit import Actor
from memories.curation.facts.editing import correct_fact, edit_fact
from memories.curation.facts.forgetting import delete_fact, forget_fact
from memories.models import EndUser, Fact
from memories.scoring import decay
from tests import factories
from tests.factories import COMMAND, NOW
from tests.model import Model, candidate
from tests.reconcile.reconciling import CITY, LATER, OVER, Extractor, items, only, state

GOOD = {"fact": 1, "reason": "said so", "evidence": [1]}


def reference(**over: Any) -> dict[str, Any]:
    return GOOD | over


@pytest.fixture
def known(person: EndUser) -> Fact:
    return factories.fact(person, "Drinks coffee", confidence=0.8)


REFUSED: list[tuple[str, Any, str]] = [
    ("a fact that was never shown", reference(fact=2), "unknown_fact"),
    ("fact zero", reference(fact=0), "unknown_fact"),
    ("a negative number", reference(fact=-1), "unknown_fact"),
    ("a huge number", reference(fact=10**9), "unknown_fact"),
    ("true", reference(fact=True), "malformed"),
    ("null", reference(fact=None), "malformed"),
    ("no reason", reference(reason=" "), "no_reason"),
    ("no evidence", reference(evidence=[]), "weak_evidence"),
    ("evidence from nowhere", reference(evidence=[99]), "weak_evidence"),
    ("evidence partly from nowhere", reference(evidence=[1, 99]), "weak_evidence"),
    ("not a number", reference(fact="1"), "malformed"),
    ("no object", "fact 1", "malformed"),
]


@pytest.mark.parametrize(("raw", "reason"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused(extract: Extractor, known: Fact, raw: Any, reason: str) -> None:
    before = state(known)
    run = extract(reinforced=[raw], removed=[raw])
    assert (run.outcome, run.refusals) == ({}, {reason: 2})
    assert state(known) == before


# 1. Reinforced


def test_reinforced(extract: Extractor, known: Fact) -> None:
    run = extract(reinforced=[reference(evidence=[1, 4])], now=LATER)
    known.refresh_from_db()
    assert (run.outcome, run.refusals) == ({"named_reinforced": 1}, {})
    assert (known.mentions, known.version, known.stated_confidence) == (2, 2, 0.8)
    assert known.confidence == pytest.approx(0.85)
    assert LATER <= known.last_confirmed_at < LATER + timedelta(minutes=1)
    rules = conf.hub_rules()
    memory = decay.DecayInput(0.5, known.last_confirmed_at, 2, "knowledge")
    assert known.forget_at == decay.forget_at(memory, rules, below=rules.forget_below)
    assert list(known.evidence.values_list("turn_number", flat=True)) == [1, 4]
    assert [(item.version, item.verb, item.actor_id) for item in known.revisions.all()] == [
        (2, "reinforce", str(run.pk))
    ]


def test_a_batch_reinforces_once(extract: Extractor, known: Fact) -> None:
    again = [reference(), reference(evidence=[4])]
    assert extract(candidate("drinks COFFEE"), reinforced=again).outcome == {"reinforced": 1, "repeated": 2}
    known.refresh_from_db()
    assert (known.mentions, known.evidence.count()) == (2, 2)


@pytest.mark.parametrize("evidence", [[2], [3], [1, 2]])
def test_others_reinforce_nothing(extract: Extractor, known: Fact, evidence: list[int]) -> None:
    before = state(known)
    assert extract(reinforced=[reference(evidence=evidence)]).refusals == {"weak_evidence": 1}
    assert state(known) == before


def test_of_an_operator_is_only_counted(extract: Extractor, person: EndUser) -> None:
    word = factories.fact(person, trust="operator")
    before = state(word)
    assert extract(reinforced=[GOOD]).outcome == {"outranked": 1}
    assert state(word) == before


# 2. Removed


def test_removed(extract: Extractor, person: EndUser, known: Fact) -> None:
    run = extract(said=OVER, removed=[reference(reason="  stopped\x07 in May ")], now=LATER)
    known.refresh_from_db()
    assert (run.outcome, run.refusals) == ({"named_removed": 1}, {})
    assert (known.status, known.superseded_by, known.content) == ("archived", None, "Drinks coffee")
    assert known.valid_to
    assert LATER <= known.valid_to < LATER + timedelta(minutes=1)
    assert list(known.evidence.values_list("turn_number", flat=True)) == [1]
    revision = known.revisions.get()
    assert (revision.version, revision.verb, revision.reason) == (2, "remove", "stopped in May")
    assert revision.actor_id == str(run.pk)
    assert items(person) == []


def test_reason_holds_no_secret_and_is_bounded(extract: Extractor, known: Fact) -> None:
    extract(said=OVER, removed=[reference(reason="my password is hunter2xyz! " + "x" * 600)])
    reason = known.revisions.get().reason
    assert "hunter2xyz" not in reason
    assert "[redacted:" in reason
    assert len(reason) == 500


def test_replaced(extract: Extractor, person: EndUser, known: Fact) -> None:
    run = extract(candidate("Drinks tea"), removed=[reference(replaced_by=0)])
    known.refresh_from_db()
    assert run.outcome == {"stored": 1, "named_removed": 1}
    assert known.superseded_by == only(person, content="Drinks tea")


def test_replaced_by_what_is_known_already(extract: Extractor, person: EndUser, known: Fact) -> None:
    tea = factories.fact(person, "Drinks tea", last_confirmed_at=NOW - timedelta(days=1))
    assert extract(candidate("Drinks tea"), removed=[reference(replaced_by=0)]).outcome == {
        "reinforced": 1, "named_removed": 1,
    }  # fmt: skip
    known.refresh_from_db()
    assert known.superseded_by == tea


NOT_STORED: list[tuple[str, dict[str, Any], int]] = [
    ("refused by the gate", candidate("Drinks tea", confidence=0.1), 0),
    ("waits for review", candidate("Drinks tea", evidence=[2]), 0),
    ("no such index", candidate("Drinks tea"), 1),
    ("a negative index", candidate("Drinks tea"), -1),
    ("the fact itself", candidate("Drinks coffee"), 0),
]


@pytest.mark.parametrize(("newcomer", "index"), [case[1:] for case in NOT_STORED], ids=[case[0] for case in NOT_STORED])
def test_without_its_replacement_nothing_is_removed(
    extract: Extractor, known: Fact, newcomer: dict[str, Any], index: int
) -> None:
    run = extract(newcomer, removed=[reference(replaced_by=index)])
    assert run.refusals["replacement_not_stored"] == 1
    known.refresh_from_db()
    assert known.status == "active"


def test_what_a_newcomer_has_replaced_by_its_key(extract: Extractor, person: EndUser) -> None:
    old = factories.fact(person, "Lives in Paris", **CITY, value="Paris")
    newcomer = candidate("Lives in Leiden", **CITY, value="Leiden", quote="live in Leiden")
    run = extract(newcomer, removed=[reference(replaced_by=0), GOOD])
    assert (run.outcome, run.refusals) == ({"stored": 1, "superseded": 1, "repeated": 2}, {})
    assert [item.verb for item in old.revisions.all()] == ["supersede"]


@pytest.mark.parametrize("evidence", [[2], [3], [1, 2]])
def test_others_removal_is_a_question(extract: Extractor, person: EndUser, known: Fact, evidence: list[int]) -> None:
    before = state(known)
    for _ in range(2):
        assert extract(removed=[reference(evidence=evidence)]).outcome == {"removal_conflicts": 1}
    assert state(known) == before
    assert items(person) == [("conflict", "removal", None, known)]


@pytest.mark.parametrize(
    ("mark", "evidence"), [({"binding": True}, [1]), ({"pinned": True}, [2]), ({"locked": True}, [1])]
)
def test_operators_word_is_not_removed(
    extract: Extractor, person: EndUser, mark: dict[str, Any], evidence: list[int]
) -> None:
    word = factories.fact(person, **mark)
    before = state(word)
    run = extract(removed=[reference(evidence=evidence)], reinforced=[GOOD])
    assert run.outcome == {"operator_word": 1, "removal_conflicts": 1}
    assert state(word) == before
    assert items(person) == [("conflict", "operators_word", None, word)]


def test_removal_settles_what_was_asked_about_the_fact(extract: Extractor, person: EndUser, known: Fact) -> None:
    extract(removed=[reference(evidence=[2])])
    assert len(items(person)) == 1
    extract(said=OVER, removed=[GOOD])
    assert items(person) == []


# 3. What has changed since the model was asked


def reworded(fact: Fact) -> None:
    edit_fact(fact_id=fact.pk, tenant=None, changes={"content": "Drinks cocoa"}, actor=COMMAND, now=NOW)


def forgotten(fact: Fact) -> None:
    forget_fact(fact_id=fact.pk, tenant=None, actor=COMMAND, now=NOW)


def corrected(fact: Fact) -> None:
    actor = Actor.operator(factories.operator())
    correct_fact(fact_id=fact.pk, tenant=None, content="Drinks cocoa", reason="", actor=actor, now=NOW)


def deleted(fact: Fact) -> None:
    delete_fact(fact_id=fact.pk, tenant=None, actor=COMMAND, now=NOW)


@pytest.mark.parametrize("change", [reworded, forgotten, corrected, deleted])
def test_changed_meanwhile(
    extract: Extractor, model: Model, person: EndUser, known: Fact, change: Callable[[Fact], None]
) -> None:
    left: list[Any] = []

    def answer() -> dict[str, Any]:
        change(known)
        left.extend(Fact.objects.filter(pk=known.pk).values())
        return {"new_facts": [], "reinforced": [GOOD], "removed": [GOOD]}

    model.answers.append(answer)
    # The answer of the extractor itself is left for the next call.
    run = extract()
    assert (run.outcome, run.refusals) == ({}, {"fact_changed": 2})
    assert list(Fact.objects.filter(pk=known.pk).values()) == left
    assert items(person) == []


def test_facts_of_the_session_s_agent_may_be_named(extract: Extractor, person: EndUser) -> None:
    """Shown are also facts that agents share."""
    shared = factories.fact(person, "Prefers metric", agent_id="kitchen", scope="share")
    said = [("user", "I don't prefer metric any more"), *OVER[1:]]
    assert extract(said=said, removed=[GOOD]).outcome == {"named_removed": 1}
    shared.refresh_from_db()
    assert shared.status == "archived"
