"""GET /facts/{id}/history."""

from tests.api.conftest import Hub


def test_lists_versions_newest_first(hub: Hub) -> None:
    stated = {"user_id": "u1", "content": "住在莱顿", "category": "knowledge"}
    fact_id = hub.client.post("/facts", stated).json()["id"]
    hub.client.call("PATCH", f"/facts/{fact_id}", {"content": "住在代尔夫特"})
    hub.client.call("DELETE", f"/facts/{fact_id}")
    history = hub.client.get(f"/facts/{fact_id}/history").json()["results"]
    assert [(row["version"], row["verb"]) for row in history] == [(3, "forget"), (2, "edit"), (1, "add")]
    assert history[1]["before"] == {"content": "住在莱顿"}
    assert history[1]["after"]["content"] == "住在代尔夫特"
    assert history[1]["actor"] == {"kind": "key", "id": str(hub.key.pk)}
    assert history[2]["before"] == {}


def test_comes_in_pages(hub: Hub) -> None:
    fact_id = hub.client.post("/facts", {"user_id": "u1", "content": "0", "category": "other"}).json()["id"]
    for number in range(1, 4):
        hub.client.call("PATCH", f"/facts/{fact_id}", {"content": str(number)})
    first = hub.client.get(f"/facts/{fact_id}/history", page_size=3).json()
    assert [row["version"] for row in first["results"]] == [4, 3, 2]
    assert "cursor=" in first["next"]
