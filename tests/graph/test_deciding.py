"""What operators do to triples and entities, and the undo of each."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.graph import deciding
from memories.curation.graph.deciding import TripleCorrection
from memories.curation.graph.stating import Relation
from memories.curation.reverting import revert
from memories.exceptions import Conflict, InvalidInput, MemoryHubError, PreconditionFailed, TripleOfFact
from memories.graph import reading
from memories.models import EndUser, GraphTriple
from tests import factories
from tests.factories import NOW

DAY = timedelta(days=1)


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(factories.tenant())


@pytest.fixture
def by(db: None) -> dict[str, Any]:
    return {"actor": Actor.operator(factories.operator()), "now": NOW}


def test_each_verb_is_undone_once(person: EndUser, by: dict[str, Any]) -> None:
    triple = factories.triple(person, "Max", "works_at", "Acme", status="pending", flags=["instructions"])

    def row() -> dict[str, Any]:
        [found] = GraphTriple.objects.filter(pk=triple.pk).values()
        return {name: value for name, value in found.items() if name not in ("version", "updated_at")}

    correction = TripleCorrection(Relation("Max", "Works at", "NewCo"), NOW - DAY, None)
    verbs: tuple[Callable[[], Changes], ...] = (
        lambda: deciding.approve_triple(triple_id=triple.pk, **by),
        lambda: deciding.end_triple(triple_id=triple.pk, ended=NOW + DAY, **by),
        lambda: deciding.correct_triple(triple_id=triple.pk, correction=correction, **by),
        lambda: deciding.forget_triple(triple_id=triple.pk, **by),
    )
    for verb in verbs:
        before = row()
        changes = verb()
        assert row() != before
        revert(change_set=changes.id, **by)
        assert row() == before
        with pytest.raises(Conflict):
            revert(change_set=changes.id, **by)


def test_what_changed_since_is_not_undone(person: EndUser, by: dict[str, Any]) -> None:
    triple = factories.triple(person, "Max", "works_at", "Acme")
    ended = deciding.end_triple(triple_id=triple.pk, ended=NOW + DAY, **by)
    later = deciding.end_triple(triple_id=triple.pk, ended=NOW + 2 * DAY, **by)
    with pytest.raises(Conflict):
        revert(change_set=ended.id, **by)
    revert(change_set=later.id, **by)
    revert(change_set=ended.id, **by)
    assert GraphTriple.objects.get().valid_to is None


def test_what_is_refused_changes_nothing(person: EndUser, by: dict[str, Any]) -> None:
    triple = factories.triple(person, "Max", "works_at", "Acme")
    factories.triple(person, "Max", "works_at", "NewCo")
    of_fact = factories.triple(person, "user", "home_city", "Leiden", fact=factories.fact(person))
    before = list(GraphTriple.objects.order_by("pk").values())
    taken = TripleCorrection(Relation("Max", "works_at", "NewCo"), None, None)
    inverted = TripleCorrection(Relation("Max", "works_at", "Acme"), NOW, NOW - DAY)
    refused: tuple[tuple[type[MemoryHubError], Any], ...] = (
        (Conflict, lambda: deciding.approve_triple(triple_id=triple.pk, **by)),
        (Conflict, lambda: deciding.correct_triple(triple_id=triple.pk, correction=taken, **by)),
        (InvalidInput, lambda: deciding.correct_triple(triple_id=triple.pk, correction=inverted, **by)),
        (InvalidInput, lambda: deciding.end_triple(triple_id=triple.pk, ended=NOW - DAY, **by)),
        (PreconditionFailed, lambda: deciding.forget_triple(triple_id=triple.pk, expected_version=9, **by)),
        (TripleOfFact, lambda: deciding.forget_triple(triple_id=of_fact.pk, **by)),
    )
    for error, verb in refused:
        with pytest.raises(error):
            verb()
    assert list(GraphTriple.objects.order_by("pk").values()) == before


def test_another_name_finds_the_same(person: EndUser, by: dict[str, Any]) -> None:
    short = factories.triple(person, "Max", "works_at", "Acme")
    long = factories.triple(person, "Maximilian", "likes", "Chess")

    def about(name: str) -> set[GraphTriple]:
        return set(reading.about(person, GraphTriple.objects.all(), name, "outgoing"))

    assert about("Max") == {short}
    joined = deciding.join_entities(entity_id=long.subject_id, name="max", **by)
    assert about("Max") == about("maximilian") == {short, long}
    with pytest.raises(Conflict):
        deciding.join_entities(entity_id=short.subject_id, name="Maximilian", **by)
    revert(change_set=joined.id, **by)
    assert about("Max") == {short}
