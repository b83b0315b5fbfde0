"""Cut from turns what they repeat of our own contexts, so that nothing is learned from it again (rules.md, 5.7)."""

import re

from memories.models import Category, Role
from memories.text.memory_block import EPISODES, FACTS, FRAMES, GROUPS, NAMED, PLAINS, TURNS


def _pattern(text: str) -> str:
    """The text, with any name where it names something."""
    return ".{1,600}".join(map(re.escape, text.split(NAMED)))


# Applications can escape what they show, even repeatedly. The closing tag is escaped like the opening one.
_NOTICES = "|".join(
    r"\s+".join(map(re.escape, notice.split()))
    for frame in FRAMES.values()
    for notice in (frame.notice, frame.summary_notice)
)
_OPENING = re.compile(
    r"(?P<lt><|&(?:amp;){0,4}lt;)(?P<tag>memory|conversation_summary)(?P<gt>>|&(?:amp;){0,4}gt;)\s*"
    rf"(?:{_NOTICES})",
    re.IGNORECASE,
)
_MARKS = r"[ \t>*]{0,16}"
_LINE = re.compile(
    rf"{_MARKS}(?:- \[(?:{'|'.join(Category.values)}) \| [01]\.\d\d\] \S"
    rf"|- \[\d{{4}}-\d\d-\d\d\] (?:{'|'.join(Role.values)}): )",
    re.IGNORECASE,
)


def _headings(*places: int) -> str:
    return "|".join(_pattern(frame.headings[place]) for frame in FRAMES.values() for place in places)


# Users write lists with dates and labels, too: only its heading identifies a list of ours. Below it stand days with the
# lines of each; in earlier contexts each line had its day.
_DAY = r"\d{4}-\d\d-\d\d"
_ENTRY = rf"{_MARKS}- .*(?:\n|\Z)(?:[ \t>*]{{0,16}}\|.*(?:\n|\Z))*"
_OF_A_DAY = rf"{_MARKS}{_DAY}:[ \t\r]*\n(?:{_ENTRY})+"
_LISTS = re.compile(
    rf"^{_MARKS}(?:(?:{_headings(GROUPS, *PLAINS, EPISODES, TURNS)})[ \t\r]*\n"
    rf"(?:(?:{_OF_A_DAY})+|(?:{_MARKS}- \[{_DAY}\] .*(?:\n|\Z))+)"
    rf"|(?:{_headings(FACTS)})[ \t\r]*\n(?:{_MARKS}- \[(?:{'|'.join(Category.values)})\] .*(?:\n|\Z))+)",
    re.MULTILINE | re.IGNORECASE,
)
# Replaces such a list, so that the headings above it are cut as well.
_OURS = "- [other | 0.00] told\n"
_ABOVE = "|".join(
    _pattern(text) for frame in FRAMES.values() for text in (frame.notice, frame.zone_notice, *frame.headings)
)
_FRAME = re.compile(rf"{_MARKS}(?:{_ABOVE})\s*", re.IGNORECASE)


def cut_echo(text: str) -> str:
    """`text` without our blocks and without single lines of ours; a block that is never closed ends at the text's end.

    What only resembles them stays: `<memory>` without our notice, a list of the user's own.
    """
    return _without_lines(_LISTS.sub(_OURS, _without_blocks(text)))


def _without_blocks(text: str) -> str:
    """One pass from left to right: a message full of opening tags must not cost a search of the rest for each."""
    kept: list[str] = []
    place = 0
    while start := _OPENING.search(text, place):
        kept.append(text[place : start.start()])
        closing = re.escape(f"{start['lt']}/{start['tag']}{start['gt']}")
        end = re.compile(closing, re.IGNORECASE).search(text, start.end())
        place = end.end() if end else len(text)
    return "".join([*kept, text[place:]])


def _without_lines(text: str) -> str:
    """Without lines of memories, and without the notice and headings directly above them."""
    if "] " not in text:
        return text
    kept: list[str] = []
    # From the end: whether a heading is cut depends on the line after it.
    is_ours = False
    for line in reversed(text.splitlines(keepends=True)):
        is_ours = _LINE.match(line) is not None or (is_ours and _FRAME.fullmatch(line) is not None)
        kept += [] if is_ours else [line]
    return "".join(reversed(kept))
