"""Agents in the admin: the list with counts, the form, and who may use it."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories.models import Agent, AuditEvent, Tenant
from tests import factories
from tests.admin.pages import list_of, page_of, queries_of, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    return factories.tenant(slug="acme")


def row_of(page: str, agent: str) -> list[str]:
    """The cells of the agent's row."""
    row = next(part for part in page.split("<tr")[1:] if f">{agent}<" in part)
    cells = [cell.split(">", 1)[1].split("</td", 1)[0] for cell in row.split("<td")[1:]]
    return [cell.strip() for cell in cells]


def test_the_list_counts_what_each_has_done(admin: Client, tenant: Tenant) -> None:
    anna, ben = factories.end_user(tenant), factories.end_user(tenant)
    own = factories.session(anna, session_id="s1", agent_id="sales")
    factories.session(anna, session_id="s2", agent_id="sales")
    factories.session(ben, session_id="s1", agent_id="sales")
    factories.session(ben, session_id="s1", agent_id="support")
    run = factories.run(own)
    for number, status in enumerate(("active", "active", "pending", "rejected")):
        factories.fact(anna, f"Fact {number}", status=status, extraction=run, now=timezone.now())
    # Another tenant's agent of this name is another agent.
    factories.session(factories.end_user(), agent_id="legal")
    assert set(Agent.objects.values_list("agent_id", flat=True)) == {"sales", "support", "legal"}
    page = text_of(admin.get(list_of(Agent)))
    counts = [cell for cell in row_of(page, "sales") if cell.isdigit()]
    assert counts == ["2", "3", "4", "1", "0"]
    assert "25 %" in row_of(page, "sales")
    assert [cell for cell in row_of(page, "support") if cell.isdigit()] == ["1", "1", "0", "0", "0"]
    assert "25 %" not in row_of(page, "support")
    before = queries_of(admin, list_of(Agent))
    for number in range(5):
        factories.agent(tenant, f"agent-{number}")
    assert queries_of(admin, list_of(Agent)) == before


def save(client: Client, agent: Agent, **over: Any) -> Any:
    form = client.get(page_of(agent)).context["adminform"].form
    given = {"extraction": "on", "recall": "on", "guidance": "", "expected": form.initial["expected"], **over}
    return client.post(page_of(agent), {name: value for name, value in given.items() if value != "off"})


def test_its_switches_and_guidance_are_saved_and_audited(admin: Client, tenant: Tenant) -> None:
    agent = factories.agent(tenant)
    assert save(admin, agent, recall="off", guidance="Remember budgets.").status_code == 302
    agent.refresh_from_db()
    assert (agent.extraction, agent.recall, agent.guidance) == (True, False, "Remember budgets.")
    event = AuditEvent.objects.get(object_id=agent.pk)
    assert (event.verb, event.tenant_uuid, event.counts) == ("update", tenant.pk, {"recall": 1, "guidance": 1})
    assert "budgets" not in str(AuditEvent.objects.values())


def test_a_form_that_somebody_else_overtook_is_shown_again(admin: Client, tenant: Tenant) -> None:
    agent = factories.agent(tenant)
    seen = admin.get(page_of(agent)).context["adminform"].form.initial["expected"]
    save(admin, agent, recall="off")
    assert save(admin, agent, expected=seen, guidance="Mine").status_code == 200
    agent.refresh_from_db()
    assert (agent.recall, agent.guidance) == (False, "")
