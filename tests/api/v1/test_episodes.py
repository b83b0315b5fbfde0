"""GET /episodes."""

from datetime import datetime, timedelta
from typing import Any

from memories.models import EmbeddingSpace, Episode, EpisodeVector
from tests import factories
from tests.api.conftest import Hub
from tests.factories import NOW

DOCUMENTED = {
    "id", "user_id", "agent_id", "session_id", "first_number", "last_number", "summary", "key_topics", "actions_taken",
    "outcomes", "importance", "quality", "flaws", "extractor", "prompt_version", "status", "pinned", "version",
    "started_at", "ended_at", "created_at", "updated_at", "last_recalled_at", "expires_at", "trashed_at",
    "decay_score", "forget_at", "embedding_model",
}  # fmt: skip


def ids(hub: Hub, **query: Any) -> list[str]:
    return [row["id"] for row in hub.client.get("/episodes", **query).json()["results"]]


def episode(hub: Hub, summary: str = "要了发票", *, user_id: str = "u1", session: Any = None, **over: Any) -> Episode:
    person = hub.tenant.end_users.filter(external_id=user_id).first()
    person = person or factories.end_user(hub.tenant, external_id=user_id)
    return factories.episode(factories.session(person, **(session or {})), summary, **over)


def test_an_episode_has_exactly_the_fields_of_the_contract(hub: Hub) -> None:
    made = episode(hub, key_topics=["发票"], flaws=["copy"], session={"session_id": "s1", "agent_id": "support"})
    [row] = hub.client.get("/episodes", user_id="u1").json()["results"]
    assert set(row) == DOCUMENTED
    assert (row["id"], row["user_id"], row["agent_id"], row["session_id"]) == (str(made.pk), "u1", "support", "s1")
    assert (row["summary"], row["key_topics"], row["outcomes"], row["flaws"]) == ("要了发票", ["发票"], [], ["copy"])
    assert (row["first_number"], row["last_number"], row["ended_at"]) == (1, 1, "2026-11-03T09:12:00Z")
    nothing = ("prompt_version", "expires_at", "trashed_at", "last_recalled_at", "embedding_model")
    assert [row[name] for name in nothing] == [None] * len(nothing)
    assert row["forget_at"] > row["created_at"]


def test_newest_first_and_only_active_ones(hub: Hub) -> None:
    old, new = episode(hub), episode(hub, now=NOW + timedelta(seconds=1))
    poor, gone = episode(hub, status="pending"), episode(hub, status="trashed")
    episode(hub, user_id="u2")
    assert ids(hub, user_id="u1") == [str(new.pk), str(old.pk)]
    assert ids(hub, user_id="u1", status="pending") == [str(poor.pk)]
    assert ids(hub, user_id="u1", status="trashed") == [str(gone.pk)]
    assert len(ids(hub, user_id="u1", status="all")) == 4


def test_by_importance_and_times(hub: Hub) -> None:
    old = episode(hub, importance=0.9, now=NOW, created_at=NOW + timedelta(days=3))
    new = episode(hub, importance=0.4, now=NOW + timedelta(days=1), created_at=NOW + timedelta(days=2))
    for asked, found in (
        ({"min_importance": 0.5}, [old]),
        ({"since": NOW + timedelta(hours=1)}, [new]),
        ({"until": NOW + timedelta(hours=1)}, [old]),
        ({"created_since": NOW + timedelta(days=3)}, [old]),
        ({"created_until": NOW + timedelta(days=3)}, [new]),
    ):
        given = {name: at.isoformat() if isinstance(at, datetime) else at for name, at in asked.items()}
        assert ids(hub, user_id="u1", **given) == [str(one.pk) for one in found], asked


def test_pages_follow_each_other_by_time(hub: Hub) -> None:
    made = [str(episode(hub, now=NOW + timedelta(hours=hour % 3)).pk) for hour in range(5)]
    first = hub.client.get("/episodes", user_id="u1", page_size=2).json()
    found = [row["id"] for row in first["results"]]
    address = first["next"]
    while address:
        page = hub.client.call("GET", "/episodes", query=address.partition("?")[2]).json()
        found += [row["id"] for row in page["results"]]
        address = page["next"]
    assert sorted(found) == sorted(made)
    assert found == ids(hub, user_id="u1")


def test_filters(hub: Hub) -> None:
    first = episode(hub, "喜欢绿茶 100%", session={"session_id": "s1"})
    second = episode(hub, "Installed VIM", session={"session_id": "s2", "agent_id": "coder"})
    for query, expected in [
        ({"session_id": "s1"}, first),
        ({"q": "绿茶"}, first),
        ({"q": "100%"}, first),
        ({"q": "vim"}, second),
        ({"agent_id": "CODER"}, second),
    ]:
        assert ids(hub, user_id="u1", **query) == [str(expected.pk)], query
    assert ids(hub, user_id="u1", q="nothing") == ids(hub, user_id="u1", session_id="s3") == []
    # A parameter without a value is as good as none.
    assert len(ids(hub, user_id="u1", session_id="", q="")) == 2


def test_the_model_is_named_once_the_present_text_has_its_vector(hub: Hub) -> None:
    made = episode(hub)
    space = EmbeddingSpace.objects.create(model="test", dimensions=2, state="serving", created_at=NOW)
    of = {"tenant": made.tenant, "end_user": made.end_user, "episode": made, "space": space, "language": "zh"}
    EpisodeVector.objects.create(vector=[1.0, 0.0], text_digest=b"of an older text", **of)
    assert hub.client.get(f"/episodes/{made.pk}").json()["embedding_model"] is None
    EpisodeVector.objects.update(text_digest=made.content_hash)
    assert hub.client.get(f"/episodes/{made.pk}").json()["embedding_model"] == "test"
