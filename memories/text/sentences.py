"""The sentences of a text, in English and Chinese, and the parts that are not the speaker's own words; pure."""

import re
from collections.abc import Iterator

# A full stop inside 3.5 or report.pdf ends nothing; nor does that of e.g. or Dr.
_END = re.compile(r"(?:[.!?…]{1,9}[\"')\]”’]{0,3}(?=\s|\Z)|[。！？!?]{1,9}[\"')\]”’」』）]{0,3}|[\n\r\u2028\u2029]+)")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|mr|mrs|ms|dr|prof|st|jr|sr|inc|ltd|co|u\.s|u\.k|a\.m|p\.m)|\b[A-Z])\.\Z",
    re.IGNORECASE,
)
_LONGEST_ABBREVIATION = 8

_FOREIGN = re.compile(
    r"```.{0,100000}?(?:```|\Z)"  # code
    r"|`[^`\n]{1,300}`"
    r"|^[ \t]{0,3}>[^\n]{0,2000}$"  # what is quoted of a mail or a post
    r"|“[^”\n]{1,300}”|「[^」\n]{1,300}」|『[^』\n]{1,300}』|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»"
    r"|(?<![A-Za-z0-9])\"[^\"\n]{1,300}\"(?![A-Za-z0-9])"
    r"|(?<![^\s(（:：,，])'[^'\n]{3,300}'(?![A-Za-z0-9])"
    r"|(?<![^\s(（:：,，])‘[^’\n]{3,300}’(?![A-Za-z0-9])",
    re.MULTILINE | re.DOTALL,
)
BLANK = "\x1a"


def spans(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each sentence with its end mark, without outer white space."""
    start = 0
    for end in _END.finditer(text):
        if _ABBREVIATION.search(text, max(start, end.end() - _LONGEST_ABBREVIATION), end.end()):
            continue
        yield from _stripped(text, start, end.end())
        start = end.end()
    yield from _stripped(text, start, len(text))


def own_words(text: str) -> str:
    """`text` of the same length, with code, quotations and quoted lines blanked out (BLANK)."""
    return _FOREIGN.sub(lambda found: BLANK * len(found[0]), text)


def is_question(sentence: str) -> bool:
    """Whether it ends as a question, in either language."""
    return bool(re.search(r"(?:[?？][\s\"')”’」』）!！]{0,3}|[吗么呢嘛][\s。.!！~～]{0,3})\Z", sentence[-12:]))


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    sentence = text[start:end]
    left = len(sentence) - len(sentence.lstrip())
    if sentence.strip():
        yield start + left, start + left + len(sentence.strip())
