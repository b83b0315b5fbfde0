"""Parked work in the admin: by its reason, of the tenants within reach, due again with one button."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from memories.models import Session, SessionQueue
from tests.admin.conftest import signed_in
from tests.admin.pages import list_of, text_of
from tests.admin.test_tenant_scope import limited
from tests.curation.test_parking import parked

pytestmark = pytest.mark.django_db


def address() -> str:
    return reverse("admin:parked")


def test_it_is_told_by_reason_and_retried(admin: Client) -> None:
    parked()
    parked()
    parked(failure="model_refused")
    page = text_of(admin.get(address()))
    assert "Retry 2 sessions" in page
    assert "Retry 1 session<" in page
    response = admin.post(address(), {"work": "extraction", "failure": "model_timeout"}, follow=True)
    assert "2 sessions are due again." in text_of(response)
    assert SessionQueue.objects.filter(parked_at__isnull=False).count() == 1


def test_nothing_parked_says_so(admin: Client) -> None:
    assert "Nothing is parked" in text_of(admin.get(address()))


def test_it_is_reached_from_the_lists(admin: Client) -> None:
    assert address() in text_of(admin.get(list_of(Session)))


def test_other_tenants_are_neither_shown_nor_retried() -> None:
    own, other = parked(), parked()
    client = signed_in(limited(own.tenant))
    assert "Retry 1 session<" in text_of(client.get(address()))
    client.post(address(), {"work": "extraction", "failure": "model_timeout"})
    assert SessionQueue.objects.get(pk=other.pk).parked_at


def test_who_may_only_look_is_offered_no_retry(staff_who_may: Callable[..., Client]) -> None:
    parked()
    assert "Retry 1" not in text_of(staff_who_may("view_session").get(address()))


def test_nonsense_is_refused(admin: Client) -> None:
    for given in ({}, {"work": "everything"}, {"work": "window", "failure": "x" * 50}):
        assert admin.post(address(), given).status_code == 400, given
