"""Texts of an episode made fit to store: clean, without secrets and uploads, no longer than they may be; pure."""

import unicodedata
from collections.abc import Iterable

from memories.pipeline import echo, sentences, uploads
from memories.pipeline.cleaning import clean, clean_lines
from memories.pipeline.redaction import redact_text

MOST_ITEMS = 10
LONGEST_ITEM = 200
ELLIPSIS = "…"
# Beyond what is stored, read before the costly scrubbing.
_READ = 4_000
_PAUSES = ",;:，、；：—"


def cleaned(text: str, *, longest: int) -> str:
    """`text` on one line of at most `longest` characters, as far as it may be kept; perhaps empty."""
    kept = uploads.scrub(echo.cut_echo(clean_lines(text[:_READ])))
    return cut(redact_text(clean(kept))[0], longest)


def items(texts: Iterable[str]) -> list[str]:
    """The first ten that say something, each once."""
    said = (cleaned(text, longest=LONGEST_ITEM) for text in texts)
    return list(dict.fromkeys(filter(None, said)))[:MOST_ITEMS]


def cut(text: str, longest: int) -> str:
    """`text`, or its beginning of at most `longest` characters: whole sentences where they fill half of it, else up to
    the end of a clause or word, with an ellipsis."""
    if len(text) <= longest:
        return text
    ends = [end for _, end in sentences.spans(text) if end <= longest]
    if ends and ends[-1] >= longest // 2:
        return text[: ends[-1]]
    room = text[: longest - len(ELLIPSIS)]
    return room[: _break(room, text[len(room)])].rstrip(_PAUSES + " ") + ELLIPSIS


def _break(room: str, following: str) -> int:
    """Where to break: between words, at a pause where words are not parted, never inside of a character."""
    if following.isspace():
        return len(room)
    place = max(room.rfind(" "), *(room.rfind(pause) for pause in _PAUSES))
    if place >= len(room) // 2:
        return place
    return _whole_characters(room, following)


def _whole_characters(room: str, following: str) -> int:
    """A letter keeps its marks and joiners, an emoji its tone."""
    end = len(room)
    while end > len(room) // 2 and (_clings(following) or room[end - 1] == "\u200d"):
        end -= 1
        following = room[end]
    return end


def _clings(character: str) -> bool:
    is_tone = "\U0001f3fb" <= character <= "\U0001f3ff"
    return is_tone or character == "\u200d" or unicodedata.category(character).startswith("M")
