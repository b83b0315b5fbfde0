"""Tenants: added and changed through the verb, with ranges, audited, never deleted."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from memories.models import AuditEvent, Tenant
from tests import factories
from tests.admin.pages import HOSTILE, LIST_BUDGET, list_of, page_of, queries_of, shows_harmless, text_of
from tests.curation.marks import places_of

NUMBERS = {"debounce_seconds": "", "max_wait_seconds": "", "lease_seconds": "", "max_attempts": ""}


def form(**over: Any) -> dict[str, Any]:
    given = {"slug": "acme-prod", "name": "Acme", "time_zone": "UTC", "capture": "on", "serve": "on"}
    return {**given, "extraction_guidance": "", "signal_phrases": "", **NUMBERS, **over}


def test_a_tenant_is_added(admin: Client) -> None:
    response = admin.post(f"{list_of(Tenant)}add/", form(debounce_seconds="5"))
    assert response.status_code == 302
    tenant = Tenant.objects.get()
    assert (tenant.slug, tenant.name, tenant.debounce_seconds) == ("acme-prod", "Acme", 5)
    event = AuditEvent.objects.get(object_id=tenant.pk)
    assert (event.verb, event.actor_kind) == ("add", "operator")


def test_settings_are_changed_and_the_slug_stays(admin: Client) -> None:
    tenant = factories.tenant(slug="acme-prod")
    changed = form(slug="renamed", capture="", extraction_guidance="记住饮食习惯", time_zone="Asia/Shanghai")
    assert admin.post(page_of(tenant), changed).status_code == 302
    tenant.refresh_from_db()
    assert (tenant.slug, tenant.capture, tenant.serve, tenant.time_zone) == ("acme-prod", False, True, "Asia/Shanghai")
    assert (tenant.extraction_guidance, tenant.guidance_version) == ("记住饮食习惯", 2)
    assert AuditEvent.objects.get(object_id=tenant.pk).verb == "update"


@pytest.mark.parametrize(
    "fault",
    [
        {"debounce_seconds": "0"},
        {"debounce_seconds": "301"},
        {"max_wait_seconds": "3601"},
        {"lease_seconds": "1"},
        {"max_attempts": "21"},
        {"max_attempts": "many"},
        {"time_zone": "Mars/Olympus"},
        {"debounce_seconds": "200", "max_wait_seconds": "100"},
        {"slug": "not a slug"},
        {"slug": ""},
        {"extraction_guidance": "x" * 4001},
    ],
)
def test_a_bad_value_is_refused(admin: Client, fault: dict[str, Any]) -> None:
    response = admin.post(f"{list_of(Tenant)}add/", form(**fault))
    assert response.status_code == 200
    assert "errornote" in text_of(response)
    assert not Tenant.objects.exists()
    assert not AuditEvent.objects.exists()


def test_the_form_names_ranges_and_the_hubs_own_numbers(admin: Client) -> None:
    page = text_of(admin.get(f"{list_of(Tenant)}add/"))
    assert "1–300 s. Empty: the hub's own, 30." in page
    assert "1–20. Empty: the hub's own, 5." in page


def test_own_signs_are_kept_and_shown_as_they_were_typed(admin: Client) -> None:
    tenant = factories.tenant()
    typed = "correction: 打回重做\r\ngoal: our target is … this year"
    assert admin.post(page_of(tenant), form(signal_phrases=typed)).status_code == 302
    tenant.refresh_from_db()
    assert tenant.signal_phrases == {"correction": ["打回重做"], "goal": ["our target is … this year"]}
    assert "correction: 打回重做\ngoal: our target is … this year</textarea>" in text_of(admin.get(page_of(tenant)))
    page = text_of(admin.post(page_of(tenant), form(signal_phrases=typed), follow=True))
    assert "A secret was cut out" not in page
    assert admin.post(page_of(tenant), form()).status_code == 302
    tenant.refresh_from_db()
    assert tenant.signal_phrases == {}


def test_signs_that_cannot_be_read_are_refused_and_kept_in_the_form(admin: Client) -> None:
    tenant = factories.tenant(signal_phrases={"goal": ["our target"]})
    page = text_of(admin.post(page_of(tenant), form(signal_phrases="mood: happy")))
    assert "Line 1: begin with one of" in page
    assert "mood: happy</textarea>" in page
    tenant.refresh_from_db()
    assert tenant.signal_phrases == {"goal": ["our target"]}


def test_a_secret_in_the_settings_is_cut_out_and_the_operator_told(admin: Client) -> None:
    tenant = factories.tenant()
    said = {"extraction_guidance": "Our password is Tr0ub4dor-9x.", "name": "密码是Tr0ub4dor-9x"}
    page = text_of(admin.post(page_of(tenant), form(**said), follow=True))
    assert places_of("Tr0ub4dor-9x") == []
    assert "A secret was cut out of what you typed." in page
    tenant.refresh_from_db()
    assert tenant.extraction_guidance == "Our password is [redacted:password]."
    harmless = text_of(admin.post(page_of(tenant), form(extraction_guidance="Remember what they eat."), follow=True))
    assert "A secret was cut out" not in harmless
    assert places_of("what they eat") == ["memories_tenant.extraction_guidance"]


def test_djangos_log_holds_no_content(admin: Client) -> None:
    tenant = factories.tenant(slug="acme-prod")
    admin.post(page_of(tenant), form(extraction_guidance="Remember what Katherine eats"))
    entry = LogEntry.objects.get()
    assert entry.object_repr == "acme-prod"
    assert "Katherine" not in entry.change_message


def test_the_list_takes_few_queries(admin: Client) -> None:
    factories.tenant()
    few = queries_of(admin, list_of(Tenant))
    for _ in range(30):
        factories.tenant()
    assert queries_of(admin, list_of(Tenant)) == few <= LIST_BUDGET


def test_a_hostile_name_is_escaped(admin: Client) -> None:
    tenant = factories.tenant(name=HOSTILE, extraction_guidance=HOSTILE)
    assert shows_harmless(admin.get(list_of(Tenant)))
    assert shows_harmless(admin.get(page_of(tenant)))
