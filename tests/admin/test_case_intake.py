"""A request comes in: by the person's page or by id, and what keeps it from being opened."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from memories.models import EndUser, PrivacyCase
from tests import factories
from tests.admin.cases import case_of
from tests.admin.conftest import signed_in
from tests.admin.pages import page_of, text_of
from tests.admin.test_tenant_scope import limited

pytestmark = pytest.mark.django_db
ADD = "/admin/memories/privacycase/add/"


def given(person: EndUser | None = None, **over: Any) -> dict[str, Any]:
    whom = {} if person is None else {"tenant": person.tenant_id, "user_id": person.external_id}
    return {**whom, "type": "access", "asked_by": "subject", "received_on": timezone.localdate(), **over}


def test_the_page_of_a_person_leads_to_it_without_their_id_in_the_address(admin: Client) -> None:
    person = factories.end_user(external_id="secret-id", display_name="Anna")
    page = text_of(admin.get(page_of(person)))
    for kind in ("access", "erasure"):
        assert f"{ADD}?person={person.pk}&amp;type={kind}" in page
    form = text_of(admin.get(f"{ADD}?person={person.pk}&type=erasure"))
    assert "secret-id" in form
    answer = admin.post(f"{ADD}?person={person.pk}&type=erasure", given(type="erasure"))
    case = PrivacyCase.objects.get()
    assert (case.end_user, case.type) == (person, "erasure")
    assert answer.headers["Location"] == f"{page_of(case)}#next"


def test_who_may_open_no_case_has_no_buttons(staff_who_may: Any) -> None:
    person = factories.end_user()
    assert ADD not in text_of(staff_who_may("view_enduser", "view_privacycase").get(page_of(person)))


def test_nobody_of_this_id(admin: Client) -> None:
    person = factories.end_user(external_id="user-1")
    answer = admin.post(ADD, given(person, user_id="User-1", reference="T-1"))
    assert answer.status_code == 404
    assert "Check the tenant and the id" in text_of(answer)
    assert 'value="T-1"' in text_of(answer)
    assert not PrivacyCase.objects.exists()


def test_a_case_finds_its_person_by_the_name(admin: Client, staff_who_may: Any) -> None:
    person = factories.end_user(external_id="u-1", display_name="华桂珍 (Hua Guizhen)")
    factories.end_user(person.tenant, external_id="u-2", display_name="Hua Ping")
    assert "End user" in text_of(admin.get(ADD))
    several = admin.post(ADD, given(person, user_id="Hua"))
    assert several.status_code == 400
    assert "Enter one of their ids: u-2, u-1" in text_of(several)
    # A name tells who is there, so it helps only who may see people.
    handles_cases = staff_who_may("add_privacycase", "view_privacycase")
    assert handles_cases.post(ADD, given(person, user_id="桂珍")).status_code == 404
    assert not PrivacyCase.objects.exists()
    assert admin.post(ADD, given(person, user_id=" 桂珍")).status_code == 302
    assert PrivacyCase.objects.get().end_user == person


def test_what_cannot_be_is_said_beside_its_field(admin: Client) -> None:
    person, today = factories.end_user(), timezone.localdate()
    faults: list[tuple[str, Any]] = [
        ("received_on", today + timedelta(days=3)), ("received_on", today - timedelta(days=800)), ("type", "forget"),
        ("channel", "x" * 41), ("tenant", ""),
    ]  # fmt: skip
    for field, value in faults:
        answer = admin.post(ADD, given(person, **{field: value}))
        assert (answer.status_code, list(answer.context["form"].errors)) == (400, [field]), value


def test_one_of_last_week_is_due_a_month_after_it_came(admin: Client) -> None:
    day = timezone.localdate() - timedelta(days=7)
    admin.post(ADD, given(factories.end_user(), received_on=day))
    case = PrivacyCase.objects.get()
    assert case.received_at.date() == day
    assert 28 <= (case.due_at - case.received_at).days <= 31


def test_beyond_reach_there_is_nobody() -> None:
    ours, theirs = factories.end_user(), factories.end_user()
    client = signed_in(limited(ours.tenant))
    assert client.get(f"{ADD}?person={ours.pk}").status_code == 200
    assert client.get(f"{ADD}?person={theirs.pk}").status_code == 404
    assert client.post(ADD, given(theirs)).status_code == 400
    assert not PrivacyCase.objects.exists()


def test_an_address_that_names_nobody(admin: Client) -> None:
    for named in ("", "x", "00000000-0000-0000-0000-000000000000"):
        assert admin.get(f"{ADD}?person={named}").status_code == 404, named


def test_an_open_case_of_the_person_is_told_of(admin: Client) -> None:
    case = case_of(factories.end_user())
    assert page_of(case) in text_of(admin.get(f"{ADD}?person={case.end_user_id}"))


def test_a_person_tells_of_open_cases_and_of_an_erasure_before(admin: Client, staff_who_may: Any) -> None:
    case = case_of(factories.end_user(erased_before=True), "on_hold")
    assert case.end_user
    page = text_of(admin.get(page_of(case.end_user)))
    assert page_of(case) in page
    assert "On hold" in page
    assert "A person with this id was erased before" in page
    # Whoever handles no cases is not told that there is one.
    assert page_of(case) not in text_of(staff_who_may("view_enduser").get(page_of(case.end_user)))
