"""Memory files in roll backs and clearings, and the undo of either."""

from datetime import timedelta
from typing import Any

import pytest

from memories import invariants
from memories.audit import Actor
from memories.curation.files import FileWriter, NewContent, delete_files, set_lock, write_file
from memories.curation.people.clearing import clear_memories, preview_clearing
from memories.curation.reverting import revert
from memories.curation.rollback.roll_back import preview_rollback, roll_back
from memories.curation.rollback.selection import Selector
from memories.models import ActorKind, APIKey, ChangeSet, EndUser, FileVersion, MemoryFile
from tests import factories
from tests.factories import COMMAND, NOW

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def good(person: EndUser) -> APIKey:
    return factories.api_key(person.tenant)[0]


@pytest.fixture
def bad(person: EndUser) -> APIKey:
    return factories.api_key(person.tenant)[0]


def by(key: APIKey | None) -> FileWriter:
    return FileWriter(Actor(kind=ActorKind.KEY, id=str(key.pk)) if key else Actor.operator(factories.operator()), NOW)


def write(person: EndUser, path: str, text: str, writer: FileWriter, *, agent_id: str = "") -> MemoryFile:
    content = NewContent.of(text.encode(), "")
    return write_file(end_user=person, agent_id=agent_id, path=path, content=content, writer=writer).file


def delete(person: EndUser, path: str, writer: FileWriter) -> None:
    delete_files(end_user=person, agent_id="", path=path, writer=writer)


def texts() -> dict[str, str | None]:
    """The text of each file; None of a deleted one."""
    return {file.path: None if file.trashed_at else file.content for file in MemoryFile.objects.all()}


def undo(verb: str) -> dict[str, int]:
    done = ChangeSet.objects.filter(verb=verb, undone_at=None).order_by("pk")[0]
    return dict(revert(change_set=done.pk, actor=COMMAND, now=NOW))


def taken_back(person: EndUser, **selected: Any) -> dict[str, int]:
    """The files that went and the files that were kept; the preview has said the same."""
    selector = Selector(person.tenant, **selected)
    before = preview_rollback(selector).counts
    done = roll_back(selector=selector, actor=COMMAND, now=NOW).counts
    assert {name: done[name] for name in before} == before
    assert invariants.check() == []
    return {name: done[name] for name in ("files", "kept") if done[name]}


def test_what_a_key_wrote_is_taken_back_and_comes_again(person: EndUser, good: APIKey, bad: APIKey) -> None:
    write(person, "/kept.md", "tea\n", by(good))
    write(person, "/changed.md", "tea\n", by(good))
    write(person, "/deleted.md", "tea\n", by(good))
    write(person, "/changed.md", "gin\n", by(bad))
    write(person, "/changed.md", "rum\n", by(bad))
    write(person, "/made.md", "gin\n", by(bad))
    delete(person, "/deleted.md", by(bad))
    after = texts()

    assert taken_back(person, key=bad.pk) == {"files": 3}
    assert texts() == {"/kept.md": "tea\n", "/changed.md": "tea\n", "/deleted.md": "tea\n", "/made.md": None}
    # It is done: a second time there is nothing.
    assert taken_back(person, key=bad.pk) == {}
    assert undo("roll_back")["files"] == 3
    assert texts() == after
    # Undone, it can be done again.
    ChangeSet.objects.update(undone_at=NOW)
    assert taken_back(person, key=bad.pk) == {"files": 3}


def test_what_others_changed_since_stays(person: EndUser, good: APIKey, bad: APIKey) -> None:
    for path in ("/other.md", "/operator.md", "/locked.md", "/gone.md", "/pruned.md"):
        write(person, path, "tea\n", by(good))
        write(person, path, "gin\n", by(bad))
    write(person, "/other.md", "milk\n", by(good))
    write(person, "/operator.md", "water\n", by(None))
    set_lock(file=MemoryFile.objects.get(path="/locked.md"), locked=True, writer=by(None))
    delete(person, "/gone.md", by(good))
    FileVersion.objects.filter(file__path="/pruned.md", version=1).delete()
    before = texts()

    assert taken_back(person, key=bad.pk) == {"kept": 5}
    assert texts() == before
    # The other key's own are what they were: of the first file its last word, too.
    assert taken_back(person, key=good.pk)["kept"] >= 3


