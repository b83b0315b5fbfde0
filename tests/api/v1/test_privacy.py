"""POST /privacy/requests and GET /privacy/requests/{id}."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from memories.models import AuditEvent, EndUser, PrivacyCase, TableRewrite
from memories.privacy import cases
from memories.privacy.casework import workflow
from tests import factories
from tests.api.conftest import Hub
from tests.factories import COMMAND, NOW

FIELDS = {
    *("id", "user_id", "type", "state", "channel", "reference", "received_at", "due_at", "extended", "verified_at"),
    *("approved_at", "completed_at", "restricted", "counts", "receipt", "export", "on_disk"),
}


@pytest.fixture
def person(hub: Hub) -> EndUser:
    return factories.end_user(hub.tenant, external_id="用户 1")


def post(hub: Hub, *, key: str = "", **over: Any) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    return hub.client.post("/privacy/requests", {"user_id": "用户 1", "type": "erasure", **over}, **headers)


def get(hub: Hub, case: Any) -> Any:
    return hub.client.get(f"/privacy/requests/{case}")


@pytest.mark.usefixtures("person")
def test_opens_a_case(hub: Hub) -> None:
    answer = post(hub, channel="email", reference="T-1")
    case = PrivacyCase.objects.get()
    assert (answer.status_code, answer.json().keys()) == (202, FIELDS)
    told = answer.json()
    shown = {name: told[name] for name in ("id", "user_id", "type", "state", "channel", "reference")}
    assert shown == {
        "id": str(case.pk),
        "user_id": "用户 1",
        "type": "erasure",
        "state": "received",
        "channel": "email",
        "reference": "T-1",
    }
    assert (told["extended"], told["restricted"], told["counts"], told["receipt"]) == (False, False, {}, None)
    assert (told["verified_at"], told["approved_at"], told["completed_at"], told["export"]) == (None, None, None, None)
    assert case.due_at == workflow.due_at(case.received_at)
    assert (case.opened_kind, case.opened_by) == ("key", str(hub.key.pk))
    assert get(hub, case.pk).json() == told


def test_it_is_in_the_trail(hub: Hub, person: EndUser) -> None:
    post(hub, reference="Wei's letter")
    event = AuditEvent.objects.get(object_type="PrivacyCase")
    case = PrivacyCase.objects.get()
    assert (event.verb, event.actor_kind, event.object_id, event.case_uuid) == ("open", "key", case.pk, case.pk)
    assert "Wei" not in str(vars(event))


def test_shows_how_far_it_came(hub: Hub, person: EndUser) -> None:
    case = cases.open_case(tenant=hub.tenant, user_id="用户 1", type="erasure", actor=COMMAND, now=NOW)
    case = cases.verify_identity(case_id=case.pk, expected_version=1, how="shell", actor=COMMAND, now=NOW)
    notice: dict[str, Any] = {"reason": "Much", "notice_on": NOW.date()}
    cases.extend_case(case_id=case.pk, expected_version=2, months=2, actor=COMMAND, now=NOW, **notice)
    told = get(hub, case.pk).json()
    assert (told["state"], told["verified_at"], told["restricted"]) == ("verified", "2026-11-03T09:12:00Z", True)
    assert (told["extended"], told["due_at"]) == (True, "2027-02-03T09:12:00Z")
    assert "Much" not in str(told)


def test_after_an_erasure_it_names_nobody_and_has_its_receipt(hub: Hub, person: EndUser) -> None:
    over = {"counts": {"memories.Turn": 3}, "receipt": {"case": "…"}, "signature": "s", "completed_at": NOW}
    case = factories.privacy_case(person, state="completed", **over)
    person.delete()
    told = get(hub, case.pk).json()
    assert (told["user_id"], told["restricted"], told["counts"]) == (None, False, {"memories.Turn": 3})
    assert told["receipt"] == {"case": "…", "signature": "s"}


def test_how_long_deleted_rows_are_on_the_disk(hub: Hub, person: EndUser, settings: Settings) -> None:
    case = factories.privacy_case(person, state="completed", counts={"memories.Turn": 3}, completed_at=NOW)
    assert get(hub, case.pk).json()["on_disk"] == {"window": None, "rewritten_at": None}
    settings.MEMORYHUB_REWRITE_WINDOW = "02:00-04:30"
    for table in ("memories_turn", "memories_fact", "memories_enduser", "memories_privacycase"):
        assert get(hub, case.pk).json()["on_disk"] == {"window": "02:00-04:30", "rewritten_at": None}
        TableRewrite.objects.create(table=table, rewritten_at=NOW + timedelta(hours=1))
    assert get(hub, case.pk).json()["on_disk"]["rewritten_at"] == "2026-11-03T10:12:00Z"
    for over in ({"type": "access"}, {"state": "running"}):
        PrivacyCase.objects.update(approved_at=NOW, approved_kind="command", **over)
        assert get(hub, case.pk).json()["on_disk"] is None


def test_names_whom_the_id_leads_to(hub: Hub, person: EndUser) -> None:
    case = factories.privacy_case(person, type="access")
    survivor = factories.end_user(hub.tenant, external_id="用户 2", restricted_at=NOW)
    EndUser.objects.filter(pk=person.pk).update(merged_into=survivor)
    told = get(hub, case.pk).json()
    assert (told["user_id"], told["restricted"]) == ("用户 2", True)
    opened = post(hub).json()
    assert (opened["user_id"], opened["channel"], opened["reference"]) == ("用户 2", "api", None)


def test_shows_the_newest_export(hub: Hub, person: EndUser) -> None:
    case = factories.privacy_case(person, type="access", state="completed")
    factories.privacy_export(case, state="expired", content=b"", size=1)
    factories.privacy_export(case, created_at=NOW + timedelta(days=1), expires_at=NOW + timedelta(days=8), size=7)
    assert get(hub, case.pk).json()["export"] == {"state": "ready", "expires_at": "2026-11-11T09:12:00Z", "size": 7}


@pytest.mark.parametrize("method", ["PATCH", "POST"])
def test_no_step_that_takes_an_operator_is_there(hub: Hub, person: EndUser, method: str) -> None:
    case = factories.privacy_case(person)
    assert hub.client.call(method, f"/privacy/requests/{case.pk}", {"state": "approved"}).status_code == 405
    for verb in ("verify", "approve", "run", "refuse", "complete"):
        assert hub.client.call(method, f"/privacy/requests/{case.pk}/{verb}", {}).status_code == 404
