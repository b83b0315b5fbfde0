"""GET /sessions/{id}/turns."""

from tests import factories
from tests.api.conftest import Hub


def test_lists_turns_by_number(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant), [("user", f"你好 {number}") for number in range(1, 8)])
    first = hub.client.get(f"/sessions/{session.pk}/turns", page_size=3).json()
    assert [turn["number"] for turn in first["results"]] == [1, 2, 3]
    assert first["previous"] is None
    second = hub.client.get(f"/sessions/{session.pk}/turns", **_query(first["next"])).json()
    assert [turn["number"] for turn in second["results"]] == [4, 5, 6]
    turn = first["results"][0]
    assert (turn["role"], turn["content"], turn["external_id"], turn["metadata"]) == ("user", "你好 1", None, {})
    assert (turn["name"], turn["tool_calls"], turn["timestamp"]) == (None, None, None)


def test_the_newest_come_first_on_request(hub: Hub) -> None:
    session = factories.session(factories.end_user(hub.tenant), [("user", f"Text {number}") for number in range(1, 6)])
    address = f"/sessions/{session.pk}/turns"
    first = hub.client.get(address, sort="-number", page_size=3).json()
    assert [turn["number"] for turn in first["results"]] == [5, 4, 3]
    # What comes meanwhile is before the first page.
    more = {"session_id": session.external_id, "messages": [{"role": "user", "content": "Text 6"}]}
    assert hub.client.post("/turns", {**more, "user_id": session.end_user.external_id}).json()["accepted"] == 1
    second = hub.client.get(address, **_query(first["next"])).json()
    assert [turn["number"] for turn in second["results"]] == [2, 1]
    other_order = {**_query(first["next"]), "sort": "number"}
    assert hub.client.get(address, **other_order).json()["errors"][0]["code"] == "cursor"
    assert hub.client.get(address, sort="created_at").status_code == 400


def _query(address: str) -> dict[str, str]:
    from urllib.parse import parse_qsl, urlsplit

    return dict(parse_qsl(urlsplit(address).query))
