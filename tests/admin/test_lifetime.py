"""A sign-in ends after its hours, or when nobody was there for long; signing in gives a new key."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memories.admin.access.lifetime import BEGAN_AT, SEEN_AT
from tests import factories

pytestmark = pytest.mark.django_db
INDEX = "admin:index"
HOUR = 3_600


def moved(client: Client, **ago: float) -> None:
    session, now = client.session, timezone.now().timestamp()
    for name, seconds in ago.items():
        session[name] = now - seconds
    session.save()


def opens(client: Client, **headers: str) -> bool:
    return client.get(reverse(INDEX), headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("began", "seen", "is_open"),
    [(0, 0, True), (11.9 * HOUR, 60, True), (12.1 * HOUR, 60, False), (2 * HOUR, 0.9 * HOUR, True),
     (2 * HOUR, 1.1 * HOUR, False)],
)  # fmt: skip
def test_it_ends_after_its_hours_or_an_idle_one(admin: Client, began: float, seen: float, is_open: bool) -> None:
    assert opens(admin)
    moved(admin, **{BEGAN_AT: began, SEEN_AT: seen})
    assert opens(admin) is is_open
    assert opens(admin) is is_open


def test_who_is_there_stays_signed_in_but_a_page_that_refreshes_itself_is_nobody(admin: Client) -> None:
    assert opens(admin)
    for headers, stays in (({"Sec-Fetch-Mode": "cors"}, False), ({"Sec-Fetch-Mode": "navigate"}, True), ({}, True)):
        moved(admin, **{SEEN_AT: 0.9 * HOUR})
        before = admin.session[SEEN_AT]
        assert opens(admin, **headers)
        assert (admin.session[SEEN_AT] > before) is stays


def test_a_request_soon_after_another_writes_nothing(admin: Client) -> None:
    assert opens(admin)
    before = admin.session[SEEN_AT]
    assert opens(admin)
    assert admin.session[SEEN_AT] == before


def test_signing_in_gives_a_new_key_and_begins_anew(client: Client) -> None:
    factories.operator(username="ana", password="correct horse")
    form: dict[str, Any] = {"username": "ana", "password": "correct horse"}
    keys = set()
    for _ in range(2):
        client.post(reverse("admin:login"), form)
        keys.add(client.session.session_key)
        moved(client, **{BEGAN_AT: 11 * HOUR})
    assert len(keys) == 2
    client.post(reverse("admin:login"), form)
    moved(client, **{SEEN_AT: 0})
    assert client.session[BEGAN_AT] > timezone.now().timestamp() - HOUR


def test_the_session_of_nobody_is_left_alone(client: Client) -> None:
    session = client.session
    session["something"] = "1"
    session.save()
    assert client.get(reverse("admin:login")).status_code == 200
    assert BEGAN_AT not in client.session
