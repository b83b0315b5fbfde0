"""A tenant's settings: versions, numbers, what the trail says of them, and what must not be turned back."""

from datetime import date
from typing import Any

import pytest
from django_q.models import OrmQ

from memories import conf
from memories.curation.tenants.settings import save_tenant
from memories.models import AuditEvent, Tenant
from tests import factories
from tests.factories import LATER, NOW, STAFF

pytestmark = pytest.mark.django_db


def save(tenant: Tenant, **changes: Any) -> Tenant:
    for name, value in changes.items():
        setattr(tenant, name, value)
    return save_tenant(tenant=tenant, actor=STAFF, now=LATER)


def events() -> list[tuple[str, str, str]]:
    """Verb, kind of object and kind of actor of each event, oldest first."""
    return list(AuditEvent.objects.order_by("id").values_list("verb", "object_type", "actor_kind"))


def replans() -> list[tuple[str, tuple[str, ...]]]:
    """What waits for a worker: the task's name and what it is given."""
    return [(waiting.task["func"], waiting.task["args"]) for waiting in OrmQ.objects.order_by("id")]


def test_a_new_tenant() -> None:
    tenant = save(Tenant(slug="acme", extraction_guidance="Remember allergies.", numbers={"capacity": 50}))
    row = Tenant.objects.get()
    assert (row, row.created_at, row.guidance_version, row.numbers) == (tenant, LATER, 1, {"capacity": 50})
    assert events() == [("add", "Tenant", "operator")]
    assert AuditEvent.objects.get().tenant_uuid == tenant.pk


def test_new_guidance_gets_a_new_version() -> None:
    tenant = factories.tenant()
    for guidance, version in (("记住过敏", 2), ("记住过敏", 2), ("", 3), ("记住过敏", 4)):
        save(tenant, extraction_guidance=guidance)
        assert Tenant.objects.get().guidance_version == version
    assert events() == [("update", "Tenant", "operator")] * 4


def test_other_settings_leave_the_version_and_the_birthday() -> None:
    tenant = factories.tenant()
    save(tenant, name="Acme", numbers={"debounce_seconds": 5}, capture=False)
    row = Tenant.objects.get()
    assert (row.name, row.numbers, row.capture) == ("Acme", {"debounce_seconds": 5}, False)
    assert (row.guidance_version, row.created_at) == (1, NOW)


def test_a_form_that_was_open_meanwhile_does_not_turn_the_version_back() -> None:
    stale = factories.tenant()
    save(Tenant.objects.get(), extraction_guidance="Remember allergies.")
    save(stale, extraction_guidance="Remember allergies.")
    assert Tenant.objects.get().guidance_version == 2
    stale.guidance_version = 1
    save(stale, extraction_guidance="Remember names.")
    assert Tenant.objects.get().guidance_version == 3


def test_a_form_that_was_open_meanwhile_does_not_turn_the_nightly_pass_back() -> None:
    stale = factories.tenant(slug="acme")
    Tenant.objects.update(decayed_on=date(2026, 11, 3))
    save(stale, name="Acme")
    row = Tenant.objects.get()
    assert (row.decayed_on, row.name) == (date(2026, 11, 3), "Acme")


def test_the_trail_names_the_numbers_that_changed_and_no_others() -> None:
    tenant = factories.tenant(capacity=50, trash_days=7)
    save(tenant, numbers={"capacity": 60, "trash_days": 7, "half_lives": {"goal": None}})
    assert AuditEvent.objects.get().counts == {"capacity": 1, "half_lives": 1}
    save(tenant, numbers={})
    assert AuditEvent.objects.latest("id").counts == {"capacity": 1, "half_lives": 1, "trash_days": 1}


def test_numbers_that_cannot_be_used_are_dropped() -> None:
    tenant = factories.tenant()
    save(tenant, numbers={"capacity": 3, "nonsense": 1, "trash_days": 7, "half_lives": {"goal": 14, "mood": 3}})
    assert Tenant.objects.get().numbers == {"trash_days": 7, "half_lives": {"goal": 14}}


@pytest.mark.parametrize("name", sorted(conf.FADING))
def test_a_number_that_decides_how_memories_fade_has_them_planned_anew(name: str) -> None:
    tenant = factories.tenant()
    value: Any = {"goal": 14} if name == "half_lives" else 0.5 if name.startswith("forget") else 14
    save(tenant, numbers={name: value})
    assert replans() == [("memories.tasks.replan_decay", (str(tenant.pk),))]
    save(tenant, name="Acme")
    assert len(replans()) == 1
    save(tenant, numbers={})
    assert len(replans()) == 2


def test_other_numbers_and_new_tenants_have_nothing_planned_anew() -> None:
    save(factories.tenant(), numbers={name: conf.NUMBERS[name].highest for name in ("capacity", "trash_days")})
    save(Tenant(slug="acme", numbers={"half_life_days": 14}))
    assert replans() == []
