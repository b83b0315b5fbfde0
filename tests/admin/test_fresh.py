"""What is hard to take back asks for the password, unless it was given within the last ten minutes."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.admin.access.fresh import FRESH, GIVEN_AT
from memories.models import APIKey, Operator, Session
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of, text_of

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
ASKED = "Confirm your password"


@pytest.fixture
def operator() -> Operator:
    made = factories.operator()
    made.set_password(PASSWORD)
    made.save()
    return made


@pytest.fixture
def stale(operator: Operator) -> Client:
    return signed_in(operator, fresh=False)


def given_ago(client: Client, seconds: float) -> None:
    session = client.session
    session[GIVEN_AT] = timezone.now().timestamp() - seconds
    session.save()


@pytest.mark.parametrize(("seconds", "asked"), [(0, False), (590, False), (610, True), (-60, True)])
def test_it_holds_for_ten_minutes(stale: Client, seconds: float, asked: bool) -> None:
    assert FRESH.total_seconds() == 600
    given_ago(stale, seconds)
    key, _ = factories.api_key(factories.tenant())
    response = stale.post(page_of(key, "revoke"))
    assert (response.status_code == 403) is asked
    assert (APIKey.objects.get(pk=key.pk).revoked_at is None) is asked


def test_what_was_posted_travels_along_and_is_done_once_the_password_is_right(stale: Client) -> None:
    session = factories.session(factories.end_user())
    address, form = page_of(session, "delete"), {"turns": session.turn_count}
    page = stale.post(address, form)
    assert page.status_code == 403
    assert ASKED in text_of(page)
    assert f'<input type="hidden" name="turns" value="{session.turn_count}">' in text_of(page)
    assert stale.post(address, {**form, "fresh_password": "wrong"}).status_code == 403
    assert Session.objects.filter(pk=session.pk).exists()
    before = stale.session.session_key
    assert stale.post(address, {**form, "fresh_password": PASSWORD}).status_code == 302
    assert not Session.objects.filter(pk=session.pk).exists()
    assert stale.session.session_key != before


def test_a_carried_form_keeps_every_value_and_no_token(stale: Client, rf: Any) -> None:
    tenant = factories.tenant()
    form = {"tenant": tenant.pk, "agent": "<b>&amp;", "confirmed": "1", "reason": 'a "word"'}
    page = text_of(stale.post(reverse("admin:rollback"), form))
    assert 'name="agent" value="&lt;b&gt;&amp;amp;"' in page
    assert 'name="reason" value="a &quot;word&quot;"' in page
    assert 'name="confirmed" value="1"' in page
    assert (
        page.count("csrfmiddlewaretoken") == text_of(stale.get(reverse("admin:index"))).count("csrfmiddlewaretoken") + 1
    )


def test_the_page_leads_on_and_nowhere_else(stale: Client) -> None:
    page, going = reverse("admin:fresh_password"), list_of(APIKey)
    assert ASKED in text_of(stale.get(page))
    assert stale.post(f"{page}?next={going}", {"fresh_password": "wrong"}).status_code == 400
    assert GIVEN_AT not in stale.session
    assert stale.post(f"{page}?next={going}", {"fresh_password": PASSWORD})["Location"] == going
    assert GIVEN_AT in stale.session
    for foreign in ("https://example.com/", "//example.com/", "javascript:alert(1)", ""):
        response = stale.post(f"{page}?next={foreign}", {"fresh_password": PASSWORD})
        assert response["Location"] == reverse("admin:index")


def test_signing_in_gives_it(client: Client, operator: Operator) -> None:
    form = {"username": operator.username, "password": PASSWORD}
    assert client.post(reverse("admin:login"), {**form, "password": "wrong"}).status_code == 200
    assert GIVEN_AT not in client.session
    assert client.post(reverse("admin:login"), form).status_code == 302
    assert GIVEN_AT in client.session


def test_another_ones_password_is_none(stale: Client, operator: Operator) -> None:
    other = factories.operator()
    other.set_password("quite another one")
    other.save()
    key, _ = factories.api_key(factories.tenant())
    assert stale.post(page_of(key, "revoke"), {"fresh_password": "quite another one"}).status_code == 403
    assert APIKey.objects.get(pk=key.pk).revoked_at is None
