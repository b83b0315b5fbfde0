"""`python -m benchmarks.signs [--turns N]`: the best turns by levels, and by signs first, beside a ranking that reads
every vector.

It needs neither a hub nor a database. The vectors are drawn around those that the built-in model makes of the sentences
of these docs: with their mean, and with the spectrum of their covariance. Half of the variance is that of topics, so
that turns of one topic are near each other, as those of a real person are. Sessions have 20 turns and a topic of their
own, from which every third turn strays.
"""

import argparse
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

TOP, QUERIES, SENTENCES = 20, 20, 2_000
TOPICS_A_TURN, SESSION, STRAYING, WORDS, VOCABULARY = 1 / 50, 20, 1 / 3, 12, 50_000
_AT_ONCE = 50_000
_DOCS = Path(__file__).parent.parent / "docs"
Floats = NDArray[np.float32]


class Spectrum(NamedTuple):
    """What vectors of the model are drawn from."""

    model: str
    mean: Floats
    root: Floats

    def drawn(self, rng: np.random.Generator, count: int, share: float) -> Floats:
        """So many, without the mean, with that share of the variance."""
        return rng.standard_normal((count, self.root.shape[1]), np.float32) @ self.root.T * np.float32(share**0.5)


class Store(NamedTuple):
    """Turns as scoring takes them, read as a whole, by levels and by signs first, and what their questions are made
    of."""

    plain: Any
    leveled: Any
    signed: Any
    spectrum: Spectrum
    topics: Floats
    topic_words: NDArray[np.uint32]


class Found(NamedTuple):
    """How much of the right top is found, in how many seconds of CPU, and how many vectors were looked at."""

    same: float
    took: float
    looked_at: int


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.signs", description=__doc__)
    parser.add_argument("--turns", type=int, default=1_000_000)
    given = parser.parse_args()
    # Nothing is written there.
    os.environ.setdefault("MEMORYHUB_HOME", tempfile.gettempdir() + "/memory-hub-signs")
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
    import django

    django.setup()
    rng = np.random.default_rng(7)
    store = _store(rng, given.turns)
    for words in ("rare", "common"):
        found = list(_compared(rng, store, words))
        plain = statistics.mean(one[0] for one in found)
        sys.stdout.write(f"{given.turns:,} turns, words {words}: all read {plain * 1e3:.0f} ms\n")
        for at, how in enumerate(("levels", "signs first")):
            same, took, looked_at = (
                statistics.mean(column) for column in zip(*(one[1][at] for one in found), strict=True)
            )
            least = min(one[1][at].same for one in found)
            sys.stdout.write(
                f"  {how}: top {TOP} the same {same:.3f} (at worst {least:.2f}), {took * 1e3:.0f} ms, "
                f"looked at {looked_at:,.0f}\n"
            )
        sys.stdout.flush()


def sentences() -> list[str]:
    """Those of the docs, each once."""
    pages = [path.read_text("utf-8").replace("\n", " ") for path in sorted(_DOCS.rglob("*.md"))]
    found = {sentence for page in pages for sentence in re.findall(r"\b[A-Z][^.|`<>\[\]]{30,200}\.", page)}
    return sorted(found)


def spectrum_of(texts: Sequence[str]) -> tuple[Spectrum, Floats]:
    """What vectors like those of these texts are drawn from, and their own."""
    from memories.llm import embeddings

    model = embeddings.current_model()
    vectors = embeddings.embed(texts, model=model)
    mean = vectors.mean(axis=0)
    _, scales, turns = np.linalg.svd(vectors - mean, full_matrices=False)
    return Spectrum(model, mean, (turns.T * scales / len(vectors) ** 0.5).astype(np.float32)), vectors


