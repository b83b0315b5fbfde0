"""A tenant's memory can belong to agents: what one of them heard no other is told, until an operator shares it."""

from typing import Any

import pytest

from memories.capture import ingest
from memories.capture.ingest import PostedMessage
from memories.context import context
from memories.context.context import ContextRequest
from memories.context.parts import INCLUDABLE
from memories.curation.facts.publishing import promote_fact
from memories.curation.reverting import revert
from memories.exceptions import Conflict, DuplicateFact
from memories.extraction import consolidation
from memories.models import (
    AuditEvent,
    ChangeSet,
    EndUser,
    ExtractionRun,
    Fact,
    ProfileSection,
    SessionQueue,
    Tenant,
)
from memories.retrieval import search
from memories.retrieval.search import KINDS, SearchFilters, SearchRequest
from tests import factories
from tests.factories import COMMAND, NOW
from tests.model import Model, candidate

SAID = factories.SAID


@pytest.fixture
def tenant(person: EndUser) -> Tenant:
    EndUser.objects.filter(pk=person.pk).update(external_id="u1")
    person.external_id = "u1"
    Tenant.objects.filter(pk=person.tenant_id).update(memory_of="agent")
    return Tenant.objects.get(pk=person.tenant_id)


def hear(tenant: Tenant, agent: str, session: str, said: str = SAID) -> ExtractionRun:
    """The agent's session is posted and extracted; the tenant's row is read for each, as a request does."""
    receipt = ingest.store_turns(
        tenant=Tenant.objects.get(pk=tenant.pk),
        user_id="u1",
        session_id=session,
        agent_id=agent,
        messages=[PostedMessage(role="user", content=said)],
        flush=True,
    )
    assert receipt.session
    run = consolidation.consolidate(session_id=SessionQueue.objects.get(pk=receipt.session.pk).pk, now=NOW)
    assert run
    assert run.status == "committed"
    return run


def told(tenant: Tenant, agent: str, query: str = "") -> str:
    include = frozenset(INCLUDABLE) - {"working_memory"}
    request = ContextRequest(user_id="u1", agent_id=agent, query=query, include=include)
    return context.build(tenant=Tenant.objects.get(pk=tenant.pk), request=request, now=NOW).memory


def found(tenant: Tenant, agent: str | None) -> set[str]:
    request = SearchRequest("u1", "Leiden", kinds=KINDS, filters=SearchFilters(agent_id=agent))
    given = search.search(tenant=Tenant.objects.get(pk=tenant.pk), search=request, now=NOW)
    return {one.text for one in given.results}


def owners() -> set[tuple[str, str, str]]:
    return set(Fact.objects.values_list("agent_id", "content", "status"))


class TestWhoIsTold:
    def test_what_an_agent_heard_is_that_agents(self, model: Model, tenant: Tenant) -> None:
        model.say(candidate(), profile={"work_context": {"summary": "Lives in Leiden.", "should_update": True}})
        hear(tenant, "sales", "s1")
        factories.episode(SessionQueue.objects.get().session, "Moved to Leiden")
        assert owners() == {("sales", "Lives in Leiden", "active")}
        assert list(ProfileSection.objects.values_list("agent_id", "summary")) == [("sales", "Lives in Leiden.")]
        for query in ("", "Where in Leiden?"):
            for text in ("Lives in Leiden", "Work: Lives in Leiden.", "Moved to Leiden", "Hello"):
                assert text in told(tenant, "sales", query)
                assert text not in told(tenant, "support", query)
                assert text not in told(tenant, "", query)
        assert found(tenant, "sales") == {"Lives in Leiden", "Moved to Leiden", SAID}
        assert found(tenant, "support") == found(tenant, None) == set()

    def test_which_everybody_is_told_where_it_is_the_persons(self, model: Model, tenant: Tenant) -> None:
        Tenant.objects.update(memory_of="person")
        model.say(candidate(), profile={"work_context": {"summary": "Lives in Leiden.", "should_update": True}})
        hear(tenant, "sales", "s1")
        assert owners() == {("", "Lives in Leiden", "active")}
        assert ProfileSection.objects.get().agent_id == ""
        for agent in ("sales", "support", ""):
            assert "Lives in Leiden" in told(tenant, agent)
            assert "Hello" in told(tenant, agent)
        assert found(tenant, None) == {"Lives in Leiden", SAID}

    def test_a_session_without_an_agent_is_the_persons(self, model: Model, tenant: Tenant) -> None:
        model.say(candidate())
        hear(tenant, "", "s1")
        assert owners() == {("", "Lives in Leiden", "active")}
        assert "Lives in Leiden" in told(tenant, "support")
        assert SAID in found(tenant, None)

    def test_a_batch_ends_as_it_began(self, model: Model, tenant: Tenant) -> None:
        def switch() -> dict[str, Any]:
            Tenant.objects.update(memory_of="person")
            return {"new_facts": [candidate()]}

        model.answers.append(switch)
        hear(tenant, "sales", "s1")
        assert owners() == {("sales", "Lives in Leiden", "active")}
        model.say(candidate("Lives in Delft"))
        hear(tenant, "sales", "s2")
        assert ("", "Lives in Delft", "active") in owners()


