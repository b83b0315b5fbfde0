"""Invitations: the link is shown once or sent, sets a password once, ends, and leaves its secret nowhere."""

import logging
import re
import smtplib
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import Group
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from memories.curation.access.invitations import invite
from memories.models import AuditEvent, Operator
from memories.models.access import roles
from tests import factories
from tests.admin import walk
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of, text_of

pytestmark = pytest.mark.django_db
PASSWORD = "a horse of my own"
ACCEPT = "admin:invitation"
LINK = re.compile(r">(http[^<]+/admin/invitation/#([\w-]{43}))</textarea>")


@pytest.fixture(autouse=True)
def groups() -> None:
    walk.grant_roles()


def add(admin: Client, **over: Any) -> Any:
    reviewer = Group.objects.get(name="reviewer")
    form = {"username": "lin", "time_zone": "UTC", "ways_in": "invitation", "groups": [reviewer.pk], **over}
    return admin.post(f"{list_of(Operator)}add/", form)


def secret_in(page: Any) -> str:
    return str(LINK.findall(text_of(page))[0][1])


def accept(secret: str, password: str = PASSWORD, again: str = "") -> Any:
    return Client().post(reverse(ACCEPT), {"secret": secret, "password": password, "again": again or password})


def verbs_of(operator: Operator) -> list[str]:
    events = AuditEvent.objects.filter(object_id=operator.pk).order_by("id")
    return [event.verb for event in events]


def test_who_is_invited_chooses_a_password_and_signs_in(admin: Client, administrator: Operator) -> None:
    page = add(admin)
    assert page.status_code == 200
    assert "no-store" in page["Cache-Control"]
    lin = Operator.objects.get(username="lin")
    assert not lin.has_usable_password()
    assert "invited" in text_of(admin.get(list_of(Operator)))
    done = accept(secret_in(page))
    assert done.status_code == 200
    assert "lin" in text_of(done)
    lin.refresh_from_db()
    assert lin.check_password(PASSWORD)
    assert (lin.invitation, lin.invited_until) == (None, None)
    browser = Client()
    # The link signs nobody in; the second factor is asked for where others are asked, too.
    assert browser.get(reverse("admin:index")).status_code == 302
    browser.post(reverse("admin:login"), {"username": "lin", "password": PASSWORD})
    assert browser.get(reverse("admin:index")).status_code == 200
    assert verbs_of(lin) == ["add", "invite", "accept_invitation"]
    event = AuditEvent.objects.get(verb="accept_invitation")
    assert event.actor_id == str(lin.pk)


def test_a_link_works_once(admin: Client) -> None:
    secret = secret_in(add(admin))
    assert accept(secret).status_code == 200
    second = accept(secret, "another long secret")
    assert second.status_code == 410
    assert "This link does not work any more" in text_of(second)
    assert Operator.objects.get(username="lin").check_password(PASSWORD)


def test_a_bad_password_uses_nothing_up(admin: Client) -> None:
    secret = secret_in(add(admin))
    for bad, again in (("12345678", ""), (PASSWORD, "another"), ("lin", "")):
        answer = accept(secret, bad, again)
        assert answer.status_code == 400
        # A browser whose script took the secret out of the address can send it again.
        assert f'value="{secret}"' in text_of(answer)
    assert accept(secret).status_code == 200


def test_a_secret_of_nobody_opens_nothing(admin: Client) -> None:
    add(admin)
    for given in ("", "x", "x" * 43, "é" * 43, "\x00"):
        assert accept(given).status_code in (400, 410), given
    assert not Operator.objects.get(username="lin").has_usable_password()


def test_a_link_expires(admin: Client) -> None:
    secret = secret_in(add(admin))
    Operator.objects.filter(username="lin").update(invited_until=timezone.now() - timedelta(seconds=1))
    assert accept(secret).status_code == 410
    assert "invitation expired" in text_of(admin.get(list_of(Operator)))
    lin = Operator.objects.get(username="lin")
    assert "The link expired" in text_of(admin.get(page_of(lin)))
    fresh = secret_in(admin.post(page_of(lin, "invite")))
    assert accept(secret).status_code == 410
    assert accept(fresh).status_code == 200


def test_a_link_lives_for_three_days(admin: Client) -> None:
    lin = factories.operator()
    now = timezone.now()
    _operator, _secret = invite(operator_id=lin.pk, actor=factories.COMMAND, now=now)
    lin.refresh_from_db()
    assert lin.invited_until == now + timedelta(days=3)


def test_it_is_revoked(admin: Client) -> None:
    secret, lin = secret_in(add(admin)), Operator.objects.get(username="lin")
    assert admin.post(page_of(lin, "revoke_invitation")).status_code == 302
    assert accept(secret).status_code == 410
    assert admin.post(page_of(lin, "revoke_invitation")).status_code == 409
    assert verbs_of(lin) == ["add", "invite", "revoke_invitation"]


def change(admin: Client, lin: Operator, **over: Any) -> None:
    seen = re.findall(r'name="expected" value="(\w+)"', text_of(admin.get(page_of(lin))))[0]
    form = {"username": "lin", "time_zone": "UTC", "is_active": "on", "expected": seen, "email": lin.email, **over}
    assert admin.post(page_of(lin, "update"), {name: value for name, value in form.items() if value}).status_code == 302


