"""Keys: who gets in, what it costs, and that a key is refused at once when it is revoked."""

from datetime import timedelta

from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from memories.curation.access.keys import revoke_api_key
from tests import factories
from tests.api.calls import CALLS, Ids, send
from tests.api.client import HubClient, hold_against_contract
from tests.api.conftest import Hub


def test_nobody_gets_in_without_a_key(db: None) -> None:
    for operation in CALLS:
        answer = send(HubClient("mh_abcdefghij_wrong"), operation, Ids())
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized"), operation
        assert answer.headers["WWW-Authenticate"].startswith("Bearer"), operation


BAD = [
    None, "", "Bearer", "Bearer ", "Bearer mh_", "Bearer mh__", "Basic dXNlcjpwYXNz", "Bearer mh_abcdefghij_",
    "Bearer mh_ABCDEFGHIJ_x", "Bearer 密钥", "Bearer mh_%00_x", "Bearer " + "x" * 5000, "mh_abcdefghij_x",
]  # fmt: skip


def test_a_malformed_header_or_none_is_refused(db: None) -> None:
    for header in BAD:
        sent = {} if header is None else {"Authorization": header.encode().decode("latin-1")}
        answer = Client().get("/api/v1/users", headers=sent)
        assert answer.status_code == 401, header
        hold_against_contract("GET", "/api/v1/users", answer)


def test_a_key_may_come_alone(hub: Hub) -> None:
    cases: list[tuple[dict[str, str], int]] = [
        ({"X-API-Key": "{key}"}, 200),
        ({"X-API-Key": " {key} "}, 200),
        ({"X-API-Key": "Bearer {key}"}, 401),
        ({"X-API-Key": ""}, 401),
        # Authorization decides where both are sent.
        ({"X-API-Key": "{key}", "Authorization": "Bearer mh_abcdefghij_x"}, 401),
        ({"X-API-Key": "mh_abcdefghij_x", "Authorization": "Bearer {key}"}, 200),
    ]
    for headers, status in cases:
        sent = {name: text.format(key=hub.client.plaintext) for name, text in headers.items()}
        answer = Client().get("/api/v1/users", headers=sent)
        assert answer.status_code == status, headers
        hold_against_contract("GET", "/api/v1/users", answer)


def test_the_secret_must_be_right(hub: Hub) -> None:
    assert hub.client.get("/users").status_code == 200
    forged = hub.client.plaintext[:-1] + ("a" if hub.client.plaintext[-1] != "a" else "b")
    assert HubClient(forged).get("/users").status_code == 401


def test_an_expired_key_is_refused(db: None) -> None:
    tenant = factories.tenant()
    now = timezone.now()
    _, expired = factories.api_key(tenant, expires_at=now - timedelta(seconds=1))
    _, valid = factories.api_key(tenant, expires_at=now + timedelta(minutes=1))
    assert HubClient(expired).get("/users").status_code == 401
    assert HubClient(valid).get("/users").status_code == 200


def test_a_revoked_key_is_refused_at_once(hub: Hub) -> None:
    assert hub.client.get("/users").status_code == 200
    revoke_api_key(key=hub.key, actor=factories.COMMAND, now=timezone.now())
    answer = hub.client.get("/users")
    assert answer.status_code == 401
    # The same as for a key that never existed.
    assert answer.json()["detail"] == HubClient("mh_abcdefghij_x").get("/users").json()["detail"]


def test_costs_one_query_once_its_use_is_noted(hub: Hub, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(2):
        hub.client.get("/users", page_size="bad")
    with django_assert_num_queries(1):
        hub.client.get("/users", page_size="bad")
    hub.key.refresh_from_db()
    assert hub.key.last_used_at is not None
