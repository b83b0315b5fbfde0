"""The pages of forgetting: passes, what the next one takes, run now, and the typed confirmation of a held one."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories import conf
from memories.forgetting import decay
from memories.models import DecayPass, EndUser, Fact, Tenant
from tests import factories
from tests.admin.pages import HOSTILE, PAGE_BUDGET, page_of, queries_of, shows_harmless, text_of

LONG_AGO = timezone.now() - timedelta(days=1_000)


@pytest.fixture
def tenant(db: None) -> Tenant:
    return factories.tenant(slug="acme")


@pytest.fixture
def person(tenant: Tenant) -> EndUser:
    return factories.end_user(tenant)


@pytest.fixture
def held(person: EndUser, monkeypatch: pytest.MonkeyPatch) -> DecayPass:
    rules = conf.Rules(**{**vars(conf.hub_rules()), "brake_count": 1})
    monkeypatch.setattr(conf, "rules", lambda _: rules)
    for number in range(3):
        factories.fact(person, f"{HOSTILE} {number}", now=LONG_AGO)
    return decay.forget(tenant=person.tenant, now=timezone.now(), trigger=DecayPass.Trigger.SCHEDULE)


def next_of(tenant: Tenant) -> str:
    return reverse("admin:next_decay_pass", args=[tenant.pk])


def test_the_next_pass_is_shown_with_what_goes_first(admin: Client, person: EndUser) -> None:
    for number in range(30):
        factories.fact(person, f"{HOSTILE} {number}", now=LONG_AGO)
    factories.fact(person, "Stays for a while", now=timezone.now())
    factories.episode(factories.session(person), HOSTILE, now=LONG_AGO)
    page = admin.get(next_of(person.tenant))
    assert shows_harmless(page)
    assert page.context["preview"].counts == {"facts": 30, "episodes": 1, "expired": 0}
    assert len(page.context["facts"]) == 25
    assert "Stays for a while" not in text_of(page)
    assert "The safety limit" not in text_of(page)
    assert queries_of(admin, next_of(person.tenant)) <= PAGE_BUDGET
    assert Fact.objects.filter(status="active").count() == 31


def test_it_warns_of_the_brake(admin: Client, held: DecayPass) -> None:
    assert "The safety limit will hold this" in text_of(admin.get(next_of(held.tenant)))


def test_run_now_begins_a_pass_once(admin: Client, tenant: Tenant) -> None:
    answer = admin.post(next_of(tenant))
    row = DecayPass.objects.get()
    assert (answer.status_code, answer.headers["Location"]) == (302, page_of(row))
    assert (row.state, row.trigger) == ("running", "operator")
    refused = admin.post(next_of(tenant), follow=True)
    assert "pass is running" in text_of(refused)
    assert DecayPass.objects.count() == 1


def test_no_page_tells_facts_to_whom_they_are_not_shown_elsewhere(
    tenant: Tenant, staff_who_may: Callable[..., Client], held: DecayPass
) -> None:
    reader = staff_who_may("view_decaypass")
    for address in (next_of(tenant), page_of(held)):
        assert "alert" not in text_of(reader.get(address))


def test_a_pass_that_failed_says_why(admin: Client, held: DecayPass) -> None:
    why = "The worker stopped during each attempt"
    assert why not in text_of(admin.get(page_of(held)))
    DecayPass.objects.update(state="failed", failure="worker_lost")
    assert why in text_of(admin.get(page_of(held)))


def test_a_held_pass_is_confirmed_by_typing_the_tenant(admin: Client, held: DecayPass) -> None:
    shown = admin.get(page_of(held))
    assert "The safety limit holds back 3 of 3" in text_of(shown)
    assert queries_of(admin, page_of(held)) <= PAGE_BUDGET
    for typed in ("", "acm", "other"):
        assert admin.post(page_of(held, "confirm"), {"tenant": typed}).status_code == 400
    assert DecayPass.objects.count() == 1
    answer = admin.post(page_of(held, "confirm"), {"tenant": "acme"})
    begun = DecayPass.objects.get(confirmed=True)
    assert (answer.status_code, answer.headers["Location"]) == (302, page_of(begun))
    decay.run_slice(now=timezone.now(), seconds=60)
    done = admin.get(page_of(begun))
    assert shows_harmless(done)
    assert {fact.status for fact in done.context["facts"]} == {"trashed"}
    # Twice, in two windows.
    assert admin.post(page_of(held, "confirm"), {"tenant": "acme"}).status_code == 409


def test_the_page_of_a_fact_in_the_trash_says_until_when(admin: Client, person: EndUser) -> None:
    fact = factories.fact(person, status="trashed", trashed_at=timezone.now())
    assert "Permanently deleted" in text_of(admin.get(page_of(fact)))
    assert "Permanently deleted" not in text_of(admin.get(page_of(factories.fact(person, "Active"))))


def test_what_a_pass_did_is_said_on_the_page_of_a_fact(admin: Client, person: EndUser) -> None:
    fact = factories.fact(person, now=LONG_AGO)
    decay.forget(tenant=person.tenant, now=timezone.now(), trigger=DecayPass.Trigger.SCHEDULE)
    page = text_of(admin.get(page_of(fact)))
    assert "Decay pass" in page
    assert "It was not mentioned again." in page
