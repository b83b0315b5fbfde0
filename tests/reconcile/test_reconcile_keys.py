"""Reconciliation: values for one key (rules.md, 5.2); through whole attempts."""

from typing import Any

import pytest

from memories.extraction import consolidation
from memories.models import EndUser, FactEvidence, ReviewItem
from tests import factories
from tests.factories import NOW
from tests.model import Model, candidate
from tests.reconcile.reconciling import CITY, LATER, Extractor, facts, items, only, relations


def test_same_value_reinforces(extract: Extractor, person: EndUser) -> None:
    known = factories.fact(person, "Lives in Leiden", **CITY, value="Leiden")
    run = extract(candidate("Leiden is where she lives", **CITY, value=" LEIDEN"))
    assert run.outcome == {"reinforced": 1}
    assert (only(person).pk, only(person).mentions, only(person).content) == (known.pk, 2, "Lives in Leiden")


def test_two_wordings_in_one_batch_are_one_mention(extract: Extractor, person: EndUser) -> None:
    first, second = (
        candidate("Lives in Leiden", **CITY, value="Leiden"),
        candidate("Leiden is home", **CITY, value="leiden"),
    )
    assert extract(first, second | {"evidence": [4]}).outcome == {"stored": 1, "repeated": 1}
    assert (only(person).mentions, FactEvidence.objects.count()) == (1, 2)


SUPERSEDES: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("higher", {"confidence": 0.8}, {"confidence": 0.9}, True),
    ("on a tie the newer", {"confidence": 0.9}, {"confidence": 0.9}, True),
    ("lower", {"confidence": 0.9}, {"confidence": 0.85}, False),
    ("reinforcement does not count", {"confidence": 1.0, "stated_confidence": 0.8}, {"confidence": 0.85}, True),
    ("0.95 always wins", {"confidence": 1.0}, {"confidence": 0.95}, True),
    ("just below", {"confidence": 1.0}, {"confidence": 0.94}, False),
]


@pytest.mark.parametrize(
    ("had", "newcomer", "wins"), [case[1:] for case in SUPERSEDES], ids=[case[0] for case in SUPERSEDES]
)
def test_other_value(
    extract: Extractor, person: EndUser, had: dict[str, Any], newcomer: dict[str, Any], wins: bool
) -> None:
    old = factories.fact(person, "Lives in Paris", **CITY, value="Paris", **had)
    run = extract(candidate("Lives in Leiden", **CITY, value="Leiden", quote="live in Leiden", **newcomer), now=LATER)
    old.refresh_from_db()
    if not wins:
        newcomer_row = only(person, status="pending")
        assert run.outcome == {"conflicts": 1}
        assert (old.status, old.version) == ("active", 1)
        assert (newcomer_row.value, newcomer_row.evidence.count()) == ("Leiden", 1)
        assert items(person) == [("conflict", "less_sure", newcomer_row, old)]
        assert relations(newcomer_row) == [("contradicts", old)]
        return
    new = only(person, status="active")
    assert run.outcome == {"stored": 1, "superseded": 1}
    assert (old.status, old.superseded_by, old.valid_to, old.content) == (
        "superseded",
        new,
        new.valid_from,
        "Lives in Paris",
    )
    assert (new.content, new.value) == ("Lives in Leiden", "Leiden")
    assert (relations(new), relations(old), items(person)) == ([("contradicts", old)], [], [])
    assert [(item.version, item.verb, item.actor_id) for item in old.revisions.all()] == [(2, "supersede", str(run.pk))]
    assert new.revisions.get().verb == "extract"


