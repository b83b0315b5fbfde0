"""Changes of people and of what many of them have are taken back by the one undo: roll backs, changed ids, merges."""

import uuid
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from memories import audit, invariants
from memories.audit import Actor
from memories.capture import get_or_create
from memories.curation.access.keys import Binding
from memories.curation.facts.editing import edit_fact
from memories.curation.facts.forgetting import forget_fact
from memories.curation.facts.restoring import restore_fact
from memories.curation.people.errors import PersonExists, PersonMerged
from memories.curation.people.external_ids import change_external_id
from memories.curation.people.merging.merge import merge_people
from memories.curation.reverting import revert
from memories.curation.review.suggestions import approve_fact
from memories.curation.rollback.roll_back import roll_back
from memories.curation.rollback.selection import Selector
from memories.exceptions import Conflict, NotFound, PersonRestricted
from memories.models import (
    APIKey,
    AuditEvent,
    Change,
    ChangeSet,
    EndUser,
    Fact,
    FactRefusal,
    ReviewItem,
)
from tests import factories
from tests.curation.test_merging import everything, known
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import NOW, STAFF

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
AGENT = "evil"


@pytest.fixture
def person() -> EndUser:
    return factories.end_user(external_id="old")


def made_by_agent(person: EndUser, content: str, **over: Any) -> Fact:
    """A fact of the agent's run, as if it had been extracted."""
    run = factories.run(factories.session(person, agent_id=AGENT))
    fact = factories.fact(person, content, extraction=run, **over)
    audit.revise(fact=fact, verb="extract", actor=Actor.run(run), before={}, reason="", now=NOW)
    return fact


def rolled_back(person: EndUser, **over: Any) -> uuid.UUID:
    given: dict[str, Any] = {"actor": STAFF, "now": NOW + DAY, **over}
    return roll_back(selector=Selector(person.tenant, agent_id=AGENT), **given).id


def take_back(change_set: uuid.UUID) -> dict[str, int]:
    return dict(revert(change_set=change_set, actor=STAFF, now=NOW + 2 * DAY))


def statuses() -> dict[str, str]:
    return dict(Fact.objects.values_list("content", "status"))


