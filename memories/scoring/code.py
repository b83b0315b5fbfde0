"""Code in fences, as Markdown has it: apart from what is told around it; pure."""

import re
from typing import NamedTuple

# A fence stands on a line of its own, perhaps with the name of a language; one that nothing closes ends with the text.
_FENCED = re.compile(r"^[ \t]*(```|~~~)[^`\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t\r]*$|\Z)", re.DOTALL | re.MULTILINE)


class Parts(NamedTuple):
    """What a text tells, and the code in it."""

    told: str
    code: str


def apart(text: str) -> Parts:
    """A text that is all code tells nothing."""
    if "```" not in text and "~~~" not in text:
        return Parts(text, "")
    return Parts(_FENCED.sub("\n", text), "\n".join(found.group() for found in _FENCED.finditer(text)))


def told(text: str) -> str:
    """The text without its code; if it is all code, as it is."""
    found = apart(text).told
    return found if found.strip() else text
