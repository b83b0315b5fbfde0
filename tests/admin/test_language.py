"""Which language a page speaks."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from memories.models import AuditEvent, Operator
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import text_of

CHINESE = "zh-CN,zh;q=0.9,en;q=0.8"
PREFERENCES = "admin:preferences"


@pytest.mark.parametrize(
    ("own", "wished", "spoken"),
    [
        ("", "", "en"),
        ("", CHINESE, "zh-hans"),
        ("", "de-DE,de;q=0.9", "en"),
        ("en", CHINESE, "en"),
        ("zh-hans", "en", "zh-hans"),
    ],
)
def test_the_operators_choice_then_the_browsers(own: str, wished: str, spoken: str, db: None) -> None:
    client = signed_in(factories.operator(language=own))
    page = client.get(reverse("admin:index"), headers={"accept-language": wished})
    assert page.headers["Content-Language"] == spoken
    assert f'<html lang="{spoken}"' in text_of(page)
    # The thread's next request begins in the hub's own.
    assert translation.get_language() == "en"


def test_who_has_not_signed_in_gets_what_the_browser_asks_for(client: Client, db: None) -> None:
    page = client.get(reverse("admin:login"), headers={"accept-language": CHINESE})
    assert page.headers["Content-Language"] == "zh-hans"
    assert "Accept-Language" in page.headers["Vary"]


def test_djangos_own_texts_address_staff_as_the_hub_does(db: None) -> None:
    client = signed_in(factories.operator(language="zh-hans"))
    page = text_of(client.get(reverse("admin:password_change")))
    assert ("您的密码不能" in page, "你" in page) == (True, False)


def test_the_api_speaks_english_whoever_asks(client: Client, db: None) -> None:
    answer = client.get("/api/v1/users", headers={"accept-language": CHINESE})
    assert "Content-Language" not in answer.headers
    assert answer.json()["title"].isascii()


def test_an_operator_sets_language_and_zone(admin: Client, administrator: Operator) -> None:
    form = {"language": "zh-hans", "time_zone": "Asia/Shanghai"}
    answer = admin.post(reverse(PREFERENCES), form)
    assert answer.status_code == 302
    administrator.refresh_from_db()
    assert (administrator.language, administrator.time_zone) == ("zh-hans", "Asia/Shanghai")
    assert AuditEvent.objects.get(verb="set_preferences").object_id == administrator.pk
    assert admin.get(reverse(PREFERENCES)).headers["Content-Language"] == "zh-hans"


@pytest.mark.parametrize("form", [{"language": "xx", "time_zone": "UTC"}, {"time_zone": "Mars"}, {}])
def test_what_cannot_be_is_refused(form: dict[str, str], admin: Client, administrator: Operator) -> None:
    assert admin.post(reverse(PREFERENCES), form).status_code == 400
    administrator.refresh_from_db()
    assert (administrator.language, administrator.time_zone) == ("", "UTC")
    assert not AuditEvent.objects.exists()


def test_whoever_is_staff_has_them(staff: Client, client: Client) -> None:
    assert staff.get(reverse(PREFERENCES)).status_code == 200
    assert reverse(PREFERENCES) in text_of(staff.get(reverse("admin:index")))
    assert client.get(reverse(PREFERENCES)).status_code == 302
