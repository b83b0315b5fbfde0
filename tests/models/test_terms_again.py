"""The migration that counts the words of stored texts again: of all, and of none that changed meanwhile."""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection

from memories.models import DiaryEntry, Episode, Fact, Turn
from memories.scoring import terms
from memories.scoring.terms import VERSION
from tests import factories

pytestmark = pytest.mark.django_db
migration = import_module("memories.migrations.0035_terms_again")
EDITOR = SimpleNamespace(connection=connection)
TEXT = "Python3.11 at 7pm, שָׁלוֹם"
MODELS: tuple[Any, ...] = (Turn, Fact, Episode, DiaryEntry)
OLD = b"\x01" + terms.pack("py thon")[1:]


@pytest.fixture
def turn() -> Turn:
    """Of a person with a text of each kind."""
    session = factories.session(factories.end_user(), [("user", TEXT)])
    factories.fact(session.end_user, content=TEXT)
    episode = factories.episode(session, key_topics=["GB40", "tea"], outcomes=["won"])
    episode.set_text(TEXT)
    episode.save()
    factories.diary_entry(session.end_user, content=TEXT, topic="RTX4090")
    return session.turns.get()


def stored() -> dict[str, list[Any]]:
    return {
        model.__name__: [bytes(one) if one else one for one in found]
        for model in MODELS
        for found in [model.objects.order_by("pk").values_list("terms", flat=True)]
    }


def outdate() -> None:
    for model in MODELS:
        model.objects.exclude(terms=None).update(terms=OLD)


@pytest.mark.usefixtures("turn")
def test_every_text_has_the_terms_of_today() -> None:
    wanted = stored()
    assert all(wanted.values())
    outdate()
    assert stored() != wanted
    for _ in range(2):
        migration.count_again(None, EDITOR)
        assert stored() == wanted


@pytest.mark.usefixtures("turn")
def test_in_steps_and_from_where_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "STEP", 1)
    factories.session(factories.end_user(), [("user", TEXT), ("assistant", "Tea?"), ("user", "7pm")])
    wanted = stored()
    outdate()
    first = Turn.objects.order_by("pk")[0]
    Turn.objects.filter(pk=first.pk).update(terms=terms.pack(first.content))
    migration.count_again(None, EDITOR)
    assert stored() == wanted


def test_what_is_redacted_meanwhile_keeps_its_new_terms(turn: Turn, monkeypatch: pytest.MonkeyPatch) -> None:
    outdate()
    redacted = terms.pack("nothing")
    read = migration._read

    def late(cursor: Any, table: str, text: str, last: str) -> Any:
        found = read(cursor, table, text, last)
        if table == "memories_turn":
            Turn.objects.update(content="nothing", terms=redacted)
        return found

    monkeypatch.setattr(migration, "_read", late)
    migration.count_again(None, EDITOR)
    assert bytes(Turn.objects.get(pk=turn.pk).terms or b"") == redacted
    # The control: what nobody changed is counted.
    assert all(bytes(one)[0] == VERSION for one in Fact.objects.values_list("terms", flat=True) if one)


@pytest.mark.usefixtures("turn")
def test_the_hub_before_reads_them_after_the_way_back() -> None:
    migration.as_before(None, EDITOR)
    assert {one[0] for found in stored().values() for one in found if one} == {1}


@pytest.mark.usefixtures("turn")
def test_a_turn_that_no_search_finds_has_none() -> None:
    Turn.objects.update(terms=None)
    migration.count_again(None, EDITOR)
    assert stored()["Turn"] == [None]
