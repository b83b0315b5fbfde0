"""Diary entries in merges, roll backs and clearings, and the undo of each; and under races."""

from datetime import timedelta
from typing import Any

import pytest

from memories import invariants
from memories.audit import Actor
from memories.curation import plain
from memories.curation.diary import write_entry
from memories.curation.people.clearing import agents_remembered, clear_memories, preview_clearing
from memories.curation.people.merging.merge import merge_people
from memories.curation.reverting import revert
from memories.curation.rollback.roll_back import preview_rollback, roll_back
from memories.curation.rollback.selection import Selector
from memories.curation.statements.write_trust import AS_USER
from memories.exceptions import Conflict, NotFound, PersonRestricted
from memories.kinds.diary import DIARY
from memories.models import ActorKind, ChangeSet, DiaryEntry, EndUser
from tests import factories
from tests.database import PATIENCE, blocked, held
from tests.factories import COMMAND, NOW, STAFF

KEY = Actor(kind=ActorKind.KEY)
DAY = timedelta(days=1)


def note(person: EndUser, content: str, *, by: Actor = KEY, agent_id: str = "", now: Any = NOW) -> DiaryEntry:
    given = {"end_user": person, "agent_id": agent_id, "content": content, "topic": "", "write_trust": AS_USER}
    return write_entry(**given, actor=by, now=now).row  # type: ignore[arg-type]


def contents() -> set[str]:
    return set(DiaryEntry.objects.present().values_list("content", flat=True))


def undo(verb: str) -> dict[str, int]:
    done = ChangeSet.objects.filter(verb=verb, undone_at=None).order_by("pk")[0]
    return dict(revert(change_set=done.pk, actor=COMMAND, now=NOW))


