"""Skills as agents get them: among their files, in /skills and in contexts; and trials that end with a trajectory."""

from typing import Any

import pytest

from memories.curation.access.keys import Binding
from memories.curation.skills import deciding
from memories.models import EndUser, Skill, SkillTrial
from tests import factories
from tests.api.conftest import Hub, hub_of
from tests.factories import NOW, STAFF

TEXT = "Warm the oven first"


@pytest.fixture
def person(hub: Hub) -> EndUser:
    return factories.end_user(hub.tenant, external_id="u1")


@pytest.fixture
def skill(person: EndUser) -> Skill:
    """For all agents, and tried by nobody yet."""
    found = factories.skill(person, text=TEXT, name="bake-bread", family="bake bread")
    SkillTrial.objects.all().delete()
    return found


def ask(hub: Hub, address: str, **given: Any) -> Any:
    return hub.client.call("GET", address, query={"user_id": "u1", **given})


def post(hub: Hub, address: str, **given: Any) -> Any:
    return hub.client.post(address, {"user_id": "u1", **given})


def trials() -> list[tuple[str, str, str, bool]]:
    rows = SkillTrial.objects.order_by("noted_at", "pk")
    return [(one.session_id, one.arm, one.via, one.read_at is not None) for one in rows]


PATH = "/skills/bake-bread/SKILL.md"


class TestAmongTheFiles:
    def test_it_is_listed_found_and_read(self, hub: Hub, skill: Skill) -> None:
        assert "/skills/" in [one["path"] for one in ask(hub, "/files", path="/").json()["results"]]
        # That there is a folder is no trial.
        assert trials() == []
        folder = ask(hub, "/files", path="/skills/", session_id="s1").json()["results"]
        assert [(one["path"], one["is_dir"]) for one in folder] == [("/skills/bake-bread/", True)]
        [file] = ask(hub, "/files", path="/skills/bake-bread", session_id="s1").json()["results"]
        assert (file["path"], file["version"], file["locked"]) == (PATH, 1, True)
        assert trials() == [("s1", "served", "files", False)]
        shown = ask(hub, "/files/content", path=PATH, session_id="s1").json()
        assert shown["content"].startswith("---\nname: bake-bread\ndescription: ")
        assert TEXT in shown["content"]
        assert trials() == [("s1", "served", "files", True)]
        globbed = post(hub, "/files/glob", pattern="**/SKILL.md").json()["results"]
        grepped = post(hub, "/files/grep", pattern="oven", path="/skills").json()["results"]
        assert [one["path"] for one in (*globbed, *grepped)] == [PATH, PATH]
        taken = post(hub, "/files/download", paths=[PATH, "/skills/none/SKILL.md"]).json()["results"]
        assert [one["error"] for one in taken] == [None, "file_not_found"]
        assert TEXT in taken[0]["content"]

    def test_switched_off_nothing_is_served_and_on_again_it_is(self, hub: Hub, skill: Skill) -> None:
        for is_on, names in ((True, ["bake-bread"]), (False, []), (True, ["bake-bread"])):
            factories.set_numbers(hub.tenant, skills=is_on)
            assert [one["name"] for one in ask(hub, "/skills").json()["results"]] == names
            assert ask(hub, "/files/content", path=PATH).status_code == (200 if is_on else 404)

    def test_it_cannot_be_changed_and_the_agents_own_takes_its_place(self, hub: Hub, skill: Skill) -> None:
        edited = post(hub, "/files/edit", path=PATH, old_string="oven", new_string="pan")
        deleted = hub.client.call("DELETE", "/files", query={"user_id": "u1", "path": PATH})
        assert {(one.status_code, one.json()["code"]) for one in (edited, deleted)} == {(409, "operator_word")}
        own = {"user_id": "u1", "path": PATH, "content": "# Mine\n"}
        assert hub.client.call("PUT", "/files/content", own).status_code == 201
        assert ask(hub, "/files/content", path=PATH).json()["content"] == "# Mine\n"
        [file] = ask(hub, "/files", path="/skills/bake-bread").json()["results"]
        assert file["locked"] is False
        # Of another person it is still the hub's.
        factories.end_user(hub.tenant, external_id="u2")
        assert TEXT in ask(hub, "/files/content", path=PATH, user_id="u2").json()["content"]

    def test_a_withdrawn_one_is_gone_at_once(self, hub: Hub, skill: Skill) -> None:
        deciding.withdraw(skill_id=skill.pk, actor=STAFF, now=NOW)
        assert ask(hub, "/files/content", path=PATH).status_code == 404
        assert ask(hub, "/files", path="/skills/").json()["results"] == []


class TestSkills:
    def test_they_are_listed_and_read_with_their_figures(self, hub: Hub, skill: Skill) -> None:
        [one] = ask(hub, "/skills", session_id="s1").json()["results"]
        assert (one["name"], one["path"], one["scope"], one["version"]) == ("bake-bread", PATH, "tenant", 1)
        whole = ask(hub, "/skills/bake-bread", session_id="s1").json()
        assert whole["texts"] == [{"section": "step", "text": TEXT}]
        assert whole["served"] == {"total": 0, "succeeded": 0, "share": None, "lowest": 0.0, "highest": 1.0}
        assert trials() == [("s1", "served", "api", True)]
        versions = ask(hub, "/skills/bake-bread/versions").json()["results"]
        assert [(row["version"], row["state"], row["served_until"]) for row in versions] == [(1, "served", None)]
        assert ask(hub, "/skills/none").status_code == 404

    def test_a_key_for_one_agent_gets_those_of_that_agent(self, hub: Hub, skill: Skill) -> None:
        Skill.objects.update(scope="agent", agent_id="baker")
        baker = hub_of(hub.tenant, binding=Binding("u1", "baker"))
        other = hub_of(hub.tenant, binding=Binding("u1", "butcher"))
        listed = [one.client.call("GET", "/skills").json()["results"] for one in (baker, other)]
        assert [len(rows) for rows in listed] == [1, 0]
        assert other.client.call("GET", "/skills/bake-bread").status_code == 404

    def test_another_tenant_has_none(self, other: Hub, skill: Skill) -> None:
        assert ask(other, "/skills").json()["results"] == []
        assert ask(other, "/skills/bake-bread").status_code == 404

    def test_a_context_names_them_if_it_is_asked(self, hub: Hub, skill: Skill) -> None:
        assert "skills" not in post(hub, "/context").json()
        [one] = post(hub, "/context", skills=True, session_id="s1").json()["skills"]
        assert (one["name"], one["path"]) == ("bake-bread", PATH)
        assert trials() == [("s1", "served", "context", False)]


def test_sessions_are_kept_without_it_and_trajectories_end_the_trials(hub: Hub, skill: Skill) -> None:
    """Through the API alone: a share of one half, and sessions with it that fail."""
    deciding.set_share(skill_id=skill.pk, share=50, actor=STAFF, now=NOW)
    gone = None
    for number in range(40):
        session = f"s{number}"
        given = ask(hub, "/skills", session_id=session).json()["results"]
        outcome = {"result": "failed" if given else "succeeded"}
        posted = post(hub, "/trajectories", task="Bake", family="bake bread", session_id=session, outcome=outcome)
        assert posted.status_code == 202
        if Skill.objects.get().status == "withdrawn":
            gone = number
            break
    assert gone is not None
    assert {arm for _session, arm, _via, _read in trials()} == {"served", "control"}
    assert SkillTrial.objects.filter(arm="served").count() <= 20
    assert ask(hub, "/skills", session_id="later").json()["results"] == []
