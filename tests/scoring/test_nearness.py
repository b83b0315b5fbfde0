"""The floors, measured with the models that come along on facts that nearness must not decide, and the arithmetic."""

import numpy as np
import pytest
from django.conf import LazySettings

from memories.conf import LOCAL_EMBEDDINGS
from memories.scoring import nearness
from memories.scoring.nearness import Floats, nearest
from tests.tables.nearness import APART, BESIDE, MISSED, OPPOSED, PARAPHRASES, Pair
from tests.vectors import made_once

MODELS = pytest.mark.parametrize("model", LOCAL_EMBEDDINGS)


@pytest.fixture(autouse=True)
def _local(settings: LazySettings) -> None:
    settings.MEMORYHUB_EMBEDDINGS = "local"


def cosines(model: str, pairs: list[Pair]) -> list[float]:
    known, said = (made_once(side, model=model) for side in zip(*pairs, strict=True))
    return [nearest(said[n : n + 1], known[n : n + 1], floor=-1, most=1)[0][0][1] for n in range(len(pairs))]


def most_alike(model: str, facts: list[str]) -> float:
    """The largest cosine of two facts of one person about different things."""
    made = made_once(facts, model=model)
    best = nearest(made, made, floor=-1, most=2)
    assert [places[0][0] for places in best] == list(range(len(facts))), "each is nearest to itself"
    return max(places[1][1] for places in best)


def test_the_tables_hold_what_they_promise() -> None:
    for table, least in ((OPPOSED, 34), (PARAPHRASES, 32)):
        chinese = [known for known, _ in table if not known.isascii()]
        assert len(set(table)) == len(table) >= least
        assert len(chinese) * 2 == len(table)
    assert not set(OPPOSED) & set(PARAPHRASES)


@MODELS
def test_opposites_and_paraphrases_are_proposed(model: str) -> None:
    floor = nearness.FLOORS[model].proposed
    for pairs, missing in ((OPPOSED, MISSED), (PARAPHRASES, [])):
        found = zip(pairs, cosines(model, pairs), strict=True)
        assert [pair for pair, cosine in found if cosine < floor] == missing


@MODELS
def test_facts_about_different_things_are_not(model: str) -> None:
    floors = nearness.FLOORS[model]
    assert floors.proposed < floors.refused
    assert max(most_alike(model, facts) for facts in APART.values()) < floors.proposed
    assert max(cosines(model, BESIDE)) < floors.refused


@MODELS
def test_no_floor_could_tell_opposites_from_paraphrases(model: str) -> None:
    """Why nothing is decided by nearness: wherever it is cut, opposites lie on the side of the paraphrases."""
    opposed, same = np.array(cosines(model, OPPOSED)), np.array(cosines(model, PARAPHRASES))
    assert np.median(opposed) > np.median(same) - 0.02
    for floor in np.arange(0.5, 1.0, 0.01):
        assert (opposed >= floor).mean() >= (same >= floor).mean() - 0.1


@MODELS
def test_the_floors_of_a_model_that_nobody_measured_come_out_where_they_were_measured(model: str) -> None:
    made = nearness.calibrated(made_once(nearness.SENTENCES, model=model))
    assert made == pytest.approx(nearness.FLOORS[model], abs=0.02)


@pytest.mark.parametrize("vectors", [np.ones((20, 4)), np.eye(20), np.tile(np.eye(4), (5, 1)), np.zeros((20, 4))])
def test_a_model_that_knows_no_meaning_proposes_nothing(vectors: Floats) -> None:
    floors = nearness.calibrated(vectors.astype(np.float32))
    assert nearest(rows(0.0), rows(0.0), floor=0.99, most=3) == [[(0, 1.0)]]
    assert nearest(rows(0.0), rows(0.0), floor=floors.proposed, most=3) == [[]]


def test_the_samples_are_not_those_that_the_floors_were_measured_with() -> None:
    measured = {text for pair in OPPOSED + PARAPHRASES + BESIDE for text in pair} | {*APART["en"], *APART["zh"]}
    assert len(set(nearness.SENTENCES)) == 20
    assert not measured & set(nearness.SENTENCES)


def rows(*angles: float) -> Floats:
    return np.array([[np.cos(angle), np.sin(angle)] for angle in angles], dtype=np.float32)


def test_the_nearest_come_first_and_few() -> None:
    found = nearest(rows(0.0, np.pi), rows(0.4, 0.1, 0.3, 0.2, 2.0), floor=0.9, most=3)
    assert [[place for place, _ in some] for some in found] == [[1, 3, 2], []]
    assert found[0][0][1] == pytest.approx(np.cos(0.1), abs=1e-6)
    assert [len(some) for some in nearest(rows(0.0), rows(0.4, 0.1, 0.3, 0.2, 2.0), floor=0.9, most=9)] == [4]


def test_length_does_not_count() -> None:
    found = nearest(rows(0.0) * 3, np.concatenate([rows(0.1) * 0.2, rows(0.0) * 0]), floor=0.5, most=3)
    assert [place for place, _ in found[0]] == [0]
    assert found[0][0][1] == pytest.approx(np.cos(0.1), abs=1e-6)


def test_nothing_known_is_near_nothing() -> None:
    assert nearest(rows(0.0), np.empty((0, 2), np.float32), floor=-1, most=3) == [[]]


def test_vectors_of_two_models_are_never_compared() -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        nearest(rows(0.0), np.ones((1, 3), np.float32), floor=0, most=3)
