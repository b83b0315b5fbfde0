"""The nightly pass and memory files: deleted ones leave the trash, scratch files go when their time is over."""

from datetime import datetime, timedelta

import pytest

from memories import invariants
from memories.audit import Actor
from memories.curation.files import FileWriter, NewContent, delete_files, restore_file, write_file
from memories.forgetting import decay
from memories.models import (
    ActorKind,
    DecayPass,
    DiaryEntry,
    EndUser,
    FileVersion,
    GroupFact,
    GroupMember,
    MemoryFile,
    MemoryGroup,
    Tenant,
)
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
KEY = Actor(kind=ActorKind.KEY)


@pytest.fixture
def tenant() -> Tenant:
    return factories.tenant(trash_days=10, scratch_days=3)


@pytest.fixture
def person(tenant: Tenant) -> EndUser:
    return factories.end_user(tenant)


def written(person: EndUser, path: str, now: datetime = NOW) -> None:
    content = NewContent.of(b"tea\n", "")
    write_file(end_user=person, agent_id="", path=path, content=content, writer=FileWriter(KEY, now))


def deleted(person: EndUser, path: str, now: datetime) -> None:
    delete_files(end_user=person, agent_id="", path=path, writer=FileWriter(KEY, now))


def after(tenant: Tenant, days: float) -> tuple[set[str], int]:
    """The paths that are left after a pass so many days later, and how many memories it deleted."""
    done = decay.forget(tenant=tenant, now=NOW + days * DAY, trigger=DecayPass.Trigger.COMMAND, confirm=False)
    assert done.state == "done"
    return set(MemoryFile.objects.values_list("path", flat=True)), done.counts.get("purged", 0)


def test_a_deleted_file_leaves_the_trash_with_its_versions(tenant: Tenant, person: EndUser) -> None:
    for path in ("/old.md", "/kept.md", "/new.md"):
        written(person, path)
    deleted(person, "/old.md", NOW)
    deleted(person, "/new.md", NOW + 5 * DAY)
    assert after(tenant, 9) == ({"/old.md", "/kept.md", "/new.md"}, 0)
    assert after(tenant, 11) == ({"/kept.md", "/new.md"}, 1)
    assert sorted(FileVersion.objects.values_list("file__path", flat=True)) == ["/kept.md", "/new.md", "/new.md"]


def test_a_restored_file_stays(tenant: Tenant, person: EndUser) -> None:
    written(person, "/back.md")
    deleted(person, "/back.md", NOW)
    restore_file(end_user=person, agent_id="", path="/back.md", version=1, writer=FileWriter(KEY, NOW + DAY))
    assert after(tenant, 30) == ({"/back.md"}, 0)


def test_a_scratch_file_goes_after_its_last_change(tenant: Tenant, person: EndUser) -> None:
    for path in ("/temp/t/plan.md", "/temp/t/newer.md", "/notes.md"):
        written(person, path)
    written(person, "/temp/t/newer.md", NOW + 2 * DAY)
    assert after(tenant, 2.5) == ({"/temp/t/plan.md", "/temp/t/newer.md", "/notes.md"}, 0)
    assert after(tenant, 4) == ({"/temp/t/newer.md", "/notes.md"}, 1)
    assert after(tenant, 6) == ({"/notes.md"}, 1)
    assert FileVersion.objects.count() == 1


def test_a_deleted_scratch_file_does_not_outlive_its_time(tenant: Tenant, person: EndUser) -> None:
    written(person, "/temp/t/plan.md")
    deleted(person, "/temp/t/plan.md", NOW + DAY)
    # The deletion was its last change; the trash would keep it for ten days.
    assert after(tenant, 3.5) == ({"/temp/t/plan.md"}, 0)
    assert after(tenant, 5) == (set(), 1)


def test_files_of_the_restricted_stay_until_it_is_lifted(tenant: Tenant, person: EndUser) -> None:
    other = factories.end_user(tenant)
    for one in (person, other):
        written(one, "/temp/t/plan.md")
        written(one, "/old.md")
        deleted(one, "/old.md", NOW)
    EndUser.objects.filter(pk=person.pk).update(restricted_at=NOW)
    assert after(tenant, 20)[1] == 2
    assert set(MemoryFile.objects.values_list("end_user", flat=True)) == {person.pk}
    EndUser.objects.update(restricted_at=None)
    assert after(tenant, 21) == (set(), 2)


