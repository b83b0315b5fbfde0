"""The languages of texts, and the patterns of data/moods.toml: which words deny, ask, suppose and so on; pure."""

import re
import tomllib
from functools import cache
from pathlib import Path

from memories.scoring.terms import fold
from memories.text import quantities, words

DATA = tomllib.loads((Path(__file__).parent / "data" / "moods.toml").read_text(encoding="utf-8"))
LANGUAGES = tuple(name for name, table in DATA.items() if isinstance(table, dict) and "marks" in table)
_WRITTEN_ALIKE = tuple(name for name in LANGUAGES if DATA[name]["marks"])
_ENGLISH_NAMES = {"en": "english", "de": "german", "es": "spanish", "fr": "french", "pt": "portuguese"}
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
# Letters and marks of one language alone.
_LETTERS = {
    "es": re.compile(r"[ñ¿¡]"),
    "pt": re.compile(r"[ãõ]"),
    "de": re.compile(r"[äöüß]"),
    "fr": re.compile(r"[œèùîë]"),
}
_ACUTE = ("es", "pt")
_APOSTROPHES = str.maketrans("’‘ʼ", "'''")
# No word is as long; a pattern would look at the rest of it from each of its letters.
_LONG = re.compile(r"([a-zà-ÿа-я0-9]{40})[a-zà-ÿа-я0-9]+", re.IGNORECASE)
KANA, HAN, _CYRILLIC = re.compile(r"[\u3041-\u30ff]"), re.compile(r"[\u3400-\u9fff]"), re.compile(r"[\u0400-\u04ff]")
SHARED = {
    name: re.compile("|".join(line for line in text.split("\n") if line), re.IGNORECASE)
    for name, text in DATA["shared"].items()
}


def is_everyday(word: str, language: str) -> bool:
    """Whether a folded word says little in that language."""
    return word in _marks(language)


def lists(*kinds: str) -> dict[str, str]:
    """Patterns of these kinds by kind and language: "doubtful_en"."""
    return {f"{kind}_{name}": filled(name, kind) for kind in kinds for name in LANGUAGES}


def normalise_apostrophes(text: str) -> str:
    return _LONG.sub(r"\1", quantities.normalised(text).translate(_APOSTROPHES))


def languages_of(text: str, among: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The language that a text shows, or all that it may be in, `among` others if it can be one of them."""
    if KANA.search(text):
        return ("ja",)
    if HAN.search(text):
        return ("zh",)
    if _CYRILLIC.search(text):
        return ("ru",)
    found = [fold(word) for word in _WORD.findall(text.lower())]
    counts = {name: sum(word in _marks(name) for word in found) for name in _WRITTEN_ALIKE}
    for name, letters in _LETTERS.items():
        counts[name] += 2 * bool(letters.search(text.lower()))
    for name in _ACUTE if re.search("[áíóú]", text.lower()) else ():
        counts[name] += 1
    most = max(counts.values())
    likeliest = tuple(name for name, count in counts.items() if count == most)
    return tuple(name for name in likeliest if name in among) or likeliest


@cache
def _marks(name: str) -> frozenset[str]:
    return frozenset(map(fold, DATA[name]["marks"].split())) | words.everyday(_ENGLISH_NAMES[name])


@cache
def pattern(name: str, kind: str) -> re.Pattern[str]:
    text = filled(name, kind)
    # A list of whole words; Chinese and Japanese have no edges of words.
    return re.compile(rf"(?<!\w)(?:{text})(?!\w)" if kind == "verb" and DATA[name]["marks"] else text)


def filled(name: str, kind: str) -> str:
    table = DATA[name]
    text = "|".join(line for line in table[kind].split("\n") if line)
    return re.sub(r"\{([a-z]+)\}", lambda found: filled(name, found[1]), text)


_OF_IT = r"(?:at|in|of|with|for|im|in|bei|beim|vom|en|de|del|au|aux|à|du|dans|chez)"


@cache
def owned(name: str) -> re.Pattern[str]:
    """Something of the person's, with up to two words before it."""
    thing = (
        rf"\s(?:[\w-]+\s){{0,2}}?[\w-]{{3,}}(?:\s[\w-]{{3,}})?(?:\s{_OF_IT}\s(?:[\w-]+\s)?[\w-]+)?"
        if DATA[name]["marks"]
        else r"的?[^，。、はがをもでに]{1,8}"
    )
    return re.compile(rf"(?:{filled(name, 'mine')}){thing}")


@cache
def handing(name: str) -> re.Pattern[str]:
    """What introduces another text, up to the colon."""
    return re.compile(
        rf"(?:{filled(name, 'other_text')})[^\n:]{{0,200}}:\s*|(?:{filled(name, 'speech')})[^\n:]{{0,20}}:\s*"
    )
