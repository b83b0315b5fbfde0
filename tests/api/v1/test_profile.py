"""GET /profile."""

from memories.models import Section
from tests import factories
from tests.api.conftest import Hub


def test_shows_six_sections(hub: Hub) -> None:
    person = factories.end_user(hub.tenant, external_id="小明")
    factories.profile_section(person, "top_of_mind", "正在准备马拉松。")
    answer = hub.client.get("/profile", user_id="小明").json()
    assert answer["user_id"] == "小明"
    assert list(answer["sections"]) == Section.values
    shown = answer["sections"]["top_of_mind"]
    assert shown == {
        "agent_id": None,
        "summary": "正在准备马拉松。",
        "version": 1,
        "updated_at": "2026-11-03T09:12:00Z",
        "trust": "user",
        "evidence": [],
    }
    assert [name for name, section in answer["sections"].items() if section] == ["top_of_mind"]


def test_of_an_unknown_person_is_empty(hub: Hub) -> None:
    answer = hub.client.get("/profile", user_id="nobody")
    assert answer.status_code == 200
    assert not any(answer.json()["sections"].values())


def test_the_person_must_be_named(hub: Hub) -> None:
    assert hub.client.get("/profile").json()["errors"][0]["pointer"] == "user_id"
