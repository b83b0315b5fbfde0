"""Whether a person says that something known is over or other; pure.

A removal counts only if they do: in words of their own, of themselves, as a statement.
"""

import re
from collections.abc import Sequence

import numpy as np

from memories.text import words
from memories.text.reading import arrangements, moods, polarity, slips, supporting
from memories.text.reading.moods import DOUBTFUL, QUESTION, QUOTED, SUPPOSED, WILL, WISHED, Clause
from memories.text.reading.supporting import Heard
from memories.text.support import Embed
from memories.text.words import SpokenWords

_NOT_STATED = frozenset([QUOTED, QUESTION, SUPPOSED])
_NOT_OVER = frozenset([DOUBTFUL, WISHED, WILL])
# "I nearly sold it": it is still there.
_ALMOST = re.compile(
    r"\b(?:nearly|almost|failli|beinahe|um ein haar|por poco|a punto de|casi|fast)\b"
    r"|差点|差一点|险些|ところだった|ところでした|そうになっ"
)
# Cosine of `use-multilingual-3` between a sentence and what it speaks of in other words (docs/what-is-kept.md).
_NEAR = 0.5
# A text still has a sentence if it has so much of its telling words.
_KEPT = 0.5
_SHORT = 3


def is_over(known: str, heard: Heard, embed: Embed | None = None) -> bool:
    """Whether the person says that the known statement does not hold any more, or holds otherwise."""
    parts = moods.told(known, heard.languages)
    return any(_ends(parts, clause, embed, heard) for clause in heard.clauses)


def is_retracted(known: str, sentence: str) -> bool:
    """Whether a sentence of the person's plainly takes all of the statement back: "I no longer live in Leiden"."""
    heard = Heard([sentence])
    parts = moods.told(known, heard.languages)
    if len(parts) != 1:
        return False
    part = parts[0]
    telling = [piece for piece in words.of(known).pieces if not piece.is_plain]
    for clause in heard.clauses:
        if clause.others or clause.moods & (_NOT_STATED | _NOT_OVER) or not polarity.are_opposed(part, clause):
            continue
        if telling and all(clause.words.says(piece) for piece in telling):
            return True
    return False


def is_restated(known: str, statement: str) -> bool:
    """Whether the statement says the same as what is known, in its words or in other ones."""
    parts = moods.told(known)
    said = moods.told(statement)
    pairs = [(part, clause) for part in parts for clause in supporting.supporting_clauses(part, said)]
    return bool(pairs) and not any(polarity.are_opposed(part, clause) for part, clause in pairs)


def replaces(known: str, statement: str) -> bool:
    """Whether two statements are about one thing: they share a telling word or idea."""
    voice = SpokenWords([statement])
    return any(supporting.says(voice, piece) for piece in words.of(known).pieces if not piece.is_plain)


def is_in_place_of(known: str, statement: str) -> bool:
    """Whether a statement tells the same of something else: "Works in Leiden" in place of "Works in Delft"."""
    voice = SpokenWords([statement])
    return any(
        supporting.says(voice, piece) for piece in words.of(known).pieces if len(piece.text) > _SHORT or piece.is_east
    )


def is_spoken_of(known: str, heard: Heard) -> bool:
    """Whether the person states something with a telling word of what is known."""
    pieces = _telling(known)
    stated = [clause for clause in heard.clauses if not clause.moods & _NOT_STATED]
    return any(supporting.says(clause.words, piece) for clause in stated for piece in pieces)


def is_kept(known: str, text: str) -> bool:
    """Whether a text still has a sentence, in some form, and does not deny it."""
    pieces, voice = _telling(known), SpokenWords([text])
    if not pieces:
        return True
    if sum(supporting.says(voice, piece) for piece in pieces) < _KEPT * len(pieces):
        return False
    pairs = [(part, one) for part in moods.told(known) for one in supporting.supporting_clauses(part, moods.told(text))]
    return not pairs or not all(polarity.are_opposed(part, one) for part, one in pairs)


def _telling(known: str) -> Sequence[words.StatementWord]:
    pieces = words.of(known).pieces
    return [piece for piece in pieces if not piece.is_plain] or pieces


def _ends(parts: Sequence[Clause], clause: Clause, embed: Embed | None, heard: Heard) -> bool:
    """Whether the clause is about what is known, and says that it is over."""
    if clause.moods & (_NOT_STATED | _NOT_OVER) or _ALMOST.search(clause.folded):
        return False
    if clause.others and not any(slips.is_told_of_others([part], clause) for part in parts):
        return False
    about = [
        part for part in parts if supporting.supporting_clauses(part, [clause]) or polarity.stands_for(part, clause)
    ]
    if any(_is_ended(part, clause) or _ends_beside(part, clause, heard) for part in about):
        return True
    return not about and any(_is_ended(part, clause) and _is_near(part, clause, embed) for part in parts)


def _ends_beside(part: Clause, clause: Clause, heard: Heard) -> bool:
    """Whether it only names what another clause of its sentence ends: "We split up, my partner and I"."""
    if clause.says("verb") or clause.others or arrangements.is_east(clause.text):
        return False
    return any(
        one.sentence == clause.sentence
        and one is not clause
        and one.says("ended")
        and not (one.others or one.moods or part.says("ended"))
        for one in heard.clauses
    )


def _is_ended(part: Clause, clause: Clause) -> bool:
    return polarity.are_opposed(part, clause) or (clause.says("ended") and not part.says("ended"))


def _is_near(part: Clause, clause: Clause, embed: Embed | None) -> bool:
    vectors = embed([part.text, clause.text]) if embed else None
    return vectors is not None and float(np.dot(vectors[0], vectors[1])) >= _NEAR
