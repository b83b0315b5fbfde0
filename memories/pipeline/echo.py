"""What comes back of our own contexts: a memory that is read out is not said again (rules.md, 5.7)."""

import re

from memories.models import Category, Role
from memories.pipeline.lines import EPISODES, HEADINGS, NOTICE

# An application may escape what it shows, also more than once; a block ends with a tag that is written like its first.
_OPENING = re.compile(
    r"(?P<lt><|&(?:amp;){0,4}lt;)memory(?P<gt>>|&(?:amp;){0,4}gt;)\s*" + r"\s+".join(map(re.escape, NOTICE.split())),
    re.IGNORECASE,
)
_MARKS = r"[ \t>*]{0,16}"
_LINE = re.compile(
    rf"{_MARKS}(?:- \[(?:{'|'.join(Category.values)}) \| [01]\.\d\d\] \S"
    rf"|- \[\d{{4}}-\d\d-\d\d\] (?:{'|'.join(Role.values)}): )",
    re.IGNORECASE,
)
# Many a list of somebody's own has dates: one of episodes is known by its heading alone.
_EPISODES = re.compile(
    rf"^{_MARKS}{re.escape(HEADINGS[EPISODES])}[ \t\r]*\n(?:{_MARKS}- \[\d{{4}}-\d\d-\d\d\] .*(?:\n|\Z))+",
    re.MULTILINE | re.IGNORECASE,
)
# Stands for them while what is above them is judged.
_OURS = "- [other | 0.00] episodes\n"
_FRAME = re.compile(rf"{_MARKS}(?:{'|'.join(map(re.escape, (NOTICE, *HEADINGS)))})\s*", re.IGNORECASE)


def cut_echo(text: str) -> str:
    """`text` without blocks of ours and without lines of ours that stand alone; a block that is never closed ends it.

    What is like them but not of our very shape stays: `<memory>` without our notice, a list of somebody's own.
    """
    return _without_lines(_EPISODES.sub(_OURS, _without_blocks(text)))


def _without_blocks(text: str) -> str:
    """One pass from left to right: a message full of opening tags must not cost a search of the rest for each."""
    kept: list[str] = []
    place = 0
    while start := _OPENING.search(text, place):
        kept.append(text[place : start.start()])
        closing = re.escape(f"{start['lt']}/memory{start['gt']}")
        end = re.compile(closing, re.IGNORECASE).search(text, start.end())
        place = end.end() if end else len(text)
    return "".join([*kept, text[place:]])


def _without_lines(text: str) -> str:
    """Without lines of memories, and the notice and headings directly above them."""
    if "] " not in text:
        return text
    kept: list[str] = []
    # From the end: what stands above is judged by what follows.
    is_ours = False
    for line in reversed(text.splitlines(keepends=True)):
        is_ours = _LINE.match(line) is not None or (is_ours and _FRAME.fullmatch(line) is not None)
        kept += [] if is_ours else [line]
    return "".join(reversed(kept))
