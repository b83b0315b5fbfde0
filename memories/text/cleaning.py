"""Clean text that a model wrote before it is stored: one line, no invisible characters that could mislead a reader."""

import re

from memories.invisible import strip_invisible

_BREAKS = re.compile("[\t\n\r\v\f\x1c-\x1f\x85\u2028\u2029]+")


def clean(text: str) -> str:
    """`text` on one line, without control, bidi-override, tag, zero-width and other invisible characters.

    Zero-width joiners stay inside emoji and between letters of scripts that join.
    """
    return strip_invisible(_BREAKS.sub(" ", text)).strip()


def clean_lines(text: str) -> str:
    """As clean(), but line breaks stay."""
    return "\n".join(clean(line) for line in text.splitlines()).strip()
