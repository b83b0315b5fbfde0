"""The terms of a text: stems of words, characters and pairs of characters, as stable hashes with counts; pure.

A turn keeps its terms packed beside it, written when it is captured, so that search by words never lags.
"""

import re
import struct
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray

from memories.scoring.code import apart

# The first byte of what is packed. Raise it with every change of tokens or hashes, with a migration that packs stored
# terms again (0035). What an older version packed is read until then: most words are the same.
VERSION = 2
READABLE = (1, VERSION)
RECORD = np.dtype([("id", "<u4"), ("count", "<u2")])
# As long as a record, so that many packed units can be read as one array.
HEADER = np.dtype([("version", "u1"), ("spare", "u1"), ("length", "<u4")])
_HEADER = struct.Struct("<BBI")
_MOST = np.iinfo(np.uint16).max
# Nobody searches for a word of this length; base64 and the like are one term each.
LONGEST_WORD = 64
# Characters of what stands beside a text.
LONGEST_BESIDE = 4_000
# Names and texts of structured data.
MOST_PARTS = 200

_DATA = Path(__file__).parent / "data"
_HAN = r"\u2e80-\u2fdf\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# Kana, hangul, and the scripts of South East Asia that write no spaces.
_RUNS = r"\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3041-\u30ff\u3131-\u318f\u31f0-\u31ff\uac00-\ud7a3"
_EMOJI = r"\u2600-\u27bf\U0001f300-\U0001f3fa\U0001f400-\U0001faff"
_LETTERS = rf"[^\W_{_HAN}{_RUNS}]"
# Vowels and other marks of the scripts of India, Tibet and others: a word does not end at one.
_MARKS = "".join(chr(place) for place in range(0x0483, 0x0FFF) if unicodedata.category(chr(place))[0] == "M")
_WORD = rf"{_LETTERS}+(?:[{_MARKS}]+{_LETTERS}*)*"
# A version behind a name is one number: v1.2.3, python3.11.
_REST = r"(?:(?<=\d)(?:\.\d+)+)?"
_TOKEN = re.compile(rf"\d+(?:[.,]\d+)+|{_WORD}(?:'{_WORD})*{_REST}|[{_HAN}]+|[{_RUNS}]+|[{_EMOJI}]")
_ASCII_TOKEN = re.compile(rf"\d+(?:[.,]\d+)+|[a-z0-9]+(?:'[a-z0-9]+)*{_REST}")
_HAN_RUN, _PLAIN_RUN = re.compile(rf"[{_HAN}]"), re.compile(rf"[{_RUNS}]")
# What is written with a number or beside it: 40GB, RTX4090, v1.2.3.
_PARTS = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_MOST_PARTS, _SHORT_NUMBER = 3, 2
# Accents of Latin, Greek and Cyrillic letters, points of Hebrew and Arabic ones and dots of Indian ones: people leave
# them out. Other marks are part of their letters.
_ACCENTS = re.compile(
    r"[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    r"\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u093c\u09bc\u0a3c\u0abc\u0b3c\u0cbc]"
)
# Forms of a letter that are written for each other, the long stroke, what joins or parts letters within a word, and
# digits of other scripts.
_FORMS = str.maketrans(
    {
        **dict.fromkeys("أإآٱ", "ا"),
        "ؤ": "و",
        "ئ": "ي",
        "ى": "ي",
        "ی": "ي",
        "ې": "ي",
        "ة": "ه",
        "ۀ": "ه",
        "ە": "ه",
        "ہ": "ه",
        "ھ": "ه",
        "ک": "ك",
        **dict.fromkeys("ـ\u200c\u200d\xad"),
        "ँ": "ं",
        **{chr(zero + digit): str(digit) for zero in (0x0660, 0x06F0, 0x0966, 0x09E6) for digit in range(10)},
    }
)
_IN_LATIN = re.compile("[\u0000-\u02af\u0370-\u058f\u1e00-\u1eff\u2010-\u2027\u2e80-\uffff]*")


class TermCounts(NamedTuple):
    """Distinct terms of one text: ids ascending, how often each, and the number of all tokens, repeats included."""

    ids: NDArray[np.uint32]
    counts: NDArray[np.uint16]
    length: int


def count(text: str) -> TermCounts:
    """The terms of any text. Stop words are no terms and do not count in the length.

    A word that only the code in fences holds counts once, so code is found and does not hide what is told beside it.
    """
    ids, counts, length = _counted(text)
    return TermCounts(np.array(ids, np.uint32), np.array(counts, np.uint16), length)


def pack(text: str, *, beside: str = "") -> bytes:
    """The terms of a text as they are stored. A word that only the text `beside` it has counts once, and not in length.

    Six bytes of version and length, then six for each term: id and count, little-endian, ids ascending.
    """
    ids, counts, length = _counted(text)
    if further := set(map(_hash, tokens(beside[:LONGEST_BESIDE]))).difference(ids):
        counted = dict(zip(ids, counts, strict=True)) | dict.fromkeys(further, 1)
        ids, counts = sorted(counted), [counted[one] for one in sorted(counted)]
    # Arrays of a few terms take longer to make than to fill: every post packs some.
    records = chain.from_iterable(zip(ids, counts, strict=True))
    return _HEADER.pack(VERSION, 0, length) + struct.pack(f"<{'IH' * len(ids)}", *records)


