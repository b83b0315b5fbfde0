"""Removes characters that people cannot see and a model reads. Pure.

Stored turns stay as they were posted. Prompts, contexts and pages show them without these characters.
"""

import re
import unicodedata
from typing import Any

# Default_Ignorable_Code_Point of DerivedCoreProperties.txt (Unicode 15.1), without the two joiners U+200C and U+200D
# and the emoji style U+FE0F: their neighbours decide about these three.
IGNORABLE: tuple[tuple[int, int], ...] = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200B),
    (0x200E, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0E),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
# Controls (other code folds or keeps tabs and line breaks), annotation marks, halves of surrogate pairs.
CONTROLS: tuple[tuple[int, int], ...] = (
    (0x00, 0x08),
    (0x0E, 0x1B),
    (0x7F, 0x84),
    (0x86, 0x9F),
    (0xD800, 0xDFFF),
    (0xFFF9, 0xFFFB),
)
_UNSEEN = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in IGNORABLE + CONTROLS) + "]+")
# Texts of such characters alone have none of these, nor a line break: most do.
_PLAIN = re.compile("[ -~\u00a1-\u00ac\u00ae-\u02af‐-‧‰-⁞、-〿ぁ-ゖァ-ヺー一-鿿！-～]*")
_EMOJI_STYLE = "\ufe0f"
_KEYCAP = "\u20e3"
_KEYS = "#*0123456789"
# Symbols with an emoji style: those of emoji-variation-sequences.txt lie within.
_STYLED = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934\u2935\u2b05-\u2b55"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_STYLES = re.compile(_EMOJI_STYLE + "+")
_JOINERS = re.compile("[\u200c\u200d]+")
# Letters of these scripts change their shape at a joiner. Between other letters a joiner is invisible.
_JOINED = (
    "ARABIC",
    "SYRIAC",
    "MANDAIC",
    "NKO",
    "MONGOLIAN",
    "DEVANAGARI",
    "BENGALI",
    "GURMUKHI",
    "GUJARATI",
    "ORIYA",
    "TAMIL",
    "TELUGU",
    "KANNADA",
    "MALAYALAM",
    "SINHALA",
    "TIBETAN",
    "MYANMAR",
    "KHMER",
    "BALINESE",
    "JAVANESE",
)


def strip_invisible(text: str) -> str:
    """`text` without invisible characters. Line breaks and tabs stay.

    One joiner stays where it joins: inside emoji, and between letters of joined scripts. The emoji style stays behind a
    symbol that has one.
    """
    if is_plain(text):
        return text
    text = _STYLES.sub(_style, _UNSEEN.sub("", text))
    return _JOINERS.sub(_joiner, text)


def is_plain(text: str) -> bool:
    """Whether it is one line of characters that can be seen: no other text needs to be looked at."""
    return _PLAIN.fullmatch(text) is not None


def visible_json(value: Any) -> Any:
    """The JSON value without invisible characters, in names, too. Two names that look alike then stay two."""
    if isinstance(value, dict):
        return _visible_object(value)
    if isinstance(value, list):
        return [visible_json(one) for one in value]
    return strip_invisible(value) if isinstance(value, str) else value


def _visible_object(given: dict[str, Any]) -> dict[str, Any]:
    visible: dict[str, Any] = {}
    for name, value in given.items():
        shown = strip_invisible(name)
        while shown != name and (shown in given or shown in visible):
            shown += "+"
        visible[shown] = visible_json(value)
    return visible


def _style(found: re.Match[str]) -> str:
    before, after = _beside(found)
    has_style = _STYLED.match(before) or (before and before in _KEYS and after == _KEYCAP)
    return _EMOJI_STYLE if has_style else ""


def _joiner(found: re.Match[str]) -> str:
    before, after = _beside(found)
    joins = before and after and any(all(map(kind, (before, after))) for kind in (_is_emoji, _is_joining_letter))
    return found[0][0] if joins else ""


def _beside(found: re.Match[str]) -> tuple[str, str]:
    """The characters before and after, empty at the ends."""
    start, end = found.span()
    return found.string[max(start - 1, 0) : start], found.string[end : end + 1]


def _is_emoji(character: str) -> bool:
    return character == _EMOJI_STYLE or unicodedata.category(character) in ("So", "Sk")


def _is_joining_letter(character: str) -> bool:
    return unicodedata.category(character)[0] in "LM" and unicodedata.name(character, "").startswith(_JOINED)
