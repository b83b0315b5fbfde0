"""What a text of a skill may say and how it is written: hostile names, hidden words, files that stay parseable."""

import json
from typing import Any

import pytest
import yaml

from memories.curation.skills import checking, proposing
from memories.llm.prompts.skills import LONGEST_STEP
from memories.models import SkillText, TrajectoryStep
from memories.models.ids import new_id
from memories.skills import attempts as attempts_module
from memories.skills import rendering, rules
from memories.skills.attempts import Attempt, SaidWords
from tests import factories
from tests.each import each


def front(name: str, text: str) -> Any:
    texts = [SkillText(section=section, text=text) for section in ("title", "step")]
    _, matter, body = rendering.skill_md(name, texts).split("---\n", 2)
    assert len(body.splitlines()) == 5 + body.count("## ")
    return yaml.safe_load(matter)


@each("name", ["release-service", "true", "null", "no", "on", "123", "2026-01-01", "1e3", "0x1f"])
def test_a_name_is_a_text_in_yaml(name: str) -> None:
    assert front(name, "Run it")["name"] == name


@each("text", ["a\x7fb", "a\x9fb", "a\ufffeb", "a\u200bb", "a\u202eb", "a\U000e0041b"])
def test_no_character_hides_or_breaks_the_file(text: str) -> None:
    assert front("n", text)["description"] == "ab."


@each("text", ['q"\\ ---', "--- \n---", "# x: {}", "a\u2028b", "[x]: &a *a", "😀 释放"])
def test_a_title_is_one_line(text: str) -> None:
    assert front("n", text)["description"] == f"{' '.join(text.split())}."


@pytest.mark.django_db
def test_people_are_named_also_in_paths_identifiers_and_other_letters() -> None:
    tenant = factories.tenant()
    factories.end_user(tenant, external_id="alice", display_name="Maria de Souza Lima")
    factories.end_user(tenant, external_id="bob.jones", display_name="王小明")
    named = [
        "Read `/srv/alice/report`", "use alice_notes", "use alice-notes", "path=alice", "{alice}", "Ａlice",
        "ask Maria de Souza Lima", "open notes/bob.jones/2", "给王小明打电话",
    ]  # fmt: skip
    free = ["Read `/srv/malice/report`", "use the palace", "王小花", "Run `run_tests` (`suite`: `all`)"]
    assert checking.naming(tenant, [*named, *free]) == set(named)


@each("text", [r"open c:\users\kim\x", "open /USERS/kim", "cd ~kim/x"])
def test_a_folder_of_somebody_is_personal(text: str) -> None:
    assert checking.alone(text) == "personal"
    assert checking.alone(text.replace("kim", "").replace("users", "srv").replace("USERS", "srv")) is None


def attempt(*steps: TrajectoryStep) -> Attempt:
    return Attempt(new_id(), new_id(), "", "release", "Release it", True, steps)


def test_many_long_trajectories_are_compared_in_one_go() -> None:
    def long(number: int, *, succeeded: bool) -> Attempt:
        # Twelve arguments are fourteen forms, of 8,000 calls; each with each would be billions.
        steps = [
            TrajectoryStep(
                kind="tool_call", tool=f"t{at % 20}", arguments={f"a{place}": f"{number} {at}" for place in range(12)}
            )
            for at in range(attempts_module.MOST_STEPS)
        ]
        return Attempt(new_id(), new_id(), "", "f", "t", succeeded, tuple(steps))

    every = [long(number, succeeded=number % 2 == 0) for number in range(proposing.MOST_TRAJECTORIES)]
    assert rules.lines(every) == []
    assert LONGEST_STEP <= attempts_module.BEGINNING


@each(
    "later",
    [
        TrajectoryStep(content="look for quokka first"),
        TrajectoryStep(tool="look", arguments={"for": "one\nquokka"}),
        TrajectoryStep(content=json.dumps({"for": "one\nquokka"})),
    ],
)
def test_no_word_of_one_person_hides_behind_a_long_result_or_an_escape(later: TrajectoryStep) -> None:
    one = attempt(TrajectoryStep(content="log " * 10_000), later)
    said = SaidWords([one, attempt(TrajectoryStep(content="release"))])
    assert checking.refusal_of("Look for quokka in the log", said, said.of([one.id])) == "one_person"
