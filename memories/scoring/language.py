"""Which of the two families of languages a text belongs to: it decides which mean a vector is centred by; pure."""

import re
from typing import Literal

Language = Literal["zh", "en"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")

# Han, kana, bopomofo and hangul: scripts whose letters are syllables or words.
_SYLLABLE = re.compile(r"[\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3041-\u318f\u31a0-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
_WORD = re.compile(
    r"[^\W\d_\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3041-\u318f\u31a0-\u9fff\uac00-\ud7a3\uf900-\ufaff]+"
)
# The beginning tells; a pasted document is not read to its end.
READ_CHARACTERS = 1_000


def of(text: str) -> Language:
    """`zh` when letters of East Asia are as many as the words in other letters, `en` for everything else."""
    start = text[:READ_CHARACTERS]
    if start.isascii():
        return "en"
    syllables = len(_SYLLABLE.findall(start))
    return "zh" if syllables and syllables >= len(_WORD.findall(start)) else "en"
