"""Memory files in the admin: the tree of a person, the list, the page, versions side by side, and the verbs."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.admin.files.tree import tree_of
from memories.audit import Actor
from memories.curation.files import FileWriter, NewContent, write_file
from memories.models import ActorKind, APIKey, AuditEvent, EndUser, FileVersion, MemoryFile
from tests import factories
from tests.admin.pages import list_of, page_of, said, text_of
from tests.factories import NOW

SECRET = "sk-proj-4f9aB2cD8eF1gH3iJ5kL7mN9oP0qR2sT4uV6wX8yZ1"
PATH = "/memories/notes.md"


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(factories.tenant(slug="acme-prod"), external_id="usr_1000", display_name="华桂珍")


@pytest.fixture
def file(person: EndUser) -> MemoryFile:
    return factories.memory_file(person, PATH, "Runs a bakery.\nLikes tea.\n", agent_id="support")


def files_of(person: EndUser, agent: str = "") -> str:
    page = reverse("admin:memories_enduser_files", args=[person.pk])
    return f"{page}?agent={agent}" if agent else page


def rewritten(file: MemoryFile, text: str) -> MemoryFile:
    """As an agent writes it again."""
    key, _ = factories.api_key(file.tenant, name="support-bot")
    writer = FileWriter(Actor(kind=ActorKind.KEY, id=str(key.pk)), timezone.now())
    new = NewContent.of(text.encode(), "")
    place = {"end_user": file.end_user, "agent_id": file.agent_id, "path": file.path}
    return write_file(**place, content=new, writer=writer).file  # type: ignore[arg-type]


def send(client: Client, file: MemoryFile, verb: str, **over: Any) -> Any:
    version = MemoryFile.objects.get(pk=file.pk).version
    return client.post(page_of(file, verb), {"version": version, **over})


def fresh(file: MemoryFile) -> MemoryFile:
    return MemoryFile.objects.get(pk=file.pk)


class TestTheTree:
    def test_folders_stand_once_and_alone_ones_together(self, person: EndUser) -> None:
        paths = ["/a.md", "/memories/b.md", "/memories/deep/er/c.md", "/memories/deep/er/d.md", "/x/y/z.md"]
        rows = tree_of([factories.memory_file(person, path) for path in paths])
        assert [(row.depth, row.name) for row in rows] == [
            (0, "a.md"),
            (0, "memories/"),
            (1, "b.md"),
            (1, "deep/er/"),
            (2, "c.md"),
            (2, "d.md"),
            (0, "x/y/"),
            (1, "z.md"),
        ]

    def test_a_fork_without_files_is_a_folder(self, person: EndUser) -> None:
        rows = tree_of([factories.memory_file(person, path) for path in ("/a/b/c/1.md", "/a/b/d/2.md")])
        assert [(row.depth, row.name) for row in rows] == [(0, "a/b/"), (1, "c/"), (2, "1.md"), (1, "d/"), (2, "2.md")]

    def test_however_deep_there_are_few_rows(self, person: EndUser) -> None:
        deep = "".join(f"/{number % 10}" for number in range(490))
        rows = list(tree_of([factories.memory_file(person, f"{deep[:length]}/f") for length in range(20, 980, 40)]))
        assert len(rows) == 48
        assert max(row.depth for row in rows) == 8

    def test_shows_the_files_of_one_agent(self, admin: Client, person: EndUser, file: MemoryFile) -> None:
        factories.memory_file(person, "/memories/plain.md")
        other = factories.memory_file(factories.end_user(person.tenant), "/memories/foreign.md", agent_id="support")
        page = text_of(admin.get(files_of(person, "support")))
        assert page_of(file) in page
        assert "notes.md" in page
        assert "plain.md" not in page
        assert page_of(other) not in page
        without = text_of(admin.get(files_of(person)))
        assert "plain.md" in without
        assert page_of(file) not in without
        assert "Without an agent" in without

    def test_leaves_out_what_is_deleted_or_expired(self, admin: Client, person: EndUser) -> None:
        factories.memory_file(person, "/kept.md")
        factories.memory_file(person, "/gone.md", trashed_at=NOW)
        factories.memory_file(person, "/temp/over.md", expires_at=NOW)
        page = text_of(admin.get(files_of(person)))
        assert "kept.md" in page
        assert "gone.md" not in page
        assert "over.md" not in page
        assert f"{list_of(MemoryFile)}?tab=trash" in page

    def test_shows_the_first_text_until_it_is_written(self, admin: Client, person: EndUser) -> None:
        person.tenant.file_seed = "What we want to know."
        person.tenant.save()
        assert "What we want to know." in text_of(admin.get(files_of(person)))
        factories.memory_file(person, "/memories/AGENTS.md", "Ours")
        assert "What we want to know." not in text_of(admin.get(files_of(person)))

    def test_needs_the_permission_of_files(self, staff_who_may: Callable[..., Client], file: MemoryFile) -> None:
        person = file.end_user
        for may, status in (
            (staff_who_may("view_enduser"), 403),
            (staff_who_may("view_enduser", "view_memoryfile"), 200),
        ):
            assert may.get(files_of(person)).status_code == status
            assert (files_of(person) in text_of(may.get(page_of(person)))) == (status == 200)


class TestTheList:
    def test_is_searched_and_filtered(self, admin: Client, person: EndUser, file: MemoryFile) -> None:
        locked = factories.memory_file(person, "/locked.md", locked=True, actor_kind=ActorKind.OPERATOR)
        gone = factories.memory_file(person, "/gone.md", trashed_at=NOW)

        def found(**query: Any) -> set[MemoryFile]:
            return set(admin.get(list_of(MemoryFile), query).context["cl"].result_list)

        assert found() == {file, locked, gone}
        assert found(q="support") == {file}
        assert found(q="usr_1000") == {file, locked, gone}
        assert found(tab="locked") == {locked}
        assert found(tab="trash") == {gone}
        assert found(actor_kind__exact="operator") == {locked}
        assert found(end_user__id__exact=str(person.pk), tab="trash") == {gone}


class TestThePage:
    def test_shows_the_text_who_wrote_it_and_its_versions(self, admin: Client, file: MemoryFile) -> None:
        rewritten(file, "Runs two bakeries.\n")
        page = text_of(admin.get(page_of(file)))
        key = str(APIKey.objects.get())
        for shown in (PATH, "Runs two bakeries.", f"by {key}", "华桂珍", "2 · Write", "1 · Write", "API key"):
            assert shown in page
        assert f"{page_of(file, 'compare')}?from=1&amp;to=2" in page
        assert "Restore version 1" in page
        assert "Restore version 2" not in page

    def test_bytes_are_not_shown_as_text(self, admin: Client, person: EndUser) -> None:
        file = factories.memory_file(person, "/logo.png", "iVBORw0KGgo=", encoding="base64")
        page = text_of(admin.get(page_of(file)))
        assert "Binary" in page
        assert "iVBORw0KGgo=" not in page
        assert page_of(file, "edit") not in page
        assert page_of(file, "delete") in page

    def test_many_versions_stand_on_several_pages(self, admin: Client, file: MemoryFile) -> None:
        for number in range(2, 24):
            rewritten(file, f"{number}\n")
        first, second = (text_of(admin.get(page_of(file), {"page": number})) for number in ("1", "2"))
        assert "23 · Write" in first
        assert "3 · Write" in second
        assert "23 · Write" not in second

    def test_a_reader_has_no_verbs(self, staff_who_may: Callable[..., Client], file: MemoryFile) -> None:
        reader = staff_who_may("view_memoryfile")
        page = text_of(reader.get(page_of(file)))
        assert "Likes tea." in page
        assert "华桂珍" not in page
        assert not any(page_of(file, verb) in page for verb in ("edit", "lock", "unlock", "restore", "delete"))


class TestVersionsSideBySide:
    def test_shows_what_changed_with_its_lines(self, admin: Client, file: MemoryFile) -> None:
        rewritten(file, "Runs two bakeries.\nLikes tea.\nHas a dog.\n")
        page = text_of(admin.get(page_of(file, "compare")))
        for shown in (
            "<ins>two bakeries</ins>",
            "<del>a bakery</del>",
            "Likes tea.",
            "<ins>Has a dog.</ins>",
            "Restore version 1",
        ):
            assert shown in page
        assert "They are the same." in text_of(admin.get(page_of(file, "compare"), {"from": "1", "to": "1"}))

    def test_a_version_that_there_is_not_is_not_found(self, admin: Client, file: MemoryFile) -> None:
        for asked in ({"from": "7"}, {"to": "x"}, {"from": "-1"}, {"to": "9" * 40}, {"to": "²"}, {"from": "0"}):
            assert admin.get(page_of(file, "compare"), asked).status_code == 404, asked

    def test_of_bytes_it_says_so(self, admin: Client, file: MemoryFile) -> None:
        rewritten(file, "text\n")
        file.versions.filter(version=1).update(encoding="base64", content="AAEC")
        page = text_of(admin.get(page_of(file, "compare")))
        assert "One of them is no text" in page
        assert "AAEC" not in page


class TestTheVerbs:
    def test_an_edit_is_the_operators_version(self, admin: Client, file: MemoryFile) -> None:
        done = send(admin, file, "edit", content="Runs a mill.\r\nLikes tea.\r\n", reason="Told by phone")
        assert done.status_code == 302
        row, version = fresh(file), FileVersion.objects.get(file=file, version=2)
        assert (row.content, row.version, row.actor_kind, row.trust) == (
            "Runs a mill.\nLikes tea.\n",
            2,
            "operator",
            "operator",
        )
        assert (version.verb, version.reason, version.actor_kind) == ("edit", "Told by phone", "operator")
        event = AuditEvent.objects.get(object_id=file.pk)
        assert (event.verb, event.actor_kind, event.tenant_uuid) == ("edit", "operator", file.tenant_id)

    def test_secrets_are_cut_out_of_it(self, admin: Client, file: MemoryFile) -> None:
        done = send(admin, file, "edit", content=f"The key is {SECRET}\n", reason=f"it was {SECRET}")
        assert "A secret was removed" in said(done)
        assert SECRET not in fresh(file).content
        assert "[redacted:" in fresh(file).content
        assert SECRET not in FileVersion.objects.get(file=file, version=2).reason
        assert "A secret was removed" not in said(send(admin, file, "edit", content="Nothing to hide\n"))

    def test_the_same_text_is_no_version(self, admin: Client, file: MemoryFile) -> None:
        assert "Nothing was changed." in said(send(admin, file, "edit", content=file.content.replace("\n", "\r\n")))
        assert fresh(file).version == 1
        MemoryFile.objects.update(content="a\r\nb\r\n")
        send(admin, file, "edit", content="a\r\nc\r\n")
        assert fresh(file).content == "a\r\nc\r\n"

    def test_what_somebody_wrote_meanwhile_is_not_lost(self, admin: Client, file: MemoryFile) -> None:
        rewritten(file, "Sold the bakery.\n")
        refused = send(admin, file, "edit", content="Mine\n", version=1)
        assert refused.status_code == 412
        page = text_of(refused)
        assert "Somebody else changed this" in page
        assert "Mine" in page
        assert fresh(file).content == "Sold the bakery.\n"
        for verb, given in {"lock": {}, "delete": {}, "restore": {"earlier": 1}}.items():
            assert send(admin, file, verb, version=1, **given).status_code == 412
        assert send(admin, file, "edit", content="Mine\n").status_code == 302

    def test_too_much_is_refused_and_kept_in_the_form(self, admin: Client, file: MemoryFile) -> None:
        refused = send(admin, file, "edit", content="x" * 100_001)
        assert refused.status_code == 413
        assert "at most 100 kB" in text_of(refused)
        assert send(admin, file, "edit", content="a\0b").status_code == 400
        assert fresh(file).version == 1

    def test_a_locked_file_says_so_and_is_unlocked(self, admin: Client, file: MemoryFile) -> None:
        assert send(admin, file, "lock").status_code == 302
        assert fresh(file).locked
        assert page_of(file, "unlock") in text_of(admin.get(page_of(file)))
        assert send(admin, file, "lock").status_code == 409
        assert send(admin, file, "edit", content="An operator can\n").status_code == 302
        assert send(admin, file, "unlock").status_code == 302
        assert not fresh(file).locked
        assert [event.verb for event in AuditEvent.objects.filter(object_id=file.pk).order_by("id")] == [
            "lock",
            "edit",
            "unlock",
        ]

    def test_a_version_is_restored(self, admin: Client, file: MemoryFile) -> None:
        rewritten(file, "Sold it.\n")
        assert "has the content of the earlier version again" in said(
            send(admin, file, "restore", earlier=1, reason="Wrong")
        )
        row = fresh(file)
        assert (row.content, row.version) == ("Runs a bakery.\nLikes tea.\n", 3)
        assert FileVersion.objects.get(file=file, version=3).restored == 1
        assert send(admin, file, "restore", earlier=9).status_code == 404
        assert send(admin, file, "restore", earlier=10**20).status_code == 400

    def test_a_deleted_file_is_restored_from_its_page(self, admin: Client, file: MemoryFile) -> None:
        assert send(admin, file, "delete", reason="Not true").status_code == 302
        assert fresh(file).trashed_at
        page = text_of(admin.get(page_of(file)))
        assert "Agents no longer find it." in page
        assert page_of(file, "edit") not in page
        assert send(admin, file, "edit", content="Written anew").status_code == 404
        assert send(admin, file, "restore", earlier=2).status_code == 409
        assert send(admin, file, "restore", earlier=1).status_code == 302
        assert fresh(file).trashed_at is None
        assert fresh(file).content == "Runs a bakery.\nLikes tea.\n"

    def test_a_file_that_was_merged_meanwhile_is_the_one_that_is_changed(
        self, admin: Client, person: EndUser, file: MemoryFile
    ) -> None:
        """Its owner and path are read once the person is locked: another file may stand at the old path."""
        survivor = factories.end_user(person.tenant)
        theirs = factories.memory_file(survivor, PATH, "Theirs\n", agent_id="support")
        MemoryFile.objects.filter(pk=file.pk).update(end_user=survivor, path="/memories/notes~1.md")
        EndUser.objects.filter(pk=person.pk).update(merged_into=survivor)
        assert send(admin, file, "edit", content="Ours\n").status_code == 302
        assert (fresh(file).content, fresh(theirs).content) == ("Ours\n", "Theirs\n")

    def test_files_of_the_restricted_are_edited_by_operators(self, admin: Client, file: MemoryFile) -> None:
        EndUser.objects.update(restricted_at=NOW)
        assert "no agent reads or writes these files" in text_of(admin.get(page_of(file)))
        assert send(admin, file, "edit", content="Checked\n").status_code == 302

    def test_an_expired_scratch_file_is_not_changed(self, admin: Client, person: EndUser) -> None:
        file = factories.memory_file(person, "/temp/t/plan.md", expires_at=timezone.now() - timedelta(hours=1))
        page = text_of(admin.get(page_of(file)))
        assert "Expired" in page
        assert page_of(file, "edit") not in page
        assert send(admin, file, "lock").status_code == 404
