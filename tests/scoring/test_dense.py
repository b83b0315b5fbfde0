"""Centred cosines: frozen means, several models in one vector, and units without one."""

from pathlib import Path

import numpy as np
import pytest

from memories.scoring import means
from memories.scoring.constants import Constants
from memories.scoring.dense import VectorBlock, Vectors, blocks
from memories.scoring.language import Language
from tests.each import each
from tests.scoring.stores import PLAIN, floats

UNCENTRED = Constants(prior_unknown=1e12)


def vectors(
    raw: list[list[float]],
    *,
    present: list[bool] | None = None,
    languages: list[Language] | None = None,
    of: tuple[VectorBlock, ...] = PLAIN,
    constants: Constants = UNCENTRED,
) -> Vectors:
    there = np.array(present or [True] * len(raw))
    spoken = languages or ["en"] * len(raw)
    return Vectors.of(floats(raw), present=there, languages=spoken, blocks=of, constants=constants)


def test_without_a_mean_it_is_the_cosine() -> None:
    near, known = vectors([[1, 0], [0.6, 0.8], [0, 1]]).nearness(floats([1, 0]), "en")
    assert near == pytest.approx([1, 0.6, 0], abs=1e-6)
    assert known.all()


def test_what_all_vectors_share_is_taken_away() -> None:
    raw = [[0.8, 0.6], [0.8, -0.6]]
    near, _ = vectors(raw, constants=Constants(prior_unknown=0)).nearness(floats([0.9, 0.1]), "en")
    assert near[0] == pytest.approx(-near[1], abs=1e-6)
    assert near[0] == pytest.approx(0.1 / np.hypot(0.1, 0.1), abs=1e-6)


def test_a_unit_without_a_vector_is_not_near_and_moves_no_mean() -> None:
    near, known = vectors([[1, 0], [9, 9]], present=[True, False]).nearness(floats([1, 0]), "en")
    assert near == pytest.approx([1, 0], abs=1e-6)
    assert known.tolist() == [True, False]


def test_each_language_is_centred_by_its_own_mean() -> None:
    raw = [[0.8, 0.6], [0.8, -0.6], [-1.0, 0.0]]
    store = vectors(raw, languages=["en", "en", "zh"], constants=Constants(prior_unknown=0))
    near, _ = store.nearness(floats([0.8, 0.3]), "en")
    assert near[:2] == pytest.approx([1, -1], abs=1e-5)
    assert near[2] == 0


def test_the_mean_over_the_models_that_know_both_languages() -> None:
    two = (VectorBlock("a", 2), VectorBlock("b", 2, frozenset({"en"})))
    store = vectors([[1, 0, 0, 1], [1, 0, 0, 1]], languages=["en", "zh"], of=two)
    assert store.nearness(floats([1, 0, 1, 0]), "en")[0] == pytest.approx([0.5, 1], abs=1e-6)
    assert store.nearness(floats([1, 0, 1, 0]), "zh")[0] == pytest.approx([1, 1], abs=1e-6)
    only = vectors([[0, 1]], languages=["zh"], of=two[1:])
    assert only.nearness(floats([0, 1]), "zh")[1].tolist() == [False]


@each(
    ("model", "dimensions", "expected"),
    [
        ("use-multilingual-3", 512, [512]),
        ("use-multilingual-3+e5-small", 896, [512, 384]),
        ("text-embedding-x", 1536, [1536]),
        ("use-multilingual-3+other", 612, [512, 100]),
    ],
)
def test_blocks_of_a_model_id(model: str, dimensions: int, expected: list[int]) -> None:
    assert [block.dimensions for block in blocks(model, dimensions)] == expected


@each(("model", "dimensions"), [("use-multilingual-3", 511), ("a+b", 20), ("minilm+x", 384)])
def test_dimensions_that_do_not_add_up(model: str, dimensions: int) -> None:
    with pytest.raises(ValueError, match="dimensions"):
        blocks(model, dimensions)


@each("language", ["en", "zh"])
def test_the_local_embedding_has_frozen_means(language: Language) -> None:
    frozen = means.frozen("use-multilingual-3", language)
    assert frozen is not None
    assert frozen.statement.shape == frozen.question.shape == (512,)
    assert 0.1 < np.linalg.norm(frozen.statement) < 1
    assert means.frozen("unheard-of", language) is None


@each("language", ["en", "zh"])
@each("kind", ["statement", "question"])
def test_the_sentences_are_many_and_none_stands_twice(kind: str, language: Language) -> None:
    sentences = means.sentences(kind, language)
    assert len(set(sentences)) == len(sentences) > 100
    assert all(sentences)


def test_freezing_keeps_the_means_of_other_models(tmp_path: Path) -> None:
    path = tmp_path / "means.npz"
    for model, value in (("a", 1.0), ("b", 2.0)):
        means.freeze(model, lambda texts, v=value: np.full((len(texts), 3), v, np.float32), _zeros, path)  # type: ignore[misc]
    with np.load(path) as stored:
        assert sorted(stored.files)[:2] == ["a/en/question", "a/en/statement"]
        assert len(stored.files) == 12
        assert stored["b/zh/statement"].tolist() == [2, 2, 2]


def _zeros(texts: object) -> means.Floats:
    return np.zeros((1, 3), np.float32)


def test_vectors_of_another_model_are_refused() -> None:
    with pytest.raises(ValueError, match="3 dimensions"):
        vectors([[1, 0, 0]])


def test_half_precision_is_read_as_it_comes_from_the_database() -> None:
    raw = np.array([[0.6, 0.8]], np.float16)
    there = np.array([True])
    store = Vectors.of(raw, present=there, languages=["en"], blocks=PLAIN, constants=UNCENTRED)
    near, _ = store.nearness(floats([1, 0]), "en")
    assert near.dtype == np.float32
    assert near == pytest.approx([0.6], abs=1e-3)
