"""A person added by hand, and another id for one."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memories import conf
from memories.models import ChangeSet, EndUser, Tenant, Tombstone
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of, text_of
from tests.admin.test_tenant_scope import limited


@pytest.fixture
def address(db: None) -> str:
    return reverse("admin:memories_enduser_add")


def given(tenant: Tenant, **over: Any) -> dict[str, Any]:
    return {"tenant": tenant.pk, "external_id": "u-1", "display_name": "Anna", **over}


class TestAdding:
    def test_the_list_leads_to_the_form_and_it_to_the_person(self, admin: Client, tenant: Tenant, address: str) -> None:
        assert address in text_of(admin.get(list_of(EndUser)))
        done: Any = admin.post(address, given(tenant, language="zh-CN", time_zone="Asia/Shanghai"))
        person = EndUser.objects.get()
        assert (done.status_code, done.url) == (302, page_of(person))
        assert (person.external_id, person.display_name, person.language) == ("u-1", "Anna", "zh-CN")

    def test_what_is_no_id_is_told_beside_its_field(self, admin: Client, tenant: Tenant, address: str) -> None:
        for over in (
            {"external_id": ""}, {"external_id": "a\x07b"}, {"external_id": "x" * 256}, {"time_zone": "Mars"},
            {"tenant": ""},
        ):  # fmt: skip
            page = admin.post(address, {**given(tenant), **over})
            assert (page.status_code, "Anna" in text_of(page)) == (400, True), over
        assert not EndUser.objects.exists()

    def test_somebody_who_is_there_is_not_made_again(self, admin: Client, tenant: Tenant, address: str) -> None:
        factories.end_user(tenant, external_id="u-1")
        page = admin.post(address, given(tenant))
        assert (page.status_code, "has this id" in text_of(page), EndUser.objects.count()) == (409, True, 1)

    @pytest.mark.parametrize(("policy", "status"), [("refuse", 410), ("flag", 302)])
    def test_somebody_who_was_erased(
        self, admin: Client, tenant: Tenant, address: str, policy: str, status: int
    ) -> None:
        digest = conf.digest_of_person(tenant.pk, "u-1")
        Tombstone.objects.create(
            tenant=tenant, digest=digest, policy=policy, case_uuid=tenant.pk, created_at=factories.NOW
        )
        page = admin.post(address, given(tenant))
        assert page.status_code == status
        assert list(EndUser.objects.values_list("erased_before", flat=True)) == ([True] if policy == "flag" else [])
        assert ("data for this id is refused" in text_of(page)) == (policy == "refuse")

    def test_an_operator_adds_within_reach(self, tenant: Tenant, address: str) -> None:
        client = signed_in(limited(factories.tenant()))
        assert tenant.slug not in text_of(client.get(address))
        assert client.post(address, given(tenant)).status_code == 400
        assert signed_in(limited(tenant)).post(address, given(tenant)).status_code == 302


class TestChangingAnId:
    @pytest.fixture
    def person(self, tenant: Tenant) -> EndUser:
        return factories.end_user(tenant, external_id="old-1")

    def wish(self, **over: Any) -> dict[str, Any]:
        return {"was": "old-1", "external_id": "new-1", "keeps_old": "on", **over}

    def test_the_page_says_what_it_means_and_the_id_changes(self, admin: Client, person: EndUser) -> None:
        address = page_of(person, "change_id")
        assert address in text_of(admin.get(page_of(person)))
        assert "creates a new person" in text_of(admin.get(address))
        done: Any = admin.post(address, self.wish())
        assert (done.status_code, done.url) == (302, page_of(person))
        assert {one.external_id: one.merged_into_id for one in EndUser.objects.all()} == {
            "new-1": None,
            "old-1": person.pk,
        }
        assert "old-1" in text_of(admin.get(address))

    def test_the_last_change_can_be_undone_on_the_page(self, admin: Client, person: EndUser) -> None:
        address = page_of(person, "change_id")
        assert 'name="undo"' not in text_of(admin.get(address))
        admin.post(address, self.wish())
        made = ChangeSet.objects.get()
        assert f'name="undo" value="{made.pk}"' in text_of(admin.get(address))
        foreign = factories.end_user(person.tenant)
        assert admin.post(page_of(foreign, "change_id"), {"undo": made.pk}).status_code == 404
        assert admin.post(address, {"undo": "nonsense"}).status_code == 404
        assert "previous id is restored" in text_of(admin.post(address, {"undo": made.pk}, follow=True))
        assert list(EndUser.objects.exclude(pk=foreign.pk).values_list("external_id", flat=True)) == ["old-1"]

    def test_an_undo_that_is_refused_says_why(self, admin: Client, person: EndUser) -> None:
        address = page_of(person, "change_id")
        admin.post(address, {"was": "old-1", "external_id": "new-1"})
        factories.end_user(person.tenant, external_id="old-1")
        page = admin.post(address, {"undo": ChangeSet.objects.get().pk}, follow=True)
        assert "or has it as an alias" in text_of(page)
        assert EndUser.objects.get(pk=person.pk).external_id == "new-1"

    def test_one_that_somebody_has_is_refused_and_nothing_typed_is_lost(self, admin: Client, person: EndUser) -> None:
        factories.end_user(person.tenant, external_id="new-1")
        page = admin.post(page_of(person, "change_id"), self.wish())
        assert (page.status_code, 'value="new-1"' in text_of(page)) == (409, True)

    def test_another_operators_change_is_to_be_seen_first(self, admin: Client, person: EndUser) -> None:
        EndUser.objects.update(external_id="theirs")
        page = admin.post(page_of(person, "change_id"), self.wish())
        assert (page.status_code, 'name="was" value="theirs"' in text_of(page)) == (412, True)
        assert "Your input is kept" in text_of(page)
        assert EndUser.objects.get().external_id == "theirs"
