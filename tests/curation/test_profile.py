"""The sections of a profile: who may write them, what stays of what they said, and what binds whom."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from memories.audit import Actor
from memories.curation.change_sets import Changes
from memories.curation.profile.sections import (
    release_profile_section,
    restore_profile_section,
    take_proposed_section,
    write_profile_section,
)
from memories.curation.reverting import revert
from memories.exceptions import Conflict, NotFound, OperatorWord, PersonRestricted, PreconditionFailed
from memories.models import AuditEvent, ChangeSet, EndUser, ProfileRevision, ProfileSection
from tests import factories
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import KEY, LATER, NOW, STAFF

pytestmark = pytest.mark.django_db
SECTION = "work_context"


def write(
    person: EndUser, summary: str, *, actor: Actor = KEY, section: str = SECTION, **over: Any
) -> ProfileSection | None:
    given = {"end_user": person, "section": section, "summary": summary, "actor": actor, "now": LATER, **over}
    return write_profile_section(**given)


def release(person: EndUser, *, actor: Actor = STAFF, **over: Any) -> ProfileSection:
    return release_profile_section(end_user=person, section=SECTION, actor=actor, now=LATER, **over)


def section() -> tuple[str, int, bool]:
    """What the only section says, its version, and whether it is binding."""
    row = ProfileSection.objects.get()
    return row.summary, row.version, row.binding


def history() -> list[tuple[int | None, str, str, str, bool]]:
    """Version, verb, the text before and after, and whether it was binding before; oldest first."""
    rows = ProfileRevision.objects.order_by("version")
    return list(rows.values_list("version", "verb", "before", "after", "binding_before"))


def revision(version: int) -> ProfileRevision:
    return ProfileRevision.objects.get(version=version)


def undo(version: int) -> None:
    revert(change_set=revision(version).change_set or uuid.uuid4(), actor=STAFF, now=LATER)


def events() -> list[tuple[str, str, str]]:
    """Verb, kind of object and kind of actor of each event, oldest first."""
    return list(AuditEvent.objects.order_by("id").values_list("verb", "object_type", "actor_kind"))


class TestWriting:
    def test_a_section_is_written_and_written_again(self, person: EndUser) -> None:
        first, second = write(person, "开面包店"), write(person, "Runs two bakeries.")
        assert first
        assert second
        assert first.pk == second.pk
        row = ProfileSection.objects.get()
        assert (row.summary, row.version, row.updated_at) == ("Runs two bakeries.", 2, LATER)
        assert (row.tenant, row.end_user, row.section) == (person.tenant, person, SECTION)
        assert (row.actor_kind, row.binding, row.extraction) == ("key", False, None)
        assert history() == [
            (1, "write", "", "开面包店", False),
            (2, "write", "开面包店", "Runs two bakeries.", False),
        ]  # fmt: skip
        assert events() == [("write", "ProfileSection", "key")] * 2
        assert "baker" not in str(list(AuditEvent.objects.values_list()))

    def test_its_revision_says_who_and_why(self, person: EndUser) -> None:
        write(person, "Retired.", actor=STAFF, reason="Phoned; 密码是Tr0ub4dor-9x")
        row = ProfileRevision.objects.get()
        assert (row.actor_kind, row.actor_id, row.extraction, row.created_at) == ("operator", "7", None, LATER)
        assert row.reason == "Phoned; 密码是[redacted:password]"
        assert (row.end_user, row.section, row.change_set) == (person, SECTION, ChangeSet.objects.get().pk)

    def test_a_job_no_longer_answers_for_what_a_person_wrote(self, person: EndUser) -> None:
        run = factories.run(factories.session(person))
        factories.profile_section(person, extraction=run, prompt_version="p1")
        row = write(person, "Runs two bakeries.")
        assert row
        assert (row.extraction, row.prompt_version, row.actor_kind) == (None, "", "key")

    def test_the_same_again_leaves_no_trace(self, person: EndUser) -> None:
        write(person, "Runs a bakery.")
        assert write(person, "Runs a bakery.")
        assert (section(), len(history()), len(events())) == (("Runs a bakery.", 1, False), 1, 1)
        # By an operator the same text is another word.
        write(person, "Runs a bakery.", actor=STAFF)
        write(person, "Runs a bakery.", actor=STAFF)
        assert (section(), len(history())) == (("Runs a bakery.", 2, True), 2)

    def test_an_emptied_section_says_nothing_and_keeps_its_history(self, person: EndUser) -> None:
        write(person, "Runs a bakery.")
        write(person, "Opening a shop.", section="top_of_mind")
        assert write(person, "") is None
        assert list(ProfileSection.objects.written().values_list("section", flat=True)) == ["top_of_mind"]
        assert events()[-1] == ("delete", "ProfileSection", "key")
        write(person, "Retired.")
        rows = ProfileRevision.objects.filter(section=SECTION).order_by("version").values_list("version", "after")
        assert list(rows) == [(1, "Runs a bakery."), (2, ""), (3, "Retired.")]

    def test_emptying_nothing_does_nothing(self, person: EndUser) -> None:
        assert write(person, "") is None
        assert (events(), history(), ProfileSection.objects.count()) == ([], [], 0)

    def test_a_stale_version_is_refused(self, person: EndUser) -> None:
        assert write(person, "One", expected_version=0)
        assert write(person, "Two", expected_version=1)
        for stale in (0, 1, 3):
            with pytest.raises(PreconditionFailed):
                write(person, "Three", actor=STAFF, expected_version=stale)
        assert section() == ("Two", 2, False)

    def test_an_erased_person_has_none(self, person: EndUser) -> None:
        EndUser.objects.filter(pk=person.pk).delete()
        with pytest.raises(NotFound):
            write(person, "Runs a bakery.", actor=STAFF)


class TestOperatorsWord:
    def test_it_binds_keys(self, person: EndUser) -> None:
        row = write(person, "Runs a bakery.", actor=STAFF)
        assert row
        assert (row.binding, row.actor_kind) == (True, "operator")
        for summary in ("Runs nothing.", "", "Runs a bakery."):
            with pytest.raises(OperatorWord):
                write(person, summary)
        assert section() == ("Runs a bakery.", 1, True)
        assert events() == [("write", "ProfileSection", "operator")]
        assert write(person, "Other section.", section="top_of_mind")

    def test_an_emptied_section_is_one_too(self, person: EndUser) -> None:
        write(person, "Was ill.")
        assert write(person, "", actor=STAFF) is None
        assert section() == ("", 2, True)
        with pytest.raises(OperatorWord):
            write(person, "Was ill.")

    def test_it_is_given_back(self, person: EndUser) -> None:
        write(person, "Runs a bakery.", actor=STAFF)
        with pytest.raises(OperatorWord):
            release(person, actor=KEY)
        release(person)
        assert section() == ("Runs a bakery.", 2, False)
        assert history()[-1] == (2, "release", "Runs a bakery.", "Runs a bakery.", True)
        assert events()[-1] == ("release", "ProfileSection", "operator")
        assert write(person, "Runs two bakeries.")

    def test_what_is_nobodys_is_not_given_back(self, person: EndUser) -> None:
        with pytest.raises(Conflict):
            release(person)
        write(person, "Runs a bakery.")
        with pytest.raises(Conflict):
            release(person)
        assert section() == ("Runs a bakery.", 1, False)


class TestRestoring:
    def test_an_earlier_text_is_restored_with_its_evidence(self, person: EndUser) -> None:
        run = factories.run(factories.session(person), prompt_version="p1")
        factories.profile_section(person, summary="Nothing is known.", version=2)
        factories.profile_revision(person, "Runs a bakery.", extraction=run, verb="extract")
        row = restore_profile_section(revision=revision(1), actor=STAFF, now=LATER, expected_version=2)
        assert (row.extraction, row.prompt_version, section()) == (run, "p1", ("Runs a bakery.", 3, True))
        assert history()[-1] == (3, "restore", "Nothing is known.", "Runs a bakery.", False)
        assert revision(3).extraction == run
        assert events() == [("restore", "ProfileSection", "operator")]

    def test_a_proposal_is_not_restored(self, person: EndUser) -> None:
        proposal = factories.profile_revision(person, version=None)
        with pytest.raises(Conflict):
            restore_profile_section(revision=proposal, actor=STAFF, now=LATER)
        assert not ProfileSection.objects.exists()

    def test_a_change_is_undone_to_what_bound_before(self, person: EndUser) -> None:
        run = factories.run(factories.session(person))
        factories.profile_section(person, extraction=run)
        factories.profile_revision(person, extraction=run, verb="extract")
        write(person, "Retired.", actor=STAFF)
        undo(2)
        row = ProfileSection.objects.get()
        assert (row.extraction, section()) == (run, ("Runs a bakery.", 3, False))
        assert revision(3).verb == "undo"
        assert ChangeSet.objects.filter(undone_at=LATER, reverted_by=revision(3).change_set).count() == 1

    def test_each_verb_is_taken_back_as_often_as_it_is_tried_once(self, person: EndUser) -> None:
        write(person, "One", actor=STAFF)
        release(person)
        write(person, "", actor=STAFF)
        restore_profile_section(revision=revision(1), actor=STAFF, now=LATER)
        states = [("One", True), ("One", False), ("", True)]
        for version, (text, binding) in zip((4, 3, 2), reversed(states), strict=True):
            undo(version)
            assert (section()[0], section()[2]) == (text, binding)
        with pytest.raises(Conflict):
            undo(2)


class TestProposals:
    @pytest.fixture
    def proposal(self, person: EndUser) -> ProfileRevision:
        run = factories.run(factories.session(person))
        return factories.profile_revision(person, "Answers <profile> questions.", version=None, extraction=run)

    def test_one_is_taken_as_the_operators_word(self, person: EndUser, proposal: ProfileRevision) -> None:
        changes = Changes(actor=STAFF, now=LATER)
        row = take_proposed_section(revision=proposal, changes=changes, expected_version=0)
        assert (section(), row.extraction) == (("Answers <profile> questions.", 1, True), proposal.extraction)
        assert (revision(1).verb, revision(1).change_set) == ("approve", changes.id)
        assert events() == [("approve", "ProfileSection", "operator")]
        # Twice is once.
        take_proposed_section(revision=proposal, changes=changes)
        assert section()[1] == 1

    def test_a_stale_view_takes_nothing(self, person: EndUser, proposal: ProfileRevision) -> None:
        write(person, "Retired.", actor=STAFF)
        with pytest.raises(PreconditionFailed):
            take_proposed_section(revision=proposal, changes=Changes(actor=STAFF, now=LATER), expected_version=0)
        assert section() == ("Retired.", 1, True)

    def test_what_stood_in_the_profile_is_no_proposal(self, person: EndUser) -> None:
        write(person, "One")
        write(person, "Two")
        with pytest.raises(Conflict):
            take_proposed_section(revision=revision(1), changes=Changes(actor=STAFF, now=LATER))
        assert section() == ("Two", 2, False)


def _restore(person: EndUser, actor: Actor) -> object:
    return restore_profile_section(revision=revision(1), actor=actor, now=LATER)


VERBS: list[Callable[[EndUser, Actor], object]] = [
    lambda person, actor: write(person, "Three", actor=actor),
    _restore,
]


@pytest.mark.parametrize("verb", VERBS, ids=["write", "restore"])
def test_restricted_people_are_out_of_reach_for_keys(person: EndUser, verb: Callable[[EndUser, Actor], object]) -> None:
    write(person, "One")
    write(person, "Two")
    EndUser.objects.update(restricted_at=NOW)
    with pytest.raises(PersonRestricted):
        verb(person, KEY)
    assert section() == ("Two", 2, False)
    verb(person, STAFF)
    assert section()[1] == 3


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_first_writers_at_once_make_one_section(self) -> None:
        person = factories.end_user()
        outcomes = at_once(6, lambda writer: write(person, f"Summary {writer}"))
        assert all(isinstance(outcome, ProfileSection) for outcome in outcomes)
        assert [version for version, *_ in history()] == [1, 2, 3, 4, 5, 6]
        assert [before for _, _, before, _, _ in history()][1:] == [after for *_, after, _ in history()][:-1]
        assert (section()[1], len(events())) == (6, 6)

    def test_of_two_operators_who_saw_the_same_one_is_told(self) -> None:
        person = factories.end_user()
        write(person, "Runs a bakery.")
        outcomes = at_once(2, lambda one: write(person, f"By {one}", actor=STAFF, expected_version=1))
        assert {type(outcome) for outcome in outcomes} == {PreconditionFailed, ProfileSection}
        assert section()[1] == 2

    def test_a_key_that_waited_for_an_operator_is_refused(self) -> None:
        person = factories.end_user()
        with held(lambda: write(person, "Runs a bakery.", actor=STAFF)):
            late = blocked(lambda: write(person, "Runs nothing."))
        with pytest.raises(OperatorWord):
            late.result(PATIENCE)
        assert section() == ("Runs a bakery.", 1, True)
