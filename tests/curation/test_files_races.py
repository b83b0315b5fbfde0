"""Memory files under races: two edits, an edit and a restoration, a write and an erasure."""

from collections.abc import Callable
from typing import Any

import pytest

from memories import invariants
from memories.audit import Actor
from memories.curation.files import FileWriter, NewContent, edit_file, restore_file, write_file
from memories.exceptions import NotFound, PreconditionFailed
from memories.models import ActorKind, EndUser, FileVersion, MemoryFile
from tests import factories
from tests.database import PATIENCE, blocked, held
from tests.factories import NOW

pytestmark = pytest.mark.django_db(transaction=True)
WRITER = FileWriter(Actor(kind=ActorKind.KEY), NOW)
PATH = "/memories/notes.md"


@pytest.fixture
def person() -> EndUser:
    found = factories.end_user()
    factories.memory_file(found, PATH, "tea\nchess\n")
    return found


def beside(first: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """What becomes of `other` when it waits for `first` to commit."""
    with held(first):
        waiting = blocked(other)
    return waiting.result(PATIENCE)


def edited(person: EndUser, old: str, new: str, expected: int | None = None) -> Any:
    return edit_file(
        end_user=person, agent_id="", path=PATH, old=old, new=new, every=False, writer=WRITER, expected_version=expected
    )


def test_two_edits_at_once_are_two_versions(person: EndUser) -> None:
    done = beside(lambda: edited(person, "tea", "coffee"), lambda: edited(person, "chess", "Go"))
    assert done.file.version == 3
    assert MemoryFile.objects.get().content == "coffee\nGo\n"
    assert invariants.check() == []


def test_of_two_edits_of_one_version_one_is_refused(person: EndUser) -> None:
    with pytest.raises(PreconditionFailed):
        beside(lambda: edited(person, "tea", "coffee", 1), lambda: edited(person, "chess", "Go", 1))
    assert MemoryFile.objects.get().content == "coffee\nchess\n"


def test_an_edit_and_a_restoration_follow_each_other(person: EndUser) -> None:
    edited(person, "tea", "coffee")
    given: dict[str, Any] = {"end_user": person, "agent_id": "", "path": PATH, "writer": WRITER}
    done = beside(lambda: restore_file(**given, version=1), lambda: edited(person, "tea", "water"))
    assert done.file.version == 4
    assert MemoryFile.objects.get().content == "water\nchess\n"
    assert list(FileVersion.objects.values_list("verb", flat=True)) == ["edit", "restore", "edit", "write"]


def test_nothing_is_written_of_somebody_who_is_erased_meanwhile(person: EndUser) -> None:
    def write() -> Any:
        content = NewContent("new", "utf-8", 3)
        return write_file(end_user=person, agent_id="", path="/new.md", content=content, writer=WRITER)

    def erase() -> bool:
        # As the erasure does at its end: the person's row goes under a lock.
        EndUser.objects.select_for_update().get(pk=person.pk)
        FileVersion.objects.all().delete()
        MemoryFile.objects.all().delete()
        return bool(EndUser.objects.filter(pk=person.pk).delete())

    with pytest.raises(NotFound):
        beside(erase, write)
    assert not MemoryFile.objects.exists()


def test_one_of_two_that_make_the_file_at_once_is_first(person: EndUser) -> None:
    def make(text: str) -> Any:
        content = NewContent(text, "utf-8", len(text))
        return write_file(
            end_user=person, agent_id="", path="/new.md", content=content, writer=WRITER, expected_version=0
        )

    with pytest.raises(PreconditionFailed):
        beside(lambda: make("one"), lambda: make("two"))
    assert MemoryFile.objects.get(path="/new.md").content == "one"
