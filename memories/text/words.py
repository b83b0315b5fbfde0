"""The words of a text that can be evidence: stems, names, codes, Chinese and Japanese in pairs of characters; pure.

data/everyday.toml lists words that any paraphrase can add; they are no evidence. data/concepts.txt lists words that
express the same idea.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import Stemmer

from memories.scoring.terms import LONGEST_WORD, fold
from memories.text import quantities
from memories.text.keywords import HAN

_FOLDER = Path(__file__).parent / "data"
_DATA = tomllib.loads((_FOLDER / "everyday.toml").read_text(encoding="utf-8"))
_LATIN = tuple(Stemmer.Stemmer(name) for name in ("english", "german", "french", "spanish", "portuguese"))
_CYRILLIC = (Stemmer.Stemmer("russian"),)

# Addresses, mails, and whatever mixes letters with digits, but for a number with its unit ("20mg", "3rd"). Bounded: in
# a long Chinese text a mail may begin with each letter.
_CODE = re.compile(
    r"(?:https?://|www\.)[^\s<>\"'，。）)]+|[\w.+-]{1,80}@[\w-]{1,80}(?:\.[\w-]+)+|@[\w.]{2,}"
    r"|(?<![\w.])(?!\w+\.(?:js|ts|py|md|txt|net)\b)[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)*\.[a-z]{2,}(?:/[^\s，。）)]*)?(?![\w.])"
    r"|(?<![a-z0-9])(?=[a-z0-9/_.-]*\d)(?=[a-z0-9/_.-]*[a-z])[a-z0-9]+(?:[/_.-][a-z0-9]+)*",
    re.IGNORECASE,
)
_MEASURE_OR_ABBREVIATION = re.compile(
    r"\d+(?:[.,:]\d+)*-?(?:[a-z]{1,3}|min|mins|hours?|days?|weeks?|months?|years?)(?:-(?:old|long))?\Z"
    r"|(?:[a-z]\.)+[a-z]?\Z|(?:e\.g|i\.e|a\.m|p\.m)\Z"
)
_WORD = re.compile(rf"(?:(?![{HAN}])[^\W\d_])+(?:['’](?:(?![{HAN}])[^\W\d_])+)*")
_EAST = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\u3005]+")
_KATAKANA = re.compile(r"[\u30a1-\u30ff]{2,}")
_HANGUL = re.compile(r"[\uac00-\ud7a3]{2,}")
_NUMERALS = "〇零一二三四五六七八九十百千万两俩"
_SENTENCE_START = re.compile(r"(?:\A|[.!?。！？:：\n]|[-–—•*])[\s\"'“”‘’(«„]*\Z")
_ANNOUNCES = frozenset(["aus", "bei", "heißt", "heisst", "namens", "herr", "frau", "firma", "nach", "dr"])
_SHORTEST_BEGINNING, _LONGEST_END = 3, 2
_SHORTEST_PART, _SAME_BEGINNING = 5, 6
_ALIKE = 0.84
_SHORTEST_IDEA = 4

_CYRILLIC_LETTERS = "абвгдеёжзийклмнопрстуфхцчшщыэюя"
_IN_LATIN = "a,b,v,g,d,e,e,zh,z,i,i,k,l,m,n,o,p,r,s,t,u,f,kh,ts,ch,sh,sch,y,e,yu,ya"
_TRANSLITERATED = dict(zip(_CYRILLIC_LETTERS, _IN_LATIN.split(","), strict=True)) | {"ъ": "", "ь": ""}


@lru_cache(maxsize=65_536)
def stems(word: str) -> frozenset[str]:
    """The stems of a folded word in the languages of its letters."""
    short = word[:LONGEST_WORD]
    stemmers = _CYRILLIC if "\u0400" <= short[:1] <= "\u04ff" else _LATIN
    return frozenset(stemmer.stemWord(short) for stemmer in stemmers) | {short}


def _listed(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(fold(word) for text in texts for word in text.split())


_EVERYDAY = {name: _listed([text]) for name, text in _DATA["words"].items()}
_PLAIN, _COMMON = _listed(_DATA["words"].values()), _listed(_DATA["common"].values())
_GERMAN = _listed([_DATA["words"]["german"]]) - _listed(
    words for name, words in _DATA["words"].items() if name != "german"
)
# A stem of three letters is that of too many words: "cho" in French is one of "chooses" and of "choir".
_PLAIN_STEMS = frozenset(stem for word in _PLAIN for stem in stems(word) if min(len(word), len(stem)) > 3)
_COMMON_STEMS = frozenset(stem for word in _COMMON for stem in stems(word) if min(len(word), len(stem)) > 3)
_EAST_WORDS = _listed([_DATA["east"]["chinese"], _DATA["east"]["japanese"]])
_PLAIN_EAST = re.compile("|".join(map(re.escape, sorted(_EAST_WORDS, key=lambda one: (-len(one), one)))))
_LITTLE_WORDS = frozenset(_DATA["east"]["alone"])
_BREAKS = re.compile(f"[{_DATA['east']['characters']}{_NUMERALS}]")


@dataclass(frozen=True)
class StatementWord:
    """A word of a statement as it is compared, with its stems; a pair of characters has none."""

    text: str
    stems: frozenset[str] = frozenset()
    is_name: bool = False
    is_plain: bool = False
    is_common: bool = False

    @property
    def is_distinctive(self) -> bool:
        """Neither a plain word, which proves nothing, nor a common one, which proves little."""
        return not (self.is_plain or self.is_common)

    @property
    def is_east(self) -> bool:
        return not self.stems

    @property
    def is_pair(self) -> bool:
        return self.is_east and len(self.text) > 1


@dataclass(frozen=True)
class Statement:
    """What a statement needs support for: words, codes, numbers and dates."""

    pieces: tuple[StatementWord, ...]
    codes: tuple[str, ...]
    quantities: quantities.Quantities


@lru_cache(maxsize=4_096)
def of(text: str) -> Statement:
    """The pieces of one statement, each once."""
    text = quantities.normalised(text).replace("’", "'")
    found = (match[0].rstrip(".,;:!?-") for match in _CODE.finditer(text))
    codes = tuple(dict.fromkeys(code for code in found if not _MEASURE_OR_ABBREVIATION.match(code.casefold())))
    rest = text
    for code in codes:
        rest = rest.replace(code, " ")
    pieces = {piece.text: piece for piece in (*_words(rest), *_east(rest))}
    return Statement(tuple(pieces.values()), codes, quantities.of(rest))


def _words(text: str) -> Iterator[StatementWord]:
    found = list(_WORD.finditer(text))
    capitals = sum(one[0][0].isupper() for one in found)
    is_title = len(found) > 3 and capitals > len(found) * 0.6
    is_german = any(fold(one[0]) in _GERMAN for one in found)
    for place, one in enumerate(found):
        word = fold(one[0]).removesuffix("'s")
        if len(word) < 2 or quantities.is_number_word(word):
            continue
        before = fold(found[place - 1][0]) if place else ""
        looks = one[0][0].isupper() and not _SENTENCE_START.search(text[: one.start()]) and not is_title
        looks = looks and (not is_german or before in _ANNOUNCES)
        is_name = looks or (len(one[0]) > 1 and one[0].isupper() and not is_title)
        # "Leiden" is a town where "leiden" is to suffer: a capital outweighs a stem, not a word of the list itself.
        is_name = is_name and word not in _PLAIN and word not in _COMMON
        plain = not is_name and _is_plain(word)
        yield StatementWord(word, stems(word), is_name, plain, not (is_name or plain) and _is_everyday(word))


@lru_cache(maxsize=65_536)
def _is_plain(word: str) -> bool:
    return word in _PLAIN or not stems(word).isdisjoint(_PLAIN_STEMS)


@lru_cache(maxsize=65_536)
def _is_everyday(word: str) -> bool:
    return word in _COMMON or not stems(word).isdisjoint(_COMMON_STEMS)


def _east(text: str) -> Iterator[StatementWord]:
    folded = fold(text)
    if folded.isascii():
        return
    for run in _EAST.findall(_PLAIN_EAST.sub(" ", folded)):
        for part in _BREAKS.split(run):
            yield from (StatementWord(part[start : start + 2]) for start in range(max(len(part) - 1, 0)))
            if len(part) == 1 and part not in _LITTLE_WORDS:
                yield StatementWord(part)
    yield from (StatementWord(run) for run in _KATAKANA.findall(folded))
    yield from (StatementWord(run[:2]) for run in _HANGUL.findall(folded))


def everyday(language: str) -> frozenset[str]:
    """The plain words of a language ("english"), folded; none if there is no list of them."""
    return _EVERYDAY.get(language, frozenset())


def number_words(text: str) -> list[str]:
    """The words of a text that mean a number, a month or a day."""
    return [word for word in map(fold, _WORD.findall(text)) if quantities.is_number_word(word)]


def without_plain(text: str) -> str:
    """A Chinese or Japanese text without its plain words of several characters."""
    return _PLAIN_EAST.sub(lambda found: " " if len(found[0]) > 1 else found[0], fold(text))


class SpokenWords:
    """All that one side says, prepared for look-ups."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.text = fold("\n".join(quantities.normalised(text).replace("’", "'") for text in texts))

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(word.removesuffix("'s") for word in _WORD.findall(self.text))

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(stem for word in self.words for stem in stems(word))

    @cached_property
    def concepts(self) -> frozenset[int]:
        return concepts(self.text, self.words)

    @cached_property
    def _beginnings(self) -> frozenset[str]:
        return frozenset(word[:_SAME_BEGINNING] for word in self.words if len(word) >= _SAME_BEGINNING)

    @cached_property
    def _compact(self) -> str:
        return "".join(character for character in self.text if character.isalnum())

    def says(self, piece: StatementWord) -> bool:
        """Whether it has the word in some form; a name as a whole."""
        if piece.is_east:
            return piece.text in self.text
        if not piece.stems.isdisjoint(self.stems):
            return True
        if piece.is_name:
            return False
        if piece.text[:_SAME_BEGINNING] in self._beginnings:
            return True
        # A compound begins or ends with one of its words.
        sizes = range(_SHORTEST_PART, len(piece.text) - 2)
        return any(piece.text[:size] in self.words or piece.text[-size:] in self.words for size in sizes)

    def begins_like(self, word: str) -> bool:
        """Whether one of its words begins like a folded word, and is about as long: "rauche" and "raucht"."""
        size = max(_SHORTEST_BEGINNING, len(word) - _LONGEST_END)
        return any((word[:size], len(word) + more) in self._ends for more in range(-_LONGEST_END, _LONGEST_END + 1))

    @cached_property
    def _ends(self) -> frozenset[tuple[str, int]]:
        """The beginnings of its words without up to as many letters as an end may have, with their lengths."""
        return frozenset(
            (word[:size], len(word))
            for word in self.words
            for size in range(max(_SHORTEST_BEGINNING, len(word) - 2 * _LONGEST_END), len(word) + 1)
        )

    def has_code(self, code: str) -> bool:
        """Whether it has the code, however it is spaced; a short one as a word of its own."""
        bare = "".join(character for character in fold(code) if character.isalnum())
        if len(bare) > 3:
            return bare in self._compact
        # A Chinese or Japanese character beside it belongs to another word.
        return (
            re.search(rf"(?<![^\W\u2e80-\u9fff]){re.escape(fold(code))}(?![^\W\u2e80-\u9fff])", self.text) is not None
        )

    def resembles(self, name: str) -> bool:
        """Whether a name is one that it has in another spelling, in other letters, or as initials."""
        letters = _transliterated(name)
        near = (word for word in self._names_by_letter.get(letters[:1], ()) if abs(len(word) - len(letters)) <= 2)
        return any(difflib.SequenceMatcher(None, letters, word).ratio() >= _ALIKE for word in near if len(word) > 3)

    @cached_property
    def _names_by_letter(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for word in map(_transliterated, sorted(self.words)):
            found.setdefault(word[:1], []).append(word)
        return found


def _transliterated(word: str) -> str:
    return "".join(_TRANSLITERATED.get(letter, letter) for letter in word)


def _read_concepts() -> tuple[dict[str, set[int]], dict[str, set[int]]]:
    """Numbers of lines by the stems of their words, and by phrases that are searched as they are written."""
    lines = (_FOLDER / "concepts.txt").read_text(encoding="utf-8").splitlines()
    by_stem: dict[str, set[int]] = {}
    by_phrase: dict[str, set[int]] = {}
    for place, line in enumerate(one for one in lines if not one.startswith("#")):
        for word in map(fold, line.split()):
            if "_" in word or not _WORD.fullmatch(word):
                by_phrase.setdefault(word.replace("_", " "), set()).add(place)
            else:
                for stem in stems(word):
                    by_stem.setdefault(stem, set()).add(place)
    return by_stem, by_phrase


_BY_STEM, _BY_PHRASE = _read_concepts()


def concepts(text: str, words: Iterable[str]) -> frozenset[int]:
    """The ideas (lines of data/concepts.txt) in a folded text with these words."""
    by_word = (place for word in words for stem in stems(word) for place in _BY_STEM.get(stem, ()))
    by_phrase = (place for phrase, places in _BY_PHRASE.items() if phrase in text for place in places)
    return frozenset((*by_word, *by_phrase))


@lru_cache(maxsize=4_096)
def concepts_of(word: str) -> frozenset[int]:
    """The ideas of one folded word or pair, those of a compound's parts included."""
    sizes = range(_SHORTEST_IDEA, len(word) - _SHORTEST_IDEA + 1) if word[:1].isalpha() else ()
    parts = (part for size in sizes for part in (word[:size], word[-size:]))
    of_parts = (place for part in parts for place in _BY_STEM.get(part, ()))
    return concepts(word, _WORD.findall(word)) | frozenset(of_parts)


def is_written_east(text: str) -> bool:
    """Whether a text has Chinese or Japanese letters."""
    return _EAST.search(text) is not None
