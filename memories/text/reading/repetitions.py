"""Whether a sentence states a known claim; pure.

A hunt for a claim that was corrected (claims.OldClaim) finds all that shares its words. Here a question, a denial, a
wish, somebody else's case, or a town that is only named does not count: it says nothing that is over.
"""

import re
from functools import lru_cache

from memories.text import words
from memories.text.reading import moods, slips, supporting
from memories.text.reading.supporting import Heard
from memories.text.words import SpokenWords

# By the word with which somebody speaks of themselves: what stands for the person in a text about them, as a subject.
_SUBJECTS = {
    "I": "he|she|they|(?:the )?(?:user|person)",
    "ich": "er|sie|(?:der |die )?(?:nutzer(?:in)?|benutzer(?:in)?)",
    "je": "il|elle|ils|elles|l['’]utilisat(?:eur|rice)",
    "yo": "él|ella|ellos|ellas|(?:el |la )?usuari[oa]",
    "eu": "ele|ela|eles|elas|[oa] usuári[oa]",
    "я": "он|она|они|пользователь(?:ница)?",
}
_SUBJECT = re.compile(
    "|".join(rf"(?P<of_{place}>\b(?:{words})\b(?!['’]s\b))" for place, words in enumerate(_SUBJECTS.values()))
    + r"|(?P<zh>[他她](?!们)|[他她]们|(?:这位)?用户)|(?P<ja>彼女?(?!ら)|ユーザー)",
    re.IGNORECASE,
)
_OWN = {f"of_{place}": own for place, own in enumerate(_SUBJECTS)} | {"zh": "我", "ja": "私"}


# Both take milliseconds, and each context asks again of the same texts.
@lru_cache(maxsize=16_384)
def states(sentence: str, known: str) -> bool:
    """Whether the sentence, which has the claim's telling words, says them of its speaker as the claim does."""
    return _repeats(sentence, known, of_speaker=True)


@lru_cache(maxsize=16_384)
def tells(sentence: str, known: str, *, before: str = "") -> bool:
    """Whether the sentence says them of the person whom a written text is about, and whom it need not name; `before`:
    the sentence before it."""
    return _repeats(_of_person(sentence, known, before), known, of_speaker=False)


def _repeats(sentence: str, known: str, *, of_speaker: bool) -> bool:
    if slips.slip(known, Heard([sentence])):
        return False
    voice, pieces = SpokenWords([sentence]), words.of(known).pieces
    telling = [piece for piece in pieces if piece.is_distinctive]
    # The ideas of a claim beside those of its telling words: that of "lives" in "Lives in Leiden".
    relation = SpokenWords([known]).concepts.difference(*(words.concepts_of(piece.text) for piece in telling))
    said = [piece for piece in pieces if not piece.is_plain and supporting.says(voice, piece)]
    # "I met Tom in Leiden" has the town of "Lives in Leiden" alone, "I bought peanuts" that of which an allergy is.
    is_needed = all(piece.is_name or piece.is_east for piece in said) or any(
        piece.is_common and words.concepts_of(piece.text) & relation for piece in pieces
    )
    if relation and is_needed:
        return not relation.isdisjoint(voice.concepts)
    return not of_speaker or moods.is_of_speaker(sentence)


def _of_person(sentence: str, known: str, before: str) -> str:
    """The sentence as the person would say it: "she" and its like become "I", unless these may mean somebody else whom
    it names."""
    named = {piece.text for piece in words.of(known).pieces}
    has_others = any(piece.is_name and piece.text not in named for piece in words.of(sentence).pieces)

    def person(found: re.Match[str]) -> str:
        kin = moods.kin_in(f"{before}\n{sentence[: found.start()]}")
        if not all(map(moods.is_animal, kin)) or (has_others and sentence[: found.start()].strip(" -*•")):
            return found[0]
        return _OWN[str(found.lastgroup)]

    return _SUBJECT.sub(person, sentence)
