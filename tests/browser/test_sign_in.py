"""Signing in as people do: name, password, the code of an app; and the password once more before a key is revoked."""

import re

import pytest
from allauth.mfa.totp.internal import auth as totp
from django.apps import apps
from playwright.sync_api import Page, expect
from pytest_django import Settings

from memories.models import APIKey, Operator
from memories.models.access import roles
from tests import factories
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, page_of
from tests.admin.test_fresh import given_ago
from tests.browser.axe import faults
from tests.browser.conftest import PHONE, Open

pytestmark = pytest.mark.browser
PASSWORD = "correct horse battery"


def code_of(secret: str) -> str:
    return str(totp.format_hotp_value(totp.hotp_value(secret, next(totp.yield_hotp_counters_from_time()) + 1)))


def sign_in(page: Page) -> None:
    page.goto("/admin/")
    page.get_by_label("Username").fill("ana")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")


def test_an_app_is_set_up_and_asked_for(open_page: Open, operator: Operator, settings: Settings) -> None:
    settings.MEMORYHUB_SECOND_FACTOR = "required"
    page = open_page(size=PHONE)
    sign_in(page)
    secret = page.locator("#totp-key").inner_text()
    page.get_by_label("Code").fill(code_of(secret))
    page.get_by_role("button", name="Turn on").click()
    expect(page.locator(".hub-codes li")).to_have_count(10)
    elsewhere = open_page()
    sign_in(elsewhere)
    elsewhere.get_by_label("Code").fill(code_of(secret))
    elsewhere.keyboard.press("Enter")
    expect(elsewhere).to_have_url(re.compile("/admin/$"))


def test_the_password_is_asked_for_once_more(open_page: Open, operator: Operator, complaints: list[str]) -> None:
    key, _ = factories.api_key(factories.tenant())
    page = open_page(who=operator)
    page.goto(page_of(key))
    browser = signed_in(operator)
    browser.cookies["sessionid"] = page.context.cookies()[0]["value"]
    given_ago(browser, 3_600)
    page.locator("summary", has_text="Revoke").click()
    page.get_by_role("button", name="Revoke this key").click()
    page.get_by_label("Your password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_text("is revoked")).to_be_visible()
    assert APIKey.objects.get().revoked_at
    # The password page is the answer to a form that was not carried out.
    complaints[:] = [one for one in complaints if "403" not in one]


def test_who_is_invited_chooses_a_password_and_signs_in(open_page: Open, operator: Operator) -> None:
    # Tests with a server of their own empty every table before this one.
    roles.grant(apps)
    page = open_page(who=operator)
    page.goto(f"{list_of(Operator)}add/")
    page.get_by_label("Username").fill("lin")
    page.get_by_label("reviewer: Decides what waits").check()
    page.get_by_role("button", name="Add the operator").click()
    link = page.locator("#link").input_value()
    assert not faults(page)
    theirs = open_page(size=PHONE)
    theirs.goto(link.partition("/admin/")[2].join(["/admin/", ""]))
    # The secret went from the address into the form, which shows no field for it.
    expect(theirs).to_have_url(re.compile("/admin/invitation/$"))
    expect(theirs.get_by_label("Code of the invitation")).to_be_hidden()
    assert not faults(theirs)
    theirs.get_by_label("New password").fill("a horse of my own")
    theirs.get_by_label("Repeat password").fill("a horse of my own")
    theirs.keyboard.press("Enter")
    expect(theirs.get_by_text("Your username is lin")).to_be_visible()
    assert not faults(theirs)
    theirs.get_by_role("link", name="Sign in").click()
    theirs.get_by_label("Username").fill("lin")
    theirs.get_by_label("Password").fill("a horse of my own")
    theirs.keyboard.press("Enter")
    expect(theirs).to_have_url(re.compile("/admin/$"))


def test_without_a_link_its_code_is_pasted(open_page: Open) -> None:
    page = open_page()
    page.goto("/admin/invitation/")
    expect(page.get_by_label("Code of the invitation")).to_be_focused()
