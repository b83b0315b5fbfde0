"""GET /privacy/requests/{id}/export: once, of the own tenant, when it is ready."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memories.models import AuditEvent, CaseState, CaseType, EndUser, PrivacyCase, PrivacyExport
from tests import factories
from tests.api.client import BASE
from tests.api.conftest import Hub

ACCESS = CaseType.ACCESS


@pytest.fixture
def person(hub: Hub) -> EndUser:
    return factories.end_user(hub.tenant)


def of(person: EndUser, **over: Any) -> PrivacyCase:
    return factories.privacy_case(person, **{"type": ACCESS, "state": CaseState.COMPLETED, **over})


def ready(case: PrivacyCase, **over: Any) -> PrivacyExport:
    return factories.privacy_export(case, **{"expires_at": timezone.now() + timedelta(days=1), **over})


def export_of(hub: Hub, case_id: object) -> Any:
    return hub.client.get(f"/privacy/requests/{case_id}/export")


def test_it_is_had_once(hub: Hub, person: EndUser) -> None:
    case = of(person)
    export = ready(case, content=b"PK\x03\x04rest")
    answer = export_of(hub, case.pk)
    assert (answer.status_code, b"".join(answer.streaming_content)) == (200, b"PK\x03\x04rest")
    assert answer.headers["Content-Type"] == "application/zip"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="export-{case.pk}.zip"'
    assert answer.headers["Cache-Control"] == "no-store"
    export.refresh_from_db()
    assert (export.pieces.count(), export.state, export.size) == (0, "taken", 8)
    event = AuditEvent.objects.get(verb="download")
    assert (event.case_uuid, event.object_id, event.actor_kind, event.counts) == (
        case.pk,
        export.pk,
        "key",
        {"bytes": 8},
    )
    again = export_of(hub, case.pk)
    assert (again.status_code, again.json()["code"]) == (410, "export_gone")


STATES = [
    ({"state": "received"}, 409, "not_ready", True),
    ({"state": "verified"}, 409, "not_ready", True),
    ({"state": "running"}, 409, "not_ready", True),
    ({"state": "failed"}, 409, "conflict", False),
    ({"state": "refused"}, 409, "conflict", False),
    ({"type": "erasure", "state": "verified"}, 409, "conflict", False),
    ({"type": "rectification", "state": "verified"}, 409, "conflict", False),
]


def test_before_there_is_one(hub: Hub, person: EndUser) -> None:
    for over, status, code, again in STATES:
        answer = export_of(hub, of(person, **over).pk)
        assert (answer.status_code, answer.json()["code"]) == (status, code), over
        assert ("Retry-After" in answer.headers) is again, over


def test_after_its_time(hub: Hub, person: EndUser) -> None:
    case = of(person)
    ready(case, expires_at=timezone.now())
    assert export_of(hub, case.pk).status_code == 410


def test_head_takes_nothing(hub: Hub, person: EndUser) -> None:
    case = of(person)
    ready(case)
    sent = {"Authorization": f"Bearer {hub.client.plaintext}"}
    assert hub.client.http.head(f"{BASE}/privacy/requests/{case.pk}/export", headers=sent).status_code == 405
    assert case.exports.get().state == "ready"


@pytest.mark.parametrize("accept", ["application/zip", "application/json", "*/*"])
def test_whatever_is_accepted(hub: Hub, person: EndUser, accept: str) -> None:
    case = of(person)
    ready(case)
    path = f"/privacy/requests/{case.pk}/export"
    assert hub.client.call("GET", path, headers={"Accept": accept}).status_code == 200
