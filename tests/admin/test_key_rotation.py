"""Rotating a key in the admin: the successor is shown in the answer alone, and the old key's end can be put off."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from memories.curation.access.keys import authenticate_key
from memories.models import APIKey
from tests import factories
from tests.admin.pages import page_of, text_of
from tests.admin.test_keys import PLAINTEXT

pytestmark = pytest.mark.django_db


@pytest.fixture
def key() -> APIKey:
    return factories.api_key(factories.tenant(slug="acme-prod"), name="support-bot")[0]


def test_the_successor_is_shown_once(admin: Client, key: APIKey) -> None:
    response = admin.post(page_of(key, "rotate"), {"ends": "60"})
    assert response.status_code == 200
    assert "no-store" in response["Cache-Control"]
    (plaintext,) = set(PLAINTEXT.findall(text_of(response)))
    key.refresh_from_db()
    assert authenticate_key(plaintext=plaintext, now=timezone.now()) == key.successor
    assert key.expires_at
    assert abs(key.expires_at - timezone.now() - timedelta(hours=1)) < timedelta(minutes=1)
    assert key.successor
    pages = text_of(admin.get(page_of(key))) + text_of(admin.get(page_of(key.successor)))
    assert plaintext not in pages
    assert str(key.successor) in pages


def test_sent_again_it_makes_no_second_successor(admin: Client, key: APIKey) -> None:
    admin.post(page_of(key, "rotate"), {"ends": "60"})
    again = admin.post(page_of(key, "rotate"), {"ends": "60"})
    assert again.status_code == 409
    assert "already rotated" in text_of(again)
    assert not PLAINTEXT.search(text_of(again))
    assert APIKey.objects.count() == 2


def test_a_moment_that_was_not_offered_rotates_nothing(admin: Client, key: APIKey) -> None:
    for ends in ("", "7", "soon", "-60"):
        assert admin.post(page_of(key, "rotate"), {"ends": ends}).status_code == 400, ends
    assert APIKey.objects.count() == 1


def test_the_end_is_put_off_by_whoever_saw_it(admin: Client, key: APIKey) -> None:
    admin.post(page_of(key, "rotate"), {"ends": "60"})
    key.refresh_from_db()
    assert key.expires_at
    told = key.expires_at.isoformat()
    assert admin.post(page_of(key, "put_off"), {"ends": "1440", "expected": told}).status_code == 302
    stale = admin.post(page_of(key, "put_off"), {"ends": "10080", "expected": told})
    assert stale.status_code == 412
    before = key.expires_at
    key.refresh_from_db()
    assert key.expires_at
    assert abs(key.expires_at - before - timedelta(hours=23)) < timedelta(minutes=1)
    assert key.expires_at.isoformat() in text_of(stale)


def test_nonsense_puts_nothing_off(admin: Client, key: APIKey) -> None:
    admin.post(page_of(key, "rotate"), {"ends": "60"})
    for expected in ("", "soon", "2020-01-01T00:00:00+00:00"):
        assert admin.post(page_of(key, "put_off"), {"ends": "60", "expected": expected}).status_code == 412, expected
