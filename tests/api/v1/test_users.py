"""/users and /users/detail: people, one of them with counts, and changes of the record."""

from datetime import timedelta
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


LATER = factories.NOW + timedelta(seconds=1)


def names(hub: Hub, **query: str) -> list[str]:
    return [row["user_id"] for row in hub.client.get("/users", **query).json()["results"]]


def test_the_tenants_people_are_listed_newest_first(hub: Hub, other: Hub, person: EndUser) -> None:
    factories.end_user(hub.tenant, external_id="u_2", created_at=LATER, display_name="王小明", restricted_at=LATER)
    factories.end_user(other.tenant, external_id="stranger")
    assert names(hub) == ["u_2", "用户 1"]
    row = hub.client.get("/users").json()["results"][0]
    assert (row["display_name"], row["restricted"], row["language"], row["metadata"]) == ("王小明", True, None, {})
    factories.end_user(hub.tenant, external_id="alice@example.org")
    assert names(hub, q="ALICE@") == ["alice@example.org"]
    assert names(hub, q="小明") == ["u_2"]
    # An underscore is no wildcard.
    assert names(hub, q="e_") == []


def test_shows_the_person_with_counts(hub: Hub, person: EndUser) -> None:
    factories.session(person, [("user", "a"), ("assistant", "b")])
    factories.fact(person)
    factories.fact(person, "gone", status="trashed")
    for number, status in enumerate(("active", "active", "pending", "trashed"), start=1):
        factories.episode(factories.session(person), first_number=number, last_number=number, status=status)
    factories.episode(factories.session(factories.end_user(hub.tenant)))
    answer = hub.client.get("/users/detail", user_id="用户 1").json()
    assert (answer["user_id"], answer["display_name"], answer["restricted"]) == ("用户 1", "Wei", False)
    assert answer["counts"] == {"sessions": 5, "turns": 6, "facts": 1, "episodes": 2}
    assert answer["pending"] == {"extraction": 0, "embedding": 3 + 4 + 3}
    while vectors.embed_some().moved:
        """Until nothing is left."""
    assert hub.client.get("/users/detail", user_id="用户 1").json()["pending"] == {"extraction": 0, "embedding": 0}


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
