"""Passages of turns: what is kept of a text where there is no room for all of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memories.context.passages import GAP, passage

LONG = "It rained the whole day in Leiden, so we stayed at home and read. "


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        ("", ["tea"], ""),
        ("I drank tea.", ["tea"], "I drank tea."),
        (" Wow! I drank tea.\n", ["tea"], " Wow! I drank tea.\n"),
        (LONG + "I drank tea with Anna. " + LONG, ["tea", "anna"], LONG + "I drank tea with Anna. …"),
        (LONG * 3 + "Tea, pi is 3.14 and e.g. version 2.0 is out! " + LONG, ["pi"], "…Tea, pi is 3.14"),
        (
            "那天我们在家里读书，什么地方都没有去。" * 3 + "后来我在西湖边喝了龙井茶。真好！",
            ["西湖"],
            "那天我们在家里读书，什么地方都没有去。…后来我在西湖边喝了龙井茶。真好！",
        ),
        ("no end " * 40, ["end"], "no end " * 39 + "no end"),
        ("First line\n\nSecond line, which is about the tea that I drank\n", ["tea"], "Second line, which"),
    ],
)
def test_the_sentences_that_say_most(text: str, words: list[str], told: str) -> None:
    given_back = passage(text, words, 120)
    assert told in given_back
    assert told != "" or given_back == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            LONG + "Then, at four, I drank tea with Anna: she had cake. " + LONG,
            "…I drank tea with Anna: she had cake. …",
        ),
        ("那天我们在家里读书，什么地方都没有去，后来我在西湖边喝了龙井茶，真好！", "…后来我在西湖边喝了龙井茶，…"),
    ],
)
def test_a_short_passage_is_made_of_clauses(text: str, told: str) -> None:
    assert passage(text, ["tea", "anna", "西湖"], 40) == told


@given(
    text=st.text(st.sampled_from("ab .,;!?。！，\n…é茶"), max_size=300),
    words=st.lists(st.text("ab茶", min_size=1, max_size=3), max_size=4),
    length=st.sampled_from([20, 40, 120]),
)
def test_it_is_part_of_the_text_and_short(text: str, words: list[str], length: int) -> None:
    told = passage(text, words, length)
    place = 0
    for part in filter(None, (one.strip() for one in told.split(GAP))):
        place = text.index(part, place) + len(part)
    assert told == text or told == text.strip() or GAP in told
