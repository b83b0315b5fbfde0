"""Reconciliation: values for one key (rules.md, 5.2); through whole attempts."""

from typing import Any

import pytest

from memories.models import EndUser, FactEvidence
from tests import factories
from tests.factories import NOW
from tests.pipeline.model import candidate
from tests.pipeline.reconciling import CITY, LATER, Extractor, facts, only


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
        assert run.outcome == {"conflicts": 1}
        assert (only(person).pk, only(person).version) == (old.pk, 1)
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
