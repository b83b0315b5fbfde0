"""Cleans texts of an episode before they are stored: no secrets, no uploads, no more than so many characters; pure."""

import unicodedata
from collections.abc import Iterable

from memories.text import echo, sentences, uploads
from memories.text.cleaning import clean, clean_lines
from memories.text.secrets.redaction import redact_text

MOST_ITEMS = 10
LONGEST_ITEM = 200
ELLIPSIS = "…"
# Characters that are scrubbed, which is costly; fewer are stored.
_READ = 4_000
_PAUSES = ",;:，、；：—"


def cleaned(text: str, *, longest: int) -> str:
    """What may be kept of `text`, on one line of at most `longest` characters; perhaps empty."""
    kept = uploads.scrub(echo.cut_echo(clean_lines(text[:_READ])))
    return cut(redact_text(clean(kept))[0], longest)


def items(texts: Iterable[str]) -> list[str]:
    """The first ten that are not empty, each once."""
    found = (cleaned(text, longest=LONGEST_ITEM) for text in texts)
    return list(dict.fromkeys(filter(None, found)))[:MOST_ITEMS]


def cut(text: str, longest: int) -> str:
    """`text`, or its beginning of at most `longest` characters: whole sentences where they fill half of it, else up to
    the end of a clause or word, with an ellipsis."""
    if len(text) <= longest:
        return text
    ends = [end for _, end in sentences.spans(text) if end <= longest]
    if ends and ends[-1] >= longest // 2:
        return text[: ends[-1]]
    kept = text[: longest - len(ELLIPSIS)]
    return kept[: _break(kept, text[len(kept)])].rstrip(_PAUSES + " ") + ELLIPSIS


def _break(text: str, following: str) -> int:
    """Where to break: between words, at a pause where no spaces separate words, never inside of a character."""
    if following.isspace():
        return len(text)
    place = max(text.rfind(" "), *(text.rfind(pause) for pause in _PAUSES))
    if place >= len(text) // 2:
        return place
    # A letter keeps its marks and joiners, an emoji its tone.
    end = len(text)
    while end > len(text) // 2 and (_joins(following) or text[end - 1] == "\u200d"):
        end -= 1
        following = text[end]
    return end


def _joins(character: str) -> bool:
    is_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    return is_tone or character == "\u200d" or unicodedata.category(character).startswith("M")
