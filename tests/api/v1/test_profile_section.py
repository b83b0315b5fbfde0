"""PUT /profile/{section}."""

from typing import Any

import pytest

from memories.models import EndUser, ProfileSection
from tests import factories
from tests.api.conftest import Hub


def put(hub: Hub, section: str, body: Any) -> Any:
    return hub.client.call("PUT", f"/profile/{section}", body)


def test_writes_a_section(hub: Hub) -> None:
    answer = put(hub, "work_context", {"user_id": "u1", "summary": "在银行工作。"})
    assert answer.status_code == 200
    assert answer.json()["sections"]["work_context"]["summary"] == "在银行工作。"
    again = put(hub, "work_context", {"user_id": "u1", "summary": "Retired."}).json()
    assert again["sections"]["work_context"]["version"] == 2
    assert again == hub.client.get("/profile", user_id="u1").json()


def test_an_empty_summary_removes_it(hub: Hub) -> None:
    put(hub, "work_context", {"user_id": "u1", "summary": "x"})
    answer = put(hub, "work_context", {"user_id": "u1", "summary": ""})
    assert answer.json()["sections"]["work_context"] is None
    assert not ProfileSection.objects.written().exists()


def test_an_operators_word_stands(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="u1")
    factories.profile_section(person, summary="By staff", binding=True)
    answer = put(hub, "work_context", {"user_id": "u1", "summary": "By key"})
    assert (answer.status_code, answer.json()["code"]) == (409, "operator_word")
    assert ProfileSection.objects.get().summary == "By staff"


def test_a_restricted_person_is_locked(hub: Hub) -> None:
    factories.end_user(hub.tenant, external_id="u1", restricted_at=factories.NOW)
    assert put(hub, "work_context", {"user_id": "u1", "summary": "x"}).status_code == 423


@pytest.mark.parametrize("section", ["hobbies", "%00", "WORK_CONTEXT"])
def test_an_unknown_section_is_not_found(hub: Hub, section: str) -> None:
    assert put(hub, section, {"user_id": "u1", "summary": "x"}).status_code == 404
    assert not EndUser.objects.exists()


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({"summary": "x"}, "/user_id", "required"),
        ({"user_id": "u1"}, "/summary", "required"),
        ({"user_id": "u1", "summary": None}, "/summary", "null"),
        ({"user_id": "u1", "summary": 5}, "/summary", "invalid"),
        ({"user_id": "u1", "summary": "x" * 4001}, "/summary", "max_length"),
        ({"user_id": "u1", "summary": "x", "version": 1}, "/version", "unknown_field"),
    ],
)
def test_bad_input_is_refused_with_its_place(hub: Hub, body: dict[str, Any], pointer: str, code: str) -> None:
    answer = put(hub, "work_context", body)
    assert answer.status_code == 400
    assert (pointer, code) in [(fault["pointer"], fault["code"]) for fault in answer.json()["errors"]]
    assert not EndUser.objects.exists()