@pytest.mark.django_db
class TestTakenBack:
    def rolled_back(self, person: EndUser, **selected: Any) -> int:
        """How many entries went; the preview has said the same."""
        selector = Selector(person.tenant, **selected)
        before = preview_rollback(selector).counts
        done = roll_back(selector=selector, actor=COMMAND, now=NOW).counts
        assert {name: done[name] for name in before} == before
        assert invariants.check() == []
        return done["diary"]

    def test_what_a_key_wrote_goes_and_comes_again(self, person: EndUser) -> None:
        good, bad = (factories.api_key(person.tenant)[0] for _ in range(2))
        by_good, by_bad = (Actor(kind=ActorKind.KEY, id=str(key.pk)) for key in (good, bad))
        note(person, "kept", by=by_good)
        note(person, "bad", by=by_bad)
        note(factories.end_user(person.tenant), "bad too", by=by_bad)
        gone = note(person, "deleted", by=by_bad)
        plain.delete(DIARY, row_id=gone.pk, actor=by_bad, now=NOW)
        assert self.rolled_back(person, key=bad.pk) == 2
        assert contents() == {"kept"}
        assert self.rolled_back(person, key=bad.pk) == 0
        assert undo("roll_back")["diary"] == 2
        # What the key itself had deleted stays deleted.
        assert contents() == {"kept", "bad", "bad too"}

    def test_of_an_agent_a_person_and_a_time(self, person: EndUser) -> None:
        note(person, "early", agent_id="sales")
        note(person, "late", agent_id="sales", now=NOW + DAY)
        note(person, "other agent", agent_id="support", now=NOW + DAY)
        note(factories.end_user(person.tenant), "other person", agent_id="sales", now=NOW + DAY)
        note(factories.end_user(), "other tenant", agent_id="sales", now=NOW + DAY)
        assert self.rolled_back(person, since=NOW) == 0
        assert self.rolled_back(person, agent_id="sales", end_user=person, since=NOW + DAY / 2) == 1
        assert contents() == {"early", "other agent", "other person", "other tenant"}

    def test_what_an_operator_restored_stays_when_the_roll_back_is_undone(self, person: EndUser) -> None:
        entry = note(person, "kept after all", agent_id="sales")
        note(person, "gone", agent_id="sales")
        assert self.rolled_back(person, agent_id="sales") == 2
        plain.restore(DIARY, row_id=entry.pk, actor=STAFF, now=NOW)
        plain.delete(DIARY, row_id=entry.pk, actor=STAFF, now=NOW)
        assert undo("roll_back")["diary"] == 1
        assert contents() == {"gone"}
        with pytest.raises(Conflict):
            plain.restore(DIARY, row_id=DiaryEntry.objects.get(content="gone").pk, actor=STAFF, now=NOW)

    def test_a_clearing_takes_all_or_an_agents(self, person: EndUser) -> None:
        note(person, "general")
        note(person, "sales", agent_id="sales")
        note(factories.end_user(person.tenant), "of somebody else", agent_id="sales")
        assert agents_remembered(person) == ["sales"]
        for agent, left in (("sales", {"general", "of somebody else"}), ("", {"of somebody else"})):
            counts = preview_clearing(end_user=person, agent_id=agent)
            assert clear_memories(end_user=person, agent_id=agent, actor=KEY, now=NOW) == counts
            assert (counts["diary"], contents()) == (1, left)
        assert undo("clear")["diary"] == 1
        assert contents() == {"of somebody else", "sales"}

    def test_nothing_is_written_of_a_restricted_person_but_by_operators(self, person: EndUser) -> None:
        entry = note(person, "there")
        EndUser.objects.filter(pk=person.pk).update(restricted_at=NOW)
        for act in (
            lambda: note(person, "more"),
            lambda: plain.delete(DIARY, row_id=entry.pk, actor=KEY, now=NOW),
            lambda: clear_memories(end_user=person, actor=KEY, now=NOW),
        ):
            with pytest.raises(PersonRestricted):
                act()
        plain.delete(DIARY, row_id=entry.pk, actor=STAFF, now=NOW)
        assert contents() == set()

    def test_entries_move_with_a_merge_and_go_back(self, person: EndUser) -> None:
        theirs = factories.end_user(person.tenant)
        note(person, "ours")
        same = note(theirs, "theirs", agent_id="sales")
        deleted = note(theirs, "deleted")
        plain.delete(DIARY, row_id=deleted.pk, actor=KEY, now=NOW)
        done = merge_people(survivor=person.pk, merged=theirs.pk, actor=STAFF, now=NOW)
        assert done.counts["diary"] == 2
        assert DiaryEntry.objects.filter(end_user=person).count() == 3
        # By the id that was merged it is the survivor's, also when the call had found the other row.
        since = note(theirs, "since")
        assert since.end_user == person
        revert(change_set=done.id, actor=STAFF, now=NOW)
        assert set(DiaryEntry.objects.filter(end_user=theirs).values_list("pk", flat=True)) == {same.pk, deleted.pk}
        ours = DiaryEntry.objects.filter(end_user=person)
        assert set(ours.values_list("content", flat=True)) == {"ours", "since"}
        assert invariants.check() == []


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_nothing_is_written_of_somebody_who_is_erased_meanwhile(self, person: EndUser) -> None:
        with held(lambda: EndUser.objects.filter(pk=person.pk).delete()):
            waiting = blocked(lambda: note(person, "late"))
        with pytest.raises(NotFound):
            waiting.result(PATIENCE)
        assert not DiaryEntry.objects.exists()

    def test_of_two_deletions_one_finds_nothing(self, person: EndUser) -> None:
        entry = note(person, "once")

        def delete() -> bool:
            plain.delete(DIARY, row_id=entry.pk, actor=KEY, now=NOW)
            return True

        with held(delete):
            waiting = blocked(delete)
        with pytest.raises(NotFound):
            waiting.result(PATIENCE)
        assert contents() == set()

    def test_a_deletion_and_a_roll_back_follow_each_other(self, person: EndUser) -> None:
        entry = note(person, "once", agent_id="sales")
        selector = Selector(person.tenant, agent_id="sales")

        def delete() -> bool:
            plain.delete(DIARY, row_id=entry.pk, actor=KEY, now=NOW)
            return True

        with held(delete):
            waiting = blocked(lambda: roll_back(selector=selector, actor=COMMAND, now=NOW))
        done = waiting.result(PATIENCE)
        assert done.counts["diary"] == 0
        # The undo of the roll back does not bring back what somebody else had deleted.
        revert(change_set=done.id, actor=COMMAND, now=NOW)
        assert contents() == set()
