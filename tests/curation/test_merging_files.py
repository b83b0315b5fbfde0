"""Memory files of two people who are merged, and parted again."""

import pytest

from memories import invariants
from memories.audit import Actor
from memories.curation.people.merging.merge import merge_people
from memories.curation.reverting import revert
from memories.models import ActorKind, ChangeSet, MemoryFile
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db
STAFF = Actor(kind=ActorKind.OPERATOR, id="7")


def test_files_move_under_names_of_their_own_and_go_back() -> None:
    ours = factories.end_user(external_id="app-1")
    theirs = factories.end_user(ours.tenant, external_id="web-1")
    factories.memory_file(ours, "/memories/notes.md", "ours")
    same = factories.memory_file(theirs, "/memories/notes.md", "theirs")
    factories.memory_file(theirs, "/memories/other.md", "more")
    of_agent = factories.memory_file(theirs, "/memories/notes.md", "sales", agent_id="sales")
    done = merge_people(survivor=ours.pk, merged=theirs.pk, actor=STAFF, now=NOW)
    assert done.counts["files"] == 3
    mark = same.pk.hex[-12:]
    found = {(row.agent_id, row.path): row.content for row in MemoryFile.objects.filter(end_user=ours)}
    assert found == {
        ("", "/memories/notes.md"): "ours",
        ("", f"/memories/notes~{mark}.md"): "theirs",
        ("", "/memories/other.md"): "more",
        ("sales", "/memories/notes.md"): "sales",
    }
    assert invariants.check() == []
    revert(change_set=ChangeSet.objects.get(pk=done.id).pk, actor=STAFF, now=NOW)
    back = {(row.agent_id, row.path): row.content for row in MemoryFile.objects.filter(end_user=theirs)}
    assert back == {
        ("", "/memories/notes.md"): "theirs",
        ("", "/memories/other.md"): "more",
        ("sales", "/memories/notes.md"): "sales",
    }
    assert of_agent.pk in set(MemoryFile.objects.filter(end_user=theirs).values_list("pk", flat=True))
    assert MemoryFile.objects.get(end_user=ours).content == "ours"
    assert invariants.check() == []
