"""The index of a person's turns: whatever was added, embedded, deleted or read by slices, it is the one made anew."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from memories.models import EmbeddingSpace, EndUser, Session, Turn, TurnVector
from memories.retrieval import turn_index, turn_rows
from memories.retrieval.prepared_query import prepare
from memories.retrieval.turn_index import IndexedSession, Sessions, Shown, TurnIndex, open_index
from memories.scoring import ranking
from tests import factories
from tests.database import PATIENCE, at_once, statements
from tests.vectors import embed_all

pytestmark = pytest.mark.django_db
SAID = (("user", "I bake bread in Leiden"), ("assistant", "With rye?"), ("user", "Rye and spelt"))
OTHER = (("user", "我在成都种西红柿"), ("assistant", "西红柿怎么样？"))


def anew(person: EndUser, space: EmbeddingSpace | None) -> TurnIndex:
    return turn_index._grown(person, None, turn_index._read_sessions(person).read or [], space)


def same(index: TurnIndex, other: TurnIndex) -> None:
    """Both hold the same turns in the same order, and score a query alike."""
    assert list(index.ids) == list(other.ids)
    assert index.known == other.known
    for name in ("session_of", "numbers", "times", "roles", "token_counts"):
        assert np.array_equal(getattr(index, name), getattr(other, name)), name
    queries = prepare("Where is rye bread baked? 西红柿").queries
    one, another = (ranking.score(each.units, queries) for each in (index, other))
    for part, expected in zip(one, another, strict=True):
        assert part == pytest.approx(expected, abs=1e-5)
    assert one.total.any()


def post(session: Session, text: str) -> None:
    factories.session(session.end_user, [("user", text)], session_id=session.external_id)


def unembed(session: Session) -> None:
    """As the correction of an author does."""
    TurnVector.objects.filter(session=session).delete()
    Session.objects.filter(pk=session.pk).update(embedded_number=0)


def test_what_grew_in_any_way_is_what_is_read_anew(person: EndUser) -> None:
    first = factories.session(person, SAID, session_id="s1")
    space = embed_all(person)
    assert len(open_index(person, space)) == 3
    steps: list[Callable[[], Any]] = [
        lambda: post(first, "And oats"),
        lambda: factories.session(person, OTHER, session_id="s2"),
        # In the middle: another session stands behind.
        lambda: post(first, "Barley comes later"),
        lambda: embed_all(person),
        lambda: post(first, "Millet"),
        lambda: embed_all(person),
        lambda: Session.objects.filter(external_id="s2").delete(),
        lambda: unembed(first),
        lambda: embed_all(person),
    ]
    for step in steps:
        step()
        index = open_index(person, space)
        same(index, anew(person, space))
        assert len(index.parts) <= 2


def test_what_came_later_is_joined_when_it_is_much(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_index, "TAIL", 2)
    first = factories.session(person, SAID, session_id="s1")
    space = embed_all(person)
    parts = []
    for text in ("Oats", "Barley", "Millet"):
        open_index(person, space)
        post(first, text)
        embed_all(person)
        index = open_index(person, space)
        same(index, anew(person, space))
        parts.append(len(index.parts))
    assert parts == [2, 2, 1]


class TestShown:
    """Who has turns before them does not wait for these to be read."""

    @pytest.fixture
    def talk(self, person: EndUser) -> Session:
        return factories.session(person, SAID, session_id="s1")

    def test_a_conversation_that_goes_on_is_not_read_again(self, person: EndUser, talk: Session) -> None:
        space = embed_all(person)
        kept = open_index(person, space)
        for text in ("Oats", "Barley"):
            post(talk, text)
            embed_all(person)
            shown = Shown(talk.pk, frozenset(range(1, 6)))
            assert open_index(person, space, shown=shown) is kept
            assert len(statements(lambda: open_index(person, space, shown=shown))) == 1  # noqa: B023  (called here)
        # Whoever does not have them before them is told of them.
        assert len(open_index(person, space)) == 5

    def test_one_that_began_is_not_read(self, person: EndUser, talk: Session) -> None:
        kept = open_index(person, None)
        new = factories.session(person, [("user", "Oats")], session_id="s2")
        assert open_index(person, None, shown=Shown(new.pk, frozenset({1}))) is kept

    @pytest.mark.parametrize(
        "changed",
        [
            lambda talk: post(talk, "Beyond what is shown"),
            lambda talk: factories.session(talk.end_user, OTHER, session_id="s2"),
            lambda talk: Session.objects.filter(external_id="s0").delete(),
            lambda talk: Session.objects.filter(pk=talk.pk).update(redactions=1),
            lambda talk: Session.objects.filter(pk=talk.pk).update(deleted_number=1),
            # What stood there without vectors has some now.
            lambda talk: embed_all(talk.end_user),
        ],
    )
    def test_any_other_change_is_read(self, person: EndUser, talk: Session, changed: Callable[[Session], Any]) -> None:
        factories.session(person, OTHER, session_id="s0")
        space = embed_all(person)
        post(talk, "Oats")
        kept = open_index(person, space)
        post(talk, "Barley")
        shown = Shown(talk.pk, frozenset({5}))
        assert open_index(person, space, shown=shown) is kept
        changed(talk)
        same(open_index(person, space, shown=shown), anew(person, space))


def test_slices_cut_sessions_where_they_are_full(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("s1", "s2", "s3"):
        factories.session(person, SAID, session_id=name)
    space = embed_all(person)
    whole = anew(person, space)
    read: list[int] = []
    turns = turn_rows._turns

    def counted(*given: Any) -> Any:
        rows = turns(*given)
        read.append(len(rows))
        return rows

    monkeypatch.setattr(turn_rows, "_turns", counted)
    monkeypatch.setattr(turn_rows, "SLICE", 4)
    same(anew(person, space), whole)
    assert read == [4, 4, 1]


def test_what_is_not_searchable_has_no_row(person: EndUser) -> None:
    session = factories.session(person, SAID)
    space = embed_all(person)
    Turn.objects.filter(session=session, number=2).update(terms=None)
    assert TurnVector.objects.filter(session=session, number=2).exists()
    assert anew(person, space).numbers.tolist() == [1, 3]


@pytest.mark.django_db(transaction=True)
def test_one_thread_reads_for_all_and_none_gets_less_than_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    person = factories.end_user()
    session = factories.session(person, SAID)
    reading, posted, all_asked = threading.Event(), threading.Event(), threading.Event()
    updates: list[int] = []
    asked: list[tuple[int, int]] = []
    update, talks = turn_index._update, turn_index._read_sessions

    def slow(person: EndUser, kept: Any, sessions: list[IndexedSession], space: Any, *, patience: Any) -> TurnIndex:
        updates.append(sessions[0].turn_count)
        reading.set()
        assert all_asked.wait(PATIENCE)
        return update(person, kept, sessions, space, patience=patience)

    def counted(*given: Any) -> Sessions:
        found = talks(*given)
        asked.append(found.digest)
        if len(asked) == 3:
            all_asked.set()
        return found

    def search(lane: int) -> int:
        if lane:
            assert (reading if lane == 1 else posted).wait(PATIENCE)
        if lane == 1:
            post(session, "Said while the first reads")
            posted.set()
        return len(open_index(person, None))

    monkeypatch.setattr(turn_index, "_update", slow)
    monkeypatch.setattr(turn_index, "_read_sessions", counted)
    assert at_once(3, search) == [3, 4, 4]
    # Of the two that waited one reads what was said meanwhile, and the other finds it.
    assert updates == [3, 4]


def test_of_nobody_s_turns(person: EndUser) -> None:
    factories.session(person, SAID)
    space = embed_all(person)
    someone = factories.end_user(person.tenant)
    assert len(open_index(someone, space)) == 0
    assert ranking.score(open_index(someone, space).units, prepare("rye").queries).total.shape == (0,)
    factories.session(someone, SAID)
    embed_all(someone)
    same(open_index(someone, space), anew(someone, space))


def test_sessions_are_not_read_again_while_nothing_changes(person: EndUser) -> None:
    session = factories.session(person, SAID)
    first = turn_index._read_sessions(person)
    assert [one.id for one in first.read or []] == [session.pk]
    again = turn_index._read_sessions(person, first)
    assert (again, again.read) == (first, None)
    changes: list[dict[str, Any]] = [
        {"turn_count": 4},
        {"embedded_number": 1},
        {"deleted_number": 1},
        {"redactions": 1},
    ]
    for change in changes:
        Session.objects.filter(pk=session.pk).update(**change)
        former, first = first, turn_index._read_sessions(person, first)
        assert first != former
        assert first.read
    session.delete()
    gone = turn_index._read_sessions(person, first)
    assert (gone.digest, gone.read) == ((0, 0), [])
    assert turn_index._read_sessions(person, gone).read is None


def test_of_a_backlog_only_what_got_its_vector_is_read_again(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> None:
    session = factories.session(person, [*SAID, *SAID], session_id="s1")
    space = embed_all(person)
    read: list[list[int]] = []
    turns = turn_rows._turns

    def counted(*given: Any) -> Any:
        rows = turns(*given)
        read.append(rows.numbers.tolist())
        return rows

    def embedded_to(number: int) -> TurnIndex:
        Session.objects.filter(pk=session.pk).update(embedded_number=number)
        with monkeypatch.context() as patch:
            patch.setattr(turn_rows, "_turns", counted)
            index = open_index(person, space)
        same(index, anew(person, space))
        return index

    for number in (1, 3, 4):
        embedded_to(number)
    post(session, "Oats")
    embedded_to(4)
    embedded_to(6)
    assert read == [[1, 2, 3, 4, 5, 6], [2, 3], [4], [7], [5, 6]]
