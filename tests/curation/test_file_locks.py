"""The lock of a memory file, and the frame of operators' verbs on a file that they looked at."""

from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.files import (
    FileWriter,
    NewContent,
    delete_files,
    edit_file,
    holding_file,
    restore_file,
    set_lock,
    write_file,
)
from memories.exceptions import Conflict, FileNotFound, MemoryHubError, NotFound, OperatorWord, PreconditionFailed
from memories.models import ActorKind, AuditEvent, EndUser, MemoryFile
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db
KEY = FileWriter(Actor(kind=ActorKind.KEY), NOW)
PATH = "/memories/notes.md"


@pytest.fixture
def operator() -> FileWriter:
    return FileWriter(Actor.operator(factories.operator()), NOW)


@pytest.fixture
def file() -> MemoryFile:
    found = factories.memory_file(factories.end_user(), PATH, "tea\n")
    return written(found, "coffee\n", KEY)


def written(file: MemoryFile, text: str, writer: FileWriter) -> MemoryFile:
    return write_file(**place(file), content=NewContent.of(text.encode(), ""), writer=writer).file


def place(file: MemoryFile) -> dict[str, Any]:
    return {"end_user": file.end_user, "agent_id": file.agent_id, "path": file.path}


def changes(file: MemoryFile, writer: FileWriter) -> dict[str, Any]:
    """Every way to change it."""
    return {
        "write": lambda: written(file, "milk\n", writer),
        "edit": lambda: edit_file(**place(file), old="coffee", new="milk", every=False, writer=writer),
        "restore": lambda: restore_file(**place(file), version=1, writer=writer),
        "delete": lambda: delete_files(**place(file), writer=writer),
        "delete the folder": lambda: delete_files(**{**place(file), "path": "/memories"}, writer=writer),
    }


@pytest.mark.parametrize("locked", [True, False])
@pytest.mark.parametrize("verb", ["write", "restore"])
def test_a_locked_file_that_is_deleted_comes_back_by_no_key(
    file: MemoryFile, operator: FileWriter, verb: str, locked: bool
) -> None:
    if locked:
        set_lock(file=file, locked=True, writer=operator)
    delete_files(**place(file), writer=operator)

    if locked:
        with pytest.raises(OperatorWord):
            changes(file, KEY)[verb]()
    # Once it is back, it is locked as before.
    changes(file, operator if locked else KEY)[verb]()
    row = MemoryFile.objects.get()
    assert (row.locked, row.trashed_at) == (locked, None)


@pytest.mark.parametrize("verb", ["write", "edit", "restore", "delete", "delete the folder"])
def test_a_locked_file_refuses_every_key_until_it_is_unlocked(
    file: MemoryFile, operator: FileWriter, verb: str
) -> None:
    set_lock(file=file, locked=True, writer=operator)
    with pytest.raises(OperatorWord):
        changes(file, KEY)[verb]()
    row = MemoryFile.objects.get()
    assert (row.content, row.version, row.trashed_at, row.locked) == ("coffee\n", 2, None, True)
    set_lock(file=file, locked=False, writer=operator)
    changes(file, KEY)[verb]()
    assert MemoryFile.objects.get().version == 3


@pytest.mark.parametrize("verb", ["write", "edit", "restore", "delete", "delete the folder"])
def test_operators_change_what_they_locked(file: MemoryFile, operator: FileWriter, verb: str) -> None:
    set_lock(file=file, locked=True, writer=operator)
    changes(file, operator)[verb]()
    row = MemoryFile.objects.get()
    assert (row.version, row.trust, row.actor_kind) == (3, "operator", "operator")


def test_a_lock_is_no_version_and_leaves_an_event(file: MemoryFile, operator: FileWriter) -> None:
    locked = set_lock(file=file, locked=True, writer=operator, expected_version=2)
    assert (locked.version, locked.updated_at) == (2, NOW)
    unlocked = set_lock(file=file, locked=False, writer=operator)
    assert not unlocked.locked
    events = AuditEvent.objects.filter(object_id=file.pk, actor_kind="operator").order_by("id")
    assert [event.verb for event in events] == ["lock", "unlock"]


@pytest.mark.parametrize("locked", [True, False])
def test_what_is_so_already_is_a_conflict(file: MemoryFile, operator: FileWriter, locked: bool) -> None:
    MemoryFile.objects.update(locked=locked)
    with pytest.raises(Conflict):
        set_lock(file=file, locked=locked, writer=operator)
    set_lock(file=file, locked=not locked, writer=operator)
    assert AuditEvent.objects.filter(object_id=file.pk, verb__in=["lock", "unlock"]).count() == 1


def test_another_version_and_a_deleted_file_are_not_locked(file: MemoryFile, operator: FileWriter) -> None:
    with pytest.raises(PreconditionFailed):
        set_lock(file=file, locked=True, writer=operator, expected_version=1)
    delete_files(**place(file), writer=operator)
    with pytest.raises(FileNotFound):
        set_lock(file=file, locked=True, writer=operator)
    assert not MemoryFile.objects.get().locked


class TestTheFrame:
    def test_gives_the_file_at_the_version_that_was_seen(self, file: MemoryFile) -> None:
        with holding_file(file, expected_version=2) as held:
            assert (held.pk, held.content) == (file.pk, "coffee\n")
        with pytest.raises(PreconditionFailed), holding_file(file, expected_version=1):
            pass

    def test_finds_a_file_that_moved_to_another_person(self, file: MemoryFile) -> None:
        survivor = factories.end_user(file.tenant)
        MemoryFile.objects.update(end_user=survivor, path="/memories/notes~1.md")
        EndUser.objects.filter(pk=file.end_user_id).update(merged_into=survivor)
        with holding_file(file, expected_version=2) as held:
            assert (held.end_user, held.path) == (survivor, "/memories/notes~1.md")

    def test_does_not_write_to_who_was_not_locked(self, file: MemoryFile) -> None:
        """As after a merge that was undone just then."""
        MemoryFile.objects.update(end_user=factories.end_user(file.tenant))
        with pytest.raises(PreconditionFailed), holding_file(file, expected_version=2):
            pass

    @pytest.mark.parametrize("gone", [MemoryFile, EndUser])
    def test_finds_nothing_of_what_was_erased(self, file: MemoryFile, gone: Any) -> None:
        gone.objects.all().delete()
        with pytest.raises(MemoryHubError) as refused, holding_file(file, expected_version=2):
            pass
        assert isinstance(refused.value, NotFound)
