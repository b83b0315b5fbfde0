"""A right fact fits its label; one about something else, half of one, or its opposite does not."""

from evals.extraction.matching import Found, Label, is_in, pairs
from tests.each import each

LIVES = Label(all=(("Leiden", "莱顿"), ("live", "move", "住")), none=("Utrecht",))
NO_ALLERGY = Label(all=(("penicillin", "青霉素"), ("allerg", "过敏")), negated=True)
ALLERGY = Label(all=(("penicillin", "青霉素"), ("allerg", "过敏")), negated=False)
TRIP = Label(all=(("Oslo",),), expires=(3, 12))


@each(
    ("label", "content", "fits"),
    [
        (LIVES, "Lives in Leiden", True),
        (LIVES, "Has moved to LEIDEN", True),
        (LIVES, "住在莱顿", True),
        (LIVES, "ｌｉｖｅｓ in Ｌｅｉｄｅｎ", True),
        (LIVES, "Likes Leiden", False),
        (LIVES, "Lives in Delft", False),
        (LIVES, "Lives in Leiden, not in Utrecht", False),
        (LIVES, "Olive oil from Leiden", False),
        (LIVES, "", False),
        (NO_ALLERGY, "Is not allergic to penicillin", True),
        (NO_ALLERGY, "Isn’t allergic to penicillin", True),
        (NO_ALLERGY, "对青霉素不过敏", True),
        (NO_ALLERGY, "Is allergic to penicillin", False),
        (NO_ALLERGY, "对青霉素过敏", False),
        (NO_ALLERGY, "Notably allergic to penicillin", False),
        (ALLERGY, "Is allergic to penicillin", True),
        (ALLERGY, "Is not allergic to penicillin", False),
        (ALLERGY, "特别容易对青霉素过敏", True),
        (ALLERGY, "没有青霉素过敏", False),
        (Label(all=(("5",),)), "Size 5", True),
        (Label(all=(("5",),)), "Size 50", False),
        (Label(all=(("5",),)), "Size 15", False),
        (Label(all=(("5月",),)), "生日是5月9日", True),
        (Label(all=(("C++",),)), "Writes c++ daily", True),
    ],
)
def test_fits(label: Label, content: str, fits: bool) -> None:
    assert label.fits(Found(content)) is fits


@each(("days", "fits"), [(3, True), (12, True), (2, False), (13, False), (None, False)])
def test_what_ends_must_end_in_time(days: float | None, fits: bool) -> None:
    assert TRIP.fits(Found("Is in Oslo", expires=days)) is fits


@each(
    ("language", "content", "expected"),
    [("en", "Likes tea", True), ("en", "喜欢喝茶", False), ("zh", "喜欢喝茶", True), ("zh", "Likes tea", False)],
)
def test_the_language_is_kept(language: str, content: str, expected: bool) -> None:
    assert is_in(language, content) is expected


def test_each_fact_and_each_label_count_once() -> None:
    tea, drink = Label(all=(("tea",),)), Label(all=(("drink",),))
    both, one = Found("Drinks tea"), Found("Likes tea")
    assert pairs([tea, drink], [both]) == {0: 0}
    # The first label is content with the second fact, so that the second label gets the first.
    assert pairs([tea, drink], [both, one]) == {0: 1, 1: 0}
    assert pairs([tea], [one, both, one]) == {0: 0}
    assert pairs([], [one]) == pairs([tea], []) == {}
