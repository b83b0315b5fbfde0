"""How strong evidence is: the formula by hand, its levels, and what can never happen for any text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from memories.llm import embeddings
from memories.retrieval import evidence
from memories.retrieval.evidence import LEAST_STRONG, LEAST_WEAK, Level, graded, strengths
from memories.scoring import dense, language
from memories.scoring.constants import Constants
from memories.scoring.ranking import Query, Units, query_texts, score
from tests.scoring.stores import floats, packed, units

UNCENTRED = Constants(prior_unknown=1e12)
NONE, WEAK, STRONG = Level.NONE, Level.WEAK, Level.STRONG
USE = "use-multilingual-3"


def levels(strength: list[float], scores: list[float] | None = None, **over: object) -> list[Level]:
    found = graded(floats(strength), floats(scores or [0.0] * len(strength)), **over)  # type: ignore[arg-type]
    return found.levels


def strength(texts: list[str], asked: str, near: list[float] | None = None) -> list[float]:
    """The evidence of texts, alone, that are so near to a query."""
    vectors = None if near is None else [[one, (1 - one**2) ** 0.5] for one in near]
    store = units(texts, vectors=vectors, alone=True, constants=UNCENTRED)
    queries = [Query.of(asked, None if near is None else floats([1, 0]))]
    found: list[float] = strengths(store, queries, score(store, queries)).tolist()
    return found


class TestLevels:
    def test_one_memory(self) -> None:
        assert levels([LEAST_STRONG]) == [STRONG]
        assert levels([LEAST_STRONG - 0.01]) == [WEAK]
        assert levels([LEAST_WEAK - 0.01]) == [NONE]

    def test_beside_a_better_one_the_tail_is_cut(self) -> None:
        assert levels([1.0, 0.56, 0.54, 0.44]) == [STRONG, STRONG, WEAK, NONE]

    def test_a_memory_that_scores_well_is_weak_at_least(self) -> None:
        assert levels([1.0, 0.1, 0.1], [2.0, 0.9, 0.7]) == [STRONG, WEAK, NONE]

    def test_scores_make_nothing_weak_where_the_best_evidence_is_none(self) -> None:
        assert levels([0.2, 0.1], [4.0, 3.0]) == [NONE, NONE]
        assert levels([0.4, 0.1], [4.0, 3.0]) == [STRONG, WEAK]

    def test_what_is_not_allowed_counts_for_nobody(self) -> None:
        assert levels([1.0, 0.4], allowed=np.array([False, True])) == [NONE, STRONG]
        assert levels([1.0, 0.4], allowed=np.array([True, True])) == [STRONG, NONE]
        assert levels([1.0], allowed=np.array([False])) == [NONE]

    def test_where_chance_comes_nearer_more_is_needed(self) -> None:
        assert levels([LEAST_STRONG, LEAST_WEAK], shift=0.05) == [WEAK, WEAK]
        assert levels([LEAST_WEAK + 0.04], shift=0.05) == [NONE]
        assert levels([LEAST_STRONG - 0.05], shift=-0.05) == [STRONG]

    def test_nothing_at_all(self) -> None:
        assert levels([]) == []
        assert graded(floats([]), floats([])).best == NONE
        assert levels([-0.5, -0.2], [-1.0, -0.1]) == [NONE, NONE]

    def test_the_strongest(self) -> None:
        assert graded(floats([0.1, 1.0, 0.6]), floats([0, 0, 0])).best == STRONG
        assert evidence.strongest([]) == NONE
        assert sorted([STRONG, NONE, WEAK], key=lambda one: one.rank) == [NONE, WEAK, STRONG]


class TestStrength:
    def test_it_is_nearness_and_a_tenth_for_each_telling_word(self) -> None:
        texts = ["The quokka lives in Leiden", "The cat sleeps"]
        found = strength(texts, "quokka enclosure in leiden, near the harbour and the old mill", [0.4, 0.3])
        assert found == pytest.approx([0.4 + 0.2, 0.3], abs=0.005)

    def test_more_than_two_words_are_no_more(self) -> None:
        two, four = ("quokka leiden zither mango", "quokka leiden plum fig")
        assert strength([two, "x y"], two, [0.5, 0])[0] == pytest.approx(0.7, abs=1e-3)
        assert strength([four, "x y"], two, [0.5, 0])[0] == pytest.approx(0.7, abs=0.01)

    def test_a_word_of_many_memories_or_of_everybody_tells_less(self) -> None:
        rare, common = (
            strength(["quokka", "x"], "quokka", [0.5, 0])[0],
            strength(["quokka"] * 30, "quokka", [0.5] * 30)[0],
        )
        everyday = strength(["sister", "x"], "sister", [0.5, 0])[0]
        assert rare == pytest.approx(0.6, abs=1e-3)
        assert common < rare - 0.02
        assert everyday < rare - 0.02

    def test_a_query_that_only_names_something_needs_no_nearness(self) -> None:
        assert strength(["Zsuzsanna", "x"], "Zsuzsanna?", [0.0, 0])[0] >= LEAST_STRONG
        asked = "what would zsuzsanna like to eat at the old harbour?"
        assert strength(["Zsuzsanna", "x"], asked, [0.0, 0])[0] < LEAST_WEAK

    def test_a_name_tells_more_than_another_word(self) -> None:
        texts = ["Replaced Jest", "x"]
        plain = strength(texts, "should i configure jest for this project?", [0.05, 0])[0]
        assert strength(texts, "should I configure Jest for this project?", [0.05, 0])[0] == pytest.approx(plain + 0.2)

    def test_a_part_of_a_name_is_no_name(self) -> None:
        asked, plain = "Who won the 1966 World Cup?", "who won the 1966 world cup?"
        part, whole = "Show the world who you are", "Has seen every world cup since 1966"
        assert strength([part, "x"], asked, [0, 0]) == strength([part, "x"], plain, [0, 0])
        assert strength([whole, "x"], asked, [0, 0])[0] > strength([whole, "x"], plain, [0, 0])[0] + 0.15

    def test_bare_numbers_and_letters_tell_nothing(self) -> None:
        assert strength(["I have 2 cats", "x"], "2+2?", [0.05, 0])[0] == pytest.approx(0.05, abs=1e-3)
        assert strength(["I have 2047 stamps", "x"], "2047?", [0.05, 0])[0] > LEAST_STRONG

    def test_a_chinese_word_is_no_more_than_an_english_one(self) -> None:
        chinese = strength(["我的猫叫豆豆", "x"], "光合作用的方程式，豆豆", [0.0, 0])[0]
        assert 0.0 < chinese <= 0.11

    def test_without_vectors_the_words_decide(self) -> None:
        assert strength(["Has a quokka called Q", "Plays the cello"], "quokka")[0] >= LEAST_STRONG
        assert strength(["Has a quokka called Q", "Plays the cello"], "boiling point of tungsten") == [0, 0]

    def test_half_of_what_a_named_date_adds_counts(self) -> None:
        store = units(["x", "y"], vectors=[[0.2, 0.98], [0.1, 0.99]], alone=True, constants=UNCENTRED)
        queries = [Query.of("and on that day", floats([1, 0]))]
        scores = score(store, queries)
        assert evidence.of(store, queries, scores).best == NONE
        assert evidence.of(store, queries, scores, dates=floats([0.3, 0])).levels == [STRONG, WEAK]

    def test_a_memory_that_waits_for_its_vector_is_judged_by_its_words(self) -> None:
        vectors = [[0.6, 0.8], [0.0, 0.0]]
        store = units(["x", "quokka"], vectors=vectors, present=[True, False], alone=True, constants=UNCENTRED)
        queries = [Query.of("quokka", floats([1, 0]))]
        near, waiting = strengths(store, queries, score(store, queries))
        assert near == pytest.approx(0.6, abs=1e-3)
        assert waiting >= LEAST_STRONG


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5), st.text(max_size=40))
def test_any_text_has_levels(texts: list[str], asked: str) -> None:
    store = units(texts, alone=True)
    queries = [Query.of(one) for one in query_texts(asked)]
    scores = score(store, queries)
    assert np.isfinite(strengths(store, queries, scores)).all()
    assert len(evidence.of(store, queries, scores).levels) == len(texts)


PLACES = ["My sister Ana runs a bakery in Leiden.", "I am allergic to penicillin.", "I learn the cello on Wednesdays."]
GUESTS = ["我的猫叫豆豆，今年三岁。", "我上个月开始学钢琴。", "我对花生过敏。"]
# Asked of both: three facts are enough to tell.
ABOUT_PLACES = ["Where is Ana's bakery?", "Which medicine is dangerous for me?", "Which instrument do I play?"]
ABOUT_GUESTS = ["我的猫叫什么名字？", "我在学什么乐器？", "我对什么过敏？"]
ABOUT_NOBODY = [
    "What is the boiling point of tungsten?",
    "2+2?",
    "什么是量子纠缠？",
    "Write a regex for IPv4 addresses.",
]


@pytest.mark.parametrize(("texts", "asked"), [(PLACES, ABOUT_PLACES), (GUESTS, ABOUT_GUESTS)])
def test_three_facts_are_enough_to_tell(texts: list[str], asked: list[str]) -> None:
    store = Units.of(
        sessions=np.arange(len(texts), dtype=np.int32),
        packed=packed(texts),
        vectors=embeddings.embed(texts, model=USE),
        languages=[language.of(one) for one in texts],
        blocks=dense.blocks(USE, 512),
        alone=True,
    )
    for place, text in enumerate(asked):
        found = _judged(store, text)
        assert found.levels[place] == STRONG, text
    for text in ABOUT_NOBODY:
        assert _judged(store, text).best == NONE, text


@pytest.mark.parametrize("base", [0.0, 0.7])
def test_a_model_that_nobody_measured_is_judged_by_its_own_scale(base: float) -> None:
    """Some models find any two texts near."""
    texts = ["Owns a zither", "Sails on Sundays", "Fears moths"]
    store = units(texts, vectors=_with_base(np.eye(4)[:3], base), alone=True, blocks=[dense.VectorBlock("plain", 5)])
    asked = floats(_with_base(np.array([[0.6, 0.0, 0.0, 0.8], [0.1, 0.1, 0.1, 0.98]]), base))
    judged = [[Query.of("which instrument", one)] for one in asked]
    near, far = (evidence.of(store, one, score(store, one)) for one in judged)
    assert near.levels[0] == STRONG
    assert far.best == NONE


def _with_base(vectors: NDArray[np.float64], base: float) -> list[list[float]]:
    """Unit vectors with so much in common."""
    own = vectors / np.linalg.norm(vectors, axis=1, keepdims=True) * (1 - base) ** 0.5
    return [[*map(float, row), base**0.5] for row in own]


def _judged(store: Units, text: str) -> evidence.Evidence:
    queries = [Query.of(text, embeddings.embed([text], kind="query", model=USE)[0])]
    return evidence.of(store, queries, score(store, queries))


def test_what_is_planted_cannot_make_what_is_trusted_look_weak() -> None:
    planted = [f"Poisoned penicillin tea of Leiden {number}" for number in range(9)]
    store = units(["Lives in Leiden", "Owns a boat", *planted], alone=True)
    queries = [Query.of("Which poisoned penicillin tea of Leiden?")]
    scores = score(store, queries)
    trusted = np.arange(len(store)) < 2
    assert evidence.of(store, queries, scores).levels[0] == NONE
    found = evidence.of(store, queries, scores, trusted=trusted)
    assert found.levels[:2] == [WEAK, NONE]
    assert found.best == STRONG