def test_a_file_does_not_come_back_where_a_folder_is(person: EndUser, good: APIKey, bad: APIKey) -> None:
    write(person, "/notes", "tea\n", by(good))
    delete(person, "/notes", by(bad))
    write(person, "/notes/today.md", "tea\n", by(good))
    selector = Selector(person.tenant, key=bad.pk)
    assert roll_back(selector=selector, actor=COMMAND, now=NOW).counts["kept"] == 1
    assert texts() == {"/notes": None, "/notes/today.md": "tea\n"}


def test_the_undo_leaves_what_was_written_since(person: EndUser, bad: APIKey) -> None:
    write(person, "/a.md", "gin\n", by(bad))
    write(person, "/b.md", "gin\n", by(bad))
    assert taken_back(person, key=bad.pk) == {"files": 2}
    write(person, "/b.md", "tea\n", by(None))
    counts = undo("roll_back")
    assert (counts["files"], counts["kept"]) == (1, 1)
    assert texts() == {"/a.md": "gin\n", "/b.md": "tea\n"}


@pytest.mark.parametrize(
    ("selected", "taken"),
    [
        ({"agent_id": "sales"}, {"/sales.md"}),
        ({"agent_id": "sales", "since": NOW + DAY}, set()),
        ({"agent_id": "sales", "until": NOW + DAY}, {"/sales.md"}),
        # Nothing that was extracted: a time alone is no writer.
        ({"since": NOW - DAY}, set()),
    ],
    ids=["agent", "later", "until", "time alone"],
)
def test_which_files_are_selected(person: EndUser, good: APIKey, selected: dict[str, Any], taken: set[str]) -> None:
    write(person, "/sales.md", "tea\n", by(good), agent_id="sales")
    write(person, "/mine.md", "tea\n", by(good))
    taken_back(person, **selected)
    assert {path for path, text in texts().items() if text is None} == taken


def test_another_person_and_another_tenant_keep_theirs(person: EndUser, bad: APIKey) -> None:
    other, stranger = factories.end_user(person.tenant), factories.end_user()
    for one in (person, other, stranger):
        write(one, f"/{one.pk}.md", "gin\n", by(bad))
    assert taken_back(person, key=bad.pk, end_user=person) == {"files": 1}
    assert texts() == {f"/{person.pk}.md": None, f"/{other.pk}.md": "gin\n", f"/{stranger.pk}.md": "gin\n"}


def test_a_clearing_takes_the_files_along(person: EndUser, good: APIKey) -> None:
    write(person, "/a.md", "tea\n", by(good))
    write(person, "/sales.md", "tea\n", by(good), agent_id="sales")
    assert preview_clearing(end_user=person, agent_id="sales")["files"] == 1
    assert clear_memories(end_user=person, actor=COMMAND, now=NOW, agent_id="sales")["files"] == 1
    assert texts() == {"/a.md": "tea\n", "/sales.md": None}
    assert undo("clear")["files"] == 1
    assert clear_memories(end_user=person, actor=COMMAND, now=NOW)["files"] == 2
    write(person, "/a.md", "milk\n", by(good))
    counts = undo("clear")
    assert (counts["files"], counts["kept"]) == (1, 1)
    assert texts() == {"/a.md": "milk\n", "/sales.md": "tea\n"}
    assert invariants.check() == []


def test_a_clearing_by_a_key_leaves_what_operators_wrote_or_locked(person: EndUser, good: APIKey) -> None:
    write(person, "/a.md", "tea\n", by(good))
    write(person, "/operator.md", "tea\n", by(None))
    set_lock(file=write(person, "/locked.md", "tea\n", by(good)), locked=True, writer=by(None))
    assert clear_memories(end_user=person, actor=by(good).actor, now=NOW)["files"] == 1
    assert texts() == {"/a.md": None, "/operator.md": "tea\n", "/locked.md": "tea\n"}
    # An operator clears these, too.
    assert clear_memories(end_user=person, actor=by(None).actor, now=NOW)["files"] == 2
    # A roll back of the key leaves what its clearing deleted: that has an undo of its own.
    assert taken_back(person, key=good.pk) == {}
    assert set(texts().values()) == {None}
