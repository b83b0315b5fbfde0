"""/management/operators: who may manage them, records by name, invitations by mail, and what is never in an answer."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.apps import apps
from django.conf import LazySettings
from django.contrib.auth.models import Group
from django.core import mail
from django.core.management import CommandError, call_command
from django.utils import timezone

from memories.curation.access import operators
from memories.models import AuditEvent, ManagementKey, Operator
from memories.models.access import roles
from tests import factories
from tests.api.client import HubClient
from tests.database import at_once

pytestmark = pytest.mark.django_db
OPERATORS = "/management/operators"
LIN = f"{OPERATORS}/detail?username=lin"
INVITATION = f"{OPERATORS}/invitation?username=lin"
RECORD: dict[str, Any] = {
    "tenants": ["acme"],
    "roles": ["reviewer"],
    "email": "lin@example.org",
    "first_name": "Lin",
    "last_name": "Wu",
    "time_zone": "Asia/Shanghai",
    "is_active": True,
}


@pytest.fixture(autouse=True)
def _there() -> None:
    roles.grant(apps)
    factories.tenant(slug="acme")


@pytest.fixture
def manager() -> HubClient:
    return HubClient(factories.management_key(operators=True)[1])


def call(client: HubClient, method: str, path: str, body: Any = None, **headers: Any) -> Any:
    path, _, query = path.partition("?")
    return client.call(method, path, body, query=query, **headers)


def verbs() -> list[str]:
    events = AuditEvent.objects.filter(object_type="Operator").order_by("pk")
    assert {event.actor_kind for event in events} <= {"key"}
    return [event.verb for event in events]


def faults(answer: Any) -> list[str]:
    return [one["pointer"] for one in answer.json()["errors"]]


def test_only_a_key_that_is_made_for_it_manages_them(manager: HubClient) -> None:
    acme = factories.tenant(slug="other")
    for key in (factories.management_key(), factories.management_key(acme, operators=True)):
        limited = HubClient(key[1])
        of_one = [(method, LIN) for method in ("GET", "PUT", "DELETE")]
        for method, path in (("GET", OPERATORS), *of_one, ("POST", INVITATION), ("DELETE", INVITATION)):
            refused = call(limited, method, path, RECORD if method == "PUT" else None)
            assert (refused.status_code, refused.json()["code"]) == (403, "key_bound"), (method, path)
        # It stays a key for tenants.
        assert limited.get("/management/tenants").status_code == 200
    assert not Operator.objects.exists()
    assert call(manager, "GET", OPERATORS).status_code == 200


def test_the_server_makes_such_a_key() -> None:
    call_command("create_management_key", name="terraform", operators=True)
    assert ManagementKey.objects.get().gives == ["ingest", "read", "write", "operators"]
    with pytest.raises(CommandError, match="of all tenants"):
        call_command("create_management_key", name="terraform", operators=True, tenant="acme")


def test_one_is_made_once_read_back_changed_and_deactivated(manager: HubClient) -> None:
    assert call(manager, "GET", LIN).status_code == 404
    made = call(manager, "PUT", LIN, RECORD)
    assert made.status_code == 201
    shown = made.json()
    assert {name: shown[name] for name in RECORD} == RECORD
    assert (shown["username"], shown["is_superuser"], shown["has_password"]) == ("lin", False, False)
    assert (shown["has_second_factor"], shown["invited_until"], shown["last_signed_in_at"]) == (False, None, None)
    assert made.headers["ETag"] == f'"{shown["version"]}"'
    again = call(manager, "PUT", LIN, RECORD, headers={"If-Match": made.headers["ETag"]})
    assert (again.status_code, again.json()) == (200, shown)
    assert call(manager, "GET", LIN).json() == shown
    assert call(manager, "GET", OPERATORS).json()["results"] == [shown]
    assert verbs() == ["add"]
    assert call(manager, "PUT", LIN, RECORD, headers={"If-None-Match": "*"}).status_code == 412
    # What is left out is the default; every tenant is said, not meant.
    changed = call(manager, "PUT", LIN, {"tenants": None})
    assert (changed.json()["tenants"], changed.json()["roles"], changed.json()["email"]) == (None, [], "")
    assert call(manager, "PUT", LIN, RECORD, headers={"If-Match": made.headers["ETag"]}).status_code == 412
    assert (
        call(
            manager, "PUT", f"{OPERATORS}/detail?username=new", {"tenants": []}, headers={"If-Match": '"1"'}
        ).status_code
        == 412
    )
    for _ in range(2):
        assert call(manager, "DELETE", LIN).status_code == 204
    assert (call(manager, "GET", LIN).json()["is_active"], Operator.objects.get().is_active) == (False, False)
    assert verbs() == ["add", "update", "update"]
    operator = Operator.objects.get()
    Authenticator.objects.create(user=operator, type=Authenticator.Type.TOTP, data={})
    operator.set_password("a horse of my own")
    operator.save()
    known = call(manager, "GET", LIN)
    assert (known.json()["has_second_factor"], known.json()["has_password"]) == (True, True)
    assert "pbkdf2" not in known.content.decode()


def test_a_wrong_record_names_its_places(manager: HubClient) -> None:
    wrong: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["/tenants"]),
        ({"tenants": ["acme", "nobody"]}, ["/tenants/1"]),
        ({"tenants": None, "roles": ["king", "reviewer", "pope"]}, ["/roles/0", "/roles/2"]),
        ({"tenants": None, "email": "lin"}, ["/email"]),
        ({"tenants": None, "email": 7}, ["/email"]),
        ({"tenants": None, "time_zone": "Mars"}, ["/time_zone"]),
        ({"tenants": None, "first_name": "x" * 151}, ["/first_name"]),
        ({"tenants": None, "roles": "reviewer"}, ["/roles"]),
        ({"tenants": None, "is_active": "yes"}, ["/is_active"]),
        ({"tenants": None, "is_superuser": True}, ["/is_superuser"]),
        ({"tenants": None, "password": "secret"}, ["/password"]),
    ]
    for body, places in wrong:
        refused = call(manager, "PUT", LIN, body)
        assert (refused.status_code, faults(refused)) == (400, places), body
    for name in ("", "a%20b", "a%2Fb", "%00", "x" * 151, "lin%0A"):
        path = f"{OPERATORS}/detail?username={name}"
        refused = call(manager, "PUT", path, RECORD)
        assert (refused.status_code, faults(refused)) == (400, ["username"]), name
        assert call(manager, "GET", path).status_code in (400, 404), name
    assert not Operator.objects.exists()
    assert call(manager, "PUT", f"{OPERATORS}/detail?username=lin.wu%2Bhub@example.org", RECORD).status_code == 201


def test_a_superuser_is_shown_and_not_changed(manager: HubClient) -> None:
    chief = factories.operator(username="lin", email="lin@example.org")
    shown = call(manager, "GET", LIN).json()
    assert (shown["is_superuser"], shown["tenants"], shown["has_password"]) == (True, None, True)
    for method, path in (("PUT", LIN), ("DELETE", LIN), ("DELETE", INVITATION)):
        refused = call(manager, method, path, RECORD if method == "PUT" else None)
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict"), method
    chief.refresh_from_db()
    assert (chief.is_active, chief.is_superuser, chief.first_name) == (True, True, "")
    assert verbs() == []


def test_the_last_who_can_change_operators_stays(manager: HubClient) -> None:
    group = Group.objects.filter(permissions__codename="change_operator").first()
    assert group
    keeper = RECORD | {"tenants": None, "roles": [group.name]}
    assert call(manager, "PUT", LIN, keeper).status_code == 201
    for method, body in (("DELETE", None), ("PUT", RECORD), ("PUT", keeper | {"is_active": False})):
        refused = call(manager, method, LIN, body)
        assert (refused.status_code, "At least one operator" in refused.json()["detail"]) == (409, True)
    # With another one it is possible.
    assert call(manager, "PUT", f"{OPERATORS}/detail?username=mo", keeper).status_code == 201
    assert call(manager, "DELETE", LIN).status_code == 204


def test_an_invitation_goes_by_mail_alone(manager: HubClient, settings: LazySettings) -> None:
    call(manager, "PUT", LIN, RECORD)
    refused = call(manager, "POST", INVITATION)
    assert (refused.status_code, "sends no mail" in refused.json()["detail"]) == (409, True)
    assert Operator.objects.get().invitation is None
    settings.MEMORYHUB_SENDS_MAIL = True
    invited = call(manager, "POST", INVITATION)
    assert (invited.status_code, invited.content) == (204, b"")
    [sent] = mail.outbox
    assert (sent.to, "/admin/invitation/#" in sent.body) == (["lin@example.org"], True)
    secret = sent.body.partition("#")[2].split()[0]
    until = call(manager, "GET", LIN)
    assert until.json()["invited_until"] is not None
    assert secret not in until.content.decode()
    assert call(manager, "DELETE", INVITATION).status_code == 204
    assert call(manager, "GET", LIN).json()["invited_until"] is None
    assert call(manager, "DELETE", INVITATION).status_code == 409
    # Whoever is to stay out is not invited.
    call(manager, "DELETE", LIN)
    assert call(manager, "POST", INVITATION).status_code == 409
    assert verbs() == ["add", "invite", "revoke_invitation", "update"]
    assert len(mail.outbox) == 1


def test_a_mail_that_fails_says_so(manager: HubClient, settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    call(manager, "PUT", LIN, RECORD)
    settings.MEMORYHUB_SENDS_MAIL = True

    def fail(*_: object) -> None:
        raise OSError("lin@example.org is not known")

    monkeypatch.setattr("memories.curation.access.invitations.send_mail", fail)
    refused = call(manager, "POST", INVITATION)
    assert (refused.status_code, refused.json()["detail"]) == (409, "The mail could not be sent. Try again.")


def test_lists_have_pages(manager: HubClient) -> None:
    now = timezone.now()
    for place in range(3):
        factories.operator(username=f"o{place}", date_joined=now - timedelta(hours=place))
    first = call(manager, "GET", f"{OPERATORS}?page_size=2").json()
    assert [one["username"] for one in first["results"]] == ["o0", "o1"]
    following = call(manager, "GET", first["next"].partition("/api/v1")[2]).json()
    assert [one["username"] for one in following["results"]] == ["o2"]


@pytest.mark.django_db(transaction=True)
def test_two_make_the_same_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is there to be locked: both find that there is no such operator."""
    _, plaintext = factories.management_key(operators=True)
    gate = threading.Barrier(2)
    check = operators._check_name

    def held(*given: Any) -> None:
        check(*given)
        if not gate.broken:
            gate.wait(timeout=300)

    monkeypatch.setattr(operators, "_check_name", held)

    def put(_: int) -> Any:
        return call(HubClient(plaintext), "PUT", LIN, RECORD).status_code

    answers: list[Any] = at_once(2, put)
    assert sorted(answers) == [200, 201]
    assert Operator.objects.count() == 1