def quoted(quote: str, structured: Any) -> str:
    """What a fact says beside its text: its quote, and the names and texts of its structured data, at any depth."""
    return "\n".join([quote, *islice(_texts_in(structured), MOST_PARTS)])


def unpack(packed: bytes) -> TermCounts:
    """What `pack` has packed, as `count` gives it. ValueError for an unknown version or a length that cannot be."""
    check(packed)
    records = np.frombuffer(packed, RECORD, offset=HEADER.itemsize)
    header = np.frombuffer(packed, HEADER, count=1)[0]
    return TermCounts(records["id"].copy(), records["count"].copy(), int(header["length"]))


def check(packed: bytes) -> None:
    """ValueError unless the bytes were packed by this version, or one that is still read."""
    if not packed or packed[0] not in READABLE or len(packed) % RECORD.itemsize:
        raise ValueError(f"Not terms of version {VERSION}")


def fold(text: str) -> str:
    """What compares equal: compatible forms, case, accents, points and forms of letters folded, typographic apostrophes
    made plain."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text.replace("\u2019", "'")).casefold()
    plain = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", folded)))
    return plain if _IN_LATIN.fullmatch(plain) else plain.translate(_FORMS)


def tokens(text: str) -> Iterator[str]:
    """The terms of a text as strings, in its order, before they are hashed."""
    folded = fold(text)
    pattern = _ASCII_TOKEN if folded.isascii() else _TOKEN
    for found in pattern.findall(folded):
        if found[0] < "\u0e00":
            yield from _of_word(found)
        elif _HAN_RUN.match(found):
            yield from _of_han(found)
        elif _PLAIN_RUN.match(found):
            yield from _pairs(found)
        else:
            yield from _of_word(found)


def _texts_in(structured: Any) -> Iterator[str]:
    if isinstance(structured, str):
        yield structured
    elif isinstance(structured, Mapping):
        for name, part in structured.items():
            yield name
            yield from _texts_in(part)
    elif isinstance(structured, list):
        for part in structured:
            yield from _texts_in(part)


def _counted(text: str) -> tuple[list[int], list[int], int]:
    """Distinct terms ascending, how often each, and the number of all."""
    prose, code = apart(text)
    counted = Counter(map(_hash, tokens(prose)))
    if code:
        counted.update(set(map(_hash, tokens(code))) - counted.keys())
    ids = sorted(counted)
    return ids, [min(counted[one], _MOST) for one in ids], counted.total()


@lru_cache(maxsize=65_536)
def _hash(token: str) -> int:
    """CRC-32 of the token's UTF-8: the same on every platform; two of a person's words rarely share one."""
    return zlib.crc32(token.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=65_536)
def _of_word(word: str) -> tuple[str, ...]:
    """The stem of a word; nothing for a stop word; a number without its thousands' commas. Beside 40GB also 40 and GB,
    as others write it."""
    if word in _STOP_EN:
        return ()
    if word[0].isdigit() and "," in word:
        return (word.replace(",", ""),)
    stem = _STEMMER.stemWord(word[:LONGEST_WORD])
    return (stem, *_parts(word)) if _DIGIT.search(word) and not word.isdigit() else (stem,)


def _parts(word: str) -> Iterator[str]:
    """The numbers and letters of a word that has both; none of a code like a1b2c3, or a short one like Q3 or B2B."""
    parts = _PARTS.findall(word)
    if not 2 <= len(parts) <= _MOST_PARTS or "'" in word:
        return
    first, second, *_ = parts
    if len(first) == 1 and first.isalpha():
        if len(parts) > 2 or (first != "v" and len(second) <= _SHORT_NUMBER):
            return
        # Others write 1.2.3, or version 1.2.3.
        parts = ["version", second] if first == "v" and "." in second else [second]
    for part in parts:
        yield from _of_word(part)


def _of_han(run: str) -> Iterator[str]:
    """Single characters and pairs of neighbours, without function words."""
    for one in run:
        if one not in _STOP_ZH:
            yield one
    for start in range(len(run) - 1):
        pair = run[start : start + 2]
        if pair not in _STOP_ZH:
            yield pair


def _pairs(run: str) -> Iterator[str]:
    """Pairs of neighbours: a single kana or syllable says too little, unless it stands alone."""
    if len(run) == 1:
        yield run
    for start in range(len(run) - 1):
        yield run[start : start + 2]


def _words(name: str) -> frozenset[str]:
    lines = (_DATA / name).read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


_DIGIT = re.compile(r"\d")
_STOP_EN, _STOP_ZH = _words("stop_words_en.txt"), _words("stop_words_zh.txt")
_STEMMER = Stemmer.Stemmer("english")
