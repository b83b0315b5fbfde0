"""How near vectors are to a query once what they all share is taken away; pure.

Statements of one person, and questions, each lie in a narrow cone. Centred by their means, unrelated texts come out
near zero. The mean of a person with little to go by is held by a frozen mean of everyday statements (data/means.npz).

Vectors stay as they are stored; no centred copy is made. For a vector v, a mean mu and a query u of length 1 the
centred cosine is (v·u − mu·u) / |v − mu|, and |v − mu|² = |v|² − 2 v·mu + |mu|².
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memories.scoring import arrays, bits, halves, levels, means
from memories.scoring.bits import Bits
from memories.scoring.constants import Constants
from memories.scoring.halves import Halves
from memories.scoring.language import LANGUAGES, Language
from memories.scoring.levels import Levels
from memories.scoring.means import Means, frozen

Floats = NDArray[np.float32]
# By position, a language; 0 of a row that has no vector.
CODES: dict[str, int] = {language: code for code, language in enumerate(LANGUAGES, start=1)}
# Below this share of its square the distance of a vector to its mean is computed from the difference itself, because
# the three terms cancel; nearer to it than _SAME the vector is its mean.
_CANCELS, _SAME = 1e-3, 1e-10
# Vectors that are centred at once: they fit into a processor's cache.
_AT_ONCE = 1_024
# Vectors by whose pairs the noise of estimates is measured.
_SAMPLE = 256


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
class Rows:
    """Vectors as they are stored, with all that does not depend on their mean: arrays of one row a vector.

    `codes`: 1 + the position of its language in LANGUAGES, 0 where there is none. `squares`: of its length, one column
    a block. `sums`: of the vectors of each language, float64[languages, d]. `levels`: a byte for each number, around
    the means that they had when these were made; None where they are few. `bits`: their signs, of very many.
    """

    raw: Floats | Halves
    codes: NDArray[np.uint8]
    squares: Floats
    sums: NDArray[np.float64]
    levels: Levels | None = None
    bits: Bits | None = None

    @classmethod
    def of(
        cls,
        raw: Floats | Halves,
        *,
        present: NDArray[np.bool_],
        languages: Sequence[str] | NDArray[np.str_],
        blocks: Sequence[VectorBlock],
    ) -> "Rows":
        """Rows that are not `present` are not read. ValueError for another d."""
        spoken = np.array(languages, dtype="U2")
        codes = np.zeros(len(raw), np.uint8)
        for language, code in CODES.items():
            codes[present & (spoken == language)] = code
        return cls.coded(raw, codes, blocks)

    @classmethod
    def coded(cls, raw: Floats | Halves, codes: NDArray[np.uint8], blocks: Sequence[VectorBlock]) -> "Rows":
        """The same, of languages that are `codes` already."""
        if raw.shape[1] != sum(block.dimensions for block in blocks):
            raise ValueError(f"Vectors of {raw.shape[1]} dimensions do not fit {[block.model for block in blocks]}")
        squares = np.zeros((len(raw), len(blocks)), np.float32)
        sums = np.zeros((len(LANGUAGES), raw.shape[1]), np.float64)
        if codes.any():
            for start, some in halves.blocks(raw):
                there = slice(start, start + len(some))
                for at, columns in enumerate(_columns(blocks)):
                    squares[there, at] = np.einsum("ij,ij->i", some[:, columns], some[:, columns])
                for code in np.unique(codes[there]):
                    if code:
                        sums[code - 1] += (codes[there] == code).astype(np.float32) @ some
        return cls(raw, codes, squares, sums)

    def with_levels(self, blocks: Sequence[VectorBlock], constants: Constants, *, signs: bool) -> "Rows":
        """The same with the levels of its vectors, and their signs."""
        centred = Vectors.over([replace(self, levels=_NO_LEVELS)], blocks=blocks, constants=constants)
        columns = _turned_columns(blocks)
        numbers = np.empty((len(self), columns[-1].stop), np.int8)
        steps, closeness = np.empty((2, len(blocks), len(self)), np.float32)
        moved = np.zeros(len(blocks), np.float32)
        words = sum(bits.words_of(block.dimensions) for block in blocks)
        planes = np.empty((words if signs else 0, len(self)), np.uint64)
        for start in range(0, len(self), _AT_ONCE):
            places = np.arange(start, min(start + _AT_ONCE, len(self)))
            of_blocks = []
            for at, there in enumerate(columns):
                rows, closeness[at, places] = centred.centred_rows(at, places)
                turned = bits.turned(rows)
                numbers[places, there], steps[at, places], apart = levels.of_unit(turned)
                moved[at] = max(moved[at], np.float32(apart))
                of_blocks.append(turned)
            if signs:
                planes[:, places] = np.concatenate([bits.packed(one) for one in of_blocks])
        means = np.concatenate([one.means for one in centred.centred], axis=1)
        made = Levels(numbers, steps, closeness, means, moved)
        return replace(self, levels=made, bits=_measured(planes, centred, self.codes) if signs else None)

    def __len__(self) -> int:
        return len(self.codes)


_NOTHING = np.empty((0, 0), np.float32)
_NO_LEVELS = Levels(np.empty((0, 0), np.int8), _NOTHING, _NOTHING, _NOTHING, _NOTHING)


def _measured(planes: bits.Planes, vectors: "Vectors", codes: NDArray[np.uint8]) -> Bits:
    """The bits with how far their estimates are from the cosines of pairs of some of them."""
    some = np.flatnonzero(codes)
    some = some[:: max(1, -(-len(some) // _SAMPLE))]
    if len(some) < 3:
        return Bits(planes, 1.0)
    matrices = [vectors.matrix(at, some) for at in range(len(vectors.blocks))]
    near = np.mean([matrix @ matrix.T for matrix in matrices], axis=0)
    dimensions = [block.dimensions for block in vectors.blocks]
    sample = Bits(planes[:, some], 0)
    guessed = np.zeros((len(some), len(some)), np.float32)
    for row in range(len(some)):
        sample.estimate([one[row] for one in matrices], dimensions, guessed[row])
    apart = ~np.eye(len(some), dtype=np.bool_)
    return Bits(planes, float((guessed - near)[apart].std()))


class Centred(NamedTuple):
    """One block around its means.

    `means`: float32[1 + languages, d], of zeros for no language. `shifts`: by language what a query is moved by.
    `scales`: of each part for each vector one over its distance to its mean, 0 of what the block does not know. None
    for a part with levels: it is not read as a whole.
    """

    means: Floats
    shifts: dict[Language, Floats]
    scales: tuple[Floats | None, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """The vectors of n units: those of all `parts`, one after the other, taken in `order` (None: as they stand).

    `spoken`: the codes that some of them have.
    """

    blocks: tuple[VectorBlock, ...]
    parts: tuple[Rows, ...]
    codes: NDArray[np.uint8]
    centred: tuple[Centred, ...]
    order: NDArray[np.int64] | None = None
    spoken: tuple[int, ...] = ()
    # What by_chance() found: these vectors never change, and every query asks.
    _by_chance: dict[tuple[Language, int], Floats | None] = field(default_factory=dict, repr=False, init=False)
    # Of parts with levels, once a query had to read them all: by block and part.
    _late_scales: dict[tuple[int, int], Floats] = field(default_factory=dict, repr=False, init=False)

    @classmethod
    def of(
        cls,
        raw: Floats | Halves,
        *,
        present: NDArray[np.bool_],
        languages: Sequence[str] | NDArray[np.str_],
        blocks: Sequence[VectorBlock],
        constants: Constants,
    ) -> "Vectors":
        """Of raw vectors, float[n, d]; rows that are not `present` are not read. ValueError for another d."""
        return cls.over(
            [Rows.of(raw, present=present, languages=languages, blocks=blocks)], blocks=blocks, constants=constants
        )

    @classmethod
    def over(
        cls,
        parts: Sequence[Rows],
        *,
        blocks: Sequence[VectorBlock],
        constants: Constants,
        order: NDArray[np.int64] | None = None,
    ) -> "Vectors":
        """Of rows that were read in several parts. They are shared: nothing of them is copied."""
        codes = arrays.in_a_row([part.codes for part in parts])
        counts = np.bincount(codes, minlength=1 + len(LANGUAGES)).tolist()
        sums = np.sum([part.sums for part in parts], axis=0)
        each = []
        for at, (block, columns) in enumerate(zip(blocks, _columns(blocks), strict=True)):
            means, shifts = _means_of(block, sums[:, columns], counts, constants)
            known = _known(block)
            scales = [
                None
                if part.levels is not None
                else _scales(part.raw[:, columns], part.codes, part.squares[:, at], means, known)
                for part in parts
            ]
            each.append(Centred(means, shifts, tuple(scales)))
        spoken = tuple(code for code, count in enumerate(counts) if count)
        return cls(tuple(blocks), tuple(parts), codes, tuple(each), order, spoken)

    def nearness(self, vector: Floats, language: Language) -> tuple[Floats, NDArray[np.bool_]]:
        """Mean of the centred cosines over the blocks that know both languages, and where there is one; 0 elsewhere."""
        total, used = np.zeros(len(self.codes), np.float32), np.zeros(len(self.codes), np.uint8)
        for at, asked in enumerate(self._asked(vector, language)):
            if asked is not None:
                total += np.concatenate([self._cosines(at, place, asked) for place in range(len(self.parts))])
                used += _known(self.blocks[at])[self.codes]
        if len(self.blocks) > 1:
            total /= np.maximum(used, 1)
        near = used > 0
        return (total, near) if self.order is None else (total[self.order], near[self.order])

    def by_levels(
        self, vector: Floats, language: Language, places: NDArray[np.int64] | None = None
    ) -> tuple[Floats, float]:
        """About what nearness() gives, of all or of some, and by how much any of it may be wrong. A part without levels
        is compared exactly."""
        rows = places if places is None or self.order is None else self.order[places]
        codes = self.codes if rows is None else self.codes[rows]
        asked_of = [(at, asked) for at, asked in enumerate(self._asked(vector, language)) if asked is not None]
        if not asked_of:
            return np.zeros(len(codes), np.float32), 0.0
        found = [self._about(at, asked, codes, rows) for at, asked in asked_of]
        total, wrong = reduce(np.add, [cosines for cosines, _ in found]), max(apart for _, apart in found)
        if len(self.blocks) > 1:
            used = np.sum([_known(self.blocks[at])[codes] for at, _ in asked_of], axis=0, dtype=np.uint8)
            total /= np.maximum(used, 1)
        return (total if rows is not None or self.order is None else total[self.order]), wrong

    def _about(
        self, at: int, asked: Floats, codes: NDArray[np.uint8], rows: NDArray[np.int64] | None
    ) -> tuple[Floats, float]:
        """About the centred cosines of all, or of some rows, in block `at`."""
        found, wrong, first = [], 0.0, 0
        for place, part in enumerate(self.parts):
            there = _within(rows, first, len(part))
            if part.levels is not None:
                some = None if rows is None else rows[there] - first
                cosines, apart = self._leveled(at, part.levels, asked, codes[there], some)
                wrong = max(wrong, apart)
            else:
                cosines = self._cosines(at, place, asked) if rows is None else self._cosines_of(at, rows[there], asked)
            found.append((there, cosines))
            first += len(part)
        if len(found) == 1:
            return found[0][1], wrong
        whole = np.empty(len(codes), np.float32)
        for there, cosines in found:
            whole[there] = cosines
        return whole, wrong

    def _leveled(
        self, at: int, made: Levels, asked: Floats, codes: NDArray[np.uint8], some: NDArray[np.int64] | None
    ) -> tuple[Floats, float]:
        columns, turned = _columns(self.blocks)[at], _turned_columns(self.blocks)[at]
        products, wrong = made.products(at, turned, asked, some)
        shifts = made.means[:, columns] - self.centred[at].means
        far = float(np.sqrt(np.einsum("ij,ij->i", shifts, shifts).max()))
        if far and len(products):
            # With the mean the distances to it moved by this at most.
            closeness = made.closeness[at] if some is None else made.closeness[at, some]
            share = far * float(closeness.max())
            products += (shifts @ asked)[codes] * closeness
            highest = min(1.0, (float(np.abs(products).max()) + wrong) / (1 - share)) if share < 1 else 1.0
            wrong += share * highest
        return products, wrong

    @property
    def have_levels(self) -> bool:
        """Whether the nearness of all can be told without their vectors."""
        return any(part.levels is not None for part in self.parts)

    @property
    def have_signs(self) -> bool:
        """Whether the nearness of some can be estimated by signs."""
        return any(part.bits is not None for part in self.parts)

    @property
    def noise(self) -> float:
        """How far an estimate is from the nearness, as a standard deviation."""
        return max((part.bits.noise for part in self.parts if part.bits is not None), default=0.0)

    def estimate(self, vector: Floats, language: Language, out: Floats) -> None:
        """About what nearness() gives, in `out`, float32[n] of zeros; exactly that of parts without bits."""
        asked, dimensions = self._asked(vector, language), [block.dimensions for block in self.blocks]
        total, first = out if self.order is None else np.zeros(len(self.codes), np.float32), 0
        for place, part in enumerate(self.parts):
            there = total[first : first + len(part)]
            if part.bits is not None:
                part.bits.estimate(asked, dimensions, there)
            elif each := [self._cosines(at, place, one) for at, one in enumerate(asked) if one is not None]:
                np.mean(each, axis=0, dtype=np.float32, out=there)
            first += len(part)
        known = reduce(np.logical_or, map(_known, self.blocks))
        if not known[list(self.spoken)].all():
            total[~known[self.codes]] = 0
        if self.order is not None:
            np.take(total, self.order, out=out, mode="clip")

    def nearness_at(self, places: NDArray[np.int64], vector: Floats, language: Language) -> Floats:
        """What nearness() gives for these units."""
        total, used = np.zeros(len(places), np.float32), np.zeros(len(places), np.uint8)
        rows = places if self.order is None else self.order[places]
        for at, asked in enumerate(self._asked(vector, language)):
            if asked is not None:
                total += self._cosines_of(at, rows, asked)
                used += _known(self.blocks[at])[self.codes[rows]]
        if len(self.blocks) > 1:
            total /= np.maximum(used, 1)
        return total

    def _cosines_of(self, at: int, rows: NDArray[np.int64], asked: Floats) -> Floats:
        """The centred cosines of some rows in block `at`, each read once."""
        codes, found, first = self.codes[rows], np.zeros(len(rows), np.float32), 0
        for part in self.parts:
            there = np.flatnonzero((rows >= first) & (rows < first + len(part)))
            for start in range(0, len(there), _AT_ONCE):
                some = there[start : start + _AT_ONCE]
                found[some] = self._cosines_in(part, at, rows[some] - first, codes[some], asked)
            first += len(part)
        return found

    def _cosines_in(
        self, part: Rows, at: int, rows: NDArray[np.int64], codes: NDArray[np.uint8], asked: Floats
    ) -> Floats:
        means, raw = self.centred[at].means, part.raw[rows, _columns(self.blocks)[at]]
        # All at once: a row is read but once.
        each = np.empty((len(codes), 1 + len(means)), np.float32)
        against = np.vstack([asked, means]).T
        for start, some in halves.blocks(raw):
            np.matmul(some, against, out=each[start : start + len(some)])
        products, shared = each[:, 0].copy(), each[np.arange(len(codes)), 1 + codes.astype(np.intp)]
        squares = part.squares[rows, at]
        distances = squares - 2 * shared + np.einsum("ij,ij->i", means, means)[codes]
        if len(close := np.flatnonzero(distances < _CANCELS * squares)):
            differences = raw[close].astype(np.float32) - means[codes[close]]
            distances[close] = np.einsum("ij,ij->i", differences, differences)
        products -= (means @ asked)[codes]
        there = _known(self.blocks[at])[codes] & (distances > _SAME)
        return np.where(there, products / np.sqrt(np.maximum(distances, _SAME)), np.float32(0))

    def near_at(self, places: NDArray[np.int64], language: Language) -> NDArray[np.bool_]:
        """Which of these units have a nearness to a query in that language."""
        return self._near(language)[self._codes(places)]

    def far(self, language: Language) -> NDArray[np.int64]:
        """The units that have none."""
        near = self._near(language)
        if near[list(self.spoken)].all():
            return np.empty(0, np.int64)
        return np.flatnonzero(~near[self.codes if self.order is None else self.codes[self.order]])

    def _near(self, language: Language) -> NDArray[np.bool_]:
        """By the code of a language, whether a vector in it has a nearness to a query in that language."""
        knowing = [_known(block) for block in self.blocks if language in block.languages]
        near: NDArray[np.bool_] = reduce(np.logical_or, knowing, np.zeros(1 + len(LANGUAGES), np.bool_))
        return near

    def _codes(self, places: NDArray[np.int64]) -> NDArray[np.uint8]:
        return self.codes[places if self.order is None else self.order[places]]

    def _asked(self, vector: Floats, language: Language) -> list[Floats | None]:
        """For each block the query as it is compared; None for a block that does not know its language."""
        return [
            _unit((vector[columns] - centred.shifts[language])[None, :])[0] if language in block.languages else None
            for block, columns, centred in zip(self.blocks, _columns(self.blocks), self.centred, strict=True)
        ]

    def _cosines(self, at: int, place: int, asked: Floats) -> Floats:
        """The centred cosines of all vectors of a part in block `at`."""
        part = self.parts[place]
        return self._centred_products(at, place, asked, halves.products(part.raw[:, _columns(self.blocks)[at]], asked))

    def _centred_products(self, at: int, place: int, asked: Floats, products: Floats) -> Floats:
        products -= (self.centred[at].means @ asked)[self.parts[place].codes]
        products *= self._scales_of(at, place)
        return products

    def _scales_of(self, at: int, place: int) -> Floats:
        part, centred, columns = self.parts[place], self.centred[at], _columns(self.blocks)[at]
        scales = centred.scales[place]
        if scales is None:
            scales = self._late_scales.get((at, place))
        if scales is None:
            squares, known = part.squares[:, at], _known(self.blocks[at])
            scales = _scales(part.raw[:, columns], part.codes, squares, centred.means, known)
            self._late_scales[at, place] = scales
        return scales

    def __len__(self) -> int:
        return len(self.codes if self.order is None else self.order)

    def matrix(self, at: int, places: NDArray[np.int64]) -> Floats:
        """Of some units the columns of block `at`, centred and of length 1; rows of zeros where there is no vector."""
        return self.centred_rows(at, places if self.order is None else self.order[places])[0]

    def centred_rows(self, at: int, rows: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """The same of some rows of the parts, and one over the distance of each to its mean."""
        centred, columns = self.centred[at], _columns(self.blocks)[at]
        found = np.empty((len(rows), self.blocks[at].dimensions), np.float32)
        first = 0
        for part in self.parts:
            there = np.flatnonzero((rows >= first) & (rows < first + len(part)))
            for start, some in halves.blocks(part.raw[rows[there] - first, columns]) if len(there) else ():
                found[there[start : start + len(some)]] = some
            first += len(part)
        codes = self.codes[rows]
        found -= centred.means[codes]
        squares = np.einsum("ij,ij->i", found, found)
        there = _known(self.blocks[at])[codes] & (squares > _SAME)
        closeness = np.where(there, 1 / np.sqrt(np.maximum(squares, _SAME)), np.float32(0))
        found *= closeness[:, None]
        return found, closeness

    @property
    def covered(self) -> tuple[NDArray[np.bool_], ...]:
        """For each block which units have a vector in a language that it knows."""
        codes = self.codes if self.order is None else self.codes[self.order]
        return tuple(_known(block)[codes] for block in self.blocks)

    @property
    def are_measured(self) -> bool:
        """Whether there are frozen means of all their models."""
        return all(frozen(block.model, language) for block in self.blocks for language in block.languages)

    def by_chance(self, language: Language, *, most: int) -> Floats | None:
        """How near the nearest unit is to each of some questions that have nothing to do with anybody, in a language.

        Of the units at most `most` are looked at, spread over all. None for models without such questions, and where
        no unit has a vector.
        """
        key = (language, most)
        if key not in self._by_chance:
            self._by_chance[key] = self._measured_by_chance(language, most=most)
        return self._by_chance[key]

    def _measured_by_chance(self, language: Language, *, most: int) -> Floats | None:
        some = np.arange(0, len(self), max(1, -(-len(self) // most)))
        near: Floats | None = None
        used = np.zeros(len(some), np.float32)
        for at, (block, covered) in enumerate(zip(self.blocks, self.covered, strict=True)):
            if language in block.languages:
                questions = means.unrelated(block.model, language)
                if questions is None:
                    return None
                cosines = _unit(questions - self.centred[at].shifts[language]) @ self.matrix(at, some).T
                near = cosines if near is None else near + cosines
                used += covered[some]
        if near is None or not used.any():
            return None
        nearest: Floats = (near / np.maximum(used, 1))[:, used > 0].max(axis=1)
        return nearest

    def apart(self, *, most: int) -> float | None:
        """How near units lie to each other that have nothing in common: the lower quartile of the pairs of at most
        `most` of them; None for fewer than three."""
        some = np.flatnonzero(self.covered[0])
        some = some[:: max(1, -(-len(some) // most))]
        if len(some) < 3:
            return None
        matrix = self.matrix(0, some)
        return float(np.quantile((matrix @ matrix.T)[np.triu_indices(len(some), 1)], 0.25))


def _columns(blocks: Sequence[VectorBlock]) -> list[slice]:
    if len(blocks) == 1:
        return [slice(0, blocks[0].dimensions)]
    return _slices([block.dimensions for block in blocks])


def _turned_columns(blocks: Sequence[VectorBlock]) -> list[slice]:
    """Those of levels."""
    return _slices([bits.columns_of(block.dimensions) for block in blocks])


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum(sizes).tolist()
    return [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]


def _within(rows: NDArray[np.int64] | None, first: int, size: int) -> slice | NDArray[np.int64]:
    """Where those rows stand that are of a part which begins there; all of them for None."""
    if rows is None:
        return slice(first, first + size)
    return np.flatnonzero((rows >= first) & (rows < first + size))


@cache
def _known(block: VectorBlock) -> NDArray[np.bool_]:
    """By the code of a language, whether the block knows it."""
    return np.array([False, *(language in block.languages for language in LANGUAGES)])


def _means_of(
    block: VectorBlock, sums: NDArray[np.float64], counts: Sequence[int], constants: Constants
) -> tuple[Floats, dict[Language, Floats]]:
    """The means and shifts of a block, from the sum of the vectors of each language, and how many those are by code."""
    means = np.zeros((1 + len(LANGUAGES), block.dimensions), np.float32)
    shifts: dict[Language, Floats] = {}
    for language in sorted(block.languages):
        code, prior = CODES[language], frozen(block.model, language)
        means[code], shifts[language] = _means(sums[code - 1], counts[code], prior, constants)
    return means, shifts


def _scales(
    raw: Floats | Halves, codes: NDArray[np.uint8], squares: Floats, means: Floats, known: NDArray[np.bool_]
) -> Floats:
    """One over the distance of each vector to the mean of its language."""
    shared = np.zeros(len(codes), np.float32)
    for code in np.flatnonzero(known):
        if (spoken := codes == code).any():
            np.copyto(shared, halves.products(raw, means[code]), where=spoken)
    distances = squares - 2 * shared + np.einsum("ij,ij->i", means, means)[codes]
    there = known[codes]
    cancelled = np.flatnonzero(there & (distances < _CANCELS * squares))
    for some in np.array_split(cancelled, 1 + len(cancelled) // 4096):
        differences = raw[some].astype(np.float32) - means[codes[some]]
        distances[some] = np.einsum("ij,ij->i", differences, differences)
    there &= distances > _SAME
    scales = np.zeros(len(codes), np.float32)
    np.divide(np.float32(1), np.sqrt(distances, where=there, out=scales), where=there, out=scales)
    return scales


def _means(total: NDArray[np.float64], count: int, prior: Means | None, constants: Constants) -> tuple[Floats, Floats]:
    """The mean of a person's vectors, held by the frozen one; and the same as a question is moved: mu + (q0 − d0)."""
    if prior is None:
        mean = (total / max(count + constants.prior_unknown, 1)).astype(np.float32)
        return mean, mean
    mean = ((total + constants.prior * prior.statement) / (count + constants.prior)).astype(np.float32)
    return mean, (mean + prior.question - prior.statement).astype(np.float32)


def _unit(vectors: Floats) -> Floats:
    """Each row brought to length 1, in place; a row of zeros (a text that is exactly the mean) stays."""
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    vectors /= np.maximum(norms, 1e-9)[:, None]
    return vectors
