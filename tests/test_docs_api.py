"""docs/api.md names every operation and no other, and its curl lines work as they are written."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from memories.models import Scope, SessionQueue
from memories.models.ids import new_id
from tests import factories
from tests.api.client import BASE, HubClient, operations, schema
from tests.each import each
from tests.profiles.defining import define

TEXT = (Path(__file__).resolve().parent.parent / "docs/api.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (\w+ /\S+)\n(.*?)(?=^##|\Z)", TEXT, flags=re.MULTILINE | re.DOTALL))


def headings() -> dict[str, str]:
    """operationId → its heading in the document."""
    addresses = {name: f"{method} {path.removeprefix(BASE)}" for name, (method, path) in operations().items()}
    return {name: re.sub(r"\{\w+_id\}", "{id}", address) for name, address in addresses.items()}


def test_every_operation_is_documented_and_no_other() -> None:
    assert SECTIONS.keys() == set(headings().values())


@each("scope", Scope.values)
def test_every_scope_is_documented(scope: str) -> None:
    assert f"| `{scope}` |" in TEXT


def test_sections_name_the_scope_of_their_operation() -> None:
    for name, heading in headings().items():
        method, path = operations()[name]
        scope = re.search(r"Needs the scope `(\w+)`", schema()["paths"][path][method.lower()]["description"])
        assert scope
        assert f"Scope `{scope[1]}`." in SECTIONS[heading], heading


def test_every_field_of_an_answer_is_documented() -> None:
    shown = {
        "Fact",
        "Session",
        "Turn",
        "PersonDetail",
        "Agent",
        "Extraction",
        "Revision",
        "Problem",
        "ContextAnswer",
        "Receipt",
        "PrivacyCase",
    }
    components = schema()["components"]["schemas"]
    missing = {
        f"{name}.{field}"
        for name in shown
        for field in components[name]["properties"]
        if f"`{field}`" not in TEXT and f'"{field}"' not in TEXT
    }
    assert missing == set()


@pytest.mark.usefixtures("db")
def test_the_curl_lines_work(settings: Any) -> None:
    settings.MEMORYHUB_LLM = "openai"
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1"
    tenant = factories.tenant(person_page=True)
    _, plaintext = factories.api_key(tenant)
    run = factories.run(factories.session(factories.end_user(tenant)), status="parked")
    SessionQueue.objects.update(parked_at=factories.NOW, due_at=None, failure="model_timeout")
    episode = factories.episode(run.session)
    case = factories.export_to_take(run.end_user).case
    agent = factories.agent(tenant)
    known = {"RUN": str(run.pk), "EPISODE": str(episode.pk), "ACCESS_CASE": str(case.pk), "AGENT": str(agent.pk)}
    known["IMPORT"] = str(factories.uploaded(tenant).pk)
    known["DREAM"] = str(factories.dream(run.end_user).pk)
    factories.episode(factories.session(factories.end_user(tenant, external_id="u2")))
    known["ENTRY"] = str(factories.diary_entry(run.end_user).pk)
    known["TRAJECTORY"] = str(factories.trajectory(run.end_user).pk)
    factories.skill(run.end_user, name="release-service")
    known["ATTACHMENT"] = str(factories.attachment(run.session.turns.all()[0], "Rye").pk)
    found = factories.policy_finding(factories.fact(run.end_user, "Has asthma"))
    known["DRY_RUN"] = str(found.trial_id)
    # Asked again: another one is under way by then.
    deleted = factories.policy_finding(factories.fact(run.end_user, "Has a cold")).trial
    deleted.batch = new_id()
    deleted.save()
    known["DELETED_DRY_RUN"] = str(deleted.pk)
    define(tenant)
    group = factories.memory_group(run.end_user)
    known |= {"GROUP": str(group.pk), "GROUP_FACT": str(factories.group_fact(group, run.end_user).pk)}
    known["OLD_GROUP"] = str(factories.memory_group(run.end_user).pk)
    lines = re.findall(r"^curl .*?(?=\n```)", TEXT, flags=re.MULTILINE | re.DOTALL)
    # One of each, and one that streams.
    assert len([line for line in lines if not line.startswith("curl -N")]) == len(operations())
    for line in lines:
        answer = run_curl(HubClient(plaintext), line, known)
        assert 200 <= answer.status_code < 300, line
        if answer.status_code == 202 and "session" in answer.json() and "turns" in answer.json():
            known |= {"SESSION": answer.json()["session"]["id"], "TURN": answer.json()["turns"][0]["id"]}
        if answer.status_code == 202 and "/privacy/requests" in line:
            known["CASE"] = answer.json()["id"]
        if answer.status_code == 201 and "id" in answer.json():
            known["FACT"] = answer.json()["id"]


def run_curl(client: HubClient, line: str, known: dict[str, str]) -> Any:
    """What curl would do, by way of the test client."""
    words = shlex.split(line)[1:]
    options: dict[str, list[str]] = {}
    address = ""
    while words:
        word = words.pop(0)
        if word in ("-G", "-N"):
            continue
        if word.startswith("-"):
            options.setdefault(word, []).append(words.pop(0))
        else:
            address = re.sub(r"\$(\w+)", lambda found: known.get(found[1], BASE), word)
    path, _, query = address.removeprefix(BASE).partition("?")
    body = options["-d"][0].encode() if "-d" in options else None
    method = options["-X"][0] if "-X" in options else "POST" if body else "GET"
    headers = dict(header.split(": ") for header in options["-H"] if ": " in header)
    asked: Any = dict(pair.split("=", 1) for pair in options.get("--data-urlencode", ())) or query
    return client.call(method, path, body, query=asked, headers=headers)
