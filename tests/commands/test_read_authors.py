"""`manage.py read_authors`: whose words the turns hold that were stored before turns had an author."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from memories.capture import rereading
from memories.embedding.vectors import embed_some
from memories.invariants import check
from memories.models import EndUser, Fact, Turn, TurnVector
from tests import factories

pytestmark = pytest.mark.django_db
SAID = (
    ("user", "I row."),
    ("assistant", "The ferry leaves at nine."),
    ("user", "<note>\nI cannot eat figs.\n</note>"),
    ("user", "<note>\nI cannot eat figs.\n</note>\nWhat is in it?"),
    ("user", "The ferry leaves at nine."),
    ("user", "The ferry leaves at nine. I shall take the bus."),
)


def read(person: EndUser, *options: str) -> str:
    out = StringIO()
    call_command("read_authors", "--tenant", person.tenant.slug, *options, stdout=out)
    return out.getvalue()


def authors() -> list[str]:
    return list(Turn.objects.filter(role="user").order_by("number").values_list("author", flat=True))


@pytest.fixture
def person() -> EndUser:
    person = factories.end_user()
    session = factories.session(person, SAID)
    factories.evidence(factories.fact(person, "Cannot eat figs"), Turn.objects.get(number=3))
    factories.evidence(factories.fact(person, "Rows"), Turn.objects.get(number=1))
    Turn.objects.filter(session=session).update(author="")
    while embed_some().moved:
        pass
    return person


def test_a_dry_run_says_what_it_would_change(person: EndUser) -> None:
    told = read(person)
    assert "5 (1 application, 1 model, 3 person); 2 with parts of others" in told
    assert "Facts that rest on no word of the person's: 1" in told
    assert "Nothing was changed" in told
    assert authors() == [""] * 5


def test_it_writes_them_once(person: EndUser) -> None:
    read(person, "--apply")
    assert authors() == ["person", "application", "person", "model", "person"]
    own = list(Turn.objects.filter(own__isnull=False).order_by("number"))
    assert [turn.own_text for turn in own] == ["What is in it?", "I shall take the bus."]
    assert not TurnVector.objects.filter(number=4).exists()
    while embed_some().moved:
        pass
    assert TurnVector.objects.count() == 6
    # Facts of the factories have no revisions.
    assert {broken.name for broken in check()} <= {"revisions"}
    Turn.objects.filter(number=1).update(author="other")
    assert "0 (none)" in read(person, "--apply")
    assert authors()[0] == "other"


@pytest.mark.parametrize("size", [1, 2, 5])
def test_in_slices_it_finds_the_same(person: EndUser, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """What a model said in an earlier slice comes back in a later one, and a fact rests on turns of several."""
    factories.evidence(Fact.objects.get(content="Cannot eat figs"), Turn.objects.get(number=1))
    factories.evidence(factories.fact(person, "Takes the ferry"), Turn.objects.get(number=3))
    factories.evidence(Fact.objects.get(content="Takes the ferry"), Turn.objects.get(number=5))
    whole = read(person)
    assert "Facts that rest on no word of the person's: 1" in whole
    monkeypatch.setattr(rereading, "SLICE", size)
    assert read(person) == whole
    read(person, "--apply")
    assert authors() == ["person", "application", "person", "model", "person"]


def test_each_slice_is_committed_and_a_killed_run_goes_on(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rereading, "SLICE", 2)
    attribute = rereading._attribute

    def die(turn: Turn, *rest: Any) -> None:
        if turn.number == 5:
            raise KeyboardInterrupt
        attribute(turn, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(rereading, "_attribute", die)
        with pytest.raises(KeyboardInterrupt):
            read(person, "--apply")
    assert authors() == ["person", "application", "person", "", ""]
    read(person, "--apply")
    assert authors() == ["person", "application", "person", "model", "person"]


def test_a_slice_reads_few_turns(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rereading, "SLICE", 2)
    most: list[int] = []

    def note(execute: Any, statement: str, *rest: Any) -> Any:
        found = execute(statement, *rest)
        most.append(rest[-1]["cursor"].rowcount)
        return found

    with connection.execute_wrapper(note):
        read(person)
    assert max(most) == 2
