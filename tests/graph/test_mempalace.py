"""MemPalace's tests of its temporal graph (`mempalace.toml`), told to the hub as calls of the API."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.api.client import HubClient, follow

DATA = tomllib.loads((Path(__file__).parent / "mempalace.toml").read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = DATA["case"]
# Members of a step that say what the answer is; the others are sent.
EXPECTED = {
    "call", "status", "same_as", "objects", "subjects", "predicates", "state", "ends", "ended_at",
    "entities", "triples", "active", "historical", "total", "count", "pages",
}  # fmt: skip
PATHS = {
    "add": "/graph/triples", "end": "/graph/invalidate", "replace": "/graph/supersede", "entity": "/graph/entities",
    "relation": "/graph/relations", "timeline": "/graph/timeline", "walk": "/graph/timeline", "stats": "/graph/stats",
}  # fmt: skip
WRITES = ("add", "end", "replace")


def test_every_test_of_theirs_is_here_once() -> None:
    named = [(one["source"], one["name"]) for one in (*CASES, *DATA["other"])]
    assert len(named) == len(set(named)) == 30 + 53 + 7
    assert all(one["why"] for one in DATA["other"])
    assert len(CASES) == 71


@pytest.mark.django_db
@pytest.mark.parametrize("case", CASES, ids=[one["name"] for one in CASES])
def test_the_hub_answers_as_it_should(case: dict[str, Any], client: HubClient) -> None:
    ids: list[str] = []
    for step in (*DATA["graphs"].get(case.get("graph", ""), ()), *case["steps"]):
        call(client, step, ids)


def call(client: HubClient, step: dict[str, Any], ids: list[str]) -> None:
    """Make the call of a step and compare; `ids` are those of the triples so far."""
    kind = step["call"]
    # What a list is asked for is also what it should be about, where it is not a parameter.
    checks = {"valid_from", "valid_to", "subject_type"} if kind == "entity" else set()
    given = {"user_id": "u1"} | {name: value for name, value in step.items() if name not in EXPECTED | checks}
    answer = client.post(PATHS[kind], given) if kind in WRITES else client.get(PATHS[kind], **given)
    usual = 201 if kind in ("add", "replace") else 200
    assert answer.status_code == step.get("status", usual), (step, answer.content)
    if answer.status_code >= 400:
        return
    body = answer.json()
    if kind in ("add", "replace"):
        assert body["id"] == ids[step["same_as"]] if "same_as" in step else body["id"] not in ids
        ids.append(body["id"])
    elif kind == "end":
        assert len(body["triples"]) == step["ends"]
        assert {one["valid_to"] for one in body["triples"]} <= {step.get("ended_at", body["triples"][0]["valid_to"])}
    elif kind == "stats":
        assert {name: body[name] for name in EXPECTED & step.keys() - {"call"}} == {
            name: step[name] for name in EXPECTED & step.keys() - {"call"}
        }
    elif kind == "walk":
        walked(client, body, step)
    else:
        listed(body, step)


def listed(body: dict[str, Any], step: dict[str, Any]) -> None:
    rows = body["results"]
    for names, of in (("objects", "object"), ("subjects", "subject")):
        if names in step:
            assert sorted({one[of]["name"] for one in rows}) == step[names], step
    if "predicates" in step:
        assert sorted({one["predicate"] for one in rows}) == step["predicates"]
    for name in ("state", "valid_from", "valid_to"):
        if name in step:
            assert {one[name] for one in rows} == {step[name]}, step
    if "subject_type" in step:
        assert {one["subject"]["type"] for one in rows} == {step["subject_type"]}
    assert body["total"] == step.get("total", body["total"])
    assert len(rows) == step.get("count", len(rows))


def walked(client: HubClient, first: dict[str, Any], step: dict[str, Any]) -> None:
    pages = [first]
    while pages[-1]["next"]:
        pages.append(follow(client, pages[-1]["next"]))
    rows = [one for page in pages for one in page["results"]]
    assert [len(page["results"]) for page in pages] == step["pages"]
    assert len({one["id"] for one in rows}) == len(rows) == first["total"]
    moments = [one["valid_from"] or one["created_at"] for one in rows]
    assert moments == sorted(moments)
