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

# In the languages of moods.toml, as subjects.
_WORDS = r"(?:he|she|they|er|sie|il|elle|ils|elles|él|ella|ellos|ellas|ele|ela|eles|elas|он|она|они)"
_EAST = r"(?P<east>[他她](?!们)|[他她]们|彼女?(?!ら))"
_PRONOUN = re.compile(rf"\b{_WORDS}\b|{_EAST}", re.IGNORECASE)


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
    relation = _relation(known)
    said = [piece for piece in pieces if not piece.is_plain and supporting.says(voice, piece)]
    # "I met Tom in Leiden" has the town of "Lives in Leiden" alone, "I bought peanuts" that of which an allergy is.
    is_needed = all(piece.is_name or piece.is_east for piece in said) or any(
        piece.is_common and words.concepts_of(piece.text) & relation for piece in pieces
    )
    if relation and is_needed:
        return not relation.isdisjoint(voice.concepts)
    return not of_speaker or moods.is_of_speaker(sentence)


def _of_person(sentence: str, known: str, before: str) -> str:
    """The sentence with the person in the place of "she" and its like, unless these may mean somebody else it names."""
    named = {piece.text for piece in words.of(known).pieces}
    has_others = any(piece.is_name and piece.text not in named for piece in words.of(sentence).pieces)

    def person(found: re.Match[str]) -> str:
        kin = moods.kin_in(f"{before}\n{sentence[: found.start()]}")
        if not all(map(moods.is_animal, kin)) or (has_others and sentence[: found.start()].strip(" -*•")):
            return found[0]
        return "用户" if found["east"] else "user"

    return _PRONOUN.sub(person, sentence)


def _relation(known: str) -> frozenset[int]:
    """The ideas of a claim beside those of its telling words: that of "lives" in "Lives in Leiden"."""
    voice = SpokenWords([known])
    telling = [piece for piece in words.of(known).pieces if piece.is_distinctive]
    ideas = frozenset(idea for piece in telling for idea in words.concepts_of(piece.text))
    return voice.concepts - ideas
