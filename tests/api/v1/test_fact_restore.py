"""POST /facts/{id}/restore."""

import uuid
from typing import Any

import pytest

from memories.models import FactRefusal
from tests.api.conftest import Hub


@pytest.fixture
def fact_id(hub: Hub) -> str:
    stated = {"user_id": "u1", "content": "Lives in Leiden", "category": "knowledge"}
    known: str = hub.client.post("/facts", stated).json()["id"]
    return known


def test_brings_back_from_the_trash(hub: Hub, fact_id: str) -> None:
    hub.client.call("DELETE", f"/facts/{fact_id}")
    answer = hub.client.post(f"/facts/{fact_id}/restore")
    assert (answer.status_code, answer.json()["status"], answer.headers["ETag"]) == (200, "active", '"3"')
    assert not FactRefusal.objects.exists()


def test_goes_back_to_an_earlier_version(hub: Hub, fact_id: str) -> None:
    hub.client.call("PATCH", f"/facts/{fact_id}", {"content": "Lives in Delft"})
    answer = hub.client.post(f"/facts/{fact_id}/restore", {"version": 1})
    assert (answer.json()["content"], answer.json()["version"]) == ("Lives in Leiden", 3)


def test_what_is_not_in_the_trash_needs_a_version(hub: Hub, fact_id: str) -> None:
    answer = hub.client.post(f"/facts/{fact_id}/restore", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")


def test_a_stale_if_match_changes_nothing(hub: Hub, fact_id: str) -> None:
    hub.client.call("DELETE", f"/facts/{fact_id}")
    assert hub.client.post(f"/facts/{fact_id}/restore", {}, **{"If-Match": "1"}).status_code == 412
    assert hub.client.get(f"/facts/{fact_id}").json()["status"] == "trashed"


@pytest.mark.parametrize("version", [0, -1, 2**31, 2**70, True, "1", 1.5, [1]])
def test_a_bad_version_is_refused(hub: Hub, fact_id: str, version: Any) -> None:
    assert hub.client.post(f"/facts/{fact_id}/restore", {"version": version}).status_code == 400


def test_unknown_facts_and_versions_are_not_found(hub: Hub, fact_id: str) -> None:
    assert hub.client.post(f"/facts/{uuid.uuid4()}/restore", {}).status_code == 404
    assert hub.client.post(f"/facts/{fact_id}/restore", {"version": 9}).status_code == 404
