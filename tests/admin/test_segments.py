"""Diffs and marked quotes, by tables of cases."""

import time

from hypothesis import given
from hypothesis import strategies as st

from memories.admin.site.segments import Segment, diff, highlight
from tests.each import each


def shown(segments: list[Segment]) -> str:
    marks = {"": "{}", "added": "+{}+", "removed": "-{}-", "quote": "[{}]", "cut": "{}"}
    return "".join(marks[segment.mark].format(segment.text) for segment in segments)


@each(
    ("old", "new", "expected"),
    [
        ("Allergic to peanuts", "Allergic to penicillin", "Allergic to -peanuts-+penicillin+"),
        ("对花生过敏", "对青霉素过敏", "对-花生-+青霉素+过敏"),
        ("same", "same", "same"),
        ("", "new", "+new+"),
        ("old", "", "-old-"),
        ("a b c", "a x c", "a -b-+x+ c"),
        ("喜欢咖啡。", "喜欢咖啡，但周末除外。", "喜欢咖啡+，但周末除外+。"),
        ("one two three", "four five six", "-one two three-+four five six+"),
        # A line that comes is marked as that line, though the next one begins alike.
        ("A:\n- [b] Tea\n", "A:\n- [a] Rye\n- [b] Tea\n", "A:\n+- [a] Rye\n+- [b] Tea\n"),
        ("- [a] Rye\n- [b] Tea\n", "- [b] Tea\n", "-- [a] Rye\n-- [b] Tea\n"),
    ],
)
def test_diff(old: str, new: str, expected: str) -> None:
    assert shown(diff(old, new)) == expected


@given(st.text(max_size=80), st.text(max_size=80))
def test_a_diff_loses_nothing(old: str, new: str) -> None:
    segments = diff(old, new)
    assert "".join(segment.text for segment in segments if segment.mark != "added") == old
    assert "".join(segment.text for segment in segments if segment.mark != "removed") == new


@each("texts", [("a" * 2000, "a" * 1999 + "b"), ("ab " * 666, "ba " * 666), ("字" * 2000, "中" * 2000)])
def test_a_diff_of_the_longest_texts_is_quick(texts: tuple[str, str]) -> None:
    started = time.process_time()
    diff(*texts)
    assert time.process_time() - started < 2


@each(
    ("content", "quote", "expected"),
    [
        ("It is penicillin, not peanuts.", "penicillin, not peanuts", "It is [penicillin, not peanuts]."),
        ("It is Penicillin,  NOT peanuts.", "penicillin not peanuts", "It is [Penicillin,  NOT peanuts]."),
        ("我喜欢手冲咖啡，跑完步喝。", "喜欢手冲咖啡,跑完步", "我[喜欢手冲咖啡，跑完步]喝。"),
        ("Full width ＡＢＣ", "abc", "Full width [ＡＢＣ]"),
        ("Nothing of it", "elsewhere", "Nothing of it"),
        ("Anything", "", "Anything"),
        ("Anything", "?!", "Anything"),
        ("", "quote", ""),
    ],
)
def test_highlight(content: str, quote: str, expected: str) -> None:
    assert shown(highlight(content, quote)) == expected


def test_a_long_turn_is_cut_around_the_quote() -> None:
    segments = highlight("前" * 5000 + "就是这里" + "后" * 5000, "就是这里")
    assert [segment.mark for segment in segments] == ["cut", "", "quote", "", "cut"]
    assert len("".join(segment.text for segment in segments)) == 2 + 400 + 4 + 400


def test_a_long_turn_without_the_quote_shows_its_beginning() -> None:
    segments = highlight("x" * 5000, "absent")
    assert shown(segments) == "x" * 400 + "…"


@given(st.text(max_size=60), st.text(min_size=1, max_size=10), st.text(max_size=60))
def test_a_quote_that_is_there_is_marked(before: str, quote: str, after: str) -> None:
    segments = highlight(before + quote + after, quote)
    assert "".join(segment.text for segment in segments) == before + quote + after
    assert [segment.text for segment in segments if segment.mark == "quote"] == [quote]
