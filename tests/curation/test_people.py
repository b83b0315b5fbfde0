"""A person's record."""

from typing import Any

import pytest

from memories import invariants
from memories.audit import Actor
from memories.capture import ingest
from memories.capture.ingest import PostedMessage
from memories.context import context
from memories.context.context import ContextRequest
from memories.curation.people.errors import PersonExists, PersonMerged
from memories.curation.people.external_ids import change_external_id
from memories.curation.people.merging.merge import merge_people
from memories.curation.people.records import add_person, update_person
from memories.curation.reverting import revert
from memories.exceptions import InvalidInput, PersonRestricted, PreconditionFailed
from memories.models import AuditEvent, EndUser, Fact, Session
from tests import factories
from tests.curation.test_merging import known
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import KEY, LATER, NOW, STAFF

pytestmark = pytest.mark.django_db


def events() -> list[tuple[str, str, str]]:
    """Verb, kind of object and kind of actor of each event, oldest first."""
    return list(AuditEvent.objects.order_by("id").values_list("verb", "object_type", "actor_kind"))


class TestPerson:
    def update(self, person: EndUser, *, actor: Actor = KEY, **changes: Any) -> EndUser:
        return update_person(end_user=person, changes=changes, actor=actor, now=LATER)

    def test_named_fields_change_and_no_others(self, person: EndUser) -> None:
        changes: dict[str, Any] = {
            "display_name": "安娜",
            "time_zone": "Asia/Shanghai",
            "language": "zh-CN",
            "metadata": {"plan": ["pro"]},
            "capture": False,
            "serve": False,
        }
        before = EndUser.objects.values().get()
        self.update(person, **changes)
        who = {"capture_off_by": "key", "serve_off_by": "key"}
        assert EndUser.objects.values().get() == {**before, **changes, **who}

    def test_it_leaves_an_event_without_content(self, person: EndUser) -> None:
        self.update(person, display_name="Anna Secret")
        event = AuditEvent.objects.get()
        assert (event.verb, event.object_type, event.object_id) == ("update", "EndUser", person.pk)
        assert (event.actor_kind, event.request_id, event.tenant_uuid) == ("key", "r-1", person.tenant_id)
        assert "Secret" not in str(vars(event))

    def test_a_stale_copy_does_not_bring_old_values_back(self, person: EndUser) -> None:
        EndUser.objects.update(language="zh-CN", generation=5)
        self.update(person, display_name="Anna")
        row = EndUser.objects.get()
        assert (row.language, row.generation, row.display_name) == ("zh-CN", 5, "Anna")

    def test_restricted_people_are_out_of_reach_for_keys(self, person: EndUser) -> None:
        EndUser.objects.update(restricted_at=NOW)
        with pytest.raises(PersonRestricted):
            self.update(person, display_name="Anna")
        assert (EndUser.objects.get().display_name, events()) == ("", [])
        self.update(person, actor=STAFF, display_name="Anna")
        assert EndUser.objects.get().display_name == "Anna"

    def test_who_was_merged_is_told(self, person: EndUser) -> None:
        EndUser.objects.filter(pk=person.pk).update(merged_into=factories.end_user(person.tenant))
        with pytest.raises(PersonMerged):
            self.update(person, display_name="Anna")


class TestAdding:
    def add(self, person: EndUser, external_id: str = "u-1", **record: Any) -> EndUser:
        """Beside a person of the same tenant."""
        given: dict[str, Any] = {"external_id": external_id, "record": record, "actor": STAFF, "now": LATER}
        return add_person(tenant=person.tenant, **given)

    def test_the_first_turn_finds_them(self, person: EndUser) -> None:
        added = self.add(person, display_name="安娜", language="zh-CN")
        assert (added.display_name, added.created_at, events()) == ("安娜", LATER, [("add", "EndUser", "operator")])
        session = factories.session(added)
        assert (session.end_user_id, EndUser.objects.count()) == (added.pk, 2)

    def test_no_secret_is_kept(self, person: EndUser) -> None:
        assert "hunter2" not in self.add(person, display_name="password: hunter2hunter2").display_name

    @pytest.mark.parametrize("name", ["", " ", "a\x00b", "a\nb", "x" * 256])
    def test_what_is_no_id_is_refused(self, person: EndUser, name: str) -> None:
        with pytest.raises(InvalidInput):
            self.add(person, name)
        assert self.add(person, "x" * 255)

    def test_an_id_is_taken_once_in_a_tenant(self, person: EndUser) -> None:
        with pytest.raises(PersonExists):
            self.add(person, person.external_id)
        EndUser.objects.create(
            tenant=person.tenant, external_id="also", merged_into=person, created_at=NOW, last_seen_at=NOW
        )
        with pytest.raises(PersonExists):
            self.add(person, "also")
        assert self.add(factories.end_user(), person.external_id)
        assert len(events()) == 1


