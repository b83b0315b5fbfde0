"""GET and PUT /profile, and documents, with an agent: its own sections, beside the person's."""

from typing import Any

from memories.curation.access.keys import Binding
from memories.models import ProfileSection
from tests.api.conftest import Hub, hub_of


def write(hub: Hub, summary: str, section: str = "work_context", **given: Any) -> Any:
    return hub.client.call("PUT", f"/profile/{section}", {"user_id": "u1", "summary": summary, **given})


def work(hub: Hub, **given: Any) -> Any:
    shown = hub.client.get("/profile", user_id="u1", **given).json()["sections"]["work_context"]
    return shown and (shown["agent_id"], shown["summary"])


def test_an_agents_own_section_takes_the_place_of_the_persons(hub: Hub) -> None:
    write(hub, "Runs a bakery.")
    answer = write(hub, "Sells bread.", agent_id="Sales")
    assert answer.status_code == 200
    shown = answer.json()["sections"]["work_context"]
    assert (shown["agent_id"], shown["summary"], shown["version"]) == ("sales", "Sells bread.", 1)
    assert work(hub, agent_id="sales") == ("sales", "Sells bread.")
    assert work(hub) == work(hub, agent_id="support") == (None, "Runs a bakery.")
    write(hub, "", agent_id="sales")
    assert work(hub, agent_id="sales") == (None, "Runs a bakery.")


def test_a_key_for_an_agent_reads_its_own_and_names_no_other(hub: Hub) -> None:
    write(hub, "Runs a bakery.")
    write(hub, "Sells bread.", agent_id="sales")
    bound = hub_of(hub.tenant, binding=Binding(agent_id="sales", writes_as="user"))
    assert work(bound) == ("sales", "Sells bread.")
    refused = write(bound, "Mends ovens.", agent_id="support")
    assert (refused.status_code, refused.json()["code"]) == (403, "key_bound")
    assert write(bound, "Sells cake.", agent_id="sales").status_code == 200
    assert dict(ProfileSection.objects.values_list("agent_id", "summary")) == {
        "": "Runs a bakery.", "sales": "Sells cake.",
    }  # fmt: skip


def test_a_document_of_an_agent_has_its_sections_and_the_persons(hub: Hub) -> None:
    write(hub, "Runs a bakery.")
    write(hub, "Speaks Dutch.", "personal_context")
    query = {"user_id": "u1", "agent_id": "sales"}
    document = hub.client.get("/memory", **query).json()
    assert document["user"]["workContext"]["summary"] == "Runs a bakery."
    # What it repeats of the person's stays the person's.
    document["user"]["workContext"] = {"summary": "Sells bread.", "updatedAt": "2026-03-01T09:00:00Z"}
    told = hub.client.call("PUT", "/memory", document, query=query).json()
    assert told["user"]["workContext"] == document["user"]["workContext"]
    assert set(ProfileSection.objects.values_list("agent_id", "section", "summary")) == {
        ("", "work_context", "Runs a bakery."),
        ("", "personal_context", "Speaks Dutch."),
        ("sales", "work_context", "Sells bread."),
    }
    assert hub.client.call("PUT", "/memory", told, query=query).json() == told
    own = hub.client.get("/memory", user_id="u1").json()["user"]
    assert own["workContext"]["summary"] == "Runs a bakery."