@pytest.mark.parametrize(
    ("had", "said"),
    [
        ({"category": "identity", "key": "home_city", "value": ""}, {**CITY, "value": "Leiden"}),
        ({"category": "identity", "key": "home_city", "value": "Paris"}, {**CITY, "value": None}),
        ({"category": "context", "key": "home_city", "value": "Paris"}, {**CITY, "value": "Leiden"}),
        ({"category": "identity", "key": "birth_city", "value": "Paris"}, {**CITY, "value": "Leiden"}),
        ({"category": "identity", "key": "", "value": "Paris"}, {"category": "identity", "value": "Leiden"}),
    ],
)
def test_without_a_common_key_and_two_values_both_stay(
    extract: Extractor, person: EndUser, had: dict[str, Any], said: dict[str, Any]
) -> None:
    factories.fact(person, "Paris", **had)
    assert extract(candidate("Leiden", **said)).outcome == {"stored": 1}
    assert len(facts(person, status="active")) == 2


def test_value_that_has_expired_is_no_rival(extract: Extractor, person: EndUser) -> None:
    over = factories.fact(person, "Stays in Paris", **CITY, value="Paris", confidence=1.0, expires_at=NOW)
    assert extract(candidate("Lives in Leiden", **CITY, value="Leiden")).outcome == {"stored": 1}
    over.refresh_from_db()
    assert (over.status, over.version) == ("active", 1)


def test_of_two_values_in_one_batch_the_later_said_stays(extract: Extractor, person: EndUser) -> None:
    newer = candidate("Lives in Hangzhou", **CITY, value="Hangzhou", evidence=[4])
    older = candidate("Lives in Leiden", **CITY, value="Leiden", evidence=[1])
    assert extract(newer, older).outcome == {"stored": 2, "superseded": 1}
    assert only(person, status="active").value == "Hangzhou"
    assert only(person, status="superseded").superseded_by == only(person, status="active")


DECISIVE = ["That's wrong, I live in Leiden", "Let's go with Leiden"]


@pytest.mark.parametrize("said", DECISIVE)
@pytest.mark.parametrize(
    ("role", "outcome"), [("user", {"stored": 1, "superseded": 1}), ("assistant", {"conflicts": 1})]
)
def test_a_correction_of_the_persons_own_always_wins(
    model: Model, person: EndUser, said: str, role: str, outcome: dict[str, int]
) -> None:
    old = factories.fact(person, "Lives in Paris", **CITY, value="Paris", confidence=1.0)
    model.say(
        candidate("Lives in Leiden", **CITY, value="Leiden", confidence=0.7, evidence=[1 if role == "user" else 2])
    )
    session = factories.session(person, [("user", said), ("assistant", said)], flush=True)
    run = consolidation.consolidate(session_id=session.pk, now=NOW)
    assert run
    assert run.outcome == outcome
    old.refresh_from_db()
    assert (old.status == "superseded") == (role == "user")


def test_a_loser_said_again_asks_once_and_wins_when_it_is_surer(extract: Extractor, person: EndUser) -> None:
    old = factories.fact(person, "Lives in Paris", **CITY, value="Paris", confidence=0.9)
    unsure = candidate("Lives in Leiden", **CITY, value="Leiden", confidence=0.7)
    for mentions in (1, 2):
        assert extract(unsure).outcome == {"conflicts": 1}
        newcomer = only(person, status="pending")
        assert newcomer.mentions == mentions
        assert items(person) == [("conflict", "less_sure", newcomer, old)]
    sure = unsure | {"confidence": 1.0, "quote": "live in Leiden"}
    assert extract(sure).outcome == {"confirmed": 1, "superseded": 1}
    assert only(person, status="active") == newcomer
    assert (items(person), ReviewItem.objects.get().state) == ([], "settled")
    old.refresh_from_db()
    assert (old.status, old.superseded_by) == ("superseded", newcomer)


def test_same_key_in_another_category_is_related(extract: Extractor, person: EndUser) -> None:
    context = factories.fact(person, "Paris office", category="context", key="home_city", value="Paris")
    factories.fact(person, "Likes Delft", category="preference", key="home_town")
    extract(candidate("Lives in Leiden", **CITY, value="Leiden"), candidate("Drinks tea"))
    assert relations(only(person, content="Lives in Leiden")) == [("related_to", context)]
    assert relations(only(person, content="Drinks tea")) == []