class TestExternalId:
    def change(self, person: EndUser, external_id: str = "new", *, keeps_old: bool = True) -> EndUser:
        given: dict[str, Any] = {"keeps_old": keeps_old, "actor": STAFF, "now": LATER}
        return change_external_id(end_user=person, external_id=external_id, **given)

    def post(self, person: EndUser, user_id: str) -> Session | None:
        return ingest.store_turns(
            tenant=person.tenant,
            user_id=user_id,
            session_id="s",
            agent_id="",
            messages=[PostedMessage(role="user", content="Hello")],
        ).session

    @pytest.mark.parametrize("keeps_old", [True, False])
    def test_memories_are_found_under_the_new_id_and_the_old_one_where_it_is_kept(
        self, person: EndUser, keeps_old: bool
    ) -> None:
        old = person.external_id
        known(person, "Bakes bread")
        known(person, "Sails", allowed_users=[old])
        known(factories.end_user(person.tenant), "Is told to him", scope="public", allowed_users=["x", old])
        self.change(person, keeps_old=keeps_old)
        said = {
            name: context.build(tenant=person.tenant, request=ContextRequest(user_id=name), now=LATER).memory
            for name in ("new", old)
        }
        for content in ("Bakes bread", "Sails", "Is told to him"):
            assert (content in said["new"], content in said[old]) == (True, keeps_old), content
        first, second = self.post(person, "new"), self.post(person, old)
        assert first
        assert second
        assert (first.end_user_id == person.pk, second.end_user_id == person.pk) == (True, keeps_old)
        assert invariants.check() == []

    def test_whoever_gets_the_old_id_reads_nothing_of_it(self, person: EndUser) -> None:
        old = person.external_id
        fact = known(factories.end_user(person.tenant), "Is told to him", scope="public", allowed_users=[old])
        self.change(person, keeps_old=False)
        self.post(person, old)
        memory = context.build(tenant=person.tenant, request=ContextRequest(user_id=old), now=LATER).memory
        assert "Hello" in memory
        assert "Is told to him" not in memory
        fact.refresh_from_db()
        assert (fact.allowed_users, fact.version) == (["new"], 2)

    @pytest.mark.parametrize("keeps_old", [True, False])
    def test_changed_back_it_is_as_it_was(self, person: EndUser, keeps_old: bool) -> None:
        old = person.external_id
        changed = self.change(person, keeps_old=keeps_old)
        self.change(changed, old, keeps_old=False)
        assert list(EndUser.objects.values_list("external_id", "merged_into")) == [(old, None)]

    def test_to_the_same_id_nothing_happens(self, person: EndUser) -> None:
        self.change(person, person.external_id)
        assert (EndUser.objects.count(), events()) == (1, [])

    def test_an_id_of_somebody_else_is_refused(self, person: EndUser) -> None:
        other = factories.end_user(person.tenant, external_id="new")
        with pytest.raises(PersonExists):
            self.change(person)
        merged = merge_people(survivor=person.pk, merged=other.pk, actor=STAFF, now=LATER)
        # Undone, they want their id back.
        with pytest.raises(PersonExists):
            self.change(person)
        revert(change_set=merged.id, actor=STAFF, now=LATER)
        assert EndUser.objects.get(pk=other.pk).external_id == "new"

    def test_what_was_seen_must_be_so(self, person: EndUser) -> None:
        EndUser.objects.update(external_id="theirs")
        with pytest.raises(PreconditionFailed):
            self.change(person)
        EndUser.objects.update(external_id=person.external_id, restricted_at=NOW)
        with pytest.raises(PersonRestricted):
            self.change(person)

    def test_the_trail_names_no_id(self, person: EndUser) -> None:
        self.change(person, "a-new-name")
        assert events() == [("change_id", "EndUser", "operator")]
        event = str(vars(AuditEvent.objects.get()))
        assert not any(name in event for name in ("a-new-name", f"'{person.external_id}'"))


@pytest.mark.django_db(transaction=True)
class TestRaces:
    def test_of_two_who_add_the_same_one_does(self, person: EndUser) -> None:
        given: dict[str, Any] = {"tenant": person.tenant, "external_id": "u-1", "actor": STAFF, "now": LATER}
        outcomes = at_once(4, lambda _: add_person(**given))
        assert sorted(type(one).__name__ for one in outcomes) == ["EndUser", *["PersonExists"] * 3]

    def test_of_two_who_want_one_id_one_gets_it(self, person: EndUser) -> None:
        people = [person, factories.end_user(person.tenant)]
        given: dict[str, Any] = {"external_id": "new", "keeps_old": True, "actor": STAFF, "now": LATER}
        outcomes = at_once(2, lambda number: change_external_id(end_user=people[number], **given))
        assert sorted(type(one).__name__ for one in outcomes) == ["EndUser", "PersonExists"]

    @pytest.mark.parametrize("keeps_old", [True, False])
    def test_a_turn_that_comes_meanwhile_is_stored_once(self, person: EndUser, keeps_old: bool) -> None:
        given: dict[str, Any] = {"external_id": "new", "keeps_old": keeps_old, "actor": STAFF, "now": LATER}
        with held(lambda: change_external_id(end_user=person, **given)):
            posting = blocked(lambda: TestExternalId().post(person, person.external_id))
        assert posting.result(PATIENCE)
        [session] = Session.objects.all()
        assert (session.turn_count, session.end_user.merged_into_id) == (1, None)
        assert invariants.check() == []
        assert not Fact.objects.exists()
