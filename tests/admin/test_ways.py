"""Ways of the admin that newcomers lost: a first key, the active line of the menu, the trail by name, addresses."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation

from memories import conf
from memories.audit import Actor, record
from memories.forgetting import upkeep
from memories.models import AuditEvent, Tenant
from tests import factories
from tests.admin.pages import list_of, page_of, text_of

pytestmark = pytest.mark.django_db

NEW_KEY, NEW_TENANT = "admin:memories_apikey_add", "admin:memories_tenant_add"


def test_a_first_key_leads_over_a_tenant_and_back(admin: Client) -> None:
    page = text_of(admin.get(reverse(NEW_KEY)))
    way = f"{reverse(NEW_TENANT)}?then=key"
    assert f'href="{way}"' in page
    assert 'name="scopes"' not in page
    form: Any = admin.get(way).context["adminform"].form
    given = {name: field.value() or "" for name, field in ((field.name, field) for field in form)}
    answer = admin.post(way, {**given, "slug": "shop", "name": "Shop"})
    tenant = Tenant.objects.get()
    assert answer.headers["Location"] == f"{reverse(NEW_KEY)}?tenant={tenant.pk}"
    page = text_of(admin.get(answer.headers["Location"]))
    assert f'<option value="{tenant.pk}" selected>' in page
    assert reverse(NEW_TENANT) not in re.sub(r"<nav.*?</nav>", "", page, flags=re.DOTALL)


def test_a_tenant_that_was_added_from_the_list_leads_to_the_list(admin: Client) -> None:
    form: Any = admin.get(reverse(NEW_TENANT)).context["adminform"].form
    given = {field.name: field.value() or "" for field in form}
    answer = admin.post(reverse(NEW_TENANT), {**given, "slug": "shop", "name": "Shop"})
    assert answer.headers["Location"] == list_of(Tenant)
    # What the form did not ask about is what a tenant has that nobody set.
    made, plain = Tenant.objects.get(), Tenant()
    for field in ("person_may", "person_namespaces", "dream_files", "signal_phrases"):
        assert getattr(made, field) == getattr(plain, field), field


def test_who_may_not_add_tenants_is_told_whom_to_ask(staff_who_may: Callable[..., Client]) -> None:
    client = staff_who_may("view_apikey", "add_apikey")
    page = text_of(client.get(reverse(NEW_KEY)))
    assert "Ask an administrator" in page
    assert reverse(NEW_TENANT) not in page
    factories.tenant()
    page = text_of(client.get(reverse(NEW_KEY)))
    assert "Ask an administrator" not in page
    assert 'name="scopes"' in page


def active_entries(page: Any) -> list[str]:
    groups = page.context["sidebar_navigation"]
    return [str(item["title"]) for group in groups for item in group["items"] if item["active"]]


def test_the_menu_says_where_one_is(admin: Client) -> None:
    tenant = factories.tenant()
    for name, entry in (
        ("forgetting", "Forgetting"),
        ("next_decay_pass", "Forgetting"),
        ("retention", "Forgetting"),
        ("next_retention_pass", "Forgetting"),
        ("parked", "Extraction runs"),
        ("audit_chains", "Audit trail"),
        ("memories_decaypass_changelist", "Forgetting"),
        ("index", "Dashboard"),
        ("rollback", "Roll back"),
    ):
        arguments = [tenant.pk] if name.startswith("next_") else []
        assert active_entries(admin.get(reverse(f"admin:{name}", args=arguments))) == [entry], name


def test_the_trail_finds_operators_by_name(admin: Client) -> None:
    now, person = timezone.now(), factories.end_user()
    eva, bob = factories.operator(username="eva.dpo"), factories.operator(username="bob")
    for one in (eva, bob):
        record(actor=Actor.operator(one), verb="pin", target=person, object_id=person.pk, tenant=person.tenant, now=now)
    found = admin.get(list_of(AuditEvent), {"q": "EVA"}).context["cl"].result_list
    assert [event.operator_name for event in found] == ["eva.dpo"]
    # By what it found before, too.
    assert admin.get(list_of(AuditEvent), {"q": "pin"}).context["cl"].result_count == 2
    assert admin.get(list_of(AuditEvent), {"q": "nobody"}).context["cl"].result_count == 0


def test_addresses_that_somebody_types_are_no_bare_page(admin: Client) -> None:
    assert admin.get("/admin").headers["Location"] == reverse("admin:index")
    for address in ("/admin/nowhere/", "/admin/r/1/x/", "/admin/second-factor/nowhere/"):
        answer = admin.get(address)
        assert answer.status_code == 404, address
        assert "Page not found" in text_of(answer)


def test_why_there_is_no_upkeep_is_said_in_the_words_of_the_page() -> None:
    tenant = factories.tenant()
    rules = conf.rules(tenant)
    assert (rules.staleness_review, rules.merge_crowded) == (False, False)
    for language in ("en", "zh-hans"):
        with translation.override(language):
            said = upkeep.reason_disabled(rules, tenant)
        assert said
        assert "_" not in said


def test_a_refused_form_beside_a_hit_comes_back_alone(admin: Client) -> None:
    fact = factories.fact(factories.end_user(), "She lives in Leiden")
    given = {"version": fact.version, "content": "She lives in Utrecht", "category": "mood", "reason": ""}
    answer = admin.post(page_of(fact, "correct"), given, headers={"X-Fragment": "verb"})
    page = text_of(answer)
    assert answer.status_code == 400
    assert "Select a valid choice." in page
    assert "She lives in Utrecht" in page
    assert "<html" not in page
    # Another script, and none, get the page of the fact.
    assert "<html" in text_of(admin.post(page_of(fact, "correct"), given))
