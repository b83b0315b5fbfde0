"""Capacity: which facts are archived when a person has too many; through whole attempts."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories import conf
from memories.models import EndUser, Fact
from tests import factories
from tests.factories import NOW
from tests.model import candidate
from tests.reconcile.reconciling import Extractor, facts, items

OLD = NOW - timedelta(days=300)


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets how many active facts a person may have."""
    hub_rules = conf.hub_rules

    def set_limit(count: int) -> None:
        monkeypatch.setattr(conf, "hub_rules", lambda: replace(hub_rules(), capacity=count))

    return set_limit


def contents(person: EndUser, status: str = "active") -> list[str]:
    return sorted(fact.content for fact in facts(person, status=status))


def test_default_is_five_hundred(settings: LazySettings) -> None:
    assert conf.hub_rules().capacity == 500


def test_the_least_is_archived(extract: Extractor, person: EndUser, limit: Any) -> None:
    limit(2)
    weak = factories.fact(person, "weak", confidence=0.6)
    factories.fact(person, "strong", confidence=1.0)
    run = extract(candidate("new"))
    assert run.outcome == {"stored": 1, "archived": 1}
    assert contents(person) == ["new", "strong"]
    weak.refresh_from_db()
    assert (weak.status, weak.version, weak.valid_to) == ("archived", 2, None)
    revision = weak.revisions.get()
    assert (revision.verb, revision.actor_kind, revision.actor_id) == ("archive", "run", str(run.pk))
    assert revision.before == {"status": "active"}


@pytest.mark.parametrize("count", [0, 3])
def test_within_the_limit_all_stay(extract: Extractor, person: EndUser, limit: Any, count: int) -> None:
    limit(count)
    factories.fact(person, "weak", confidence=0.6)
    factories.fact(person, "strong", confidence=1.0)
    assert extract(candidate("new")).outcome == {"stored": 1}


def test_a_newcomer_may_be_the_least(extract: Extractor, person: EndUser, limit: Any) -> None:
    limit(1)
    factories.fact(person, "strong", confidence=1.0)
    assert extract(candidate("new", confidence=0.7)).outcome == {"stored": 1, "archived": 1}
    assert (contents(person), contents(person, "archived")) == (["strong"], ["new"])


ORDER: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("less sure", {"confidence": 0.7}, {"confidence": 0.8}),
    ("not confirmed for long", {"last_confirmed_at": OLD}, {}),
    ("not recalled", {"last_confirmed_at": OLD}, {"last_confirmed_at": OLD, "last_recalled_at": NOW}),
    ("mentioned less", {"mentions": 1}, {"mentions": 9}),
    ("of less trust though surer", {"trust": "assistant", "confidence": 1.0}, {"confidence": 0.6}),
    ("of less trust though a correction", {"trust": "assistant", "category": "correction"}, {}),
    ("no correction", {"confidence": 1.0}, {"confidence": 0.6, "category": "correction"}),
    ("not corrected by an operator", {"confidence": 1.0}, {"confidence": 0.6, "source": "corrected_memory"}),
    ("older, on a tie", {"created_at": NOW - timedelta(days=1)}, {}),
    ("not an operator's", {"confidence": 1.0}, {"confidence": 0.6, "binding": True}),
    ("not pinned", {"confidence": 1.0}, {"confidence": 0.6, "pinned": True}),
    ("not locked", {"confidence": 1.0}, {"confidence": 0.6, "locked": True}),
]


@pytest.mark.parametrize("place", range(len(ORDER)), ids=[case[0] for case in ORDER])
def test_order(extract: Extractor, person: EndUser, limit: Any, place: int) -> None:
    limit(2)
    _, goes, stays = ORDER[place]
    # Whichever is stored first.
    for name, over in sorted({"goes": goes, "stays": stays}.items(), reverse=bool(place % 2)):
        factories.fact(person, name, **over)
    extract(candidate("new", category="correction", confidence=1.0, quote="live in Leiden"))
    assert contents(person) == ["new", "stays"]


def test_protected_facts_stay_even_when_they_are_too_many(extract: Extractor, person: EndUser, limit: Any) -> None:
    limit(1)
    for mark in ("binding", "pinned", "locked"):
        factories.fact(person, mark, **{mark: True})
    assert extract(candidate("new")).outcome == {"stored": 1, "archived": 1}
    assert contents(person) == ["binding", "locked", "pinned"]


def test_only_what_is_in_force_counts(extract: Extractor, person: EndUser, limit: Any) -> None:
    limit(2)
    factories.fact(person, "expired", confidence=0.1, expires_at=NOW)
    factories.fact(person, "superseded", confidence=0.1, status="superseded")
    factories.fact(person, "pending", confidence=0.1, status="pending")
    factories.fact(factories.end_user(person.tenant), "somebody else's", confidence=0.1)
    factories.fact(person, "strong", confidence=1.0)
    assert extract(candidate("new")).outcome == {"stored": 1}


def test_questions_about_the_archived_are_settled(extract: Extractor, person: EndUser, limit: Any) -> None:
    limit(2)
    weak = factories.fact(person, "weak", confidence=0.6)
    factories.review_item(None, known=weak, kind="conflict", reason="removal")
    assert len(items(person)) == 1
    factories.fact(person, "strong")
    extract(candidate("new"))
    assert items(person) == []


def test_without_a_new_fact_nothing_is_counted(extract: Extractor, person: EndUser, limit: Any) -> None:
    limit(1)
    factories.fact(person, "weak")
    factories.fact(person, "strong")
    assert extract(candidate("weak"), candidate("suggested", evidence=[2])).outcome == {"reinforced": 1, "suggested": 1}
    assert len(Fact.objects.filter(status="active")) == 2


def test_many_over_the_limit_cost_three_queries_and_writes(extract: Extractor, person: EndUser, limit: Any) -> None:
    def queries(known: int, name: str) -> int:
        for number in range(known):
            factories.fact(person, f"{name} {number}", confidence=0.1)
        with CaptureQueriesContext(connection) as captured:
            extract(candidate(f"new {name}", confidence=1.0, quote="live in Leiden"))
        return len(captured)

    limit(10)
    queries(2, "the first")
    below = queries(2, "a")
    assert queries(3, "b") == below
    over = queries(4, "c")
    # Reading, locking and settling, and per archived fact one update and one revision; who has less is only counted.
    assert (over - below, len(only_archived(person))) == (3 + 5 * 2, 5)


def only_archived(person: EndUser) -> list[Fact]:
    return facts(person, status="archived")
