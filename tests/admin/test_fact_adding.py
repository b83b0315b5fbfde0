"""Stating a fact by hand: of whom, what it becomes, and what is refused with nothing typed lost."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.curation.people.merging.merge import merge_people
from memories.models import EndUser, Fact, FactRevision, Operator
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of, text_of
from tests.admin.test_tenant_scope import limited
from tests.curation.marks import places_of

ADD = "admin:memories_fact_add"


@pytest.fixture
def person(db: None) -> EndUser:
    return factories.end_user(external_id="usr_1000", display_name="Katherine Ruiz")


def add(client: Client, person: EndUser | None = None, **over: Any) -> Any:
    form = {
        "content": "Lives in Leiden",
        "category": "knowledge",
        "importance": "0.7",
        "key": "Home_City",
        "value": "Leiden",
        "tags": "place\nhome",
        "agent_id": "",
        "last_day": "",
        "reason": "By phone",
    }
    address = reverse(ADD) + (f"?person={person.pk}" if person else "")
    return client.post(address, {**form, **over})


def test_from_a_persons_page_it_is_about_that_person(admin: Client, administrator: Operator, person: EndUser) -> None:
    page = text_of(admin.get(f"{reverse(ADD)}?person={person.pk}"))
    assert "Katherine Ruiz" in page
    assert 'name="user_id"' not in page
    response = add(admin, person)
    fact = Fact.objects.get()
    assert (response.status_code, response["Location"]) == (302, page_of(fact))
    assert (fact.end_user, fact.content, fact.key, fact.tags) == (
        person,
        "Lives in Leiden",
        "home_city",
        ["place", "home"],
    )
    assert (fact.status, fact.binding, fact.trust, fact.extractor) == ("active", True, "operator", "operator")
    revision = FactRevision.objects.get(fact=fact)
    assert (revision.verb, revision.reason, revision.actor_id) == ("add", "By phone", str(administrator.pk))


def test_from_the_list_the_person_is_found_by_the_applications_id(admin: Client, person: EndUser) -> None:
    assert reverse(ADD) in text_of(admin.get(list_of(Fact)))
    other = factories.end_user(external_id="usr_2000")
    refused = add(admin, tenant=str(person.tenant_id), user_id="usr_2000")
    assert refused.status_code == 400
    assert "This tenant has no end user with this id or name." in text_of(refused)
    assert "Lives in Leiden" in text_of(refused)
    assert add(admin, tenant=str(other.tenant_id), user_id="usr_2000").status_code == 302
    assert Fact.objects.get().end_user == other


def test_the_last_day_is_the_whole_day_of_the_operators_zone(admin: Client, person: EndUser) -> None:
    Operator.objects.update(time_zone="Asia/Shanghai")
    day = (timezone.now() + timedelta(days=5)).date()
    add(admin, person, last_day=day.isoformat())
    end = Fact.objects.get().expires_at
    assert end
    assert (end.hour, end.date()) == (16, day)


def test_bad_input_is_refused(admin: Client, person: EndUser) -> None:
    for over, said in (
        ({"content": ""}, "This field is required"),
        ({"content": "x" * 2001}, "at most 2000"),
        ({"category": "nonsense"}, "Select a valid choice"),
        ({"importance": "1.5"}, "less than or equal to 1"),
        ({"last_day": "2020-01-01"}, "This day has passed"),
        ({"reason": "x" * 2001}, "at most 2000"),
    ):
        response = add(admin, person, **over)
        assert (response.status_code, said in text_of(response)) == (400, True), over
    assert not Fact.objects.exists()


def test_the_same_text_leads_to_the_fact_that_says_so(admin: Client, person: EndUser) -> None:
    known = factories.fact(person, "Lives in  LEIDEN")
    response = add(admin, person)
    assert response.status_code == 409
    assert page_of(known) in text_of(response)


def test_a_restricted_person_is_left_alone(admin: Client, person: EndUser) -> None:
    EndUser.objects.update(restricted_at=timezone.now())
    assert add(admin, person).status_code == 423
    assert not Fact.objects.exists()


def test_a_secret_is_cut_out_and_said_so(admin: Client, person: EndUser) -> None:
    response = add(admin, person, content="My password is hunter2hunter2")
    assert "A secret was removed" in text_of(admin.get(response["Location"]))
    assert places_of("hunter2hunter2") == []


@pytest.mark.parametrize("named", ["nonsense", "6f1e3f6e-0000-4000-8000-000000000000"])
def test_nobody_is_not_found(admin: Client, named: str) -> None:
    assert admin.get(f"{reverse(ADD)}?person={named}").status_code == 404


class TestWhoMay:
    def test_nobody_beyond_their_tenants(self, person: EndUser) -> None:
        operator = limited()
        client = signed_in(operator)
        assert add(client, person).status_code == 404
        assert add(client, tenant=str(person.tenant_id), user_id="usr_1000").status_code == 400
        assert not Fact.objects.exists()
        operator.tenants.add(person.tenant)
        assert add(client, tenant=str(person.tenant_id), user_id="usr_1000").status_code == 302


@pytest.mark.parametrize("by", ["old id", "new id", "link"])
def test_a_fact_is_stated_by_every_id_of_the_person(admin: Client, person: EndUser, by: str) -> None:
    other = factories.end_user(person.tenant, external_id="usr_7")
    merge_people(survivor=other.pk, merged=person.pk, actor=factories.COMMAND, now=timezone.now())
    user_id = "usr_1000" if by == "old id" else "usr_7"
    response = add(admin, person) if by == "link" else add(admin, tenant=str(person.tenant_id), user_id=user_id)
    assert response.status_code == 302
    assert Fact.objects.get().end_user == other


def test_nobody_states_a_fact_of_somebody_beyond_their_tenants_by_an_old_id(person: EndUser) -> None:
    other = factories.end_user(person.tenant, external_id="usr_7")
    merge_people(survivor=other.pk, merged=person.pk, actor=factories.COMMAND, now=timezone.now())
    assert add(signed_in(limited(factories.tenant())), person).status_code == 404
    assert not Fact.objects.exists()