class TestComparing:
    HOME: dict[str, Any] = {"category": "identity", "key": "home_city"}

    def test_an_agents_fact_changes_none_of_another_agent(self, model: Model, tenant: Tenant, person: EndUser) -> None:
        factories.fact(person, "Lives in Delft", agent_id="support", value="Delft", **self.HOME)
        model.say(candidate(value="Leiden", **self.HOME))
        hear(tenant, "sales", "s1")
        assert owners() == {("support", "Lives in Delft", "active"), ("sales", "Lives in Leiden", "active")}
        # Its own is replaced. The person's stays for the others.
        factories.fact(person, "Lives in Paris", value="Paris", confidence=0.5, **self.HOME)
        model.say(candidate("Lives in Utrecht", value="Utrecht", **self.HOME))
        hear(tenant, "sales", "s2")
        assert owners() == {
            ("support", "Lives in Delft", "active"),
            ("sales", "Lives in Leiden", "superseded"),
            ("", "Lives in Paris", "active"),
            ("sales", "Lives in Utrecht", "active"),
        }

    def test_what_another_agent_knows_is_learned_anew(self, model: Model, tenant: Tenant, person: EndUser) -> None:
        theirs = factories.fact(person, agent_id="support", pinned=True)
        model.say(candidate())
        hear(tenant, "sales", "s1")
        assert owners() == {("support", "Lives in Leiden", "active"), ("sales", "Lives in Leiden", "active")}
        theirs.refresh_from_db()
        assert (theirs.version, theirs.mentions) == (1, 1)

    def test_what_the_person_is_known_for_is_confirmed(self, model: Model, tenant: Tenant, person: EndUser) -> None:
        own = factories.fact(person)
        model.say(candidate())
        hear(tenant, "sales", "s1")
        own.refresh_from_db()
        assert (Fact.objects.count(), own.mentions) == (1, 2)

    def test_a_model_removes_nothing_that_another_agent_shares(
        self, model: Model, tenant: Tenant, person: EndUser
    ) -> None:
        shared = factories.fact(person, "Lives in Delft", agent_id="support", scope="share")
        model.say(removed=[{"fact": 1, "reason": "Not in Delft", "evidence": [1]}])
        run = hear(tenant, "sales", "s1")
        shared.refresh_from_db()
        assert (shared.status, run.refusals) == ("active", {"fact_changed": 1})


class TestPromoting:
    def test_every_agent_is_told_and_one_undo_takes_it_back(self, tenant: Tenant, person: EndUser) -> None:
        given: dict[str, Any] = {"category": "identity", "key": "home_city"}
        factories.fact(person, "Lives in Delft", value="Delft", **given)
        fact = factories.fact(person, agent_id="sales", value="Leiden", **given)
        promote_fact(fact_id=fact.pk, actor=COMMAND, now=NOW)
        assert owners() == {("", "Lives in Leiden", "active"), ("", "Lives in Delft", "superseded")}
        assert "Lives in Leiden" in told(tenant, "support")
        assert AuditEvent.objects.get(verb="promote").object_id == fact.pk
        revert(change_set=ChangeSet.objects.get(verb="promote").pk, actor=COMMAND, now=NOW)
        assert owners() == {("sales", "Lives in Leiden", "active"), ("", "Lives in Delft", "active")}

    def test_not_what_is_the_persons_already(self, tenant: Tenant, person: EndUser) -> None:
        own, same = factories.fact(person), factories.fact(person, agent_id="sales")
        with pytest.raises(Conflict):
            promote_fact(fact_id=own.pk, actor=COMMAND, now=NOW)
        with pytest.raises(DuplicateFact):
            promote_fact(fact_id=same.pk, actor=COMMAND, now=NOW)
        assert owners() == {("", "Lives in Leiden", "active"), ("sales", "Lives in Leiden", "active")}
