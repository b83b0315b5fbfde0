"""A person's record and profile, and a tenant's settings."""

from datetime import timedelta
from typing import Any

import pytest

from memories import curation
from memories.audit import Actor
from memories.exceptions import OperatorWord, PersonRestricted
from memories.models import ActorKind, AuditEvent, EndUser, ProfileSection, Tenant
from tests import factories
from tests.database import PATIENCE, at_once, blocked, held
from tests.factories import NOW

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(days=1)
KEY = Actor(kind=ActorKind.KEY, id="4f1b", request_id="r-1")
STAFF = Actor(kind=ActorKind.OPERATOR, id="7", request_id="r-2")


@pytest.fixture
def person() -> EndUser:
    return factories.end_user()


def write(person: EndUser, summary: str, *, actor: Actor = KEY, section: str = "work_context") -> ProfileSection | None:
    return curation.write_profile_section(end_user=person, section=section, summary=summary, actor=actor, now=LATER)


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


class TestProfile:
    def test_a_section_is_written_and_written_again(self, person: EndUser) -> None:
        first = write(person, "开面包店")
        second = write(person, "Runs two bakeries.")
        assert first
        assert second
        assert first.pk == second.pk
        row = ProfileSection.objects.get()
        assert (row.summary, row.version, row.updated_at) == ("Runs two bakeries.", 2, LATER)
        assert (row.tenant, row.end_user, row.section) == (person.tenant, person, "work_context")
        assert (row.actor_kind, row.binding, row.extraction) == ("key", False, None)
        assert events() == [("write", "ProfileSection", "key")] * 2
        assert "baker" not in str(list(AuditEvent.objects.values_list()))

    def test_a_job_no_longer_answers_for_what_a_person_wrote(self, person: EndUser) -> None:
        run = factories.run(factories.session(person))
        factories.profile_section(person, extraction=run, prompt_version="p1")
        row = write(person, "Runs two bakeries.")
        assert row
        assert (row.extraction, row.prompt_version, row.actor_kind) == (None, "", "key")

    def test_an_empty_summary_removes_it(self, person: EndUser) -> None:
        write(person, "Runs a bakery.")
        write(person, "Opening a shop.", section="top_of_mind")
        assert write(person, "") is None
        assert list(ProfileSection.objects.values_list("section", flat=True)) == ["top_of_mind"]
        assert events()[-1] == ("delete", "ProfileSection", "key")

    def test_removing_nothing_does_nothing(self, person: EndUser) -> None:
        assert write(person, "") is None
        assert events() == []

    def test_an_operators_word_binds_keys(self, person: EndUser) -> None:
        row = write(person, "Runs a bakery.", actor=STAFF)
        assert row
        assert (row.binding, row.actor_kind) == (True, "operator")
        for summary in ("Runs nothing.", ""):
            with pytest.raises(OperatorWord):
                write(person, summary)
        assert ProfileSection.objects.get().summary == "Runs a bakery."
        assert events() == [("write", "ProfileSection", "operator")]
        assert write(person, "Other section.", section="top_of_mind")
        assert write(person, "", actor=STAFF) is None

    def test_an_operator_takes_a_section_over(self, person: EndUser) -> None:
        write(person, "Runs a bakery.")
        row = write(person, "Runs two bakeries.", actor=STAFF)
        assert row
        assert (row.binding, row.version) == (True, 2)

    @pytest.mark.django_db(transaction=True)
    def test_first_writers_at_once_make_one_section(self) -> None:
        person = factories.end_user()
        outcomes = at_once(6, lambda writer: write(person, f"Summary {writer}"))
        assert all(isinstance(outcome, ProfileSection) for outcome in outcomes)
        assert ProfileSection.objects.get().version == 6
        assert len(events()) == 6

    @pytest.mark.django_db(transaction=True)
    def test_a_key_that_waited_for_an_operator_is_refused(self) -> None:
        person = factories.end_user()
        with held(lambda: write(person, "Runs a bakery.", actor=STAFF)):
            late = blocked(lambda: write(person, "Runs nothing."))
        with pytest.raises(OperatorWord):
            late.result(PATIENCE)
        assert ProfileSection.objects.get().summary == "Runs a bakery."


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
