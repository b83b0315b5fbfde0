"""Whether a sentence states a known claim; pure.

A hunt for a claim that was corrected (claims.OldClaim) finds all that shares its words. Here a question, a denial, a
wish, somebody else's case, or a town that is only named does not count: it says nothing that is over.
"""

from memories.text import words
from memories.text.reading import moods, slips, supporting
from memories.text.reading.supporting import Heard
from memories.text.words import SpokenWords


def states(sentence: str, known: str) -> bool:
    """Whether the sentence, which has the claim's telling words, says them of its speaker as the claim does."""
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
    return moods.is_of_speaker(sentence)


def _relation(known: str) -> frozenset[int]:
    """The ideas of a claim beside those of its telling words: that of "lives" in "Lives in Leiden"."""
    voice = SpokenWords([known])
    telling = [piece for piece in words.of(known).pieces if piece.is_distinctive]
    ideas = frozenset(idea for piece in telling for idea in words.concepts_of(piece.text))
    return voice.concepts - ideas
