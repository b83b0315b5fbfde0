"""Signals: what the tables show is found, and nothing in what looks alike."""

import time

import pytest

from memories.text import signals
from tests.each import each
from tests.tables import rows, texts

FOUND = [*rows("signals"), *rows("signals_later")]
NOT_FOUND = [*texts("no_signals"), *texts("no_signals_later")]


def test_the_tables_are_as_long_as_promised() -> None:
    assert len(FOUND) >= 60
    assert len(NOT_FOUND) >= 80
    assert {kind for kind, _ in FOUND} == set(signals.KINDS)


@each(("kind", "text"), FOUND)
def test_found(kind: str, text: str) -> None:
    assert signals.find([text]) == [kind]


@each(("kind", "text"), [row for row in FOUND if row[1].isascii()])
def test_found_in_any_case(kind: str, text: str) -> None:
    assert signals.find([text.upper()]) == [kind]
    assert signals.find([text.replace("'", "’")]) == [kind]


@each("text", NOT_FOUND)
def test_not_found(text: str) -> None:
    assert signals.find([text]) == []


def test_several_texts_give_each_kind_once_sorted() -> None:
    assert signals.find(["我喜欢喝茶", "I prefer tea", "That's wrong.", "ok"]) == ["correction", "preference"]
    assert signals.find([]) == []


def test_places_are_those_of_the_text() -> None:
    text = "Hello 👋 there. “I like rain” is a song. But I prefer tea."
    (found,) = signals.matches(text)
    assert (found.kind, text[found.start : found.end]) == ("preference", "I prefer")


def test_one_sentence_may_have_several_signs() -> None:
    text = "不对，我是一名老师，我们决定用 React"
    assert [found.kind for found in signals.matches(text)] == ["correction", "identity", "decision"]


def test_other_patterns_take_the_place_of_ours() -> None:
    patterns = signals.load({"kind": [{"name": "praise", "english": ["well done"], "chinese": ["真棒"]}]})
    assert signals.find(["Well done! I prefer tea"], patterns) == ["praise"]
    assert signals.find(["真棒"], patterns) == ["praise"]
    assert signals.find(["swell done"], patterns) == []


@each("given", [{"kind": [{"name": "x", "english": ["("]}]}, {"kind": [{}]}, {}])
def test_what_is_no_table_of_patterns_is_refused(given: dict[str, object]) -> None:
    with pytest.raises((ValueError, KeyError)):
        signals.load(given)


def test_a_long_turn_is_read_at_both_ends() -> None:
    filler = "The log goes on and on. " * 5_000
    assert signals.find([f"I prefer tea. {filler}"]) == ["preference"]
    assert signals.find([f"{filler} I prefer tea."]) == ["preference"]


@each("unit", ["I prefer ", "I am a ", "我喜欢", "不对", '"a ', "if ", "`", "> a\n", "said ", "please ", "“"])
def test_a_megabyte_costs_no_more_than_its_ends(unit: str) -> None:
    begun = time.thread_time()
    signals.matches((unit * 1_000_000)[:1_000_000])
    assert time.thread_time() - begun < 5
