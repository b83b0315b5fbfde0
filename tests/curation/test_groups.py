"""Facts of groups when people are erased, merged or leave, and under races."""

import uuid
from typing import Any

import pytest

from memories.audit import Actor
from memories.context import context
from memories.context.context import ContextRequest
from memories.curation.groups.facts import delete_group_fact, restore_group_fact, state_group_fact, withdraw_group_fact
from memories.curation.groups.membership import delete_group, remove_member, restore_group, set_member
from memories.curation.people.clearing import clear_memories, preview_clearing
from memories.curation.people.merging.merge import merge_people
from memories.curation.reverting import revert
from memories.curation.rollback.roll_back import preview_rollback, roll_back
from memories.curation.rollback.selection import Selector
from memories.curation.statements.write_trust import AS_USER
from memories.exceptions import Conflict, NotAMember, NotFound, PersonRestricted
from memories.models import (
    ActorKind,
    CaseState,
    ChangeSet,
    EndUser,
    GroupEvidence,
    GroupFact,
    GroupMember,
    IdempotencyRecord,
    MemoryGroup,
)
from memories.privacy import running
from tests import factories
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import COMMAND, LATER, NOW, STAFF
from tests.privacy.erased_world import erasure, stand_in

KEY = Actor(kind=ActorKind.KEY, id="8")
SAYS = "The oven takes an hour on Mondays"


def state(group: MemoryGroup, person: EndUser, content: str = SAYS, *, by: Actor = KEY, **given: Any) -> GroupFact:
    return state_group_fact(
        group_id=group.pk, end_user=person, content=content, actor=by, now=NOW, write_trust=AS_USER, **given
    ).row


def said_by(fact: GroupFact) -> set[Any]:
    return set(GroupEvidence.objects.filter(fact=fact).values_list("end_user", flat=True))


def erase(person: EndUser) -> None:
    case = running.carry_out(case_id=erasure(person).pk, now=LATER, wait_seconds=PATIENCE)
    assert case.state == CaseState.COMPLETED, case.failure


