"""Text from a model made fit to store: nothing invisible that could mislead a reader, one line."""

import re
import unicodedata

_BREAKS = re.compile("[\t\n\r\v\f\x1c-\x1f\x85\u2028\u2029]+")
# Controls, overrides and isolates of the reading direction, zero-width fillers, surrogate halves, tag characters.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u180e\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
_JOINERS = re.compile("[\u200c\u200d]+")
_EMOJI_STYLE = "\ufe0f"
# Letters of these never change their shape at a joiner, so there one only hides.
_UNJOINED = ("LATIN", "GREEK", "CYRILLIC", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "FULLWIDTH")


def clean(text: str) -> str:
    """`text` on one line, without control, bidi-override, tag and zero-width characters.

    Zero-width joiners stay where they join: inside emoji, and between letters of scripts that are joined.
    """
    text = _UNSEEN.sub("", _BREAKS.sub(" ", text))
    return _JOINERS.sub(_joiner, text).strip()


def clean_lines(text: str) -> str:
    """As clean(), but line breaks stay."""
    return "\n".join(clean(line) for line in text.splitlines()).strip()


def _joiner(found: re.Match[str]) -> str:
    before, after = found.string[: found.start()][-1:], found.string[found.end() :][:1]
    return found[0][0] if before and after and _are_joined(before, after) else ""


def _are_joined(before: str, after: str) -> bool:
    if _is_emoji(before) and _is_emoji(after):
        return True
    return _is_joining_letter(before) and _is_joining_letter(after)


def _is_emoji(character: str) -> bool:
    return character == _EMOJI_STYLE or unicodedata.category(character) in ("So", "Sk")


def _is_joining_letter(character: str) -> bool:
    is_letter = unicodedata.category(character)[0] in "LM" and character != _EMOJI_STYLE
    return is_letter and not unicodedata.name(character, "").startswith(_UNJOINED)
