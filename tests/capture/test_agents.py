"""The list of agents: each is written when it is first seen, once, and costs nothing after that."""

import time
from typing import Any

import pytest

from memories.capture import agents, ingest
from memories.capture.ingest import Conversation, PostedMessage
from memories.models import Agent, Session, Tenant
from tests import factories
from tests.database import at_once, statements

SAID = [PostedMessage(role="user", content="Hello")]


def post(tenant: Tenant, agent: str, session: str = "s1") -> Any:
    return ingest.store_turns(tenant=tenant, user_id="u1", session_id=session, agent_id=agent, messages=SAID)


@pytest.mark.django_db
def test_each_agent_of_each_tenant_is_listed_once() -> None:
    ours, theirs = factories.tenant(), factories.tenant()
    for tenant, agent in ((ours, "sales"), (ours, "sales"), (ours, ""), (theirs, "sales")):
        post(tenant, agent)
    ingest.store_conversations(
        tenant=ours, conversations=[Conversation("u2", f"s-{name}", name, SAID) for name in ("support", "", "support")]
    )
    listed = set(Agent.objects.values_list("tenant", "agent_id", "extraction", "recall", "guidance"))
    assert listed == {
        (tenant.pk, name, True, True, "") for tenant, name in ((ours, "sales"), (theirs, "sales"), (ours, "support"))
    }


@pytest.mark.django_db
def test_without_capture_nobody_is_listed() -> None:
    tenant = factories.tenant(capture=False)
    assert post(tenant, "sales").session is None
    assert not Agent.objects.exists()


@pytest.mark.django_db(transaction=True)
class TestBesideOthers:
    def test_what_the_process_knows_takes_no_statement(self) -> None:
        tenant = factories.tenant()
        first, second = (statements(lambda: post(tenant, "sales")) for _ in range(2))
        assert [sql for sql in first if "memories_agent" in sql]
        assert not [sql for sql in second if "memories_agent" in sql]

    def test_what_an_erasure_removed_is_listed_again_in_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tenant = factories.tenant()
        post(tenant, "sales")
        Agent.objects.all().delete()
        post(tenant, "sales")
        assert not Agent.objects.exists()
        later = time.monotonic() + agents._CACHE_SECONDS
        monkeypatch.setattr(time, "monotonic", lambda: later)
        post(tenant, "sales")
        assert Agent.objects.get().agent_id == "sales"

    def test_two_at_once_list_it_once(self) -> None:
        tenant = factories.tenant()
        outcomes = at_once(6, lambda index: post(tenant, "sales", f"s{index}"))
        assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
        assert (Agent.objects.get().agent_id, Session.objects.count()) == ("sales", 6)

    def test_bulks_that_name_new_agents_in_opposite_order(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # Each request is one of a process that knows none.
        monkeypatch.setattr(agents, "_know", lambda *_: None)
        tenant = factories.tenant()
        talks = [Conversation("u1", "s1", f"agent-{number}", SAID) for number in range(6)]

        def bulk(index: int) -> Any:
            return ingest.store_conversations(tenant=tenant, conversations=talks[:: 1 if index % 2 else -1])

        outcomes = at_once(6, bulk)
        assert [outcome for outcome in outcomes if isinstance(outcome, Exception)] == []
        assert Agent.objects.count() == 6
