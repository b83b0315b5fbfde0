"""Whether of a statement and what was said one denies what the other says; pure.

People deny in a thousand ways, of which a reader knows some. Where the statement alone has a "not", it is held only
against what plainly says the contrary.
"""

import itertools
import re
from collections.abc import Iterable

from memories.scoring.terms import fold
from memories.text import words
from memories.text.reading import arrangements, supporting
from memories.text.reading.moods import Clause
from memories.text.words import SpokenWords, StatementWord

_PRONOUN = re.compile(
    r"\b(?:it|them|that|those|es|das|den|die|sie|ihn|lo|la|los|las|eso|le|les|l'\w+|ça|cela|en)\b|它|这个|那个|それ|これ|あれ"
)
_BRIEF = 60
_SHORT = 3


def are_opposed(part: Clause, said: Clause, beside: Iterable[Clause] = ()) -> bool:
    """Whether one of the two denies what the other says; `beside` are the other clauses that the person said.

    People deny in a thousand ways, and a reader knows some: where the statement alone has a "not", it counts only if
    what was said is plainly the contrary.
    """
    if part.apart != said.apart and (part.says("ended") or said.says("ended")):
        # "Switched from tea to coffee" tells "coffee instead of tea".
        return False
    ours, theirs = _denies(part, said), _denies(said, part)
    if ours == theirs:
        return not ours and part.says("likes") and any(_is_rejected(said, one) for one in beside)
    if arrangements.has_opposite(part.folded, said.folded) or arrangements.has_opposite(said.folded, part.folded):
        return True
    if ours:
        return _is_contrary(part, said) and not any(_denies_alike(part, one, said) for one in beside)
    return not _is_other_matter(part, said)


def stands_for(clause: Clause, other: Clause) -> bool:
    """Whether the clause denies by one word what the other one speaks of: "vegetarian" and "I eat meat"."""
    return any(
        one.word.search(clause.folded)
        and not one.about.search(clause.folded)
        and not one.word.search(other.folded)
        and one.about.search(other.folded)
        for one in arrangements.STANDING
    )


def _denies(clause: Clause, other: Clause) -> bool:
    """Whether the clause denies, beside what the other one says."""
    by_meaning = clause.against or stands_for(clause, other)
    if clause.over and not other.over:
        # What tells of the past says the same without the word.
        by_meaning = by_meaning or not other.is_past
    return (clause.denied != by_meaning) != arrangements.has_opposite(clause.folded, other.folded)


def _is_contrary(part: Clause, said: Clause) -> bool:
    """Whether what was said plainly affirms what the part denies: in its verb, or as something that one likes."""
    if said.says("likes") or (said.over and not part.over):
        return True
    if part.over or said.says("ended") or part.says("ended"):
        return True
    if any(part.says(kind) and said.says(kind) for kind in ("consumes", "owns")):
        return True
    if part.against or stands_for(part, said):
        return said.says("consumes") or said.says("owns")
    return has_predicate(part, said)


def _is_rejected(said: Clause, one: Clause) -> bool:
    """Whether the person will have none of what the clause names: "Pineapple on pizza is a crime, I won't have it"."""
    return (
        one.sentence == said.sentence
        and one is not said
        and one.says("me")
        and (one.denied or one.against)
        and not (said.says("me") or one.moods or one.says("harmless"))
        and _PRONOUN.search(one.folded) is not None
        and len(one.folded) < _BRIEF
    )


def has_predicate(part: Clause, said: Clause) -> bool:
    """Whether the clause has the part's verb; where that is "is" or "has", all of its telling words."""
    bare = part.without("denies")
    if arrangements.is_east(bare):
        telling = arrangements.characters(bare)
        return bool(telling) and all(one in said.folded for one in telling)
    verbs = re.findall(r"[^\W\d_]{2,}", bare.replace("'", " "))
    rest = list(itertools.dropwhile(arrangements.is_helping, verbs))
    if not rest:
        return False
    if len(rest) == len(verbs):
        return _says_loosely(said, rest[0])
    return all(_says_loosely(said, word) for word in rest if len(word) > _SHORT and not arrangements.is_helping(word))


def _says_loosely(clause: Clause, word: str) -> bool:
    """Whether it has the word, however it ends."""
    piece = StatementWord(fold(word), words.stems(fold(word)))
    voice = clause.words
    return voice.says(piece) or voice.begins_like(piece.text) or _changes_vowel(piece.text, voice.words)


def _changes_vowel(word: str, said: Iterable[str]) -> bool:
    """Whether one has its consonants: "spricht" and "spreche"."""
    letters = _consonants(word)
    return len(letters) >= _SHORT and any(
        letters.startswith(own) or own.startswith(letters) for one in said if len(own := _consonants(one)) >= _SHORT
    )


def _consonants(word: str) -> str:
    return word[:1] + re.sub("[aeiouy]", "", word[1:])


def _denies_alike(part: Clause, one: Clause, said: Clause) -> bool:
    """Whether another clause of the sentence denies it: "milk makes me ill, so I drink none"."""
    return (
        one.sentence == said.sentence
        and one is not said
        and not one.moods
        and _denies(one, part)
        and (
            has_predicate(part, one)
            or any(character in one.folded for character in arrangements.characters(part.without("denies")))
        )
    )


def _is_other_matter(part: Clause, said: Clause) -> bool:
    """Whether a "not" in what was said may leave the part as it is: it tells trouble, or the "not" is about something
    else of what is the person's."""
    if part.says("trouble") or any(one.word.search(part.folded) for one in arrangements.STANDING):
        return not said.says("trouble") and not any(
            one.word.search(part.folded) and one.word.search(said.folded) for one in arrangements.STANDING
        )
    if said.against or said.over or said.says("ended") or not said.denied:
        return False
    # The clause may have the part's telling words only as what is the person's: "my hearing aids can't cope".
    telling = [
        piece for piece in words.of(part.text).pieces if not piece.is_plain and supporting.says(said.words, piece)
    ]
    owned = " ".join(found[0] for found in said.own_things())
    voice = SpokenWords([owned])
    return bool(owned) and bool(telling) and all(supporting.says(voice, piece) for piece in telling)