@pytest.mark.parametrize("over", [{"is_active": ""}, {"email": "lin@example.com"}], ids=["left", "other address"])
def test_a_change_of_who_gets_it_ends_it(admin: Client, over: dict[str, str]) -> None:
    secret, lin = secret_in(add(admin)), Operator.objects.get(username="lin")
    change(admin, lin, first_name="Lin")
    lin.refresh_from_db()
    assert lin.invitation
    change(admin, lin, **over)
    assert accept(secret).status_code == 410
    lin.refresh_from_db()
    assert lin.invitation is None


def test_a_password_that_is_set_ends_it(admin: Client) -> None:
    secret, lin = secret_in(add(admin)), Operator.objects.get(username="lin")
    form = {"password": "given by somebody", "again": "given by somebody"}
    assert admin.post(page_of(lin, "password"), form).status_code == 302
    assert accept(secret).status_code == 410


def test_who_forgot_the_password_is_invited_and_keeps_the_second_factor_and_the_old_one_until_then(
    admin: Client,
) -> None:
    lin = factories.operator(username="lin")
    browser = signed_in(lin)
    secret = secret_in(admin.post(page_of(lin, "invite")))
    lin.refresh_from_db()
    assert lin.check_password("correct horse battery staple")
    assert browser.get(reverse("admin:index")).status_code == 200
    accept(secret)
    lin.refresh_from_db()
    assert lin.check_password(PASSWORD)
    assert browser.get(reverse("admin:index")).status_code == 302


def test_nobody_invites_who_can_do_more(staff: Client) -> None:
    limited = factories.operator(is_superuser=False)
    limited.groups.set(Group.objects.filter(name="administrator"))
    superuser, below = factories.operator(), factories.operator(is_superuser=False)
    browser = signed_in(limited)
    assert browser.post(page_of(superuser, "invite")).status_code == 409
    superuser.refresh_from_db()
    assert superuser.invitation is None
    assert browser.post(page_of(below, "invite")).status_code == 200
    assert staff.post(page_of(below, "invite")).status_code == 403


def test_the_database_and_the_trail_hold_no_secret(admin: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret, lin = secret_in(add(admin)), Operator.objects.get(username="lin")
    row: dict[str, Any] = dict(Operator.objects.filter(pk=lin.pk).values().get())
    assert len(bytes(row["invitation"])) == 32
    kept = repr(row) + repr(list(AuditEvent.objects.values()))
    accept(secret)
    assert secret not in kept + repr(list(AuditEvent.objects.values())) + caplog.text
    assert secret.encode() not in bytes(row["invitation"])


def test_error_reports_hide_the_password_and_the_secret() -> None:
    request = accept("x" * 43).wsgi_request
    assert getattr(request, "sensitive_post_parameters", None) == "__ALL__"


class TestMail:
    @pytest.fixture(autouse=True)
    def server(self, settings: LazySettings) -> None:
        settings.MEMORYHUB_SENDS_MAIL = True

    def test_it_is_sent_and_not_shown(self, admin: Client) -> None:
        page = add(admin, email="lin@example.com")
        assert not LINK.findall(text_of(page))
        assert "lin@example.com" in text_of(page)
        [sent] = mail.outbox
        assert sent.to == ["lin@example.com"]
        secret = re.findall(r"/admin/invitation/#([\w-]{43})\n", str(sent.body))[0]
        assert "lin" in sent.body
        assert accept(secret).status_code == 200

    def test_without_an_address_it_is_shown(self, admin: Client) -> None:
        assert secret_in(add(admin))
        assert mail.outbox == []

    def test_a_server_that_fails_shows_the_link_and_logs_no_address(
        self, admin: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(*_given: Any, **_more: Any) -> None:
            raise smtplib.SMTPRecipientsRefused({"lin@example.com": (550, b"lin@example.com is unknown")})

        monkeypatch.setattr("memories.curation.access.invitations.send_mail", fail)
        page = add(admin, email="lin@example.com")
        assert "The mail could not be sent" in text_of(page)
        assert "SMTPRecipientsRefused" in caplog.text
        assert "lin@" not in caplog.text
        assert accept(secret_in(page)).status_code == 200

    def test_the_text_is_in_the_language_of_who_invites(self, admin: Client, administrator: Operator) -> None:
        Operator.objects.filter(pk=administrator.pk).update(language="zh-hans")
        add(admin, email="lin@example.com")
        assert mail.outbox[0].subject == "Memory Hub 邀请函"


class TestRoles:
    def test_each_has_a_line_where_it_is_chosen_and_shown(self, admin: Client) -> None:
        assert set(roles.LINES) == set(roles.ROLES)
        page = text_of(admin.get(f"{list_of(Operator)}add/"))
        listed = text_of(admin.get(list_of(Group)))
        for role in roles.ROLES:
            assert escape(roles.line_of(role)) in page, role
            assert escape(roles.line_of(role)) in listed, role
        reviewer = Group.objects.get(name="reviewer")
        assert "Decides what waits for review" in text_of(admin.get(page_of(reviewer)))
        lin = factories.operator(is_superuser=False)
        lin.groups.add(reviewer)
        assert "Decides what waits for review" in text_of(admin.get(page_of(lin)))

    def test_names_are_translated_but_for_own_roles(self, admin: Client, administrator: Operator) -> None:
        Operator.objects.filter(pk=administrator.pk).update(language="zh-hans")
        Group.objects.create(name="night shift")
        page = text_of(admin.get(list_of(Group)))
        assert "数据保护官" in page
        assert "night shift" in page
