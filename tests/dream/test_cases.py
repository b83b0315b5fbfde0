"""What nanobot says of its dreams, run against the hub: cases.toml has the cases, and names what is left out."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memories.audit import Actor
from memories.dream import dreaming
from memories.dream.deciding import restore
from memories.exceptions import MemoryHubError, ModelError
from memories.models import ActorKind, Dream, EndUser, MemoryFile
from tests import factories
from tests.dream.dreaming import begin, dreamer, edit, edits, episodes
from tests.factories import NOW
from tests.model import Model

GIVEN: dict[str, Any] = tomllib.loads((Path(__file__).parent / "cases.toml").read_text(encoding="utf-8"))
CASES: list[dict[str, Any]] = GIVEN["case"]
FAILURES = {error.code: error for error in ModelError.__subclasses__()}
# Of the three files of tests.
TESTS = {"test_dream.py": 43, "test_memory_store.py": 50, "test_builtin_dream.py": 21}


def test_each_test_is_named_once() -> None:
    named = [test for group in (*CASES, *GIVEN["left_out"]) for test in group["tests"]]
    assert len(set(named)) == len(named)
    assert Counter(test.partition("::")[0] for test in named) == TESTS


@pytest.mark.django_db
@pytest.mark.parametrize("case", CASES, ids=[case["says"] for case in CASES])
def test_the_hub_does_the_same(case: dict[str, Any], model: Model) -> None:
    person = dreamer()
    person.tenant.dream_guide = case.get("guide", "")
    person.tenant.save()
    for path, text in case.get("files", {}).items():
        factories.memory_file(person, path, text, agent_id="bot")
    remember(person, case)
    dreams = [one_dream(person, step, number, model) for number, step in enumerate(case["dreams"])]
    assert len(dreams) == len(case["dreams"])
    if "after" in case:
        present = MemoryFile.objects.filter(trashed_at=None)
        assert dict(present.values_list("path", "content")) == case["after"]


def remember(person: EndUser, case: dict[str, Any]) -> None:
    numbered = [f"entry-{number:02d}" for number in range(1, case.get("entries", 0) + 1)]
    if texts := [*case.get("history", ()), *numbered]:
        episodes(person, *texts)
    if others := case.get("others"):
        episodes(person, *others, agent_id="other")
    if longest := case.get("long"):
        [row] = episodes(person, "x")
        row.actions_taken = ["x" * 200] * (longest // 200)
        row.set_text(row.summary)
        row.save()


def one_dream(person: EndUser, step: dict[str, Any], number: int, model: Model) -> Dream | None:
    """One dream of a case, at a moment of its own."""
    now = NOW.replace(hour=NOW.hour + number)
    if earlier := step.get("restore"):
        row = Dream.objects.order_by("started_at")[earlier - 1]
        restore(dream_id=row.pk, actor=Actor(kind=ActorKind.OPERATOR, id="1"), now=now)
    if added := step.get("add"):
        episodes(person, *added, since=now)
    if code := step.get("refused"):
        with pytest.raises(MemoryHubError) as refused:
            begin(person, now=now)
        assert refused.value.code == code
        return None
    failure = step.get("failure")
    model.answers.append(FAILURES[failure]() if failure else edits(*(edit(*one) for one in step.get("edits", ()))))
    row = begin(person, now=now)
    dreaming.run(row, now=now)
    row.refresh_from_db()
    check(row, step, prompt=model.prompts[-1] if model.prompts else "", told=model.instructions[-1:])
    return row


def check(row: Dream, step: dict[str, Any], *, prompt: str, told: list[str]) -> None:
    assert row.state == step["status"]
    assert row.failure == step.get("failure", "")
    assert [text for text in step.get("shown", ()) if text not in prompt] == []
    assert [text for text in step.get("hidden", ()) if text in prompt] == []
    assert [text for text in step.get("told", ()) if text not in told[0]] == []
    assert [text for text in step.get("untold", ()) if text in told[0]] == []
    if "read" in step:
        assert row.episodes == step["read"]
    if "summary" in step:
        assert row.summary == step["summary"]
    if "codes" in step or "edits" in step:
        assert list(row.edits.filter(state="refused").values_list("code", flat=True)) == step.get("codes", [])
    if longest := step.get("entry"):
        assert [len(text) for text in re.findall("<entry [^>]*>(.*?)</entry>", prompt)] == [longest]