class TestRollBack:
    def test_it_is_about_the_one_person_or_about_none(self, person: EndUser) -> None:
        made_by_agent(person, "Likes tea")
        of_one = ChangeSet.objects.get(pk=rolled_back(person, reason="Anna said so"))
        assert (of_one.end_user, of_one.reason) == (person, "Anna said so")
        other = factories.end_user(person.tenant)
        for somebody in (person, other):
            made_by_agent(somebody, "Sails")
        of_two = ChangeSet.objects.get(pk=rolled_back(person, reason="Anna said so"))
        # The erasure of one of them would not find the reason; in the revisions it does.
        assert (of_two.end_user, of_two.reason) == (None, "")
        assert set(other.facts.get().revisions.values_list("reason", flat=True)) == {"", "Anna said so"}

    def test_it_is_taken_back_once(self, person: EndUser) -> None:
        made_by_agent(person, "Likes tea")
        done = rolled_back(person)
        assert take_back(done) == {"put_back": 1, "sections": 0, "kept": 0}
        with pytest.raises(Conflict, match="already undone this"):
            take_back(done)
        assert statuses() == {"Likes tea": "active"}
        undone = ChangeSet.objects.get(verb="undo_roll_back")
        assert (undone.counts["put_back"], undone.end_user) == (1, person)
        assert ChangeSet.objects.get(pk=done).reverted_by == undone.pk
        events = AuditEvent.objects.filter(object_type="ChangeSet", object_id=done)
        assert [event.verb for event in events] == ["undo_roll_back", "roll_back"]

    def test_later_changes_stay_and_those_that_were_taken_back_do_not_count(self, person: EndUser) -> None:
        facts = [made_by_agent(person, text) for text in ("Likes tea", "Sails")]
        done = rolled_back(person)
        for fact in facts:
            restore_fact(fact_id=fact.pk, tenant=None, actor=STAFF, now=NOW + DAY)
            forget_fact(fact_id=fact.pk, tenant=None, actor=STAFF, now=NOW + DAY)
        for verb in ("forget", "restore"):
            take_back(ChangeSet.objects.get(verb=verb, fact=facts[0]).pk)
        assert take_back(done) == {"put_back": 1, "sections": 0, "kept": 1}
        assert statuses() == {"Likes tea": "active", "Sails": "trashed"}

    def test_questions_that_it_settled_wait_again_unless_they_are_answered(self, person: EndUser) -> None:
        facts = [made_by_agent(person, text, status="pending") for text in ("Likes tea", "Sails")]
        for fact in facts:
            factories.review_item(fact)
        done = rolled_back(person)
        assert set(ReviewItem.objects.values_list("state", "change_set")) == {("settled", done)}
        # An operator answers it.
        restore_fact(fact_id=facts[1].pk, tenant=None, actor=STAFF, now=NOW + DAY)
        approve_fact(fact_id=facts[1].pk, actor=STAFF, now=NOW + DAY)
        take_back(done)
        assert dict(ReviewItem.objects.values_list("fact", "state")) == {facts[0].pk: "open", facts[1].pk: "approved"}

    def test_those_of_before_are_taken_back_too(self, person: EndUser) -> None:
        """The migration makes of what the last version left what this one makes."""
        fact = made_by_agent(person, "Likes tea", status="pending")
        factories.review_item(fact)
        taken, standing = rolled_back(person), None
        take_back(taken)
        standing = rolled_back(person, now=NOW + 3 * DAY, reason="Again")
        nothing = rolled_back(person, now=NOW + 4 * DAY)
        for done in ChangeSet.objects.filter(verb="roll_back"):
            # Its audit events named it so.
            given: dict[str, Any] = {"object_type": "RolledBack", "object_id": done.pk, "tenant_uuid": done.tenant_id}
            given |= {"actor_kind": "operator", "actor_id": "7"}
            AuditEvent.objects.create(verb="roll_back", counts=done.counts, created_at=done.created_at, **given)
            if done.undone_at:
                counts = ChangeSet.objects.get(verb="undo_roll_back").counts
                AuditEvent.objects.create(verb="undo_roll_back", counts=counts, created_at=done.undone_at, **given)
        # What was chosen came later.
        ChangeSet.objects.update(selected=None)
        before = sorted(ChangeSet.objects.values(), key=str), list(ReviewItem.objects.values())
        migration = import_module("memories.migrations.0010_change_sets_and_agents")
        with connection.cursor() as cursor:
            cursor.execute(migration.NO_ROLL_BACKS)
            assert not ChangeSet.objects.exists()
            cursor.execute(migration.ROLL_BACKS)
        assert (sorted(ChangeSet.objects.values(), key=str), list(ReviewItem.objects.values())) == before
        assert ChangeSet.objects.get(pk=nothing).end_user is None
        assert take_back(standing)["put_back"] == 1
        assert (statuses(), ReviewItem.objects.get().state) == ({"Likes tea": "pending"}, "open")


