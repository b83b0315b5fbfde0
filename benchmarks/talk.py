"""What people of the benchmarks talk about, and are asked: sentences of these docs.

A turn is a sentence with a number. Its vector lies around that of its sentence: half of the variance is the sentence's,
as far as vectors of the built-in model vary. So a question, which is another sentence, has turns that are near, as a
real one does. Sessions are about a sentence, from which every third turn strays to another one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.signs import SENTENCES, STRAYING, Floats, Spectrum, sentences, spectrum_of

if TYPE_CHECKING:
    # Django is set up only when a hub runs.
    from benchmarks.crowding import Draw

QUESTIONS = 120


@dataclass(frozen=True)
class Talk:
    """Topics and the vectors of these, other sentences that are asked, and what vectors are drawn from."""

    topics: Sequence[str]
    questions: Sequence[str]
    centres: Floats
    spectrum: Spectrum

    def drawn(self, begun: int = 0) -> "Draw":
        """Draws the sessions of somebody whose turns are numbered from `begun` on."""
        half = np.float32(0.5**0.5)

        def draw(first: int, count: int) -> tuple[list[str], Floats]:
            dice = np.random.default_rng(begun + first)
            picked = np.full(count, dice.integers(len(self.topics)))
            picked = np.where(dice.random(count) < STRAYING, dice.integers(0, len(self.topics), count), picked)
            mean = self.spectrum.mean
            vectors = mean + half * (self.centres[picked] - mean) + self.spectrum.drawn(dice, count, 0.5)
            texts = [f"{self.topics[topic]} ({begun + first + at})" for at, topic in enumerate(picked.tolist())]
            return texts, vectors

        return draw


@cache
def of_the_docs() -> Talk:
    """Half of the sentences are topics, of the others come the questions; needs Django."""
    said = sentences()
    topics = said[::2][:: max(1, len(said) // 2 // SENTENCES)]
    questions = said[1::2][:: max(1, len(said) // 2 // QUESTIONS)][:QUESTIONS]
    spectrum, centres = spectrum_of(topics)
    return Talk(topics, questions, centres, spectrum)
