"""A key can choose whose memory the sessions become that it opens, beside its tenant's choice."""

import pytest

from memories.capture import ingest
from memories.capture.ingest import Conversation, PostedMessage
from memories.context import context
from memories.context.context import ContextRequest
from memories.context.parts import INCLUDABLE
from memories.extraction import consolidation
from memories.models import EndUser, Fact, Session, SessionQueue, Tenant
from memories.retrieval import search
from memories.retrieval.search import KINDS, SearchFilters, SearchRequest
from tests import factories
from tests.factories import NOW
from tests.model import Model, candidate

CHOICES = [("person", "agent"), ("agent", "person")]


@pytest.fixture
def tenant(person: EndUser) -> Tenant:
    EndUser.objects.filter(pk=person.pk).update(external_id="u1")
    return person.tenant


def post(tenant: Tenant, session: str, said: str, *, agent: str = "sales", key: str = "") -> Session:
    receipt = ingest.store_turns(
        tenant=Tenant.objects.get(pk=tenant.pk),
        user_id="u1",
        session_id=session,
        agent_id=agent,
        messages=[PostedMessage(role="user", content=said)],
        flush=True,
        memory_of=key,
    )
    assert receipt.session
    return receipt.session


def extract(session: Session) -> None:
    run = consolidation.consolidate(session_id=SessionQueue.objects.get(pk=session.pk).pk, now=NOW)
    assert run
    assert run.status == "committed"


def told(tenant: Tenant, agent: str, query: str = "", *, without: frozenset[str] = frozenset()) -> str:
    include = frozenset(INCLUDABLE) - {"working_memory"} - without
    request = ContextRequest(user_id="u1", agent_id=agent, query=query, include=include)
    return context.build(tenant=Tenant.objects.get(pk=tenant.pk), request=request, now=NOW).memory


def found(tenant: Tenant, agent: str) -> set[str]:
    request = SearchRequest("u1", "tea or coffee", kinds=KINDS)
    given = search.search(tenant=Tenant.objects.get(pk=tenant.pk), search=request, now=NOW)
    ours = SearchRequest("u1", "tea or coffee", kinds=KINDS, filters=SearchFilters(agent_id=agent))
    own = search.search(tenant=Tenant.objects.get(pk=tenant.pk), search=ours, now=NOW)
    return {one.text for one in (*given.results, *own.results)}


@pytest.mark.parametrize(("tenants", "keys"), CHOICES)
def test_a_keys_choice_goes_before_its_tenants(model: Model, tenant: Tenant, tenants: str, keys: str) -> None:
    Tenant.objects.update(memory_of=tenants)
    chosen, default = post(tenant, "s1", "I drink tea", key=keys), post(tenant, "s2", "I drink coffee")
    model.say(candidate("Drinks tea"))
    extract(chosen)
    model.say(candidate("Drinks coffee"))
    extract(default)
    factories.episode(chosen, "They spoke of tea")
    factories.episode(default, "They spoke of coffee")
    whose = {"person": "", "agent": "sales"}
    facts = {("Drinks tea", whose[keys]), ("Drinks coffee", whose[tenants])}
    assert set(Fact.objects.values_list("content", "agent_id")) == facts
    own, shared = ("tea", "coffee") if keys == "agent" else ("coffee", "tea")
    for query in ("", "Do I drink tea or coffee?"):
        for text in (f"Drinks {own}", f"I drink {own}", f"spoke of {own}"):
            assert text in told(tenant, "sales", query)
            assert text not in told(tenant, "support", query)
        for text in (f"Drinks {shared}", f"I drink {shared}", f"spoke of {shared}"):
            assert text in told(tenant, "sales", query)
            assert text in told(tenant, "support", query)
    assert {f"I drink {shared}", f"They spoke of {shared}", f"Drinks {shared}"} == found(tenant, "support")
    assert f"I drink {own}" in found(tenant, "sales")


@pytest.mark.parametrize(("tenants", "keys"), CHOICES)
def test_what_waits_for_extraction_is_told_to_whom_it_belongs(
    model: Model, tenant: Tenant, tenants: str, keys: str
) -> None:
    Tenant.objects.update(memory_of=tenants)
    post(tenant, "s1", "I drink tea", key=keys)
    post(tenant, "s2", "I drink coffee")
    own, shared = ("tea", "coffee") if keys == "agent" else ("coffee", "tea")
    waiting = frozenset({"turns"})
    assert f"I drink {own}" in told(tenant, "sales", without=waiting)
    assert f"I drink {own}" not in told(tenant, "support", without=waiting)
    assert f"I drink {shared}" in told(tenant, "support", without=waiting)


def test_a_session_keeps_what_it_was_opened_with(model: Model, tenant: Tenant) -> None:
    session = post(tenant, "s1", "I drink tea", key="agent")
    post(tenant, "s1", "I drink coffee", key="person")
    post(tenant, "s1", "I drink milk")
    assert Session.objects.get().memory_of == "agent"
    model.say(candidate("Drinks tea"))
    extract(session)
    assert Fact.objects.get().agent_id == "sales"
    # One that a key without a choice opened goes by its tenant's, whoever writes to it.
    later = post(tenant, "s2", "I drink tea")
    post(tenant, "s2", "I drink coffee", key="agent")
    Tenant.objects.update(memory_of="agent")
    assert (Session.objects.get(pk=later.pk).memory_of, later.owner(Tenant.objects.get())) == ("", "sales")


def test_a_session_without_an_agent_is_the_persons(model: Model, tenant: Tenant) -> None:
    session = post(tenant, "s1", "I drink tea", agent="", key="agent")
    model.say(candidate("Drinks tea"))
    extract(session)
    assert Fact.objects.get().agent_id == ""
    assert "I drink tea" in told(tenant, "support")


def test_of_many_conversations_each_opens_its_session_with_it(tenant: Tenant) -> None:
    said = [PostedMessage(role="user", content="Hello")]
    talks = [Conversation("u1", name, "sales", said) for name in ("s1", "s2")]
    ingest.store_conversations(tenant=tenant, conversations=talks, memory_of="agent")
    assert set(Session.objects.values_list("memory_of", flat=True)) == {"agent"}
