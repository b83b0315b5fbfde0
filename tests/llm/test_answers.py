"""The last object that fits is found in whatever surrounds it, and nothing is made of a broken one."""

import json
from typing import Any

import pytest

from memories.exceptions import ModelAnswerInvalid
from memories.llm.answers import load_object, parse
from memories.llm.prompts.memory_update import ANSWER, CandidateFact
from tests.each import each

FACT = {"content": "对花生过敏", "confidence": 1.0}
OBJECT = {"profile": {}, "new_facts": [FACT], "reinforced": [], "removed": []}
GOOD = json.dumps(OBJECT, ensure_ascii=False)
OTHER = GOOD.replace("花生", "牛奶")


@each(
    "text",
    [
        GOOD,
        f"\n\n{GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"Here you are {{with braces}}:\n{GOOD}\nDone {{.}}",
        f"<think>first I write {OTHER}, no</think>\n{GOOD}",
        f"no opening tag, but {OTHER}</think>{GOOD}",
        f'{{"thought": "two objects"}} {OTHER} {GOOD}',
        f'{{"memory_update": {GOOD}}}',
        f"[{GOOD}]",
        '{"profile": {…}, "new_facts": [...]} ' + GOOD,
        GOOD.replace('"profile": {}, ', "").replace(', "reinforced": [], "removed": []', ', "surplus": {"x": null}'),
        "\ufeff" + GOOD,
    ],
)  # fmt: skip
def test_found(text: str) -> None:
    assert parse(text, ANSWER).new_facts == [FACT]


EMPTY = json.dumps({"profile": {}, "new_facts": [], "reinforced": [], "removed": []})
# A draft, and then the answer.
WRAPPED = {
    "think": "<think>Draft: {}</think>\n{}",
    "unopened": "Draft: {}</think>\n{}",
    "upper": "<THINK>{}</THINK>{}",
    "other tag": "<inner_monologue>{}</inner_monologue>\n\n{}",
    "namespaced tag": "<seed:think>{}</seed:think>{}",
    "answer in a tag": "<analysis>{}</analysis>\n<answer>{}</answer>",
    "brackets": "[THINK]{}[/THINK]{}",
    "harmony": "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}",
    "harmony without marks": "analysis{}assistantfinal{}",
    "tokens": "<|begin_of_thought|>{}<|end_of_thought|>{}",
    "kimi": "◁think▷{}◁/think▷{}",
    "ollama": "Thinking...\n{}\n...done thinking.\n\n{}",
    "prose": "First I write the form: {}\nThe answer: {}",
    "fences": "```json\n{}\n```\n检查之后：\n```json\n{}\n```",
    "keys": '{{"draft": {}, "answer": {}}}',
    "open brace": '<reasoning>{} and {{"new_facts: </reasoning>{}',
}


@each("wrapping", WRAPPED.values())
@each("draft", [EMPTY, OTHER])
def test_a_draft_is_no_answer(wrapping: str, draft: str) -> None:
    assert parse(wrapping.format(draft, GOOD), ANSWER).new_facts == [FACT]


@each("name", ["think", "other tag", "answer in a tag", "brackets", "harmony", "kimi", "ollama"])
def test_after_marked_thinking_nothing_can_be_the_answer(name: str) -> None:
    assert parse(WRAPPED[name].format(GOOD, EMPTY), ANSWER).new_facts == []


@each(
    "text",
    [
        f"{GOOD}\n{EMPTY}",
        f"{GOOD}\nIf there were nothing: {EMPTY}",
        f"<answer>{GOOD}</answer><form>{EMPTY}</form>",
        f"```json\n{GOOD}\n```\n```json\n{EMPTY}\n```",
    ],
)
def test_nothing_after_something_is_asked_again(text: str) -> None:
    with pytest.raises(ModelAnswerInvalid):
        parse(text, ANSWER)
    assert parse(text.replace(EMPTY, GOOD), ANSWER).new_facts == [FACT]


@each("end", range(20, len(GOOD), 7))
def test_a_draft_does_not_stand_for_an_answer_that_was_cut(end: int) -> None:
    with pytest.raises(ModelAnswerInvalid):
        parse(f"{OTHER}\n{GOOD[:end]}", ANSWER)
    assert parse(f"{OTHER}\n{GOOD}", ANSWER).new_facts == [FACT]


def test_thinking_tags_inside_the_answer_do_not_hide_it() -> None:
    fact = {"content": "Writes </think> in posts", "confidence": 1.0}
    assert parse(json.dumps({"new_facts": [fact]}), ANSWER).new_facts == [fact]


@each("end", range(1, len(GOOD), 7))
def test_a_truncated_answer_is_no_answer(end: int) -> None:
    with pytest.raises(ModelAnswerInvalid):
        parse(GOOD[:end], ANSWER)


@each(
    "text",
    [
        "",
        "I cannot do that.",
        "null",
        "[]",
        '{"new_facts": "none"}',
        '{"facts": []}',
        '{"type": "object", "properties": {"new_facts": {"type": "array"}}}',
        '{"new_facts": [' + "[" * 50_000,
        '{"a":' * 50_000 + "1" + "}" * 50_000,
        "[" * 50_000,
        "{" * 1_000_000,
        '{"' * 500_000,
        '{"new_facts": ' * 100_000,
        "\0" * 1_000,
    ],
)  # fmt: skip
def test_nothing_fits(text: str) -> None:
    with pytest.raises(ModelAnswerInvalid):
        parse(text, ANSWER)


def facts(text: str) -> list[Any]:
    return parse(f'{{"new_facts": [{text}]}}', ANSWER).new_facts


@each("number", ["NaN", "Infinity", "-Infinity", "1e400", "1" * 5_000, "-" + "9" * 301])
def test_numbers_beyond_reason_spoil_only_their_item(number: str) -> None:
    bad, good = facts(f'{{"content": "x", "confidence": {number}}}, {json.dumps(FACT)}')
    with pytest.raises(ValueError, match="confidence"):
        CandidateFact.model_validate(bad)
    assert CandidateFact.model_validate(good).content == "对花生过敏"


@each(
    ("written", "stored"),
    [
        (r"\ud83d\ude00", "😀"),
        (r"a\ud83d", "a\ufffd"),
        (r"\ude00\ud83d", "\ufffd\ufffd"),
        (r"nul\u0000byte", "nulbyte"),
        (r"\\u0000 \\ud800", r"\u0000 \ud800"),
        ("bare\nnewline\tand tab", "bare\nnewline\tand tab"),
        ("raw\0nul", "rawnul"),
        ("raw \ud800 half", "raw \ufffd half"),
    ],
)
def test_text_can_be_stored(written: str, stored: str) -> None:
    (content,) = facts(f'"{written}"')
    assert content == stored
    assert content.encode()


def test_a_large_answer_is_read() -> None:
    assert len(facts(", ".join([json.dumps(FACT)] * 100_000))) == 100_000


@each("text", ["[]", "{", "1" * 5_000, "[" * 50_000, ""])
def test_an_envelope_is_one_object(text: str) -> None:
    with pytest.raises(ModelAnswerInvalid):
        load_object(text)
