"""Dreams over the API: begun by hand, listed, read with their edits, and taken back."""

from typing import Any

import pytest
from django.conf import LazySettings

from memories import tasks
from memories.models import Dream, MemoryFile
from tests import factories
from tests.api.client import HubClient
from tests.api.conftest import Hub
from tests.dream.dreaming import edit, edits
from tests.model import Model, install


@pytest.fixture
def model(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Model:
    return install(settings, monkeypatch)


@pytest.fixture
def dreamt(hub: Hub, model: Model) -> str:
    """A dream that was asked for by the API, and carried out; its id."""
    person = factories.end_user(hub.tenant, external_id="anna")
    session = factories.session(person, agent_id="bot")
    factories.episode(session, "Moved to Leiden")
    model.answers.append(edits(edit("USER.md", "", "Lives in Leiden\n"), edit("x.md", "", "y")))
    begun = hub.client.post("/dreams", {"user_id": "anna", "agent_id": "bot"})
    assert begun.status_code == 202, begun.content
    assert (begun.json()["status"], begun.json()["started_by"], begun.headers["ETag"]) == ("running", "hand", '"1"')
    assert tasks.dream() == 1
    return str(begun.json()["id"])


def test_one_is_begun_listed_and_read_with_its_edits(client: HubClient, dreamt: str) -> None:
    [row] = client.get("/dreams", user_id="anna", agent_id="bot").json()["results"]
    assert (row["id"], row["status"], row["episodes"], row["summary"]) == (dreamt, "applied", 1, "USER.md +1")
    assert client.get("/dreams", user_id="anna").json()["results"] == []
    assert client.get("/dreams", user_id="anna", agent_id="bot", status="failed").json()["results"] == []
    read = client.get(f"/dreams/{dreamt}").json()
    assert [(one["path"], one["status"], one["code"]) for one in read["edits"]] == [
        ("/USER.md", "applied", None),
        ("x.md", "refused", "foreign_path"),
    ]
    file = client.call("GET", "/files/content", query={"user_id": "anna", "agent_id": "bot", "path": "/USER.md"}).json()
    assert (file["content"], file["written_by"], file["trust"]) == ("Lives in Leiden\n", "dream", "assistant")


@pytest.mark.parametrize("path", ["/memory/MEMORY.md", "/memories/AGENTS.md"])
def test_by_schedule_it_edits_the_file_that_the_agents_framework_reads(hub: Hub, model: Model, path: str) -> None:
    hub.tenant.numbers = {"dreams": True}
    hub.tenant.save()
    whose = {"user_id": "anna", "agent_id": "bot"}
    factories.episode(factories.session(factories.end_user(hub.tenant, external_id="anna"), agent_id="bot"))
    before = "# Work\n- Lives in Delft\n- Bakes\n"
    hub.client.post("/files/upload", {**whose, "files": [{"path": path, "content": before}]})
    model.answers.append(edits(edit(path[1:], "Delft", "Leiden"), edit(path.rpartition("/")[2], "", "- Rows\n")))

    def seen() -> str:
        [file] = hub.client.post("/files/download", {**whose, "paths": [path]}).json()["results"]
        return str(file["content"])

    assert tasks.dream() == 1
    assert seen() == "# Work\n- Lives in Leiden\n- Bakes\n- Rows\n"
    [row] = hub.client.get("/dreams", **whose).json()["results"]
    assert (row["started_by"], row["summary"]) == ("schedule", f"{path[1:]} +2 −1")

    def asked(address: str, path: str) -> Any:
        return hub.client.call("GET", address, query={**whose, "path": path}).json()["results"]

    newest, first = asked("/files/history", path)
    assert (newest["actor"]["kind"], newest["actor"]["id"], first["content"]) == ("dream", row["id"], before)
    assert [one["path"] for one in asked("/files", "/") if not one["is_dir"]] == []
    assert hub.client.post(f"/dreams/{row['id']}/restore", {}).status_code == 200
    assert seen() == before


def test_without_anything_new_none_begins(client: HubClient, dreamt: str) -> None:
    for agent, status, code in (("bot", 409, "nothing_new"), ("other", 409, "nothing_new")):
        answer = client.post("/dreams", {"user_id": "anna", "agent_id": agent})
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert client.post("/dreams", {"user_id": "nobody"}).status_code == 404


def test_while_one_is_running_none_begins(hub: Hub, model: Model) -> None:
    factories.episode(factories.session(factories.end_user(hub.tenant, external_id="anna")))
    assert hub.client.post("/dreams", {"user_id": "anna"}).status_code == 202
    answer = hub.client.post("/dreams", {"user_id": "anna"})
    assert (answer.status_code, answer.json()["code"]) == (409, "dream_open")


def test_without_a_model_none_begins(hub: Hub) -> None:
    factories.episode(factories.session(factories.end_user(hub.tenant, external_id="anna")))
    answer = hub.client.post("/dreams", {"user_id": "anna"})
    assert (answer.status_code, answer.json()["code"]) == (409, "no_model")
    assert not Dream.objects.exists()


def test_one_is_taken_back(client: HubClient, dreamt: str) -> None:
    stale = client.call("POST", f"/dreams/{dreamt}/restore", headers={"If-Match": '"7"'})
    assert stale.status_code == 412
    answer = client.post(f"/dreams/{dreamt}/restore", {})
    assert (answer.status_code, answer.json()["status"], answer.json()["kept"]) == (200, "restored", 0)
    assert MemoryFile.objects.get().trashed_at
    again = client.post(f"/dreams/{dreamt}/restore", {})
    assert (again.status_code, again.json()["code"]) == (409, "dream_decided")
    # Its episode is new again.
    assert client.post("/dreams", {"user_id": "anna", "agent_id": "bot"}).status_code == 202
