"""How near vectors are to a query once what they all share is taken away; pure.

Statements of one person, and questions, each lie in a narrow cone. Centred by their means, unrelated texts come out
near zero. The mean of a person with little to go by is held by a frozen mean of everyday statements (data/means.npz).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.scoring import means
from memories.scoring.constants import Constants
from memories.scoring.language import LANGUAGES, Language
from memories.scoring.means import Means, frozen

Floats = NDArray[np.float32]


class VectorBlock(NamedTuple):
    """The columns of one model in a vector that may be the concatenation of several, and the languages it knows."""

    model: str
    dimensions: int
    languages: frozenset[Language] = frozenset(LANGUAGES)


class ModelMeans(NamedTuple):
    """What is known of a model beforehand."""

    dimensions: int
    languages: frozenset[Language] = frozenset(LANGUAGES)


MODELS = {
    "use-multilingual-3": ModelMeans(512),
    "e5-small": ModelMeans(384),
    "minilm": ModelMeans(384, frozenset({"en"})),
}


def blocks(model: str, dimensions: int) -> tuple[VectorBlock, ...]:
    """The blocks of a model id, in order: `a+b` is the concatenation of a and b.

    One model of a sum may be unknown and takes the columns that the others leave. ValueError if it does not add up.
    """
    names = model.split("+")
    unknown = [name for name in names if name not in MODELS]
    rest = dimensions - sum(MODELS[name].dimensions for name in names if name in MODELS)
    if len(unknown) > 1 or (rest <= 0 if unknown else rest != 0):
        raise ValueError(f"{model} has no {dimensions} dimensions")
    return tuple(VectorBlock(name, *MODELS.get(name, ModelMeans(rest))) for name in names)


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """The vectors of n units, centred.

    For each block a matrix of unit vectors, rows of zeros where there is none; by language what a query is moved by;
    and 1 for the units that have a vector in a language the block knows, else 0.
    """

    blocks: tuple[VectorBlock, ...]
    matrices: tuple[Floats, ...]
    shifts: tuple[dict[Language, Floats], ...]
    covered: tuple[Floats, ...]

    @classmethod
    def of(
        cls,
        raw: Floats,
        *,
        present: NDArray[np.bool_],
        languages: Sequence[Language],
        blocks: Sequence[VectorBlock],
        constants: Constants,
    ) -> "Vectors":
        """Centre raw vectors, float[n, d]; rows that are not `present` are not read. ValueError for another d."""
        if raw.shape[1] != sum(block.dimensions for block in blocks):
            raise ValueError(f"Vectors of {raw.shape[1]} dimensions do not fit {[block.model for block in blocks]}")
        spoken = np.array(languages, dtype="U2")
        matrices, shifts, covered, column = [], [], [], 0
        for block in blocks:
            part = raw[:, column : column + block.dimensions]
            matrix, moved = _centred(part, present, spoken, block, constants)
            matrices.append(matrix)
            shifts.append(moved)
            covered.append((np.isin(spoken, list(block.languages)) & present).astype(np.float32))
            column += block.dimensions
        return cls(tuple(blocks), tuple(matrices), tuple(shifts), tuple(covered))

    def nearness(self, vector: Floats, language: Language) -> tuple[Floats, NDArray[np.bool_]]:
        """Mean of the centred cosines over the blocks that know both languages, and where there is one; 0 elsewhere."""
        total, used = np.zeros((2, len(self.covered[0])), np.float32)
        column = 0
        for block, matrix, shift, covered in zip(self.blocks, self.matrices, self.shifts, self.covered, strict=True):
            part = vector[column : column + block.dimensions]
            column += block.dimensions
            if language in block.languages:
                total += matrix @ _unit((part - shift[language])[None, :])[0]
                used += covered
        return (total / np.maximum(used, 1)).astype(np.float32), used > 0

    @property
    def are_measured(self) -> bool:
        """Whether there are frozen means of all their models."""
        return all(frozen(block.model, language) for block in self.blocks for language in block.languages)

    def by_chance(self, language: Language, *, most: int) -> Floats | None:
        """How near the nearest unit is to each of some questions that have nothing to do with anybody, in a language.

        Of the units at most `most` are looked at, spread over all. None for models without such questions, and where
        no unit has a vector.
        """
        some = slice(None, None, max(1, -(-len(self.covered[0]) // most)))
        near: Floats | None = None
        used = np.zeros(len(self.covered[0][some]), np.float32)
        for block, matrix, shift, covered in zip(self.blocks, self.matrices, self.shifts, self.covered, strict=True):
            if language in block.languages:
                asked = means.unrelated(block.model, language)
                if asked is None:
                    return None
                cosines = _unit(asked - shift[language]) @ matrix[some].T
                near = cosines if near is None else near + cosines
                used += covered[some]
        if near is None or not used.any():
            return None
        nearest: Floats = (near / np.maximum(used, 1))[:, used > 0].max(axis=1)
        return nearest

    def apart(self, *, most: int) -> float | None:
        """How near units lie to each other that have nothing in common: the lower quartile of the pairs of at most
        `most` of them; None for fewer than three."""
        some = np.flatnonzero(self.covered[0])[:: max(1, -(-len(self.covered[0]) // most))]
        if len(some) < 3:
            return None
        cosines = self.matrices[0][some] @ self.matrices[0][some].T
        return float(np.quantile(cosines[np.triu_indices(len(some), 1)], 0.25))


def _centred(
    part: Floats, present: NDArray[np.bool_], spoken: NDArray[np.str_], block: VectorBlock, constants: Constants
) -> tuple[Floats, dict[Language, Floats]]:
    """The unit vectors of one block around the mean of their language, and what a query of each is moved by."""
    matrix = np.zeros((len(present), block.dimensions), np.float32)
    shifts: dict[Language, Floats] = {}
    for language in sorted(block.languages):
        rows = np.flatnonzero(present & (spoken == language))
        some = part[rows].astype(np.float32)
        mean, shifts[language] = _means(some, frozen(block.model, language), constants)
        some -= mean
        matrix[rows] = _unit(some)
    return matrix, shifts


def _means(vectors: Floats, prior: Means | None, constants: Constants) -> tuple[Floats, Floats]:
    """The mean of a person's vectors, held by the frozen one; and the same as a question is moved: mu + (q0 − d0)."""
    total = vectors.sum(axis=0, dtype=np.float32)
    if prior is None:
        mean = total / max(len(vectors) + constants.prior_unknown, 1)
        return mean, mean
    mean = (total + constants.prior * prior.statement) / (len(vectors) + constants.prior)
    return mean.astype(np.float32), (mean + prior.question - prior.statement).astype(np.float32)


def _unit(vectors: Floats) -> Floats:
    """Each row brought to length 1, in place; a row of zeros (a text that is exactly the mean) stays."""
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    vectors /= np.maximum(norms, 1e-9)[:, None]
    return vectors
