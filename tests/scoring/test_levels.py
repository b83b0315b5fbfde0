"""What levels tell of a vector is never further from the truth than they say."""

from unittest import mock

import numpy as np
import pytest

from memories.scoring import levels
from memories.scoring.constants import DEFAULT
from memories.scoring.dense import Rows, VectorBlock, Vectors
from memories.scoring.levels import of_unit
from tests.each import each

SIZE = 3_000
BLOCKS = (VectorBlock("unheard-of", 96), VectorBlock("minilm", 384, frozenset({"en"})))


def _raw(rng: np.random.Generator, size: int) -> np.ndarray:
    """Vectors in a narrow cone, of which a few columns are strong, and some all but the same."""
    spread = np.arange(1, 481) ** -0.6
    raw = rng.standard_normal((size, 480)) * spread + 0.2 * spread[::-1]
    raw[: size // 10] = raw[0] + rng.standard_normal((size // 10, 480)) * 1e-3
    found: np.ndarray = (raw / np.linalg.norm(raw, axis=1)[:, None]).astype(np.float16)
    return found


def _rows(rng: np.random.Generator, size: int) -> Rows:
    languages = np.where(rng.random(size) < 0.3, "zh", "en")
    languages[rng.random(size) < 0.05] = ""
    return Rows.of(_raw(rng, size), present=languages != "", languages=languages, blocks=BLOCKS)


@each("later, has_tiles", [(0, False), (40, False), (600, False), (0, True), (40, True)])
def test_no_nearness_is_further_away_than_the_levels_say(later: int, has_tiles: bool) -> None:
    """Also after the mean has moved, because others came later; on either kind of processor."""
    with mock.patch.object(levels, "HAS_TILES", has_tiles):
        _compare(later, has_tiles=has_tiles)


def _compare(later: int, *, has_tiles: bool) -> None:
    rng = np.random.default_rng(later)
    rows = [_rows(rng, SIZE).with_levels(BLOCKS, DEFAULT, signs=False)]
    rows += [_rows(rng, later)] if later else []
    order = rng.permutation(SIZE + later)
    vectors = Vectors.over(rows, blocks=BLOCKS, constants=DEFAULT, order=order)
    some = np.sort(rng.choice(SIZE + later, 200, replace=False))
    said = []
    for language in ("en", "zh"):
        for question in _raw(rng, 12).astype(np.float32):
            near = vectors.nearness(question, language)[0]
            found, wrong = vectors.by_levels(question, language)
            said.append(wrong)
            assert np.abs(found - near).max() <= wrong
            of_some, wrong_there = vectors.by_levels(question, language, some)
            assert np.abs(of_some - near[some]).max() <= wrong_there
            assert not found[vectors.codes[order] == 0].any()
    # And they say something.
    assert max(said) < ((0.02 if has_tiles else 0.04) if not later else 0.5)
    assert np.abs(near).max() > 0.2


def test_a_row_without_a_vector_has_levels_of_nothing() -> None:
    numbers, steps, moved = of_unit(np.zeros((2, 64), np.float32))
    assert not numbers.any()
    assert steps.tolist() == [0, 0]
    assert moved == 0
    numbers, steps, _ = of_unit(np.eye(2, 64, dtype=np.float32))
    assert (numbers * steps[:, None]) == pytest.approx(np.eye(2, 64), abs=1e-6)
