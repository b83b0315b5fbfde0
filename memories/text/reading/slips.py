"""Whether a statement about a person is what the person said, or a slip of the model that read it; pure.

support.py asks whose words a statement is made of. This asks what was said with them: a statement whose words the
person only asked, supposed, wished, quoted, denied, said of somebody else or put together otherwise is not what they
said. The sentences that support it are those that have most of its words. What the statement says itself ("wants to
move", "has a sister who") is no slip.
"""

import re
from collections.abc import Sequence

from memories.scoring.terms import fold
from memories.text import words
from memories.text.reading import arrangements, details, moods, patterns, polarity, supporting
from memories.text.reading.moods import DOUBTFUL, QUESTION, QUOTED, SUPPOSED, WILL, WISHED, Clause
from memories.text.reading.supporting import Heard
from memories.text.words import StatementWord

# What is wrong, beside a mood, arrangements.SWAPPED and details.ADDED; all wait for review alike.
OTHER_PERSON, DENIED = "other_person", "denied"
_SHORT = 3
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|in case|unless|wenn|bei|falls|si|cuando|quand|lorsque|en cas"
    r"|если|когда|se|quando)\b"
    r"|时|的话|如果|もし|とき|時|場合|たら|れば"
)
# How a clause about something else begins.
_SUBJECT = re.compile(
    r"\W*(?:(?:and|but|so|und|aber|y|pero|et|mais)\s)?"
    r"(?:(?:the|an?|this|that|these|those|every|each|some|another|der|die|das|eine?|dieser?|dieses|jeder?|el|la|los|las|una?|este|esta|ese|esa|le|les|ce|cette|une?)\s|l')"
)
_DATED = re.compile(r"\d|\b(?:on|until|by)\b|年|月|日")


def slip(statement: str, heard: Heard, *, by_words: bool = False) -> str:
    """What is wrong with the statement; empty if it is what the person said.

    `by_words`: only if they said its words. Otherwise a statement in other words, or in another language, is judged by
    all that they said.
    """
    if not heard.clauses:
        return ""
    parts = moods.told(statement, heard.languages_with(statement))
    for part in parts:
        if found := _slip_of(part, parts, heard, by_words=by_words):
            return found
    return arrangements.swapped(parts, heard.clauses) or details.added(statement, heard) if parts else ""


def _slip_of(part: Clause, parts: Sequence[Clause], heard: Heard, *, by_words: bool) -> str:
    clauses = supporting.supporting_clauses(part, heard.clauses)
    if not clauses and len(parts) == 1 and not by_words:
        # In other words, or in another language: what all of it is, is what counts.
        clauses = [clause for clause in heard.clauses if QUOTED not in clause.moods] or list(heard.clauses)
        if len(clauses) > 1:
            return _shared_fault([_slip_in_mood(part, parts, clause) for clause in clauses])
    found = [(clause, _slip_between(part, parts, clause, heard)) for clause in clauses]
    return _shared_fault([one for _, one in found]) or _parted(part, found)


def _parted(part: Clause, found: Sequence[tuple[Clause, str]]) -> str:
    """DENIED if a telling word is only said of what is left out: "with sugar" of "without sugar"."""
    for piece in words.of(part.text).pieces:
        saying = [(clause, one) for clause, one in found if not piece.is_plain and supporting.says(clause.words, piece)]
        if saying and all(clause.apart and one for clause, one in saying):
            return DENIED
    return ""


def _shared_fault(found: Sequence[str]) -> str:
    """The first of the faults if there are only faults."""
    return found[0] if found and all(found) else ""


def _slip_between(part: Clause, parts: Sequence[Clause], said: Clause, heard: Heard) -> str:
    return _slip_in_mood(part, parts, said) or (DENIED if polarity.are_opposed(part, said, heard.clauses) else "")


def _slip_in_mood(part: Clause, parts: Sequence[Clause], said: Clause) -> str:
    """What makes the clause no statement of this about the person."""
    told = frozenset(mood for clause in parts for mood in clause.moods)
    is_conditional = SUPPOSED in told or any(_CONDITION.search(clause.folded) for clause in parts)
    # What the statement says itself is no fault of it.
    is_told = {
        QUOTED: False,
        QUESTION: _wonders(parts),
        SUPPOSED: is_conditional,
        DOUBTFUL: bool(told & {DOUBTFUL, WISHED, SUPPOSED}) or _wonders(parts),
        WISHED: bool(told & {DOUBTFUL, WISHED, WILL, SUPPOSED})
        or any(clause.says(kind) for clause in parts for kind in ("preferred", "future", "wonders")),
        WILL: bool(told & {DOUBTFUL, WISHED, WILL}) or _tells_future(part, parts, said),
    }
    if (said.others and not is_told_of_others(parts, said)) or _is_of_another(part, said):
        return OTHER_PERSON
    # What somebody else wants is no wish of the person's.
    asked = said.moods - {WISHED, WILL} if said.others else said.moods
    return next((mood for mood, excused in is_told.items() if mood in asked and not excused), "")


def _is_of_another(part: Clause, said: Clause) -> bool:
    """Whether the clause has the part's verb, as the part has it, of somebody or something that the part leaves out:
    "The man upstairs keeps ferrets"."""
    if said.others or part.others or said.says("me") or said.says("at_me") or moods.begins_with_own(part):
        return False
    verb = re.match(r"[^\W\d_]{2,}", part.folded)
    if not verb:
        return False
    name = re.match(rf"\W*([A-ZÀ-Þ][\w-]+)\s(?={verb[0]}\b)", said.text)
    if name and not any(patterns.is_everyday(fold(name[1]), language) for language in said.languages):
        return not part.words.says(StatementWord(fold(name[1]), words.stems(fold(name[1]))))
    subject = _SUBJECT.match(said.folded)
    found = subject and re.compile(rf"(?:[\w'-]+\s){{1,7}}?(?={verb[0]}\b)").match(said.folded, subject.end())
    if not found:
        return False
    named = [piece for piece in words.of(found[0]).pieces if len(piece.text) > _SHORT]
    return bool(named) and not any(supporting.says(part.words, piece) for piece in named)


def _wonders(parts: Sequence[Clause]) -> bool:
    return any(one.says("wonders") for one in parts)


def _tells_future(part: Clause, parts: Sequence[Clause], said: Clause) -> bool:
    """A date, or the same verb."""
    if any(one.says("future") or one.says("wished") for one in parts):
        return True
    if any(_DATED.search(one.folded) for one in parts):
        return True
    first = re.match(r"\W*([^\W\d_]+)", part.folded)
    if not first:
        return True
    if part.languages in (("zh",), ("ja",)):
        missing = re.findall(r"[\u3400-\u9fff]", part.folded)
        return all(one in said.folded for one in missing)
    return said.words.says(StatementWord(first[1], words.stems(first[1])))


def is_told_of_others(parts: Sequence[Clause], said: Clause) -> bool:
    """Whether the statement names them, or is told of somebody else itself."""
    others = said.others
    rest = said.folded[len(others) :]
    if any(one.others or any(word not in rest for word in moods.kin_in(one.text)) for one in parts):
        return True
    if others.lower().endswith("they") and not any(polarity.has_predicate(one, said) for one in parts):
        # Whoever they are, they did something: "They knocked 15% off the sofa".
        return True
    named = [piece for piece in words.of(others).pieces if not piece.is_plain]
    return any(one.words.says(piece) for one in parts for piece in named)
