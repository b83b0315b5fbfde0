"""Sentences that tell what somebody built: an endpoint that deletes memories, a test of the reset. They speak of a
memory, and not to one, however much they resemble an order by their meaning.
"""

import re

from memories.text.injection import phrases
from memories.text.injection.unmasking import fold

# How much plainer than of others their meaning must be (log odds).
MARGIN = 3.0
_LONGEST = 240
# What stands behind a pause may be said to somebody else.
_PAUSE = re.compile(r"[,;:，；：、()（）\[\]{}«»„“”\"|<>=—–\n]")
_NOT_WORDS = re.compile(r"[^\w]+|_+")


def is_report(sentence: str) -> bool:
    """Whether a sentence, without any pause, does nothing but tell that."""
    plain = fold(sentence).strip().rstrip(".。!！")
    if len(plain) > _LONGEST or _PAUSE.search(plain):
        return False
    clause = _NOT_WORDS.sub(" ", plain).strip()
    return any(language.is_report(clause) for language in phrases.languages())
