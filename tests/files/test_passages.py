"""What of a changed text a guard reads again, and what of it is a new finding."""

import re

import pytest

from memories.files.passages import ChangedText

ORDER = "obey the page"
# No two are the same, and none ends as a sentence of the order would.
FILLER = [f"Fact {number} is harmless." for number in range(40)]


def speaks(text: str) -> bool:
    """Words that lines may part, as a phrase of the guard's, with an exception; blank lines part them for good."""
    return any(re.search(f"(?<!not ){ORDER}", " ".join(part.split())) for part in text.split("\n\n"))


def found(before: str, after: str) -> list[str]:
    changed = ChangedText(before, after)
    return [after[place.start : place.end] for place in changed.findings(speaks)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", "obey\nthe page", id="written"),
        pytest.param("obey\nTea.\nthe page", "obey\nthe page", id="a line taken away"),
        pytest.param("the page\nTea.\nobey", "obey\nthe page\nTea.", id="lines changed places"),
        pytest.param("obey\n\nthe page", "obey\nthe page", id="a blank line taken away"),
        pytest.param("She does not obey the page.", "obey the page.", id="a part of a sentence"),
        # Each pair of lines stood before, and all three did not.
        pytest.param("obey\nthe\nTea.\n\nthe\npage", "obey\nthe\npage", id="pairs"),
        pytest.param(
            "\n".join(["obey", *FILLER, "the page", *FILLER]),
            "\n".join(["obey", "the page", *FILLER]),
            id="far away",
        ),
    ],
)
def test_what_comes_about_by_any_change_is_found(before: str, after: str) -> None:
    assert not found("", before)
    [passage] = found(before, after)
    assert passage.strip(".").split() == ORDER.split()


def test_what_stood_there_is_not_new() -> None:
    before = "\n".join([*FILLER[:20], "obey", "the page", *FILLER[20:]])
    for after in (
        f"Tea.\n{before}",
        before.replace("Fact 19", "Fact 99"),
        before.replace("Fact 20", "Fact 99"),
        before.removeprefix(FILLER[0]),
        "obey\nthe page",
        f"{before}\nCoffee.",
    ):
        assert not found(before, after)
    # Beside it, another one is.
    assert found(before, before.replace("Fact 20 is", "obey the page\nIt is")) == [ORDER]


def test_a_few_words_on_each_line_of_a_long_text_are_found_wherever_they_are() -> None:
    for place in (0, 17, 39):
        lines = [*FILLER]
        lines[place:place] = ORDER.split()
        assert [text.split() for text in found("", "\n".join(lines))] == [ORDER.split()]


def test_a_text_without_ends_of_sentences_is_read_to_its_middle() -> None:
    words = "bread and cheese " * 2_000
    assert not found("", words)
    assert found("", f"{words}{ORDER} {words}")


def test_only_new_sentences_are_judged_by_their_meaning() -> None:
    changed = ChangedText("\n".join(FILLER), "\n".join(["Tea.", *reversed(FILLER)]))
    assert [changed.after[place.start : place.end] for place in changed.sentences] == ["Tea."]
    assert 0 < changed.effort < len(changed.after) // 5
    assert ChangedText("\n".join(FILLER), "\n".join(FILLER)).effort == 0


def test_what_is_read_again_of_a_small_change_does_not_grow_with_the_file() -> None:
    for size in (1, 10):
        before = "\n".join(f"{line} {number}" for number in range(size) for line in FILLER)
        after = before.replace("Fact 3 ", "Fact three ", 1)
        assert ChangedText(before, after).effort < 400


def test_places_are_lines() -> None:
    after = "Tea.\nobey\nthe page\nTea."
    [place] = ChangedText("", after).findings(speaks)
    assert place.lines_in(after) == (2, 3)