@pytest.mark.django_db
class TestWhatBecomesOfFacts:
    @pytest.fixture
    def ann(self) -> EndUser:
        return factories.end_user()

    @pytest.fixture
    def bob(self, ann: EndUser) -> EndUser:
        return factories.end_user(ann.tenant)

    def test_an_erasure_takes_what_nobody_else_said_and_what_is_about_them(
        self, ann: EndUser, bob: EndUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stand_in(monkeypatch)
        group, alone = factories.memory_group(ann, bob), factories.memory_group(ann, name="Ann's own")
        state(alone, ann)
        state(group, ann, "Only Ann said it")
        about = state(group, bob, "Ann likes rye", about=ann)
        both, bobs = state(group, ann, "Both said it"), state(group, bob, "Only Bob said it")
        assert state(group, bob, "both SAID it") == both
        left = factories.memory_group(ann, bob)
        parted = state(left, ann, "Said before leaving")
        remove_member(group_id=left.pk, end_user=ann, actor=KEY, now=NOW)
        assert said_by(parted) == {ann.pk}
        for one in (group, alone):
            record = factories.idempotency_record(
                ann, endpoint="addGroup", status=201, body=f'{{"id":"{one.pk}"}}'.encode()
            )
            record.end_users.clear()
        erase(ann)
        assert set(GroupFact.objects.values_list("pk", flat=True)) == {both.pk, bobs.pk}
        assert about.pk not in GroupFact.objects.values_list("pk", flat=True)
        assert said_by(both) == {bob.pk}
        # The name of one that nobody else belongs to may be personal.
        names = dict(MemoryGroup.objects.values_list("pk", "name"))
        assert names == {group.pk: "Bakers", left.pk: "Bakers", alone.pk: ""}
        kept = IdempotencyRecord.objects.order_by("pk").values_list("status", "body")
        assert [(status, bool(bytes(body))) for status, body in kept] == [(201, True), (410, False)]
        assert set(GroupMember.objects.values_list("end_user", flat=True)) == {bob.pk}

    def test_the_last_words_stay_with_the_fact_in_the_trash(self, ann: EndUser, bob: EndUser) -> None:
        group = factories.memory_group(ann, bob)
        fact = state(group, ann)
        state(group, bob)
        assert withdraw_group_fact(fact_id=fact.pk, end_user=bob, actor=KEY, now=NOW) is True
        assert withdraw_group_fact(fact_id=fact.pk, end_user=ann, actor=KEY, now=NOW) is False
        restore_group_fact(fact_id=fact.pk, actor=STAFF, now=NOW)
        assert said_by(fact) == {ann.pk}
        delete_group_fact(fact_id=fact.pk, actor=STAFF, now=NOW)
        again = state(group, bob)
        assert again != fact
        with pytest.raises(Conflict):
            restore_group_fact(fact_id=fact.pk, actor=STAFF, now=NOW)

    def test_of_a_restricted_person_nothing_is_stated_or_withdrawn_but_they_may_leave(
        self, ann: EndUser, bob: EndUser
    ) -> None:
        group = factories.memory_group(ann, bob)
        fact = state(group, ann)
        EndUser.objects.filter(pk=ann.pk).update(restricted_at=NOW)
        for act in (
            lambda: state(group, ann, "More"),
            lambda: state(group, bob, "About Ann", about=ann),
            lambda: withdraw_group_fact(fact_id=fact.pk, end_user=ann, actor=KEY, now=NOW),
            lambda: delete_group_fact(fact_id=fact.pk, actor=KEY, now=NOW),
            lambda: set_member(group_id=group.pk, end_user=ann, may_write=False, actor=KEY, now=NOW),
        ):
            with pytest.raises(PersonRestricted):
                act()
        assert state(group, bob) == fact
        remove_member(group_id=group.pk, end_user=ann, actor=KEY, now=NOW)
        assert set(GroupMember.objects.values_list("end_user", flat=True)) == {bob.pk}

    def test_a_deleted_group_is_told_to_nobody_and_comes_back_as_it_was(self, ann: EndUser, bob: EndUser) -> None:
        group, other = factories.memory_group(ann, bob), factories.memory_group(ann, bob)
        fact, kept = state(group, ann), state(other, ann, "The shop opens at nine")

        def told() -> set[Any]:
            return set(GroupFact.objects.served_to(bob).values_list("pk", flat=True))

        assert told() == {fact.pk, kept.pk}
        EndUser.objects.filter(pk=bob.pk).update(restricted_at=NOW)
        with pytest.raises(PersonRestricted):
            delete_group(group_id=group.pk, actor=KEY, now=NOW)
        EndUser.objects.filter(pk=bob.pk).update(restricted_at=None)
        delete_group(group_id=group.pk, actor=KEY, now=NOW)
        assert told() == {kept.pk}
        for act in (
            lambda: delete_group(group_id=group.pk, actor=KEY, now=NOW),
            lambda: state(group, bob),
            lambda: withdraw_group_fact(fact_id=fact.pk, end_user=ann, actor=KEY, now=NOW),
            lambda: set_member(group_id=group.pk, end_user=bob, may_write=False, actor=KEY, now=NOW),
            lambda: remove_member(group_id=group.pk, end_user=bob, actor=KEY, now=NOW),
        ):
            with pytest.raises(NotFound):
                act()
        restore_group(group_id=group.pk, actor=STAFF, now=NOW)
        assert (told(), said_by(fact)) == ({fact.pk, kept.pk}, {ann.pk})
        with pytest.raises(Conflict):
            restore_group(group_id=group.pk, actor=STAFF, now=NOW)

    def test_an_erasure_reaches_a_deleted_group(
        self, ann: EndUser, bob: EndUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stand_in(monkeypatch)
        group = factories.memory_group(ann, bob)
        state(group, ann)
        bobs = state(group, bob, "Bob's")
        delete_group(group_id=group.pk, actor=KEY, now=NOW)
        erase(ann)
        assert list(GroupFact.objects.values_list("pk", flat=True)) == [bobs.pk]
        assert list(GroupMember.objects.values_list("end_user", flat=True)) == [bob.pk]

    def test_a_roll_back_takes_what_a_key_stated_and_leaves_it_with_others(self, ann: EndUser, bob: EndUser) -> None:
        bad = Actor(kind=ActorKind.KEY, id=str(factories.api_key(ann.tenant)[0].pk))
        group = factories.memory_group(ann, bob)
        both, alone, kept = state(group, ann, by=bad), state(group, ann, "Ann's", by=bad), state(group, ann, "Kept")
        assert state(group, bob) == both

        def rows() -> Any:
            said = GroupEvidence.objects.filter(fact__trashed_at=None).order_by("pk")
            return list(said.values_list("fact", "end_user"))

        before, selector = rows(), Selector(ann.tenant, key=uuid.UUID(bad.id))
        counts = preview_rollback(selector).counts
        done = roll_back(selector=selector, actor=COMMAND, now=NOW)
        assert (counts["group_facts"], done.counts["group_facts"]) == (2, 2)
        assert set(rows()) == {(both.pk, bob.pk), (kept.pk, ann.pk)}
        assert preview_rollback(selector).changes_nothing
        assert revert(change_set=done.id, actor=COMMAND, now=LATER)["group_facts"] == 2
        assert rows() == before
        assert not GroupFact.objects.exclude(trashed_at=None).exists()
        # Stated anew meanwhile, by her and by him: one fact that rests on both.
        done = roll_back(selector=selector, actor=COMMAND, now=NOW)
        again = state(group, bob, "Ann's")
        revert(change_set=done.id, actor=COMMAND, now=LATER)
        assert not GroupFact.objects.filter(pk=alone.pk).exists()
        assert said_by(again) == {ann.pk, bob.pk}

    def test_a_clearing_takes_what_the_person_stated_through_an_agent_or_any(self, ann: EndUser, bob: EndUser) -> None:
        group = factories.memory_group(ann, bob)
        state(group, ann)
        sold, about = state(group, ann, "Sold out", agent_id="sales"), state(group, bob, "Ann bakes", about=ann)
        for agent_id, count, left in (("sales", 1, 2), ("", 1, 1)):
            assert preview_clearing(end_user=ann, agent_id=agent_id)["group_facts"] == count
            counts = clear_memories(end_user=ann, agent_id=agent_id, actor=KEY, now=NOW)
            assert (counts["group_facts"], GroupFact.objects.present().count()) == (count, left)
        assert GroupFact.objects.present().get() == about
        # What an operator restores is no matter of the undo any more.
        restore_group_fact(fact_id=sold.pk, actor=STAFF, now=NOW)
        delete_group_fact(fact_id=sold.pk, actor=STAFF, now=NOW)
        for done in ChangeSet.objects.filter(verb="clear", undone_at=None):
            revert(change_set=done.pk, actor=COMMAND, now=NOW)
        assert set(GroupFact.objects.present().values_list("content", flat=True)) == {SAYS, "Ann bakes"}

    def test_two_members_who_are_merged_are_one_until_the_undo(self, ann: EndUser, bob: EndUser) -> None:
        both, bobs = factories.memory_group(ann, bob), factories.memory_group(bob)
        carl = factories.end_user(ann.tenant)
        set_member(group_id=both.pk, end_user=carl, may_write=True, actor=KEY, now=NOW)
        same, own, about = state(both, ann), state(bobs, bob, "Bob's"), state(both, carl, "Of Bob", about=bob)
        assert state(both, bob) == same

        def rows() -> list[Any]:
            members = GroupMember.objects.order_by("pk").values_list("pk", "end_user")
            evidence = GroupEvidence.objects.order_by("pk").values_list("pk", "end_user")
            return [*members, *evidence, *GroupFact.objects.order_by("pk").values_list("pk", "about")]

        before = rows()
        done = merge_people(survivor=ann.pk, merged=bob.pk, actor=STAFF, now=NOW)
        assert (done.counts["memberships"], done.counts["said_in_groups"]) == (1, 1)
        assert (said_by(own), GroupFact.objects.get(pk=about.pk).about_id) == ({ann.pk}, ann.pk)
        # The second membership and statement lead to the survivor, and go with what the survivor does.
        assert withdraw_group_fact(fact_id=same.pk, end_user=ann, actor=KEY, now=NOW) is False
        restore_group_fact(fact_id=same.pk, actor=STAFF, now=NOW)
        revert(change_set=done.id, actor=COMMAND, now=NOW)
        assert rows() == before

    def test_who_leaves_after_a_merge_has_left(self, ann: EndUser, bob: EndUser) -> None:
        group = factories.memory_group(ann, bob)
        merge_people(survivor=ann.pk, merged=bob.pk, actor=STAFF, now=NOW)
        remove_member(group_id=group.pk, end_user=ann, actor=KEY, now=NOW)
        assert not GroupMember.objects.exists()
        with pytest.raises(NotAMember):
            state(group, ann)


@pytest.mark.django_db(transaction=True)
class TestRaces:
    @pytest.fixture
    def ann(self) -> EndUser:
        return factories.end_user()

    @pytest.fixture
    def bob(self, ann: EndUser) -> EndUser:
        return factories.end_user(ann.tenant)

    def test_two_who_state_the_same_at_once_make_one_fact(self, ann: EndUser, bob: EndUser) -> None:
        group = factories.memory_group(ann, bob)
        outcomes = at_once(2, lambda index: state(group, (ann, bob)[index]))
        assert [type(one) for one in outcomes] == [GroupFact, GroupFact]
        assert said_by(GroupFact.objects.get()) == {ann.pk, bob.pk}

    def test_nothing_is_stated_as_somebody_whose_erasure_has_begun(self, ann: EndUser, bob: EndUser) -> None:
        group = factories.memory_group(ann, bob)

        def restrict() -> bool:
            EndUser.objects.select_for_update().get(pk=ann.pk)
            return bool(EndUser.objects.filter(pk=ann.pk).update(restricted_at=NOW))

        for attempt in (lambda: state(group, ann), lambda: state(group, bob, about=ann)):
            EndUser.objects.filter(pk=ann.pk).update(restricted_at=None)
            with held(restrict):
                waiting = blocked(attempt)
            with pytest.raises(PersonRestricted):
                waiting.result(PATIENCE)
        assert not GroupFact.objects.exists()

    def test_an_erasure_waits_for_who_states_the_same_and_leaves_it(
        self, ann: EndUser, bob: EndUser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stand_in(monkeypatch)
        group = factories.memory_group(ann, bob)
        fact = state(group, ann)
        with held(lambda: state(group, bob)):
            waiting = blocked(lambda: erase(ann))
        waiting.result(PATIENCE)
        assert said_by(fact) == {bob.pk}

    def test_who_states_what_is_being_deleted_makes_it_anew(self, ann: EndUser, bob: EndUser) -> None:
        group = factories.memory_group(ann, bob)
        fact = state(group, ann)

        def delete() -> bool:
            delete_group_fact(fact_id=fact.pk, actor=KEY, now=NOW)
            return True

        with held(delete):
            waiting = blocked(lambda: state(group, bob))
        assert said_by(waiting.result(PATIENCE)) == {bob.pk}

    def test_nobody_states_a_fact_in_a_group_that_they_leave(self, ann: EndUser) -> None:
        group = factories.memory_group(ann)

        def leave() -> bool:
            remove_member(group_id=group.pk, end_user=ann, actor=KEY, now=NOW)
            return True

        with held(leave):
            # A context is not held up, and is told what is there until they have left.
            told = context.build(tenant=ann.tenant, request=ContextRequest(user_id=ann.external_id), now=LATER)
            waiting = blocked(lambda: state(group, ann))
        assert told.memory == ""
        with pytest.raises(NotAMember):
            waiting.result(PATIENCE)

    def test_whoever_is_gone_joins_nothing(self, ann: EndUser) -> None:
        group = factories.memory_group(ann)
        other = factories.end_user(ann.tenant)
        EndUser.objects.filter(pk=other.pk).delete()
        with pytest.raises(NotFound):
            set_member(group_id=group.pk, end_user=other, may_write=True, actor=KEY, now=NOW)
