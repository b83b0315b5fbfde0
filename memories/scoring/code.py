"""Markdown code blocks, separated from the prose around them; pure."""

import re
from typing import NamedTuple

# A fence stands on a line of its own, perhaps with the name of a language; one that nothing closes ends with the text.
_FENCED = re.compile(r"^[ \t]*(```|~~~)[^`\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t\r]*$|\Z)", re.DOTALL | re.MULTILINE)


class Parts(NamedTuple):
    """The prose of a text, and the code in it."""

    prose: str
    code: str


def apart(text: str) -> Parts:
    """The prose of a text that is all code is empty."""
    if "```" not in text and "~~~" not in text:
        return Parts(text, "")
    return Parts(_FENCED.sub("\n", text), "\n".join(found.group() for found in _FENCED.finditer(text)))


def prose(text: str) -> str:
    """The text without its code; if it is all code, as it is."""
    found = apart(text).prose
    return found if found.strip() else text