def test_another_tenants_files_are_not_touched(tenant: Tenant, person: EndUser) -> None:
    other = factories.end_user(factories.tenant(slug="other", trash_days=10, scratch_days=3))
    for one in (person, other):
        written(one, "/temp/t/plan.md")
        written(one, "/old.md")
        deleted(one, "/old.md", NOW)
    assert after(tenant, 20) == ({"/temp/t/plan.md", "/old.md"}, 2)
    assert set(MemoryFile.objects.values_list("end_user", flat=True)) == {other.pk}


def test_versions_go_some_days_after_a_newer_one_replaced_them(tenant: Tenant, person: EndUser) -> None:
    def versions() -> list[int]:
        return sorted(FileVersion.objects.filter(file__path="/a.md").values_list("version", flat=True))

    tenant.numbers |= {"version_days": 20}
    tenant.save()
    written(person, "/a.md")
    write_file(
        end_user=person,
        agent_id="",
        path="/a.md",
        content=NewContent.of(b"milk\n", ""),
        writer=FileWriter(KEY, NOW + 9 * DAY),
    )
    written(person, "/a.md", NOW + 15 * DAY)
    after(tenant, 28)
    assert versions() == [1, 2, 3]
    person.restricted_at = NOW
    person.save()
    after(tenant, 30)
    assert versions() == [1, 2, 3]
    person.restricted_at = None
    person.save()
    after(tenant, 31)
    assert versions() == [2, 3]
    after(tenant, 60)
    # What the file is now stays, however old it is.
    assert versions() == [3]
    assert invariants.check() == []


def test_versions_can_stay_as_long_as_the_file(tenant: Tenant, person: EndUser) -> None:
    tenant.numbers |= {"version_days": 0}
    tenant.save()
    written(person, "/a.md")
    written(person, "/a.md", NOW + DAY)
    after(tenant, 4_000)
    assert FileVersion.objects.count() == 2


def test_a_deleted_diary_entry_leaves_the_trash_and_no_other(tenant: Tenant, person: EndUser) -> None:
    limited = factories.end_user(tenant, restricted_at=NOW)
    for owner, at in ((person, NOW), (person, NOW + 5 * DAY), (person, None), (limited, NOW)):
        factories.diary_entry(owner, trashed_at=at)
    assert after(tenant, 9)[1] == 0
    assert after(tenant, 11)[1] == 1
    assert DiaryEntry.objects.filter(end_user=person).count() == 2
    assert DiaryEntry.objects.filter(end_user=limited).count() == 1


def test_a_deleted_fact_of_a_group_leaves_the_trash_and_no_other(tenant: Tenant, person: EndUser) -> None:
    limited = factories.end_user(tenant, restricted_at=NOW)
    group = factories.memory_group(person, limited)
    for said_by, about, at in (
        ([person], None, NOW),
        ([person], None, NOW + 5 * DAY),
        ([person], None, None),
        ([person, limited], None, NOW),
        ([person], limited, NOW),
    ):
        content = f"{len(said_by)} {about} {at}"
        factories.group_fact(group, *said_by, content=content, about=about, trashed_at=at)
    assert after(tenant, 9)[1] == 0
    assert after(tenant, 11)[1] == 1
    assert GroupFact.objects.count() == 4


def test_a_deleted_group_goes_with_its_facts_but_not_from_a_restricted_member(tenant: Tenant, person: EndUser) -> None:
    limited = factories.end_user(tenant, restricted_at=NOW)
    gone, kept, there = (
        factories.memory_group(person, trashed_at=NOW),
        factories.memory_group(person, limited, trashed_at=NOW),
        factories.memory_group(person),
    )
    for group in (gone, kept, there):
        factories.group_fact(group, person)
    after(tenant, 9)
    assert (MemoryGroup.objects.count(), GroupFact.objects.count()) == (3, 3)
    after(tenant, 11)
    assert set(MemoryGroup.objects.values_list("pk", flat=True)) == {kept.pk, there.pk}
    assert GroupFact.objects.get().group == there
    assert GroupMember.objects.count() == 3
