"""The files of heavy people: one for all processes of a host, whole or not there, and never of what is gone."""

import errno
import os
import signal
import stat
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.db import connections
from django.db.models import F

from memories.api.v1.context.serializers import context_answer
from memories.api.v1.search.serializers import found_answer
from memories.context.context import ContextRequest
from memories.context.context import build as build_context
from memories.db import tenancy
from memories.exceptions import HubBusy
from memories.models import EmbeddingSpace, EndUser, Session, Turn, TurnVector
from memories.models.memories.visibility import Conversations
from memories.privacy import registry
from memories.retrieval import turn_drafts, turn_files, turn_index, turn_rows, turn_search
from memories.retrieval.cache import indexes
from memories.retrieval.hits import SearchFilters
from memories.retrieval.prepared_query import prepare
from memories.retrieval.search import SearchRequest
from memories.retrieval.search import search as search_memories
from memories.retrieval.turn_index import TurnIndex, open_index, open_or_newest
from memories.scoring.dense import Rows
from memoryhub.embedded_postgres import locks
from tests import factories
from tests.database import PATIENCE, at_once
from tests.retrieval.test_turn_index import OTHER, SAID, anew, post, same, unembed
from tests.vectors import embed_all

pytestmark = pytest.mark.django_db
# Also of the person whose file is made in a process that is killed.
SPACE = EmbeddingSpace(pk=1, model="hashed", dimensions=8)


