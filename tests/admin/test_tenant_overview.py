"""The tenant's page begins with what it is: its figures and what waits, each with the list that shows just that."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories.admin.tenants import overview
from memories.models import Tenant
from tests import factories
from tests.admin import walk
from tests.admin.cases import case_of
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def tenant() -> Tenant:
    """With two of each, a fact and a key that do not count, and a neighbour that has others."""
    tenant = factories.tenant(slug="acme-prod")
    for number in range(2):
        person = factories.end_user(tenant)
        session = factories.session(person, [("user", "Hello")])
        factories.fact(person, f"Likes tea {number}")
        factories.episode(session)
        factories.api_key(tenant)
        factories.agent(tenant, f"agent-{number}")
        factories.webhook(tenant)
        factories.review_item(factories.fact(person, "Likes coffee", status="pending"))
        case_of(person, "scoped")
    key, _plaintext = factories.api_key(tenant)
    key.revoked_at = timezone.now()
    key.save()
    factories.decay_pass(tenant, state="held")
    other = factories.end_user()
    factories.review_item(factories.fact(other, "Likes beer", status="pending"))
    factories.fact(other)
    return tenant


def shown(client: Client, tenant: Tenant) -> Any:
    return client.get(page_of(tenant)).context


def test_its_figures_and_waiting_work_lead_to_just_these(admin: Client, tenant: Tenant) -> None:
    context = shown(admin, tenant)
    figures = {str(figure.title): figure.number for figure in context["figures"]}
    twos = ["End users", "Active facts", "Episodes", "Sessions", "Agents", "Valid API keys", "Webhooks"]
    assert figures == dict.fromkeys(twos, 2)
    for figure in context["figures"]:
        answer = admin.get(figure.link)
        assert answer.status_code == 200, figure.link
        assert answer.context["cl"].result_count == figure.number, figure.link
    waiting = {one.text for one in context["waiting"]}
    assert {"2 items to review", "2 erasures wait for approval", "1 clean-up is held"} <= waiting
    for one in context["waiting"]:
        answer = admin.get(one.link, follow=True)
        assert answer.status_code == 200, one.link
        if "cl" in answer.context:
            assert answer.context["cl"].result_count == int(re.findall(r"\d+", one.text)[0]), one.link
        else:
            assert "Likes coffee" in text_of(answer)
            assert "Likes beer" not in text_of(answer)


def test_it_says_what_the_tenant_is_and_the_pages_of_its_work(admin: Client, tenant: Tenant) -> None:
    page = text_of(admin.get(page_of(tenant)))
    assert page.index("Overview") < page.index("Language model") < page.index('aria-label="Numbers"')
    assert "Here all agents share what they know" in page
    for _title, _icon, link in shown(admin, tenant)["pages"]:
        assert unescape(link) in unescape(page)
        assert admin.get(link, follow=True).status_code == 200
    Tenant.objects.update(memory_of="agent", capture=False)
    page = text_of(admin.get(page_of(tenant)))
    assert "Here each agent has a memory of its own" in page
    assert "Capture off" in page


def test_a_tenant_that_is_off_boarded_gets_no_new_key(admin: Client, tenant: Tenant) -> None:
    assert "New API key" in text_of(admin.get(page_of(tenant)))
    Tenant.objects.update(offboarded_at=factories.NOW)
    assert "New API key" not in text_of(admin.get(page_of(tenant)))


def test_beyond_ten_thousand_it_counts_no_further(
    admin: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "MOST", 1)
    figures = shown(admin, tenant)["figures"]
    assert {(figure.number, figure.is_more) for figure in figures} == {(1, True)}
    assert "1+" in text_of(admin.get(page_of(tenant)))


def test_a_role_sees_what_it_may(tenant: Tenant) -> None:
    context = shown(signed_in(walk.role("dpo")), tenant)
    titles = {str(figure.title) for figure in context["figures"]}
    assert "End users" in titles
    assert "Valid API keys" not in titles
    assert not any("review" in one.text for one in context["waiting"])
    assert any("approval" in one.text for one in context["waiting"])
    assert "Roll back" not in {str(title) for title, _icon, _link in context["pages"]}


def test_a_new_tenant_has_none(admin: Client) -> None:
    page = admin.get(f"{list_of(Tenant)}add/")
    assert page.status_code == 200
    assert "tenant-overview" not in text_of(page)
