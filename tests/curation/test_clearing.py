"""Clearing what is remembered of a person or of one agent of theirs: into the trash, with one undo."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memories.audit import Actor
from memories.curation.access.keys import Binding
from memories.curation.change_sets import Changes
from memories.curation.episodes import restore_episode
from memories.curation.facts.editing import correct_fact
from memories.curation.people.clearing import clear_memories
from memories.curation.profile.sections import write_profile_section
from memories.curation.reverting import revert
from memories.exceptions import Conflict, NotFound, PersonRestricted
from memories.models import AuditEvent, ChangeSet, EndUser, Episode, Fact, FactRefusal, ProfileSection, ReviewItem, Turn
from tests import factories
from tests.api.conftest import Hub, hub_of
from tests.database import elsewhere, held
from tests.factories import COMMAND, NOW

KEY = Actor(kind="key", id="0")  # type: ignore[arg-type]


@pytest.fixture
def person(db: None) -> EndUser:
    """Somebody of whom something of every kind is known."""
    person = factories.end_user(factories.tenant(), external_id="u1")
    for agent in ("", "sales"):
        conversation = factories.session(person, agent_id=agent, session_id=f"of {agent}")
        factories.episode(conversation, f"Talked to {agent or 'nobody'}")
        factories.fact(person, "Sings", agent_id=agent)
    factories.review_item(factories.fact(person, "A suggestion", status="pending"))
    factories.fact(person, "Sang", status="superseded")
    factories.fact(person, "Refused", status="rejected")
    factories.profile_section(person)
    return person


def state(person: EndUser) -> tuple[Any, ...]:
    """What is remembered, without versions."""
    return (
        sorted(Fact.objects.filter(end_user=person).values_list("content", "agent_id", "status")),
        sorted(Episode.objects.filter(end_user=person).values_list("summary", "status")),
        sorted(ProfileSection.objects.filter(end_user=person).values_list("section", "summary", "binding")),
        sorted(ReviewItem.objects.filter(end_user=person).values_list("state", "reason")),
    )


def live(person: EndUser) -> set[str]:
    facts = Fact.objects.filter(end_user=person, status__in=["active", "pending"])
    told = Episode.objects.filter(end_user=person, status="active")
    sections = ProfileSection.objects.written().filter(end_user=person)
    return {
        *facts.values_list("content", flat=True),
        *told.values_list("summary", flat=True),
        *sections.values_list("summary", flat=True),
    }


class TestClearing:
    def test_all_goes_to_the_trash_and_one_undo_brings_it_back(self, person: EndUser) -> None:
        before = state(person)
        counts = clear_memories(end_user=person, actor=COMMAND, now=NOW)
        assert counts == {"facts": 4, "episodes": 2, "sections": 1, "files": 0, "diary": 0}
        assert live(person) == set()
        assert set(Fact.objects.values_list("status", flat=True)) == {"trashed", "rejected"}
        assert ReviewItem.objects.get().state == "settled"
        assert Turn.objects.filter(end_user=person).exists()
        assert not FactRefusal.objects.exists()
        assert AuditEvent.objects.get(verb="clear").counts == counts
        revert(change_set=ChangeSet.objects.get(verb="clear").pk, actor=COMMAND, now=NOW)
        assert state(person) == before

    def test_of_an_agent_only_what_is_that_agents(self, person: EndUser) -> None:
        counts = clear_memories(end_user=person, actor=COMMAND, now=NOW, agent_id="sales")
        assert counts == {"facts": 1, "episodes": 1, "sections": 0, "files": 0, "diary": 0}
        assert live(person) == {"Sings", "A suggestion", "Talked to nobody", "Runs a bakery."}

    def test_a_key_leaves_an_operators_word_and_what_is_locked(self, person: EndUser) -> None:
        given: dict[str, Any] = {"actor": Actor.operator(factories.operator()), "now": NOW}
        fact = Fact.objects.get(content="Sings", agent_id="")
        correct_fact(fact_id=fact.pk, tenant=None, content="Whistles", reason="", **given)
        write_profile_section(end_user=person, section="top_of_mind", summary="Bound", **given)
        factories.fact(person, "Locked", locked=True)
        clear_memories(end_user=person, actor=KEY, now=NOW)
        assert live(person) == {"Whistles", "Bound", "Locked"}
        clear_memories(end_user=person, **given)
        assert live(person) == set()
        assert not ProfileSection.objects.filter(binding=True).exists()

    def test_twice_does_nothing_more(self, person: EndUser) -> None:
        clear_memories(end_user=person, actor=COMMAND, now=NOW)
        assert set(clear_memories(end_user=person, actor=COMMAND, now=NOW).values()) == {0}
        assert AuditEvent.objects.filter(verb="clear").count() == 1

    def test_an_operator_takes_back_what_a_key_cleared(self, person: EndUser) -> None:
        before = state(person)
        counts = clear_memories(end_user=person, actor=KEY, now=NOW)
        done = ChangeSet.objects.get()
        assert (done.verb, done.actor_kind, done.end_user, done.counts) == ("clear", "key", person, counts)
        revert(change_set=done.pk, actor=COMMAND, now=NOW)
        assert state(person) == before
        with pytest.raises(Conflict):
            revert(change_set=done.pk, actor=COMMAND, now=NOW)
        assert state(person) == before

    def test_what_came_since_stays_when_it_is_taken_back(self, person: EndUser) -> None:
        for number in (1, 2):
            factories.fact(person, f"Lives in {number}", category="identity", key=f"city {number}", value="Leiden")
        clear_memories(end_user=person, actor=KEY, now=NOW)
        given: dict[str, Any] = {"actor": Actor.operator(factories.operator()), "now": NOW}
        restored = Fact.objects.get(content="Sings", agent_id="")
        with Changes(**given).changing(restored, "restore"):
            restored.status = "active"
        restore_episode(episode_id=Episode.objects.get(summary="Talked to sales").pk, **given)
        write_profile_section(end_user=person, section="work_context", summary="Said since", **given)
        # The one says again what was cleared, the other gives its key another value.
        factories.fact(person, "A suggestion")
        factories.fact(person, "Lives in Delft", category="identity", key="city 1", value="Delft")
        counts = revert(change_set=ChangeSet.objects.get(verb="clear").pk, **given)
        assert counts == {"put_back": 3, "episodes": 1, "sections": 0, "kept": 5}
        assert live(person) == {
            *("Sings", "A suggestion", "Lives in Delft", "Lives in 2", "Talked to nobody", "Talked to sales"),
            "Said since",
        }

    def test_nobody_takes_back_what_was_erased(self, person: EndUser) -> None:
        clear_memories(end_user=person, actor=KEY, now=NOW)
        done = ChangeSet.objects.get()
        person.delete()
        with pytest.raises(NotFound):
            revert(change_set=done.pk, actor=COMMAND, now=NOW)

    def test_a_key_clears_nobody_under_restriction(self, person: EndUser) -> None:
        EndUser.objects.filter(pk=person.pk).update(restricted_at=NOW)
        with pytest.raises(PersonRestricted):
            clear_memories(end_user=person, actor=KEY, now=NOW)
        staff = Actor.operator(factories.operator())
        assert clear_memories(end_user=person, actor=staff, now=NOW)["facts"] == 4

    def test_nobody_who_was_erased(self, person: EndUser) -> None:
        other = EndUser.objects.get(pk=person.pk)
        person.delete()
        with pytest.raises(NotFound):
            clear_memories(end_user=other, actor=COMMAND, now=NOW)

    def test_many_facts_take_as_many_statements_as_few(self, db: None) -> None:
        def statements(count: int) -> int:
            somebody = factories.end_user()
            for number in range(count):
                factories.fact(somebody, f"Fact {number}")
            with CaptureQueriesContext(connection) as taken:
                assert clear_memories(end_user=somebody, actor=COMMAND, now=NOW)["facts"] == count
            return len(taken)

        assert statements(2) == statements(40)


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_clears(transactional_db: None) -> None:
    person = factories.end_user()
    factories.fact(person)

    def work() -> None:
        clear_memories(end_user=person, actor=COMMAND, now=NOW)

    with held(work):
        """The first is not committed yet: the second must see it once it is."""
    elsewhere(work)
    assert Fact.objects.get().version == 2
    assert ChangeSet.objects.filter(verb="clear").count() == 1


class TestEndpoint:
    @pytest.fixture
    def hub(self, person: EndUser) -> Hub:
        return hub_of(person.tenant, scopes=["read", "write"])

    def test_answers_the_empty_document(self, hub: Hub, person: EndUser) -> None:
        answer = hub.client.call("DELETE", "/memory", query={"user_id": "u1"})
        assert (answer.status_code, answer.json()["facts"]) == (200, [])
        assert {part["summary"] for part in answer.json()["user"].values()} == {""}
        # Every agent's, too.
        assert live(person) == set()
        assert "Sings" not in hub.client.post("/context", {"user_id": "u1", "agent_id": "sales"}).json()["memory"]

    def test_a_key_for_an_agent_clears_that_agents_alone(self, person: EndUser) -> None:
        bound = hub_of(person.tenant, binding=Binding(agent_id="sales", writes_as="user"))
        refused = bound.client.call("DELETE", "/memory", query={"user_id": "u1", "agent_id": "support"})
        assert refused.json()["code"] == "key_bound"
        bound.client.call("DELETE", "/memory", query={"user_id": "u1"})
        assert live(person) == {"Sings", "A suggestion", "Talked to nobody", "Runs a bakery."}

    def test_what_a_key_does_not_see_stays(self, hub: Hub, person: EndUser) -> None:
        factories.fact(person, "Takes warfarin", allowed_roles=["doctor"])
        hub.client.call("DELETE", "/memory", query={"user_id": "u1"})
        assert live(person) == {"Takes warfarin"}
        hub.client.call("DELETE", "/memory", query={"user_id": "u1", "roles": "doctor"})
        assert live(person) == set()

    def test_what_was_cleared_comes_again(self, hub: Hub, person: EndUser) -> None:
        document = hub.client.get("/memory", user_id="u1").json()
        hub.client.call("DELETE", "/memory", query={"user_id": "u1"})
        answer = hub.client.call("PUT", "/memory", document, query={"user_id": "u1"}).json()
        assert [fact["content"] for fact in answer["facts"]] == ["Sings"]
        assert answer["user"] == document["user"] | {"workContext": answer["user"]["workContext"]}

    def test_nobody_has_nothing(self, hub: Hub) -> None:
        answer = hub.client.call("DELETE", "/memory", query={"user_id": "nobody"})
        assert (answer.status_code, answer.json()["facts"]) == (200, [])
        assert not EndUser.objects.filter(external_id="nobody").exists()