@pytest.fixture(autouse=True)
def home(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings.HOME = tmp_path
    monkeypatch.setattr(turn_files, "FILE_FROM", 3)
    monkeypatch.setattr(turn_index, "TAIL", 2)
    another_process()
    return tmp_path / turn_files.FOLDER


@pytest.fixture
def session(person: EndUser) -> Session:
    return factories.session(person, SAID, session_id="s1")


@pytest.fixture
def space(person: EndUser, session: Session) -> EmbeddingSpace:
    return embed_all(person)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many turns each statement has read."""
    counts: list[int] = []
    turns = turn_rows._turns

    def counted(*given: Any) -> Any:
        rows = turns(*given)
        counts.append(len(rows))
        return rows

    monkeypatch.setattr(turn_rows, "_turns", counted)
    return counts


def another_process() -> None:
    """Nothing is in memory any more."""
    indexes._cache._values.clear()
    indexes._cache._total = 0
    turn_files._marked.clear()


def files(home: Path) -> list[str]:
    return sorted(path.name for path in home.iterdir() if path.name != "lock")


def is_mapped(index: TurnIndex) -> bool:
    return index.path is not None and index.parts[0].rows.mapped


class TestOneForAll:
    def test_another_process_reads_no_turn(
        self, person: EndUser, space: EmbeddingSpace, home: Path, read: list[int]
    ) -> None:
        first = open_index(person, space)
        assert is_mapped(first)
        assert files(home) == [f"{person.pk}.{space.pk}.turns"]
        assert read == [3]
        another_process()
        second = open_index(person, space)
        assert is_mapped(second)
        assert read == [3]
        for index in (first, second):
            same(index, anew(person, space))
            assert turn_index._Turns(person, space).weight(index) < 3 * turn_index._BESIDE + 500

    def test_nobody_else_on_the_machine_reads_it(self, person: EndUser, space: EmbeddingSpace, home: Path) -> None:
        open_index(person, space)
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()} == {0o600}

    def test_few_turns_stay_in_memory(
        self, person: EndUser, space: EmbeddingSpace, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(turn_files, "FILE_FROM", 4)
        same(open_index(person, space), anew(person, space))
        assert not home.exists()

    def test_no_disk_is_given(self, person: EndUser, space: EmbeddingSpace, home: Path, settings: Any) -> None:
        settings.MEMORYHUB_INDEX_MEGABYTES = 0
        same(open_index(person, space), anew(person, space))
        assert not home.exists()

    def test_without_vectors(self, person: EndUser, session: Session, home: Path) -> None:
        open_index(person, None)
        another_process()
        index = open_index(person, None)
        assert is_mapped(index)
        assert list(index.ids) == list(anew(person, None).ids)
        assert files(home) == [f"{person.pk}.0.turns"]


class TestWhatComesLater:
    def test_is_kept_beside_the_file_until_it_is_much(
        self, person: EndUser, session: Session, space: EmbeddingSpace, home: Path, read: list[int]
    ) -> None:
        open_index(person, space)
        [name] = files(home)
        before = (home / name).stat().st_ino
        steps = []
        for text in ("Oats", "Barley", "Millet"):
            post(session, text)
            embed_all(person)
            index = open_index(person, space)
            same(index, anew(person, space))
            assert is_mapped(index)
            steps.append((len(index.parts), (home / name).stat().st_ino == before))
        assert steps == [(2, True), (2, True), (1, False)]
        another_process()
        read.clear()
        same(open_index(person, space), index)
        assert read == []

    def test_a_process_with_the_file_of_before_takes_the_one_that_another_made(
        self, person: EndUser, session: Session, space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        former = open_index(person, space)
        for text in ("Oats", "Barley", "Millet"):
            post(session, text)
        embed_all(person)
        another_process()
        assert len(open_index(person, space).parts) == 1
        monkeypatch.setattr(turn_index, "_filed", None)
        now = turn_index._update(person, former, turn_index._read_sessions(person).read or [], space, patience=1)
        assert (is_mapped(now), len(now.parts)) == (True, 1)
        same(now, anew(person, space))

    @pytest.mark.parametrize(
        "change",
        [
            lambda session: Session.objects.filter(pk=session.pk).update(redactions=1),
            unembed,
            lambda session: factories.session(session.end_user, OTHER) and session.delete(),
        ],
        ids=["redacted", "embedded anew", "deleted"],
    )
    def test_what_is_gone_is_in_no_file(
        self,
        change: Callable[[Session], Any],
        person: EndUser,
        session: Session,
        space: EmbeddingSpace,
        home: Path,
    ) -> None:
        factories.session(person, OTHER, session_id="s2")
        embed_all(person)
        open_index(person, space)
        [name] = files(home)
        before = (home / name).read_bytes()
        gone = Turn.objects.get(session=session, number=1)
        assert gone.pk.bytes in before
        Turn.objects.filter(pk=gone.pk).update(terms=None)
        change(session)
        same(open_index(person, space), anew(person, space))
        assert files(home) == [name]
        assert gone.pk.bytes not in (home / name).read_bytes()

    def test_another_model_has_another_file(self, person: EndUser, space: EmbeddingSpace, home: Path) -> None:
        open_index(person, space)
        other = EmbeddingSpace.objects.create(model="hashed", dimensions=8, created_at=factories.NOW)
        same_name = turn_files.path_of(person, other)
        # Even under its name: after a restore another model may have the number.
        turn_files.path_of(person, space).rename(same_name)
        index = open_index(person, other)
        assert index.parts[0].rows.vectors is not None
        assert index.parts[0].rows.vectors.raw.shape == (3, 8)
        assert files(home) == [same_name.name]


class TestDamage:
    @pytest.mark.parametrize(
        "damage",
        [
            lambda path: path.write_bytes(path.read_bytes()[:-100]),
            lambda path: path.write_bytes(path.read_bytes()[:2_000]),
            lambda path: path.write_bytes(b""),
            lambda path: path.write_bytes(b"MHTURNS0" + path.read_bytes()[8:]),
            lambda path: path.write_bytes(turn_files.MAGIC + b"[]".ljust(5_000)),
            lambda path: path.write_bytes(turn_files.MAGIC + b"{".ljust(5_000)),
        ],
    )
    def test_it_is_made_again(
        self, damage: Callable[[Path], Any], person: EndUser, space: EmbeddingSpace, home: Path, read: list[int]
    ) -> None:
        open_index(person, space)
        [name] = files(home)
        damage(home / name)
        another_process()
        read.clear()
        index = open_index(person, space)
        assert read == [3]
        assert is_mapped(index)
        same(index, anew(person, space))

    def test_of_a_restored_database_the_turns_have_other_ids(
        self, person: EndUser, session: Session, read: list[int]
    ) -> None:
        open_index(person, None)
        Turn.objects.filter(session=session, number=3).update(id=uuid.uuid4())
        another_process()
        index = open_index(person, None)
        assert read == [3, 3]
        assert list(index.ids) == list(anew(person, None).ids)

    def test_of_one_restored_to_earlier_there_are_fewer(
        self, person: EndUser, session: Session, read: list[int]
    ) -> None:
        post(session, "Oats")
        open_index(person, None)
        Turn.objects.filter(session=session, number=4).delete()
        Session.objects.filter(pk=session.pk).update(turn_count=3)
        another_process()
        assert len(open_index(person, None)) == 3
        assert read == [4, 3]

    def test_the_draft_of_a_living_process_stays(self, person: EndUser, home: Path) -> None:
        with turn_files.building(patience=None):
            draft = turn_drafts.Draft(person, SPACE)
            draft.room(10, 8)
            turn_files.sweep()
            assert len(files(home)) == 1
        draft.discard()
        assert files(home) == []


def killed_at(moment: Any, name: str, call: int, person: EndUser, space: EmbeddingSpace | None) -> None:
    """A process opens the index and is killed at that call of a function."""
    connections.close_all()
    child = os.fork()
    if not child:
        work, calls = getattr(moment, name), count(1)

        def dies(*given: Any, **named: Any) -> Any:
            if next(calls) == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return work(*given, **named)

        try:
            setattr(moment, name, dies)
            open_index(person, space)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


def swept(_session: Session, draft: Path) -> None:
    turn_files.sweep()
    assert draft.exists()


def cut(_session: Session, draft: Path) -> None:
    os.truncate(draft, draft.stat().st_size - 1)


def lost(_session: Session, draft: Path) -> None:
    """A page that was not on the disk when the machine lost power: vectors of the second slice."""
    with draft.open("r+b") as file:
        file.seek(turn_files.HEAD + 2 * 2 * 512)
        file.write(bytes(100))


def redacted(session: Session, _draft: Path) -> None:
    Session.objects.filter(pk=session.pk).update(redactions=F("redactions") + 1)


def merged(session: Session, _draft: Path) -> None:
    EndUser.objects.filter(pk=session.end_user_id).update(generation=F("generation") + 1)


def too_old(_session: Session, draft: Path) -> None:
    os.utime(draft, (0, 0))
    turn_files.sweep()
    assert not draft.exists()


def restored(session: Session, _draft: Path) -> None:
    TurnVector.objects.filter(session=session, number=2).delete()
    Turn.objects.filter(session=session, number=2).update(id=uuid.uuid4())


# How many turns each statement of the next process reads.
CHANGES: list[tuple[Callable[[Session, Path], Any], list[int]]] = [
    (swept, [2, 1]),
    (lambda session, _: post(session, "Oats"), [2, 1, 1]),
    (cut, [2, 2, 2]),
    (lost, [2, 2, 2]),
    (redacted, [2, 2, 2, 2]),
    (merged, [2, 2, 2, 2]),
    (too_old, [2, 2, 2, 2]),
    (restored, [2, 2, 2, 2]),
]


@pytest.mark.django_db(transaction=True)
class TestKilled:
    @pytest.fixture
    def space(self, person: EndUser, session: Session, monkeypatch: pytest.MonkeyPatch) -> EmbeddingSpace:
        """7 turns in two sessions: four slices."""
        monkeypatch.setattr(turn_rows, "SLICE", 2)
        factories.session(person, [*OTHER, *OTHER], session_id="s2")
        return embed_all(person)

    def test_what_was_read_is_not_read_again(
        self, person: EndUser, session: Session, space: EmbeddingSpace, home: Path, read: list[int]
    ) -> None:
        """But where something of it is gone, or is another's."""
        for change, expected in CHANGES:
            turn_files.clear()
            another_process()
            killed_at(turn_rows, "_turns", 3, person, space)
            [draft] = home.glob(f"{person.pk}.{space.pk}.turns.draft.*")
            change(session, draft)
            person.refresh_from_db()
            read.clear()
            index = open_index(person, space)
            assert read == expected
            assert (is_mapped(index), files(home)) == (True, [f"{person.pk}.{space.pk}.turns"])
            embed_all(person)
            same(open_index(person, space), anew(person, space))

    def test_while_another_has_mapped_the_former_file(
        self, person: EndUser, session: Session, space: EmbeddingSpace, home: Path, read: list[int]
    ) -> None:
        former = open_index(person, space)
        before = anew(person, space)
        for text in ("Oats", "Barley", "Millet"):
            post(session, text)
        kept = dict(indexes._cache._values)
        another_process()
        killed_at(turn_drafts.Draft, "_write", 1, person, space)
        assert len(files(home)) == 2
        same(former, before)
        indexes._cache._values.update(kept)
        same(open_index(person, space), anew(person, space))
        turn_files.sweep()
        assert files(home) == [f"{person.pk}.{space.pk}.turns"]

    @pytest.mark.parametrize("name", ["with_levels", "_write"])
    def test_a_file_with_levels_is_whole_or_is_not(
        self,
        person: EndUser,
        space: EmbeddingSpace,
        home: Path,
        read: list[int],
        monkeypatch: pytest.MonkeyPatch,
        name: str,
    ) -> None:
        """Killed while levels are made, and while they are written; what was read is not read again."""
        monkeypatch.setattr(turn_files, "LEVELS_FROM", 3)
        another_process()
        turn_files.clear()
        killed_at(Rows if name == "with_levels" else turn_drafts.Draft, name, 1, person, space)
        assert not [one for one in files(home) if one.endswith(".turns")]
        read.clear()
        index = open_index(person, space)
        assert read == []
        [vectors] = [part.rows.vectors for part in index.parts]
        assert vectors is not None
        assert vectors.levels is not None
        assert np.array_equal(vectors.levels.steps > 0, [vectors.codes > 0])
        same(index, anew(person, space))
        assert files(home) == [f"{person.pk}.{space.pk}.turns"]

    def test_each_of_two_hosts_has_the_turns_of_the_other(
        self, person: EndUser, session: Session, space: EmbeddingSpace, settings: Any, tmp_path: Path
    ) -> None:
        for at, text in enumerate(("Oats", "Barley", "Millet", "Spelt")):
            settings.HOME = tmp_path / str(at % 2)
            settings.HOME.mkdir(exist_ok=True)
            another_process()
            post(session, text)
            embed_all(person)
            index = open_index(person, space)
            assert (is_mapped(index), len(index)) == (True, 8 + at)
            same(index, anew(person, space))


def full(*_given: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


class TestAFullDisk:
    @pytest.mark.parametrize("where", ["_allocate", "_write_all"])
    def test_the_arrays_stay_in_memory(
        self,
        where: str,
        person: EndUser,
        session: Session,
        space: EmbeddingSpace,
        home: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        read: list[int],
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(turn_drafts, where, full)
            index = open_index(person, space)
            same(index, anew(person, space))
            assert (is_mapped(index), files(home)) == (False, [])
            assert "stays in the memory" in caplog.text
            assert str(person.pk) not in caplog.text
            read.clear()
            post(session, "Oats")
            embed_all(person)
            same(open_index(person, space), anew(person, space))
            # What was read is kept, and no file is tried for each turn.
            assert read == [1, 4]
        # There is room again: at the next occasion there is a file.
        for text in ("Barley", "Millet"):
            post(session, text)
        embed_all(person)
        assert is_mapped(open_index(person, space))

    def test_a_folder_that_cannot_be(
        self, person: EndUser, space: EmbeddingSpace, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home.write_bytes(b"")
        same(open_index(person, space), anew(person, space))
        turn_files.sweep()


class TestErasure:
    def test_the_registry_finds_the_files(self, person: EndUser, space: EmbeddingSpace, home: Path) -> None:
        open_index(person, space)
        open_index(person, None)
        [store] = [one for one in registry.all_stores() if getattr(one, "model", "") == "files"]
        # And what a killed process left.
        draft = turn_drafts.Draft(person, space)
        draft.room(10, 8)
        draft.close()
        assert store.count(person) == 3
        assert store.erase(person) == 3
        assert files(home) == []

    @pytest.mark.parametrize("moment", ["_write", "is_current"])
    def test_who_is_erased_while_it_is_written_leaves_none(
        self, moment: str, person: EndUser, space: EmbeddingSpace, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Before the file has its name, and between the look before and the look after."""
        owner: Any = turn_drafts.Draft if moment == "_write" else turn_files
        work = getattr(owner, moment)
        looks: list[Any] = []

        def meanwhile(*given: Any) -> Any:
            looks.append(work(*given))
            if len(looks) == 1:
                EndUser.objects.filter(pk=person.pk).update(generation=F("generation") + 1)
            return looks[-1]

        monkeypatch.setattr(owner, moment, meanwhile)
        assert not is_mapped(open_index(person, space))
        assert looks
        assert files(home) == []


class TestSweeping:
    def test_files_that_hold_nothing_but_what_is_there_stay(
        self, person: EndUser, session: Session, space: EmbeddingSpace, home: Path
    ) -> None:
        open_index(person, space)
        post(session, "Oats")
        turn_files.sweep()
        assert len(files(home)) == 1

    @pytest.mark.parametrize(
        "change",
        [
            lambda person, _: EndUser.objects.filter(pk=person.pk).update(generation=F("generation") + 1),
            lambda _, session: Session.objects.filter(pk=session.pk).update(redactions=1),
            lambda _, session: Session.objects.filter(pk=session.pk).update(deleted_number=2),
            lambda _, session: session.delete(),
        ],
        ids=["erased or merged", "redacted", "retention", "session deleted"],
    )
    def test_files_of_another_host_go(
        self,
        change: Callable[[EndUser, Session], Any],
        person: EndUser,
        session: Session,
        space: EmbeddingSpace,
        home: Path,
    ) -> None:
        open_index(person, space)
        change(person, session)
        turn_files.sweep()
        assert files(home) == []

    def test_what_nobody_uses_goes(self, person: EndUser, space: EmbeddingSpace, home: Path) -> None:
        path = open_index(person, space).path
        assert path
        old = time.time() - turn_files.UNUSED_SECONDS - 5
        os.utime(path, (old, old))
        turn_files._marked.clear()
        open_index(person, space)
        turn_files.sweep()
        assert path.exists()
        os.utime(path, (old, old))
        turn_files.sweep()
        assert not path.exists()

    def test_the_least_recently_used_make_room(
        self, person: EndUser, space: EmbeddingSpace, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        paths = []
        for at in range(3):
            other = factories.end_user(person.tenant)
            factories.session(other, SAID)
            path = open_index(other, None).path
            assert path
            os.utime(path, (at, time.time() - 100 + at))
            paths.append(path)
        size = paths[0].stat().st_size
        monkeypatch.setattr(turn_files, "most_bytes", lambda: 2 * size + 100)
        turn_files.evict()
        assert [path.exists() for path in paths] == [False, True, True]
        monkeypatch.setattr(turn_files, "most_bytes", lambda: size - 1)
        another_process()
        # What alone is too large has no file.
        assert not is_mapped(open_index(person, space))

    def test_a_restore_clears_them(self, person: EndUser, space: EmbeddingSpace, home: Path) -> None:
        open_index(person, space)
        turn_files.clear()
        assert files(home) == []


class TestWaiting:
    @pytest.fixture
    def descriptor(self, home: Path) -> int:
        home.mkdir()
        return locks.open_lock(home / "lock")

    @pytest.fixture
    def held(self, descriptor: int) -> Iterator[None]:
        """Another process makes a file."""
        assert locks.try_lock(descriptor)
        yield
        with suppress(OSError):
            os.close(descriptor)

    @pytest.mark.usefixtures("held")
    def test_no_request_waits_for_ever(self, person: EndUser, space: EmbeddingSpace, settings: Any) -> None:
        settings.MEMORYHUB_WAIT_SECONDS = 0.01
        with pytest.raises(HubBusy):
            open_index(person, space)

    def test_meanwhile_the_newest_are_compared(
        self, person: EndUser, session: Session, space: EmbeddingSpace, home: Path, settings: Any, request: Any
    ) -> None:
        """As many as stay in memory, 3; of a session that has more its last ones."""
        settings.MEMORYHUB_WAIT_SECONDS = 0.01
        other = factories.session(person, OTHER, session_id="s2")
        space = embed_all(person)
        every = list(anew(person, space).ids)
        assert turn_index._newest(turn_index._read_sessions(person).read or [])[0].deleted == 2
        search = SearchRequest(person.external_id, "西红柿", kinds=("turn", "session"))
        context = ContextRequest(user_id=person.external_id, query="西红柿", max_tokens=200)
        request.getfixturevalue("held")
        for _ in range(2):
            index, is_whole = open_or_newest(person, space)
            assert (list(index.ids), is_whole) == (every[-3:], False)
        found = search_memories(tenant=person.tenant, search=search, now=factories.NOW)
        assert {one.session_id for one in found.results} == {"s2", "s1"}
        assert found_answer(found)["degraded"] == "index"
        built = build_context(tenant=person.tenant, request=context, now=factories.NOW)
        assert context_answer(built, if_revision=None)["degraded"] == "index"
        post(other, "Oats")
        assert list(open_or_newest(person, space).turns.ids) == [*every[-2:], *list(anew(person, space).ids)[-1:]]
        os.close(request.getfixturevalue("descriptor"))
        assert open_or_newest(person, space).is_whole
        # They are not needed any more.
        assert indexes._cache.get(("turns", *turn_index._Newest(person, space).key)) is None
        assert "degraded" not in found_answer(search_memories(tenant=person.tenant, search=search, now=factories.NOW))
        built = build_context(tenant=person.tenant, request=context, now=factories.NOW)
        assert "degraded" not in context_answer(built, if_revision=None)

    @pytest.mark.usefixtures("held")
    def test_a_file_that_is_there_is_read_meanwhile(self, person: EndUser, session: Session, home: Path) -> None:
        few = factories.end_user(person.tenant)
        factories.session(few, SAID[:2])
        # Nobody else waits.
        assert len(open_index(few, None)) == 2

    def test_some_threads_of_a_process_wait_and_the_others_answer(self) -> None:
        with turn_files.building(patience=1), pytest.raises(HubBusy), turn_files.building(patience=0.01):
            """The lock is taken."""
        turn_files._builders.acquire()
        turn_files._builders.acquire()
        try:
            with pytest.raises(HubBusy), turn_files.building(patience=60):
                """As many as may are here."""
        finally:
            turn_files._builders.release(2)
        with turn_files.building(patience=0.01):
            """There is room again."""


def test_what_is_written_is_what_is_read(person: EndUser, space: EmbeddingSpace) -> None:
    rows = anew(person, space).parts[0].rows
    mapped = open_index(person, space).parts[0].rows
    for name in turn_rows.PLAIN:
        assert np.array_equal(getattr(rows, name), getattr(mapped, name)), name
    assert rows.vectors is not None
    assert mapped.vectors is not None
    for name in ("raw", "codes", "squares", "sums"):
        assert np.array_equal(getattr(rows.vectors, name), getattr(mapped.vectors, name)), name
    assert not mapped.vectors.raw.flags.writeable


@pytest.mark.parametrize("signs_from", [3, 1_000])
def test_of_many_the_file_has_levels_and_of_very_many_signs_and_few_vectors_are_read(
    person: EndUser, session: Session, space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch, signs_from: int
) -> None:
    monkeypatch.setattr(turn_files, "LEVELS_FROM", 3)
    monkeypatch.setattr(turn_files, "SIGNS_FROM", signs_from)
    let_go: list[int] = []
    monkeypatch.setattr(turn_files, "_let_go", lambda _room, size: let_go.append(size))
    open_index(person, space)
    another_process()
    post(session, "Oats")
    embed_all(person)
    index = open_index(person, space)
    first, later = (part.rows.vectors for part in index.parts)
    assert first is not None
    assert later is not None
    assert (first.levels is not None, later.levels) == (True, None)
    assert (first.bits is not None, later.bits) == (signs_from == 3, None)
    plain = anew(person, space)
    same(index, plain)
    query = prepare("Where is rye bread baked?")
    shown = Conversations.of(person.tenant, agent_id="")
    one, another = (
        turn_search.rank(person, each, query, SearchFilters(authors=("person",)), shown, most=2)
        for each in (index, plain)
    )
    assert one.best(2) == another.best(2)
    assert [one.level(place) for place in one.best(2)] == [another.level(place) for place in another.best(2)]
    assert let_go == [first.raw.nbytes]


@pytest.mark.django_db(transaction=True)
def test_what_takes_long_is_made_beside_the_requests(
    monkeypatch: pytest.MonkeyPatch, settings: Any, read: list[int]
) -> None:
    settings.MEMORYHUB_WAIT_SECONDS = 0.01
    monkeypatch.setattr(turn_index, "TURNS_A_SECOND", 1)
    person = factories.end_user()
    factories.session(person, SAID)
    go_on, work = threading.Event(), turn_rows.read

    def slow(*given: Any, **more: Any) -> Any:
        assert "into" not in more or go_on.wait(PATIENCE)
        return work(*given, **more)

    monkeypatch.setattr(turn_rows, "read", slow)
    with tenancy.of_tenant(person.tenant_id):
        for _ in range(2):
            assert not open_or_newest(person, None).is_whole
        [thread] = [one for one in threading.enumerate() if one.name == "index"]
        go_on.set()
        thread.join(PATIENCE)
        found = open_or_newest(person, None)
    assert (found.is_whole, is_mapped(found.turns)) == (True, True)
    # The newest, and all.
    assert read == [3, 3]


@pytest.mark.django_db(transaction=True)
def test_of_two_processes_one_reads_and_the_other_maps_what_it_made(
    monkeypatch: pytest.MonkeyPatch, settings: Any, read: list[int]
) -> None:
    settings.MEMORYHUB_WAIT_SECONDS = 0
    person = factories.end_user()
    factories.session(person, SAID)
    sessions = turn_index._read_sessions(person).read or []
    reading, waiting = threading.Event(), threading.Event()
    work, try_lock = turn_rows.read, locks.try_lock

    def slow(*given: Any, **more: Any) -> Any:
        reading.set()
        assert waiting.wait(PATIENCE)
        return work(*given, **more)

    def tried(descriptor: int) -> bool:
        free = try_lock(descriptor)
        if not free:
            waiting.set()
        return free

    def search(lane: int) -> tuple[bool, int]:
        assert not lane or reading.wait(PATIENCE)
        index = turn_index._update(person, None, sessions, None, patience=None)
        return is_mapped(index), len(index)

    monkeypatch.setattr(turn_rows, "read", slow)
    monkeypatch.setattr(locks, "try_lock", tried)
    assert at_once(2, search) == [(True, 3), (True, 3)]
    assert read == [3]
