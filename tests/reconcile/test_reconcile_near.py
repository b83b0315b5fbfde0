"""Reconciliation: what is done about judgements on what lies near a newcomer (rules.md, 5.3)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memories.audit import Actor
from memories.curation.facts.editing import edit_fact
from memories.curation.facts.forgetting import delete_fact, forget_fact
from memories.curation.facts.restoring import restore_fact
from memories.curation.review.suggestions import reject_fact
from memories.facts.candidate import Candidate, NearbyFact, Verdict
from memories.facts.writer import FactWriter
from memories.models import EndUser, Fact, FactEvidence, FactRevision, ReviewItem
from tests import factories
from tests.factories import COMMAND, NOW
from tests.model import candidate
from tests.reconcile.reconciling import CITY, LATER, facts, items, near, only, reconcile_near, relations, state

SAME, REFINES, CONTRADICTS = Verdict.SAME, Verdict.REFINES, Verdict.CONTRADICTS
UNRELATED, NOT_JUDGED = Verdict.UNRELATED, Verdict.NOT_JUDGED
TEA = candidate("Enjoys green tea", quote="drink tea")


pytestmark = pytest.mark.usefixtures("model")


@pytest.fixture
def known(person: EndUser) -> Fact:
    return factories.fact(person, "Drinks tea", confidence=0.8)


def test_unrelated_is_stored(person: EndUser, known: Fact) -> None:
    before = state(known)
    assert reconcile_near(person, TEA, near={0: [near(known, UNRELATED)]}).done == {"stored": 1}
    assert state(known) == before
    assert (items(person), relations(only(person, content="Enjoys green tea"))) == ([], [])


def test_same_reinforces(person: EndUser, known: Fact) -> None:
    assert reconcile_near(person, TEA, near={0: [near(known, SAME)]}).done == {"reinforced": 1}
    fact = only(person)
    assert (fact.content, fact.mentions, fact.version) == ("Drinks tea", 2, 2)
    assert (fact.revisions.get().verb, fact.evidence.get().quote) == ("reinforce", "drink tea")


def test_refines_rewords_the_fact(person: EndUser, known: Fact) -> None:
    outcome = reconcile_near(person, TEA, near={0: [near(known, REFINES)]}, now=LATER)
    fact = only(person)
    assert outcome.done == {"refined": 1}
    assert (fact.pk, fact.content, fact.version, fact.mentions) == (known.pk, "Enjoys green tea", 2, 2)
    assert (fact.confidence, fact.stated_confidence) == (0.9, 0.9)
    assert (fact.raw, fact.last_confirmed_at, fact.extractor) == ("drink tea", LATER, "llm:test")
    assert fact.content_hash != known.content_hash
    revision = fact.revisions.get()
    assert (revision.version, revision.verb, revision.before["content"]) == (2, "refine", "Drinks tea")
    assert fact.evidence.get().quote == "drink tea"
    assert items(person) == []


@pytest.mark.parametrize(
    ("had", "said", "left"),
    [
        ({}, CITY | {"value": "Leiden"}, ("identity", "home_city", "Leiden")),
        (CITY | {"value": "Leiden"}, {}, ("identity", "home_city", "Leiden")),
        (CITY | {"value": "Leiden"}, CITY, ("identity", "home_city", "Leiden")),
        (CITY | {"value": "Leiden"}, {"key": "home", "value": "Leiden"}, ("knowledge", "home", "Leiden")),
        (CITY | {"value": "Leiden"}, {"key": "home"}, ("knowledge", "home", "")),
    ],
)
def test_refined_key_and_value(person: EndUser, had: Any, said: Any, left: tuple[str, str, str]) -> None:
    fact = factories.fact(person, "Leiden", **had)
    newcomer = candidate("Lives in the centre of Leiden", **said)
    assert reconcile_near(person, newcomer, near={0: [near(fact, REFINES)]}).done == {"refined": 1}
    fact.refresh_from_db()
    assert (fact.category, fact.key, fact.value) == left


def test_refining_what_was_reinforced_in_the_batch_is_no_further_mention(person: EndUser, known: Fact) -> None:
    pairs = {0: [near(known, SAME)], 1: [near(known, REFINES)]}
    later = candidate("Drinks green tea only", evidence=[4])
    assert reconcile_near(person, TEA, later, near=pairs).done == {"reinforced": 1, "refined": 1}
    assert (only(person).mentions, only(person).version) == (2, 3)


def test_of_two_that_refine_the_second_meets_another_text(person: EndUser, known: Fact) -> None:
    pairs = {0: [near(known, REFINES)], 1: [near(known, REFINES)]}
    outcome = reconcile_near(person, TEA, candidate("Drinks black tea", evidence=[4]), near=pairs)
    assert outcome.done == {"refined": 1, "stored": 1}


def test_refined_text_that_is_another_fact_reinforces_that_one(person: EndUser, known: Fact) -> None:
    other = factories.fact(person, "Enjoys green tea")
    before = state(known)
    assert reconcile_near(person, TEA, near={0: [near(known, REFINES)]}).done == {"reinforced": 1}
    other.refresh_from_db()
    assert (other.mentions, state(known)) == (2, before)


def test_refined_text_that_somebody_states_meanwhile(
    person: EndUser, known: Fact, monkeypatch: pytest.MonkeyPatch
) -> None:
    refine, before = FactWriter._refine, state(known)

    def refine_late(writer: FactWriter, fact: Fact, candidate: Candidate) -> str:
        monkeypatch.setattr(FactWriter, "_refine", refine)
        factories.fact(person, "enjoys GREEN tea")
        return refine(writer, fact, candidate)

    monkeypatch.setattr(FactWriter, "_refine", refine_late)
    assert reconcile_near(person, TEA, near={0: [near(known, REFINES)]}).done == {"reinforced": 1}
    assert state(known) == before
    assert (only(person, content="enjoys GREEN tea").mentions, known.revisions.count()) == (2, 0)


@pytest.mark.parametrize(
    ("had", "said", "wins"),
    [
        # The whole table is in test_reconcile_keys.py.
        ({"confidence": 0.8}, {"confidence": 0.9}, True),
        ({"confidence": 1.0}, {"confidence": 0.9}, False),
    ],
)
def test_contradicts(person: EndUser, had: dict[str, float], said: dict[str, float], wins: bool) -> None:
    old = factories.fact(person, "Drinks no tea", **had)
    outcome = reconcile_near(person, TEA | said, near={0: [near(old, CONTRADICTS)]}, now=LATER)
    new = only(person, content="Enjoys green tea")
    old.refresh_from_db()
    assert relations(new) == [("contradicts", old)]
    if wins:
        assert outcome.done == {"stored": 1, "superseded": 1}
        assert (new.status, old.status, old.superseded_by, old.valid_to) == ("active", "superseded", new, LATER)
        assert items(person) == []
    else:
        assert outcome.done == {"conflicts": 1}
        assert (new.status, old.status, old.version) == ("pending", "active", 1)
        assert items(person) == [("conflict", "less_sure", new, old)]


def test_not_judged_asks_about_the_nearest_two(person: EndUser, known: Fact) -> None:
    others = [factories.fact(person, f"Tea {number}") for number in range(2)]
    pairs = [near(fact, NOT_JUDGED) for fact in [known, *others]]
    assert reconcile_near(person, TEA, near={0: pairs}).done == {"stored": 1}
    new = only(person, content="Enjoys green tea")
    assert new.status == "active"
    assert items(person) == [("possible_duplicate", "not_judged", new, fact) for fact in [known, others[0]]]
    assert reconcile_near(person, TEA, near={0: pairs}).done == {"reinforced": 1}
    assert len(items(person)) == 2


def test_once_one_of_the_two_is_gone_nobody_is_asked(person: EndUser, known: Fact) -> None:
    reconcile_near(person, TEA, near={0: [near(known, NOT_JUDGED)]})
    assert len(items(person)) == 1
    hot = candidate("Drinks hot tea", confidence=1.0, quote="drink tea")
    reconcile_near(person, hot, near={0: [near(known, CONTRADICTS)]})
    assert (items(person), ReviewItem.objects.get().state) == ([], "settled")


# What comes before the judgement


def test_text_and_key_come_first(person: EndUser, known: Fact) -> None:
    said = factories.fact(person, "Enjoys green tea")
    assert reconcile_near(person, TEA, near={0: [near(known, CONTRADICTS)]}).done == {"reinforced": 1}
    keyed = TEA | CITY | {"value": "Leiden", "content": "Leiden"}
    home = factories.fact(person, "Lives in Leiden", **CITY, value="leiden")
    assert reconcile_near(person, keyed, near={0: [near(known, REFINES)]}).done == {"reinforced": 1}
    for fact, mentions in ((said, 2), (home, 2), (known, 1)):
        fact.refresh_from_db()
        assert (fact.mentions, fact.status) == (mentions, "active")


def test_key_and_judgement_both_end_what_no_longer_holds(person: EndUser, known: Fact) -> None:
    keyed = TEA | {"category": "preference", "key": "drink", "value": "tea", "confidence": 1.0}
    factories.fact(person, "Drinks cocoa", category="preference", key="drink", value="cocoa")
    outcome = reconcile_near(person, keyed, near={0: [near(known, CONTRADICTS)]})
    assert outcome.done == {"stored": 1, "superseded": 2}


@pytest.mark.parametrize("order", [0, 1])
def test_same_comes_before_the_rest(person: EndUser, known: Fact, order: int) -> None:
    other = factories.fact(person, "Drinks a lot")
    pairs = [near(known, SAME), near(other, CONTRADICTS)]
    before = state(other)
    assert reconcile_near(person, TEA, near={0: pairs[::-1] if order else pairs}).done == {"reinforced": 1}
    assert state(other) == before


# Whose word


# What protects a fact: test_reconcile_word.py.
@pytest.mark.parametrize(
    ("mark", "evidence", "verdict", "outcome", "related"),
    [
        ({"binding": True}, [1], SAME, {"operator_word": 1}, False),
        ({"pinned": True}, [2], REFINES, {"conflicts": 1}, False),
        ({"locked": True}, [1], CONTRADICTS, {"conflicts": 1}, True),
    ],
)
def test_operators_word(
    person: EndUser,
    mark: dict[str, bool],
    evidence: list[int],
    verdict: Verdict,
    outcome: dict[str, int],
    related: bool,
) -> None:
    word = factories.fact(person, "Drinks tea", **mark)
    before = state(word)
    newcomer = TEA | {"evidence": evidence, "confidence": 1.0}
    assert reconcile_near(person, newcomer, near={0: [near(word, verdict)]}).done == outcome
    assert state(word) == before
    waiting = facts(person, status="pending")
    assert items(person) == [("conflict", "operators_word", fact, word) for fact in waiting]
    assert [relations(fact) for fact in waiting] == [[("contradicts", word)] if related else []] * len(waiting)
    assert len(waiting) == (verdict != SAME)


@pytest.mark.parametrize(
    ("verdict", "outcome", "why"),
    [
        (SAME, {"outranked": 1}, None),
        (CONTRADICTS, {"conflicts": 1}, "outranked"),
        (REFINES, {"suggested": 1}, "assistant_trust"),
        (NOT_JUDGED, {"suggested": 1}, "assistant_trust"),
        (UNRELATED, {"suggested": 1}, "assistant_trust"),
    ],
)
def test_less_trust(person: EndUser, known: Fact, verdict: Verdict, outcome: dict[str, int], why: str | None) -> None:
    before = state(known)
    newcomer = TEA | {"evidence": [2], "confidence": 1.0}
    assert reconcile_near(person, newcomer, near={0: [near(known, verdict)]}).done == outcome
    assert state(known) == before
    assert [reason for _, reason, _, _ in items(person)] == ([why] if why else [])


@pytest.mark.parametrize(
    ("verdict", "outcome"), [(SAME, {"outranked": 1}), (REFINES, {"conflicts": 1}), (CONTRADICTS, {"conflicts": 1})]
)
@pytest.mark.django_db
def test_a_trusted_assistant_leaves_a_persons_word_alone(verdict: Verdict, outcome: dict[str, int]) -> None:
    person = factories.end_user(factories.tenant(trust_assistant=True))
    known = factories.fact(person, "Drinks tea", confidence=0.7)
    before = state(known)
    newcomer = TEA | {"evidence": [2], "confidence": 1.0}
    assert reconcile_near(person, newcomer, near={0: [near(known, verdict)]}).done == outcome
    assert state(known) == before


def test_an_agents_own_fact_is_no_neighbour(person: EndUser) -> None:
    agents = factories.fact(person, "Drinks tea", agent_id="support")
    before = state(agents)
    assert reconcile_near(person, TEA, near={0: [near(agents, REFINES)]}).done == {"stored": 1}
    assert state(agents) == before


# What was refused


def trashed(fact: Fact) -> None:
    forget_fact(fact_id=fact.pk, tenant=None, actor=COMMAND, now=NOW)


def rejected(fact: Fact) -> None:
    Fact.objects.filter(pk=fact.pk).update(status="pending")
    reject_fact(fact_id=fact.pk, actor=Actor.operator(factories.operator()), now=NOW)


@pytest.mark.parametrize(
    ("refuse", "evidence", "verdict"),
    [(trashed, [1], NOT_JUDGED), (trashed, [2], UNRELATED), (rejected, [1], UNRELATED), (rejected, [2], NOT_JUDGED)],
)
def test_near_what_was_refused(
    person: EndUser, known: Fact, refuse: Callable[[Fact], None], evidence: list[int], verdict: Verdict
) -> None:
    refuse(known)
    before = state(known)
    newcomer = TEA | {"evidence": evidence}
    for _ in range(2):
        outcome = reconcile_near(person, newcomer, near={0: [near(known, verdict, refused=True)]})
        assert outcome.done == {"conflicts": 1}
    waiting = only(person, status="pending")
    assert items(person) == [("conflict", "near_refused", waiting, known)]
    assert (state(known), waiting.mentions) == (before, 2)


def test_said_again_where_nothing_is_compared_it_still_waits(person: EndUser, known: Fact) -> None:
    trashed(known)
    reconcile_near(person, TEA, near={0: [near(known, NOT_JUDGED, refused=True)]})
    assert reconcile_near(person, TEA, near={}).done == {"conflicts": 1}
    assert only(person, status="pending").mentions == 2


def test_near_what_was_refused_and_taken_back(person: EndUser, known: Fact) -> None:
    pair = near(known, NOT_JUDGED, refused=True)
    trashed(known)
    restore_fact(fact_id=known.pk, tenant=None, actor=COMMAND, now=NOW)
    assert reconcile_near(person, TEA, near={0: [pair]}).done == {"stored": 1}


def test_near_what_merely_faded(person: EndUser, known: Fact) -> None:
    Fact.objects.filter(pk=known.pk).update(status="trashed")
    assert reconcile_near(person, TEA, near={0: [near(known, NOT_JUDGED, refused=True)]}).done == {"stored": 1}


# What has changed since the judgement


def reworded(fact: Fact) -> None:
    edit_fact(fact_id=fact.pk, tenant=None, changes={"content": "Drinks cocoa"}, actor=COMMAND, now=NOW)


def ended(fact: Fact) -> None:
    Fact.objects.filter(pk=fact.pk).update(status="superseded")


def expired(fact: Fact) -> None:
    Fact.objects.filter(pk=fact.pk).update(expires_at=NOW - timedelta(days=1))


def deleted(fact: Fact) -> None:
    delete_fact(fact_id=fact.pk, tenant=None, actor=COMMAND, now=NOW)


@pytest.mark.parametrize(
    ("change", "verdict"), [(reworded, SAME), (ended, REFINES), (expired, CONTRADICTS), (deleted, NOT_JUDGED)]
)
def test_a_pair_that_has_changed_does_not_exist(
    person: EndUser, known: Fact, change: Callable[[Fact], None], verdict: Verdict
) -> None:
    pair = near(known, verdict)
    change(known)
    left = list(Fact.objects.filter(pk=known.pk).values())
    assert reconcile_near(person, TEA, near={0: [pair]}).done == {"stored": 1}
    assert list(Fact.objects.filter(pk=known.pk).values()) == left
    assert items(person) == []


def test_near_what_was_refused_since(person: EndUser, known: Fact) -> None:
    pair = near(known, SAME)
    trashed(known)
    assert reconcile_near(person, TEA, near={0: [pair]}).done == {"conflicts": 1}
    assert [reason for _, reason, _, _ in items(person)] == ["near_refused"]


def test_somebody_elses_fact_is_never_a_neighbour(person: EndUser) -> None:
    other = factories.fact(factories.end_user(person.tenant), "Drinks tea")
    before = state(other)
    for verdict in (SAME, REFINES, CONTRADICTS, NOT_JUDGED):
        reconcile_near(person, TEA | {"content": f"Tea {verdict}"}, near={0: [near(other, verdict)]})
    assert state(other) == before
    assert (items(person), len(facts(person, status="active"))) == ([], 4)


# Nothing is lost silently

OUTCOMES = {
    "stored", "confirmed", "reinforced", "repeated", "refined", "suggested", "operator_word", "outranked", "conflicts",
}  # fmt: skip
TEXTS = [f"Statement {number}" for number in range(5)]
CANDIDATES = st.builds(
    lambda content, value, evidence, confidence: candidate(
        content, evidence=evidence, confidence=confidence, category="identity", key="k" if value else None, value=value
    ),
    st.sampled_from(TEXTS),
    st.sampled_from([None, "a", "b"]),
    st.sampled_from([[1], [2], [3], [4], [1, 2]]),
    st.sampled_from([0.7, 0.9, 1.0]),
)
STATES = [
    {}, {"pinned": True}, {"status": "pending"}, {"trust": "assistant"}, {"trust": "operator"},
    {"key": "k", "value": "a"}, {"key": "k", "value": "b", "binding": True}, {"status": "trashed"},
]  # fmt: skip
VERDICTS = st.dictionaries(
    st.integers(0, 3), st.lists(st.tuples(st.integers(0, 3), st.sampled_from(list(Verdict))), max_size=3)
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CANDIDATES, max_size=4), st.lists(st.sampled_from(STATES), min_size=4, max_size=4), VERDICTS)
def test_every_candidate_ends_in_one_count(
    db: None, said: list[dict[str, Any]], had: list[dict[str, Any]], judged: dict[int, list[tuple[int, Verdict]]]
) -> None:
    person = factories.end_user()
    rows = [factories.fact(person, TEXTS[place], **{"category": "identity", **over}) for place, over in enumerate(had)]
    for row in rows:
        if row.status == "trashed":
            Fact.objects.filter(pk=row.pk).update(status="active")
            trashed(row)
    pairs: dict[int, list[NearbyFact]] = {
        index: [near(rows[place], verdict) for place, verdict in found] for index, found in judged.items()
    }
    outcome = reconcile_near(person, *said, near=pairs)
    counted = sum(count for name, count in outcome.done.items() if name in OUTCOMES)
    assert counted + outcome.refusals["dropped_after_refusal"] + outcome.refusals["repeated"] == len(said)
    for fact in Fact.objects.filter(end_user=person):
        fresh = fact not in rows
        assert fact.revisions.count() == fact.version - (0 if fresh else 1)
        assert not fresh or FactEvidence.objects.filter(fact=fact).exists()
        assert not fresh or fact.status != "pending" or ReviewItem.objects.waiting().filter(fact=fact).exists()
        assert not (fact.status == "superseded" and fact not in rows and fact.superseded_by is None)
    for row in rows:
        if row.protected:
            assert not FactRevision.objects.filter(fact=row).exists()
