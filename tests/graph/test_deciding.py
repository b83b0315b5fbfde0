"""What operators do to triples and entities, and the undo of each."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from memories import invariants
from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.graph import deciding
from memories.curation.graph.deciding import TripleCorrection
from memories.curation.graph.stating import TripleDraft, TripleRelation, add_triple, end_triples, supersede_triple
from memories.curation.reverting import revert
from memories.curation.rollback.roll_back import preview_rollback, roll_back
from memories.curation.rollback.selection import Selector
from memories.exceptions import Conflict, InvalidInput, MemoryHubError, PreconditionFailed, TripleOfFact
from memories.graph import reading
from memories.models import ActorKind, ChangeSet, EndUser, GraphTriple
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

    correction = TripleCorrection(TripleRelation("Max", "Works at", "NewCo"), NOW - DAY, None)
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
    taken = TripleCorrection(TripleRelation("Max", "works_at", "NewCo"), None, None)
    inverted = TripleCorrection(TripleRelation("Max", "works_at", "Acme"), NOW, NOW - DAY)
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


class TestRollBack:
    """What a key stated goes, what it ended is open again; operators' decisions stay; the undo gives all of it back."""

    @pytest.fixture
    def keys(self, person: EndUser) -> list[Actor]:
        return [Actor(kind=ActorKind.KEY, id=str(factories.api_key(person.tenant)[0].pk)) for _ in range(2)]

    @staticmethod
    def state(person: EndUser, object_: str, by: Actor, *, agent_id: str = "", **over: Any) -> GraphTriple:
        draft = TripleDraft(TripleRelation("Max", "works at", object_, agent_id), **over)
        return add_triple(end_user=person, draft=draft, actor=by, now=NOW).row

    @staticmethod
    def rolled_back(person: EndUser, **selected: Any) -> tuple[int, int]:
        """(triples, kept); the preview has said the same."""
        selector = Selector(person.tenant, **selected)
        before = preview_rollback(selector).counts
        done = roll_back(selector=selector, actor=Actor(kind=ActorKind.COMMAND), now=NOW + DAY).counts
        assert {name: done[name] for name in before} == before
        assert invariants.check() == []
        return done["triples"], done["kept"]

    @staticmethod
    def open_now(person: EndUser) -> set[str]:
        rows = reading.of_person(person).exclude(status="trashed").open()
        return set(rows.values_list("object__name", flat=True))

    def test_a_key(self, person: EndUser, keys: list[Actor], by: dict[str, Any]) -> None:
        good, bad = keys
        self.state(person, "Acme", good)
        self.state(person, "Hotel", good, valid_from=NOW - DAY)
        self.state(person, "Lies", bad)
        told = self.state(person, "True after all", bad)
        deciding.end_triple(triple_id=told.pk, ended=NOW + DAY, **by)
        new = TripleDraft(TripleRelation("Max", "works at", "Evil"))
        supersede_triple(
            end_user=person, old=TripleRelation("Max", "works at", "Acme"), draft=new, at=None, actor=bad, now=NOW
        )
        end_triples(
            end_user=person, relation=TripleRelation("Max", "works at", "Hotel"), ended=NOW, actor=good, now=NOW
        )
        assert self.open_now(person) == {"Evil", "Lies"}
        before = {row["id"]: row for row in GraphTriple.objects.values()}
        assert self.rolled_back(person, key=uuid.UUID(bad.id)) == (3, 1)
        assert self.open_now(person) == {"Acme"}
        assert self.rolled_back(person, key=uuid.UUID(bad.id)) == (0, 1)
        first = ChangeSet.objects.filter(verb="roll_back").order_by("pk")[0]
        revert(change_set=first.pk, **by)
        after = {row["id"]: row for row in GraphTriple.objects.values()}
        for row in (*before.values(), *after.values()):
            del row["version"], row["updated_at"]
        assert after == before

    def test_of_an_agent_a_session_and_a_time(self, person: EndUser, keys: list[Actor]) -> None:
        session = factories.session(person, [("user", "Max works at Acme")], session_id="s1")
        self.state(person, "Acme", keys[0], turn_id=session.turns.get().pk)
        self.state(person, "Sales Ltd", keys[0], agent_id="sales")
        self.state(factories.end_user(person.tenant), "Else", keys[0], agent_id="sales")
        assert self.rolled_back(person, since=NOW - DAY) == (0, 0)
        assert self.rolled_back(person, agent_id="sales", until=NOW) == (0, 0)
        assert self.rolled_back(person, agent_id="sales", end_user=person) == (1, 0)
        assert self.rolled_back(person, session=session.pk) == (1, 0)
        assert reading.of_person(person).filter(status="active").count() == 0

    def test_one_stays_ended_that_somebody_has_stated_again(
        self, person: EndUser, keys: list[Actor], by: dict[str, Any]
    ) -> None:
        good, bad = keys
        self.state(person, "Acme", good)
        end_triples(end_user=person, relation=TripleRelation("Max", "works at", "Acme"), ended=NOW, actor=bad, now=NOW)
        again = self.state(person, "Acme", good)
        selector = Selector(person.tenant, key=uuid.UUID(bad.id))
        done = roll_back(selector=selector, now=NOW + DAY, actor=by["actor"])
        assert (done.counts["triples"], done.counts["kept"]) == (0, 1)
        assert reading.of_person(person).open().get() == again