class TestChangedId:
    def change(self, person: EndUser, new: str = "new", *, keeps_old: bool = False, at: Any = NOW + DAY) -> ChangeSet:
        change_external_id(end_user=person, external_id=new, keeps_old=keeps_old, actor=STAFF, now=at)
        return ChangeSet.objects.filter(verb="change_id")[0]

    def world(self) -> list[Any]:
        people = list(EndUser.objects.order_by("pk").values("pk", "external_id", "merged_into", "created_at"))
        facts = list(Fact.objects.order_by("pk").values_list("content", "allowed_users"))
        return [people, facts, list(APIKey.objects.order_by("pk").values_list("pk", "user_id"))]

    @pytest.mark.parametrize("keeps_old", [True, False])
    def test_names_readers_and_keys_are_what_they_were(self, person: EndUser, keeps_old: bool) -> None:
        other = factories.end_user(person.tenant)
        for readers in (["old"], ["x", "old", "new"], ["new"]):
            known(other, f"For {readers}", scope="public", allowed_users=readers)
        for user_id in ("old", "new"):
            factories.api_key(person.tenant, binding=Binding(user_id))
        factories.end_user(person.tenant, external_id="new", merged_into=person)
        before = self.world()
        done = self.change(person, keeps_old=keeps_old)
        assert self.world() != before
        assert take_back(done.pk)["kept"] == 0
        assert self.world() == before
        with pytest.raises(Conflict, match="already undone this"):
            take_back(done.pk)
        assert AuditEvent.objects.filter(verb="undo", object_type="EndUser", object_id=person.pk).count() == 1
        assert invariants.check() == []

    def test_what_was_said_for_the_new_id_since_is_for_the_old_one(self, person: EndUser) -> None:
        """The new id is free then: whoever gets it must not read this."""
        other = factories.end_user(person.tenant)
        changed = known(other, "Changed since", scope="public", allowed_users=["old"])
        done = self.change(person)
        edit_fact(fact_id=changed.pk, tenant=None, changes={"importance": 0.1}, actor=STAFF, now=NOW + DAY)
        known(other, "Stated since", scope="public", allowed_users=["new"], created_at=NOW + DAY)
        factories.api_key(person.tenant, binding=Binding("new"), now=NOW + DAY)
        assert take_back(done.pk)["kept"] == 1
        assert [readers for (readers,) in Fact.objects.values_list("allowed_users")] == [["old"], ["old"]]
        assert APIKey.objects.get().user_id == "old"

    def test_not_when_somebody_has_the_old_id_by_now(self, person: EndUser) -> None:
        done = self.change(person)
        stranger, _made = get_or_create.end_user(tenant=person.tenant, user_id="old", now=NOW)
        with pytest.raises(PersonExists):
            take_back(done.pk)
        assert EndUser.objects.get(pk=person.pk).external_id == "new"
        stranger.delete()
        take_back(done.pk)
        assert EndUser.objects.get().external_id == "old"

    def test_changes_are_taken_back_from_the_last(self, person: EndUser) -> None:
        first = self.change(person, keeps_old=True)
        second = self.change(EndUser.objects.get(pk=person.pk), "newer", keeps_old=True)
        with pytest.raises(Conflict, match="changed again since"):
            take_back(first.pk)
        for done in (second, first):
            take_back(done.pk)
        assert [*EndUser.objects.values_list("external_id", "merged_into")] == [("old", None)]

    def test_not_of_somebody_restricted_merged_or_erased(self, person: EndUser) -> None:
        done = self.change(person)
        EndUser.objects.update(restricted_at=NOW)
        with pytest.raises(PersonRestricted):
            take_back(done.pk)
        EndUser.objects.update(restricted_at=None)
        other = factories.end_user(person.tenant)
        merged = merge_people(survivor=other.pk, merged=person.pk, actor=STAFF, now=NOW + DAY)
        with pytest.raises(PersonMerged):
            take_back(done.pk)
        assert merged
        EndUser.objects.filter(pk=person.pk).delete()
        # Its id of before went with the person.
        assert not Change.objects.filter(table="person").exists()
        with pytest.raises(NotFound):
            take_back(done.pk)