def _store(rng: np.random.Generator, size: int) -> Store:
    from memories.scoring import dense
    from memories.scoring.constants import DEFAULT
    from memories.scoring.dense import Rows, Vectors
    from memories.scoring.lexical import Layout, Words
    from memories.scoring.ranking import Units

    found = sentences()
    spectrum, _ = spectrum_of(found[:: max(1, len(found) // SENTENCES)])
    count = max(2, int(size * TOPICS_A_TURN))
    topics = spectrum.drawn(rng, count, 0.5)
    topic_words = (VOCABULARY + rng.integers(0, 20 * count, (count, 6))).astype(np.uint32)
    topic_of = np.repeat(rng.integers(0, count, -(-size // SESSION)), SESSION)[:size]
    topic_of = np.where(rng.random(size) < STRAYING, rng.integers(0, count, size), topic_of)
    raw = np.empty((size, len(spectrum.mean)), np.float16)
    for start in range(0, size, _AT_ONCE):
        some = topic_of[start : start + _AT_ONCE]
        raw[start : start + len(some)] = _unit(spectrum.mean + topics[some] + spectrum.drawn(rng, len(some), 0.5))
    blocks = dense.blocks(spectrum.model, raw.shape[1])
    rows = Rows.coded(raw, np.ones(size, np.uint8), blocks)
    layout = Layout.of((np.arange(size) // SESSION).astype(np.int32), alone=False)
    words = Words.of([_postings(rng, topic_words[topic_of])], layout, DEFAULT)
    times = np.arange(size, dtype=np.float64) * 60 + 1.7e9
    started = time.monotonic()
    signed = rows.with_levels(blocks, DEFAULT, signs=True)
    sys.stdout.write(f"levels and signs of {size:,} vectors of {spectrum.model}: {time.monotonic() - started:.1f} s\n")
    plain, leveled, estimated = (
        Units.over(words, Vectors.over([one], blocks=blocks, constants=DEFAULT), times)
        for one in (rows, replace(signed, bits=None), signed)
    )
    return Store(plain, leveled, estimated, spectrum, topics, topic_words)


def _unit(vectors: Floats) -> Floats:
    found: Floats = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return found


def _postings(rng: np.random.Generator, of_topics: NDArray[np.uint32]) -> Any:
    """Of each turn some words of its topic, and as many that anybody says."""
    from memories.scoring.lexical import Postings

    size, own = len(of_topics), WORDS // 3
    said = np.minimum(rng.zipf(1.3, (size, WORDS - own)), VOCABULARY).astype(np.uint32)
    ids = np.concatenate([of_topics[:, :own], said], axis=1).ravel()
    # A word that a turn says twice counts twice.
    keys, counts = np.unique(ids.astype(np.int64) << 32 | np.repeat(np.arange(size), WORDS), return_counts=True)
    distinct, starts = np.unique(keys >> 32, return_index=True)
    return Postings(
        distinct.astype(np.uint32),
        np.append(starts, len(keys)),
        (keys & 0xFFFFFFFF).astype(np.int32),
        counts.astype(np.uint16),
        np.full(size, WORDS, np.float32),
    )


def _compared(rng: np.random.Generator, store: Store, words: str) -> Iterator[tuple[float, list[Found]]]:
    """Of each question in how many seconds of CPU all are read, and what is found by levels, and by signs first."""
    from memories.scoring import ranking
    from memories.scoring.ranking import Query

    everybody = np.ones(len(store.plain), np.bool_)
    for _ in range(QUERIES):
        topic = int(rng.integers(0, len(store.topics)))
        vector = _unit(store.spectrum.mean + store.topics[topic] + store.spectrum.drawn(rng, 1, 0.5)[0])
        said = {"rare": store.topic_words[topic][:3], "common": np.arange(1, 4)}[words]
        queries = [Query(np.unique(said).astype(np.uint32), "en", vector)]
        plain, scores = _timed(partial(ranking.score, store.plain, queries))
        right = set(ranking.best_first(scores.total, TOP).tolist())
        each = []
        for units in (store.leveled, store.signed):
            took, found = _timed(partial(ranking.best, units, queries, allowed=everybody, most=TOP))
            best = found.places[ranking.best_first(found.scores.total, TOP)]
            each.append(Found(len(right & set(best.tolist())) / TOP, took, len(found.places)))
        yield plain, each


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    found = work()
    return time.process_time() - started, found


if __name__ == "__main__":
    main()
