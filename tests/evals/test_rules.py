"""What the hub keeps without a model of utterances that were labelled by hand: limits below the measured figures."""

from functools import cache

from evals.rules import measure
from evals.rules.measure import KEEP, LEAVE, PARTS, Figures, Outcome, Utterance
from tests.each import each


# Not when the file is imported: processes that run other tests import it, too.
@cache
def measured(part: str) -> Figures:
    return measure.measure(measure.utterances(part))


@each("part", PARTS)
def test_what_people_ask_for_and_say_is_kept(part: str) -> None:
    assert measured(part).recall >= 0.9, missed(part)


@each("part", PARTS)
def test_nothing_else_becomes_active(part: str) -> None:
    assert measured(part).precision >= 0.97, [one.active for one in measured(part).outcomes if one.active != ()]


@each("part", PARTS)
def test_hardly_anything_harmless_waits_for_review(part: str) -> None:
    assert measured(part).suggested <= 0.06 * measured(part).harmless


def missed(part: str) -> list[str]:
    return [one.utterance.text for one in measured(part).outcomes if one.utterance.label == KEEP and not one.right]


def test_the_set_is_as_large_as_it_is_said_to_be() -> None:
    said = {part: list(measure.utterances(part)) for part in PARTS}
    both = [one for part in PARTS for one in said[part]]
    assert len(both) >= 500
    assert len({one.text for one in both}) == len(both)
    for part in PARTS:
        chinese = sum(one.language == "zh" for one in said[part])
        harmless = sum(one.label == LEAVE for one in said[part])
        assert 0.45 < chinese / len(said[part]) < 0.55
        assert harmless > 0.45 * len(said[part])


def test_figures() -> None:
    to_keep, harmless = Utterance("keep", "name", "Call me Al", "Al"), Utterance("leave", "small", "Hi", "")
    figures = Figures(
        [
            Outcome(to_keep, ("Call me Al",), ()),
            Outcome(to_keep, ("Something else",), ()),
            Outcome(to_keep, (), ("Call me Al",)),
            Outcome(harmless, ("Hi",), ()),
            Outcome(harmless, (), ("Hi",)),
        ]
    )
    assert (figures.recall, figures.precision) == (1 / 3, 1 / 3)
    assert (figures.harmless, figures.suggested) == (2, 1)
    assert [one.is_good for one in figures.outcomes] == [True, False, False, False, False]
