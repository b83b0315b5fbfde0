"""Whether a text falls under a category by its wording, without a model: by the category's words and by its examples.

A text is judged piece by piece: each sentence, and each part of one that commas or an "and" join. A piece falls under a
category that has one of its words, or that is nearer in meaning to an example of what is not allowed than to any that
is. An allowed example wins: a piece that is near one, and no nearer to a forbidden one, is kept whatever words it has.
What denies something tells as much about a person as what states it, so a "not" changes nothing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import takewhile
from typing import Any

import numpy as np

from memories import budgets
from memories.exceptions import EmbeddingError
from memories.llm import embeddings
from memories.llm.embeddings import USE, Vectors
from memories.scoring.terms import fold
from memories.text import sentences
from memories.text.words import stems

# How near a piece must be to an example (the cosine of their vectors): what means the same lies above, what merely has
# the same form below ("Works as a nurse" and "Works as an engineer": 0.41).
NEAR_FORBIDDEN, NEAR_ALLOWED = 0.5, 0.5
# Of a longer piece the vector says little about a part. It is cut between words, and its parts share so much that a
# word or phrase that stands at a cut is whole in one of them.
LONGEST_PIECE, _SHARED = 300, 60
# Pieces whose vectors are computed at once.
_AT_ONCE = 200
# Forms of a word begin alike, and their ends are short.
_SHORTEST_STEM, _LONGEST_END = 4, 3

# Scripts that write no spaces: their words are looked for anywhere.
_UNSPACED = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    r"\uac00-\ud7a3\uf900-\ufaff"
)
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_WORD = re.compile(rf"(?:(?![{_UNSPACED}])[^\W_])+(?:'(?:(?![{_UNSPACED}])[^\W_])+)*")
# Where a sentence, with single spaces, says several things. An "and" in many languages, and marks between parts.
_MARKS = ",;:，；：、،؛|•"
_JOINS = re.compile(
    rf"[{_MARKS}] |[，；、]"
    r"| (?:and|but|while|und|aber|sowie|et|mais|ainsi que|y|pero|e|mas|и|а|но|و) "
    r"|(?:并且|而且|但是|同时|以及|不过)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Wording:
    """What a category is told by: its words, and examples of what is not allowed and of what is."""

    name: str
    words: tuple[str, ...] = ()
    not_allowed: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Phrase:
    """A word or several, as they are looked for, or a text of a script without spaces."""

    place: int
    words: tuple[str, ...]
    text: str = ""


@dataclass(frozen=True)
class _Examples:
    """Examples of all categories. Those of a category that are allowed, and those that are not, stand in a row: where
    each row starts, of the category at which place, and whether it is allowed."""

    texts: Sequence[str]
    starts: Sequence[int]
    rows: Sequence[tuple[int, bool]]
    words: Sequence[frozenset[str]]


class Wordings:
    """The categories of a policy, ready to judge texts."""

    def __init__(self, wordings: Sequence[Wording]) -> None:
        self.wordings = tuple(wordings)
        self._by_stem, self._anywhere = _phrases(self.wordings)
        folded = {_plain(fold(word)) for one in self.wordings for word in one.words}
        # "Hide and seek" is one thing: a sentence that has it is not parted.
        self._joined = tuple(word for word in folded if _JOINS.search(word))
        self._vectors: Vectors | None = None

    def falls_under(self, texts: Iterable[str]) -> str:
        """The name of the first category that one of the texts falls under; empty: none does."""
        pieces = list(dict.fromkeys(piece for text in texts for piece in _pieces(text, self._joined)))
        found = self.each(pieces)
        return next((name for name in found if name), "")

    def each(self, pieces: Sequence[str]) -> list[str]:
        """Of each piece the category that it falls under, or an empty text. Errors: RequestTooCostly, within one."""
        found: list[str] = []
        for start in range(0, len(pieces), _AT_ONCE):
            budgets.check_time()
            found += self._judged(pieces[start : start + _AT_ONCE])
        return found

    def excuses(self, name: str, text: str) -> bool:
        """Whether an allowed example of the category has all that the text says: a model may name a category for it."""
        places = [place for place, one in enumerate(self.wordings) if one.name == name]
        pieces = _pieces(text, self._joined)
        near = self._nearness(pieces)
        return bool(pieces and places) and all(_wins(near[row], places[0]) for row in range(len(pieces)))

    def _judged(self, pieces: Sequence[str]) -> list[str]:
        hits = [self._hits(piece) for piece in pieces]
        near = self._nearness(pieces)
        found = []
        for row, hit in enumerate(hits):
            places = hit | {place for place, (forbidden, _) in near[row].items() if forbidden >= NEAR_FORBIDDEN}
            fallen = (place for place in sorted(places) if not _wins(near[row], place))
            found.append(next((self.wordings[place].name for place in fallen), ""))
        return found

    def _hits(self, piece: str) -> set[int]:
        """Places of the categories that have a word in the piece."""
        folded = fold(piece)
        found = {one.place for one in self._anywhere if one.text in folded}
        said = _WORD.findall(folded)
        for start, word in enumerate(said):
            for stem in stems(word):
                found |= {one.place for one in self._by_stem.get(stem, ()) if _stands_at(one, said, start)}
        return found

    def _nearness(self, pieces: Sequence[str]) -> list[Mapping[int, tuple[float, float]]]:
        """Of each piece, by place of a category, how near its nearest forbidden and its nearest allowed example are."""
        examples = self._examples
        if not examples.texts or not pieces:
            return [{} for _ in pieces]
        nearest = np.maximum.reduceat(self._scores(pieces), examples.starts, axis=1)
        found: list[Mapping[int, tuple[float, float]]] = []
        for row in nearest.tolist():
            near: dict[int, tuple[float, float]] = {}
            for (place, is_allowed), value in zip(examples.rows, row, strict=True):
                forbidden, allowed = near.get(place, (0.0, 0.0))
                near[place] = (forbidden, max(0.0, value)) if is_allowed else (max(0.0, value), allowed)
            found.append(near)
        return found

    def _scores(self, pieces: Sequence[str]) -> Any:
        """How near each piece is to each example, [pieces, examples]."""
        examples, vectors = self._examples, _vectors(pieces)
        if vectors is not None and self._vectors is None:
            # Kept once they could be had: what fails may come back.
            self._vectors = _vectors(examples.texts)
        if vectors is not None and self._vectors is not None:
            return vectors @ self._vectors.T
        own = [_words_of(piece) for piece in pieces]
        return np.array([[_shared(one, example) for example in examples.words] for one in own])

    @cached_property
    def _examples(self) -> _Examples:
        texts: list[str] = []
        starts: list[int] = []
        rows: list[tuple[int, bool]] = []
        for place, one in enumerate(self.wordings):
            for is_allowed, given in ((False, one.not_allowed), (True, one.allowed)):
                if own := [piece for text in given for piece in dict.fromkeys((text, *_pieces(text, self._joined)))]:
                    starts.append(len(texts))
                    rows.append((place, is_allowed))
                    texts += own
        return _Examples(texts, starts, rows, [_words_of(text) for text in texts])


def _wins(near: Mapping[int, tuple[float, float]], place: int) -> bool:
    """Whether an allowed example of the category keeps the piece."""
    forbidden, allowed = near.get(place, (0.0, 0.0))
    return allowed >= NEAR_ALLOWED and allowed >= forbidden


def _phrases(wordings: Sequence[Wording]) -> tuple[dict[str, list[_Phrase]], list[_Phrase]]:
    by_stem: dict[str, list[_Phrase]] = {}
    anywhere: list[_Phrase] = []
    for place, one in enumerate(wordings):
        for word in one.words:
            folded = fold(word).strip()
            if _HAS_UNSPACED.search(folded):
                anywhere.append(_Phrase(place, (), folded))
            elif parts := tuple(_WORD.findall(folded)):
                for stem in stems(parts[0]):
                    by_stem.setdefault(stem, []).append(_Phrase(place, parts))
    return by_stem, anywhere


def _stands_at(phrase: _Phrase, said: Sequence[str], start: int) -> bool:
    behind = said[start : start + len(phrase.words)]
    return len(behind) == len(phrase.words) and all(map(_is_form_of, phrase.words, behind))


@lru_cache(maxsize=65_536)
def _is_form_of(word: str, other: str) -> bool:
    """Whether both are forms of one word. Stems alone would make "medical" a form of "medication"."""
    if word == other:
        return True
    beginning = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False)))
    if beginning < _SHORTEST_STEM or max(len(word), len(other)) - beginning > _LONGEST_END:
        return False
    return not stems(word).isdisjoint(stems(other))


def _pieces(text: str, joined: Sequence[str]) -> list[str]:
    """The pieces of the text; a sentence with one of the `joined` phrases, which are folded, is not parted."""
    return list(dict.fromkeys(_spoken(text, joined)))


def _spoken(text: str, joined: Sequence[str]) -> Iterator[str]:
    for start, end in sentences.spans(text):
        sentence = _plain(text[start:end])
        folded = fold(sentence) if joined else ""
        is_whole = any(one in folded for one in joined)
        for part in [sentence] if is_whole else _JOINS.split(sentence):
            for cut in _cuts(part):
                piece = cut.strip(f" {_MARKS}")
                # A mark by itself says nothing.
                if any(one.isalnum() for one in piece):
                    yield piece


def _cuts(part: str) -> Iterator[str]:
    """The part in texts of at most LONGEST_PIECE, cut between words where there are spaces."""
    start = 0
    while len(part) - start > LONGEST_PIECE:
        end = start + LONGEST_PIECE
        space = part.rfind(" ", start + LONGEST_PIECE // 2, end)
        end = space if space > 0 else end
        yield part[start:end]
        space = part.rfind(" ", start + _SHARED, end - _SHARED)
        start = space + 1 if space > 0 else end - _SHARED
    yield part[start:]


def _plain(text: str) -> str:
    """With single spaces: of many a pattern would take the square of their number."""
    return " ".join(text.split())


def _vectors(texts: Sequence[str]) -> Vectors | None:
    """By the hub's own embedding; None where it cannot be had: then words are compared."""
    try:
        return embeddings.embed(texts, model=USE)
    except EmbeddingError:
        return None


def _words_of(text: str) -> frozenset[str]:
    folded = fold(text)
    runs = [folded[place : place + 2] for place in range(len(folded) - 1) if _HAS_UNSPACED.match(folded[place])]
    return frozenset([*(min(stems(word), key=len) for word in _WORD.findall(folded)), *runs])


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 0.0
