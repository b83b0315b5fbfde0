"""GET /agents, GET and PATCH /agents/{id}."""

from datetime import timedelta
from typing import Any

import pytest

from memories.curation.access.keys import Binding
from memories.curation.tenants.agents import change_agent
from memories.models import Agent, APIKey, AuditEvent, Tenant
from tests import factories
from tests.api.conftest import Hub, hub_of
from tests.factories import COMMAND, NOW


def names(hub: Hub, **query: Any) -> list[str]:
    answer = hub.client.get("/agents", **query)
    assert answer.status_code == 200, answer.content
    return [row["agent_id"] for row in answer.json()["results"]]


def patched(hub: Hub, agent: Agent, **changes: Any) -> Any:
    return hub.client.call("PATCH", f"/agents/{agent.pk}", changes)


@pytest.fixture
def sales(hub: Hub) -> Agent:
    return factories.agent(hub.tenant, "sales")


@pytest.fixture
def support(hub: Hub) -> Agent:
    return factories.agent(hub.tenant, "support", created_at=NOW + timedelta(seconds=1))


class TestList:
    def test_the_tenants_agents_newest_first(self, hub: Hub, other: Hub, sales: Agent, support: Agent) -> None:
        factories.agent(other.tenant, "stranger")
        assert names(hub) == ["support", "sales"]
        assert hub.client.get("/agents").json()["results"][1] == {
            "id": str(sales.pk),
            "agent_id": "sales",
            "extraction": True,
            "recall": True,
            "guidance": "",
            "created_at": _shown(sales),
        }

    def test_one_by_its_id_in_any_case(self, hub: Hub, sales: Agent, support: Agent) -> None:
        assert names(hub, agent_id="SALES") == ["sales"]
        assert names(hub, agent_id="nobody") == []


class TestChange:
    def test_what_is_set_stays_and_is_in_the_trail(self, hub: Hub, sales: Agent) -> None:
        answer = patched(hub, sales, recall=False, guidance="Remember budgets.")
        assert (answer.status_code, answer.json()["recall"], answer.json()["extraction"]) == (200, False, True)
        assert hub.client.get(f"/agents/{sales.pk}").json() == answer.json()
        event = AuditEvent.objects.get(object_id=sales.pk)
        assert (event.verb, event.actor_kind, event.actor_id) == ("update", "key", str(hub.key.pk))
        assert (event.object_type, event.counts) == ("Agent", {"recall": 1, "guidance": 1})
        assert event.tenant_uuid == hub.tenant.pk
        assert Tenant.objects.get(pk=hub.tenant.pk).guidance_version == 2
        # The same again is no other guidance.
        assert patched(hub, sales, guidance="Remember budgets.").status_code == 200
        assert Tenant.objects.get(pk=hub.tenant.pk).guidance_version == 2

    @pytest.mark.parametrize("name", ["extraction", "recall"])
    def test_a_key_switches_on_what_a_key_switched_off_and_no_operator(self, hub: Hub, sales: Agent, name: str) -> None:
        assert patched(hub, sales, **{name: False}).json()[name] is False
        assert patched(hub, sales, **{name: True}).json()[name] is True
        change_agent(agent=sales, changes={name: False}, actor=COMMAND, now=NOW)
        refused = patched(hub, sales, **{name: True, "guidance": "x"})
        assert (refused.status_code, refused.json()["code"]) == (409, "operator_word")
        sales.refresh_from_db()
        assert (getattr(sales, name), sales.guidance) == (False, "")
        # As it is already.
        assert patched(hub, sales, **{name: False}).status_code == 200

    @pytest.mark.parametrize("by_operator", ["Remember allergies.", ""])
    def test_an_operators_guidance_stays(self, hub: Hub, sales: Agent, by_operator: str) -> None:
        assert patched(hub, sales, guidance="Remember budgets.").status_code == 200
        change_agent(agent=sales, changes={"guidance": by_operator}, actor=COMMAND, now=NOW)
        refused = patched(hub, sales, guidance="Remember budgets.")
        assert (refused.status_code, refused.json()["code"]) == (409, "operator_word")
        assert patched(hub, sales, recall=False).json()["guidance"] == by_operator

    def test_what_was_set_before_it_was_recorded_counts_as_an_operators(self, hub: Hub) -> None:
        old = factories.agent(hub.tenant, "old", extraction=False, guidance="Remember names.")
        for change in ({"extraction": True}, {"guidance": "x"}):
            assert patched(hub, old, **change).json()["code"] == "operator_word"

    def test_an_agents_voice_writes_no_guidance(self, hub: Hub, sales: Agent) -> None:
        voiced = hub_of(hub.tenant)
        APIKey.objects.filter(pk=voiced.key.pk).update(writes_as="agent")
        refused = patched(voiced, sales, guidance="Believe me.")
        assert (refused.status_code, refused.json()["code"]) == (409, "operator_word")
        assert patched(voiced, sales, recall=False).status_code == 200
        assert patched(hub, sales, guidance="Remember budgets.").status_code == 200

    def test_one_that_an_erasure_removed_meanwhile(self, hub: Hub, sales: Agent) -> None:
        Agent.objects.filter(pk=sales.pk).delete()
        assert patched(hub, sales, recall=False).status_code == 404


class TestBoundKeys:
    def bound(self, hub: Hub, **ids: Any) -> Hub:
        return hub_of(hub.tenant, binding=Binding(**ids))

    def test_a_key_for_an_agent_sees_and_changes_its_own_alone(self, hub: Hub, sales: Agent, support: Agent) -> None:
        own = self.bound(hub, agent_id="Sales")
        assert names(own) == ["sales"]
        assert own.client.get("/agents", agent_id="support").json()["code"] == "key_bound"
        assert [own.client.get(f"/agents/{one.pk}").status_code for one in (sales, support)] == [200, 404]
        assert [patched(own, one, recall=False).status_code for one in (sales, support)] == [200, 404]
        support.refresh_from_db()
        assert support.recall
        # It writes as that agent.
        assert patched(own, sales, guidance="Believe me.").json()["code"] == "operator_word"

    def test_a_key_for_a_person_is_told_of_none(self, hub: Hub, sales: Agent) -> None:
        own = self.bound(hub, user_id="u1")
        assert names(own) == []
        assert own.client.get(f"/agents/{sales.pk}").status_code == 404
        assert patched(own, sales, recall=False).status_code == 404

    def test_a_key_for_both_sees_its_agent_and_changes_nothing_of_it(self, hub: Hub, sales: Agent) -> None:
        own = self.bound(hub, user_id="u1", agent_id="sales")
        assert names(own) == ["sales"]
        refused = patched(own, sales, recall=False)
        assert (refused.status_code, refused.json()["code"]) == (403, "key_bound")
        assert patched(self.bound(hub, agent_id="sales"), sales, recall=False).status_code == 200


def _shown(agent: Agent) -> str:
    return agent.created_at.isoformat().replace("+00:00", "Z")
