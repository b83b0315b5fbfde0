"""GET and PATCH /users/detail."""

from typing import Any

import pytest

from memories.embedding import vectors
from memories.models import AuditEvent, EndUser
from tests import factories
from tests.api.conftest import Hub


@pytest.fixture
def person(hub: Hub) -> EndUser:
    return factories.end_user(hub.tenant, external_id="用户 1", display_name="Wei")


def patch(hub: Hub, body: Any, user_id: str = "用户 1") -> Any:
    return hub.client.call("PATCH", "/users/detail", body, query={"user_id": user_id})


def test_shows_the_person_with_counts(hub: Hub, person: EndUser) -> None:
    factories.session(person, [("user", "a"), ("assistant", "b")])
    factories.fact(person)
    factories.fact(person, "gone", status="trashed")
    answer = hub.client.get("/users/detail", user_id="用户 1").json()
    assert (answer["user_id"], answer["display_name"], answer["restricted"]) == ("用户 1", "Wei", False)
    assert answer["counts"] == {"sessions": 1, "turns": 2, "facts": 1, "episodes": 0}
    assert answer["pending"] == {"extraction": 0, "embedding": 3}
    while vectors.embed_some().moved:
        """Until nothing is left."""
    assert hub.client.get("/users/detail", user_id="用户 1").json()["pending"] == {"extraction": 0, "embedding": 0}


def test_counts_the_texts_without_a_vector(hub: Hub, person: EndUser) -> None:
    factories.episode(factories.session(person))
    factories.fact(person)

    def waiting() -> int:
        count: int = hub.client.get("/users/detail", user_id="用户 1").json()["pending"]["embedding"]
        return count

    # The turn, its episode and the fact.
    assert waiting() == 3
    while vectors.embed_some().moved:
        """Until nothing is left."""
    assert waiting() == 0


def test_counts_the_active_episodes(hub: Hub, person: EndUser) -> None:
    for number, status in enumerate(("active", "active", "pending", "trashed"), start=1):
        factories.episode(factories.session(person), first_number=number, last_number=number, status=status)
    factories.episode(factories.session(factories.end_user(hub.tenant)))
    assert hub.client.get("/users/detail", user_id="用户 1").json()["counts"]["episodes"] == 2


@pytest.mark.usefixtures("with_model")
def test_counts_the_turns_that_extraction_has_yet_to_read(hub: Hub, person: EndUser) -> None:
    turns = [("user", "I moved"), ("assistant", "Where to?"), ("user", "谢谢"), ("assistant", "bye"), ("tool", "{}")]
    session = factories.session(person, turns)
    factories.session(person, [("user", "我搬家了")])

    def waiting() -> int:
        count: int = hub.client.get("/users/detail", user_id="用户 1").json()["pending"]["extraction"]
        return count

    # The courtesy, its reply and the tool's answer are not read.
    assert waiting() == 3
    queue = session.queue
    queue.extracted_number, queue.due_at = 5, None
    queue.save()
    assert waiting() == 1


def test_an_unknown_person_is_not_found(hub: Hub) -> None:
    assert hub.client.get("/users/detail", user_id="nobody").status_code == 404
    assert patch(hub, {"display_name": "x"}, user_id="nobody").status_code == 404
    assert not EndUser.objects.exists()


@pytest.mark.usefixtures("person")
def test_changes_the_record(hub: Hub) -> None:
    changes = {
        "display_name": "小明", "time_zone": "Asia/Shanghai", "language": "zh-CN", "metadata": {"plan": "pro"},
        "capture": False, "serve": False,
    }  # fmt: skip
    answer = patch(hub, changes).json()
    assert {name: answer[name] for name in changes} == changes
    assert AuditEvent.objects.filter(verb="update", actor_id=str(hub.key.pk)).count() == 1
    assert patch(hub, {"time_zone": "", "language": ""}).json()["time_zone"] is None


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({}, "", "empty"),
        ({"display_name": None}, "/display_name", "null"),
        ({"display_name": "x" * 256}, "/display_name", "max_length"),
        ({"time_zone": "Mars/Olympus"}, "/time_zone", "invalid"),
        ({"time_zone": "../etc/passwd"}, "/time_zone", "invalid"),
        ({"language": "Chinese!"}, "/language", "invalid"),
        ({"metadata": []}, "/metadata", "invalid"),
        ({"capture": "no"}, "/capture", "invalid"),
        ({"user_id": "u2"}, "/user_id", "unknown_field"),
        ({"restricted": False}, "/restricted", "unknown_field"),
    ],
)
@pytest.mark.usefixtures("person")
def test_bad_changes_are_refused(hub: Hub, body: dict[str, Any], pointer: str, code: str) -> None:
    answer = patch(hub, body)
    assert answer.status_code == 400
    assert [(fault["pointer"], fault["code"]) for fault in answer.json()["errors"]] == [(pointer, code)]
    assert not AuditEvent.objects.filter(verb="update").exists()