class TestMergeOfPeople:
    @pytest.fixture
    def tables(self, db: None) -> None:
        """The two tables that merges had of their own."""
        state = MigrationLoader(connection).project_state(("memories", "0009_one_lease"))
        with connection.schema_editor() as editor:
            for name in ("PersonMerge", "MergeEntry"):
                editor.create_model(state.apps.get_model("memories", name))
        # Rows of then had no tenant.
        later = import_module("memories.migrations.0027_tenant_of_children")
        with connection.cursor() as cursor:
            cursor.execute(later.FUNCTION)
            cursor.execute(later.TRIGGER.format(table="change", parent="changeset", column="change_set_id"))

    def everything(self) -> list[Any]:
        sets = ChangeSet.objects.exclude(verb="undo_merge").order_by("pk").values()
        of_a_row = Change.objects.order_by("table", "action", "uuid", "number")
        return [list(sets), list(of_a_row.values("change_set", "table", "action", "uuid", "number", "before"))]

    def test_those_of_before_are_taken_back_too(self, tables: None, person: EndUser) -> None:
        """The migration makes of what the last version left what this one makes."""
        other = factories.end_user(person.tenant, display_name="Anna", metadata={"plan": "pro"}, serve=False)
        factories.end_user(person.tenant, merged_into=other)
        for somebody in (person, other):
            fact = known(somebody, "Bakes bread")
            factories.evidence(fact, factories.session(somebody, session_id="main").turns.get())
            factories.profile_section(somebody, summary=somebody.external_id)
        factories.profile_section(other, "top_of_mind", "Boats.")
        FactRefusal.objects.create(tenant_id=other.tenant_id, end_user=other, kind="text", digest=b"d", created_at=NOW)
        before = everything(person), everything(other)
        given: dict[str, Any] = {"survivor": person.pk, "merged": other.pk, "actor": STAFF, "reason": "One person"}
        take_back(merge_people(**given, now=NOW).id)
        standing = merge_people(**given, now=NOW + DAY).id
        expected = self.everything()
        migration = import_module("memories.migrations.0010_change_sets_and_agents")
        with connection.cursor() as cursor:
            cursor.execute(migration.NO_MERGES)
            assert not ChangeSet.objects.exists()
            cursor.execute(migration.MERGES)
        # Of one that was undone, the counts of the undo took their place, and what it moved is gone with it.
        undone, merged = ChangeSet.objects.order_by("pk")
        assert (undone.undone_at, undone.reverted_by is None) == (NOW + 2 * DAY, False)
        assert (undone.counts["kept"], undone.changes.count()) == (0, 0)
        assert [list(ChangeSet.objects.filter(pk=standing).values())] == [expected[0][-1:]]
        assert self.everything()[1] == [row for row in expected[1] if row["change_set"] == merged.pk == standing]
        take_back(standing)
        assert (everything(person), everything(other)) == before

    @pytest.mark.parametrize("who", ["survivor", "merged"])
    def test_it_is_deleted_with_either(self, person: EndUser, who: str) -> None:
        other = factories.end_user(person.tenant)
        known(other, "Bakes bread")
        done = merge_people(survivor=person.pk, merged=other.pk, actor=STAFF, now=NOW).id
        take_back(done)
        made = ChangeSet.objects.get(pk=done)
        assert (made.end_user, made.merged, made.reason) == (person, other, "")
        EndUser.objects.get(pk={"survivor": person, "merged": other}[who].pk).delete()
        assert not ChangeSet.objects.filter(pk=done).exists()

    def test_a_later_merge_that_was_undone_does_not_count(self, person: EndUser) -> None:
        """The fact is as the first merge left it again, so its undo puts it back; an edit would have stayed."""
        others = [factories.end_user(person.tenant) for _ in range(2)]
        facts = [known(somebody, "Bakes bread", mentions=2) for somebody in (person, *others)]
        before = [everything(somebody) for somebody in (person, *others)]
        first, second = (
            merge_people(survivor=person.pk, merged=other.pk, actor=STAFF, now=NOW + day * DAY).id
            for day, other in enumerate(others)
        )
        kept = Fact.objects.get(pk=facts[0].pk)
        assert (kept.mentions, kept.status, kept.version) == (6, "active", facts[0].version + 2)
        assert take_back(second)["kept"] == 0
        assert Fact.objects.get(pk=kept.pk).mentions == 4
        assert take_back(first)["kept"] == 0
        assert [everything(somebody) for somebody in (person, *others)] == before
        assert invariants.check() == []

    def test_once_undone_it_names_nothing_that_is_another_persons_again(self, person: EndUser) -> None:
        other = factories.end_user(person.tenant)
        for somebody in (person, other):
            factories.session(somebody, session_id="main")
        done = merge_people(survivor=person.pk, merged=other.pk, actor=STAFF, now=NOW).id
        assert Change.objects.filter(change_set=done, before={"external_id": "main"}).exists()
        take_back(done)
        assert not Change.objects.exists()


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_of_many_who_take_back_a_roll_back_one_does(self, person: EndUser) -> None:
        for somebody in (person, factories.end_user(person.tenant)):
            made_by_agent(somebody, "Likes tea")
        done = rolled_back(person)
        outcomes = at_once(4, lambda _: take_back(done))
        assert sum(isinstance(outcome, dict) for outcome in outcomes) == 1
        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 3
        assert set(Fact.objects.values_list("status", "version")) == {("active", 3)}

    def test_people_who_are_merged_meanwhile(self, person: EndUser) -> None:
        other = factories.end_user(person.tenant)
        made_by_agent(person, "Likes tea")
        done = rolled_back(person)
        with held(lambda: merge_people(survivor=other.pk, merged=person.pk, actor=STAFF, now=NOW + DAY)):
            waiting = blocked(lambda: take_back(done))
        with pytest.raises(PersonMerged):
            waiting.result(PATIENCE)
        assert statuses() == {"Likes tea": "trashed"}
        take_back(done)
        assert statuses() == {"Likes tea": "active"}

    def test_one_of_them_erased_meanwhile(self, person: EndUser) -> None:
        gone = factories.end_user(person.tenant)
        for somebody in (person, gone):
            made_by_agent(somebody, "Likes tea")
        done = rolled_back(person)
        with held(lambda: EndUser.objects.filter(pk=gone.pk).delete()):
            waiting = blocked(lambda: take_back(done))
        assert waiting.result(PATIENCE) == {"put_back": 1, "sections": 0, "kept": 0}
        assert Fact.objects.get().status == "active"

    def test_all_of_them_erased_meanwhile(self, person: EndUser) -> None:
        made_by_agent(person, "Likes tea")
        done = rolled_back(person)
        with held(lambda: EndUser.objects.filter(pk=person.pk).delete()):
            waiting = blocked(lambda: take_back(done))
        with pytest.raises(NotFound):
            waiting.result(PATIENCE)

    def test_somebody_gets_the_old_id_at_the_same_moment(self, person: EndUser) -> None:
        done = TestChangedId().change(person)
        with held(lambda: get_or_create.end_user(tenant=person.tenant, user_id="old", now=NOW)):
            waiting = blocked(lambda: take_back(done.pk))
        with pytest.raises(PersonExists):
            waiting.result(PATIENCE)
        assert set(EndUser.objects.values_list("external_id", flat=True)) == {"old", "new"}

    @pytest.mark.parametrize("who", ["survivor", "merged"])
    def test_one_of_two_who_were_merged_erased_meanwhile(self, person: EndUser, who: str) -> None:
        other = factories.end_user(person.tenant)
        known(other, "Bakes bread")
        done = merge_people(survivor=person.pk, merged=other.pk, actor=STAFF, now=NOW).id
        gone = {"survivor": person, "merged": other}[who]
        with held(lambda: EndUser.objects.get(pk=gone.pk).delete()):
            waiting = blocked(lambda: take_back(done))
        with pytest.raises(NotFound):
            waiting.result(PATIENCE)
        assert not ChangeSet.objects.exists()

    def test_two_who_were_merged_into_another_meanwhile(self, person: EndUser) -> None:
        other, third = (factories.end_user(person.tenant) for _ in range(2))
        known(other, "Bakes bread")
        first = merge_people(survivor=person.pk, merged=other.pk, actor=STAFF, now=NOW).id
        with held(lambda: merge_people(survivor=third.pk, merged=person.pk, actor=STAFF, now=NOW + DAY)):
            waiting = blocked(lambda: take_back(first))
        with pytest.raises(Conflict, match="merged again since"):
            waiting.result(PATIENCE)
        assert Fact.objects.get().end_user == third
        for done in (ChangeSet.objects.get(merged=person).pk, first):
            take_back(done)
        assert Fact.objects.get().end_user == other
