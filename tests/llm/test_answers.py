"""The first object that fits is found in whatever surrounds it, and nothing is made of a broken one."""

import json
from typing import Any

import pytest

from memories.exceptions import ModelAnswerInvalid
from memories.llm.answers import load_object, parse
from memories.llm.prompts.memory_update import ANSWER, CandidateFact

FACT = {"content": "对花生过敏", "confidence": 1.0}
OBJECT = {"profile": {}, "new_facts": [FACT], "reinforced": [], "removed": []}
GOOD = json.dumps(OBJECT, ensure_ascii=False)
OTHER = GOOD.replace("花生", "牛奶")


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"\n\n{GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"Here you are {{with braces}}:\n{GOOD}\nDone {{.}}",
        f"<think>first I write {OTHER}, no</think>\n{GOOD}",
        f"no opening tag, but {OTHER}</think>{GOOD}",
        f'{{"thought": "two objects"}} {GOOD} {OTHER}',
        f'{{"memory_update": {GOOD}}}',
        f"[{GOOD}]",
        '{"profile": {…}, "new_facts": [...]} ' + GOOD,
        GOOD.replace('"profile": {}, ', "").replace(', "reinforced": [], "removed": []', ', "surplus": {"x": null}'),
        "\ufeff" + GOOD,
    ],
    ids=[
        "bare", "blanks", "fence", "prose", "thinking", "half a thought", "two", "wrapped", "list", "sketch", "less",
        "bom",
    ],
)  # fmt: skip
def test_found(text: str) -> None:
    assert parse(text, ANSWER).new_facts == [FACT]


def test_thinking_tags_inside_the_answer_do_not_hide_it() -> None:
    fact = {"content": "Writes </think> in posts", "confidence": 1.0}
    assert parse(json.dumps({"new_facts": [fact]}), ANSWER).new_facts == [fact]


@pytest.mark.parametrize("end", range(1, len(GOOD), 7))
def test_a_truncated_answer_is_no_answer(end: int) -> None:
    with pytest.raises(ModelAnswerInvalid):
        parse(GOOD[:end], ANSWER)


@pytest.mark.parametrize(
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
    ids=[
        "empty", "prose", "null", "list", "wrong type", "wrong key", "schema", "deep list", "deep", "brackets",
        "braces", "quotes", "unended", "nul",
    ],
)  # fmt: skip
def test_nothing_fits(text: str) -> None:
    with pytest.raises(ModelAnswerInvalid):
        parse(text, ANSWER)


def facts(text: str) -> list[Any]:
    return parse(f'{{"new_facts": [{text}]}}', ANSWER).new_facts


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400", "1" * 5_000, "-" + "9" * 301])
def test_numbers_beyond_reason_spoil_only_their_item(number: str) -> None:
    bad, good = facts(f'{{"content": "x", "confidence": {number}}}, {json.dumps(FACT)}')
    with pytest.raises(ValueError, match="confidence"):
        CandidateFact.model_validate(bad)
    assert CandidateFact.model_validate(good).content == "对花生过敏"


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("text", ["[]", "{", "1" * 5_000, "[" * 50_000, ""])
def test_an_envelope_is_one_object(text: str) -> None:
    with pytest.raises(ModelAnswerInvalid):
        load_object(text)
