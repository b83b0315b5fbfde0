"""A person's record, and a tenant's settings."""

from datetime import timedelta
from typing import Any

import pytest

from memories import curation
from memories.audit import Actor
from memories.exceptions import PersonRestricted
from memories.models import ActorKind, AuditEvent, EndUser, Tenant
from tests import factories
from tests.factories import NOW

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(days=1)
KEY = Actor(kind=ActorKind.KEY, id="4f1b", request_id="r-1")
STAFF = Actor(kind=ActorKind.OPERATOR, id="7", request_id="r-2")


@pytest.fixture
def person() -> EndUser:
    return factories.end_user()


def events() -> list[tuple[str, str, str]]:
    """Verb, kind of object and kind of actor of each event, oldest first."""
    return list(AuditEvent.objects.order_by("id").values_list("verb", "object_type", "actor_kind"))


class TestPerson:
    def update(self, person: EndUser, *, actor: Actor = KEY, **changes: Any) -> EndUser:
        return curation.update_person(end_user=person, changes=changes, actor=actor, now=LATER)

    def test_named_fields_change_and_no_others(self, person: EndUser) -> None:
        changes: dict[str, Any] = {
            "display_name": "安娜",
            "time_zone": "Asia/Shanghai",
            "language": "zh-CN",
            "metadata": {"plan": ["pro"]},
            "capture": False,
            "serve": False,
        }
        before = EndUser.objects.values().get()
        self.update(person, **changes)
        assert EndUser.objects.values().get() == {**before, **changes}

    def test_it_leaves_an_event_without_content(self, person: EndUser) -> None:
        self.update(person, display_name="Anna Secret")
        event = AuditEvent.objects.get()
        assert (event.verb, event.object_type, event.object_id) == ("update", "EndUser", person.pk)
        assert (event.actor_kind, event.request_id, event.tenant_uuid) == ("key", "r-1", person.tenant_id)
        assert "Secret" not in str(vars(event))

    def test_a_stale_copy_does_not_bring_old_values_back(self, person: EndUser) -> None:
        EndUser.objects.update(language="zh-CN", generation=5)
        self.update(person, display_name="Anna")
        row = EndUser.objects.get()
        assert (row.language, row.generation, row.display_name) == ("zh-CN", 5, "Anna")

    def test_restricted_people_are_out_of_reach_for_keys(self, person: EndUser) -> None:
        EndUser.objects.update(restricted_at=NOW)
        with pytest.raises(PersonRestricted):
            self.update(person, display_name="Anna")
        assert (EndUser.objects.get().display_name, events()) == ("", [])
        self.update(person, actor=STAFF, display_name="Anna")
        assert EndUser.objects.get().display_name == "Anna"


class TestTenant:
    def save(self, tenant: Tenant, **changes: Any) -> Tenant:
        for name, value in changes.items():
            setattr(tenant, name, value)
        return curation.save_tenant(tenant=tenant, actor=STAFF, now=LATER)

    def test_a_new_tenant(self) -> None:
        tenant = self.save(Tenant(slug="acme", extraction_guidance="Remember allergies."))
        row = Tenant.objects.get()
        assert (row, row.created_at, row.guidance_version) == (tenant, LATER, 1)
        assert events() == [("add", "Tenant", "operator")]
        assert AuditEvent.objects.get().tenant_uuid == tenant.pk

    def test_new_guidance_gets_a_new_version(self) -> None:
        tenant = factories.tenant()
        for guidance, version in (("记住过敏", 2), ("记住过敏", 2), ("", 3), ("记住过敏", 4)):
            self.save(tenant, extraction_guidance=guidance)
            assert Tenant.objects.get().guidance_version == version
        assert events() == [("update", "Tenant", "operator")] * 4

    def test_other_settings_leave_the_version_and_the_birthday(self) -> None:
        tenant = factories.tenant()
        self.save(tenant, name="Acme", debounce_seconds=5, capture=False)
        row = Tenant.objects.get()
        assert (row.name, row.debounce_seconds, row.capture) == ("Acme", 5, False)
        assert (row.guidance_version, row.created_at) == (1, NOW)

    def test_a_form_that_was_open_meanwhile_does_not_turn_the_version_back(self) -> None:
        stale = factories.tenant()
        self.save(Tenant.objects.get(), extraction_guidance="Remember allergies.")
        self.save(stale, extraction_guidance="Remember allergies.")
        assert Tenant.objects.get().guidance_version == 2
        stale.guidance_version = 1
        self.save(stale, extraction_guidance="Remember names.")
        assert Tenant.objects.get().guidance_version == 3
