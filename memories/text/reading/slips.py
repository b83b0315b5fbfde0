"""Whether a statement about a person is what the person said, or a slip of the model that read it; pure.

support.py asks whose words a statement is made of. This asks what was said with them: a statement whose words the
person only asked, supposed, wished, quoted, denied, said of somebody else or put together otherwise is not what they
said. The sentences that support it are those that have most of its words. What the statement says itself ("wants to
move", "has a sister who") is no slip.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from memories.scoring.terms import fold
from memories.text import quantities, sentences, words
from memories.text.reading import arrangements, moods
from memories.text.reading.moods import DOUBTFUL, QUESTION, QUOTED, SUPPOSED, WILL, WISHED, Clause
from memories.text.words import SpokenWords, Statement, StatementWord

# What is wrong; all wait for review alike.
OTHER_PERSON, DENIED, SWAPPED, ADDED = "other_person", "denied", "swapped", "added"

# What a shared word weighs: names and distinctive words most, the words that any text has hardly anything.
_DISTINCTIVE, _COMMON, _PLAIN, _PAIR = 3.0, 2.0, 0.6, 2.0
_SHOWN = 2_000
_PRONOUN = re.compile(
    r"\b(?:it|them|that|those|es|das|den|die|sie|ihn|lo|la|los|las|eso|le|les|l'\w+|ça|cela|en)\b|它|这个|那个|それ|これ|あれ"
)
_BRIEF = 60
_OF_IDEA = 0.8
_SHORT = 3
_FEW = 4
# Clauses with so much of the best one's share support a statement, too.
_NEARLY = 0.85
# A statement of which less is found is in other words or another language.
_FOUND = 1.5
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|in case|unless|wenn|bei|falls|si|cuando|quand|lorsque|en cas"
    r"|если|когда|se|quando)\b"
    r"|时|的话|如果|もし|とき|時|場合|たら|れば"
)
_HAS = re.compile(r"\W*(?:has|hat|tiene|a|il a|elle a|有|请了|雇了)(?:\s|(?=[\u3400-\u9fff]))", re.IGNORECASE)
# How a clause about something else begins.
_SUBJECT = re.compile(
    r"\W*(?:(?:and|but|so|und|aber|y|pero|et|mais)\s)?"
    r"(?:(?:the|an?|this|that|these|those|every|each|some|another|der|die|das|eine?|dieser?|dieses|jeder?|el|la|los|las|una?|este|esta|ese|esa|le|les|ce|cette|une?)\s|l')"
)
_DATED = re.compile(r"\d|\b(?:on|until|by)\b|年|月|日")


@dataclass(frozen=True)
class Heard:
    """What the person says in a batch, and what they or an operator stated before; `questions` are those of an
    assistant that a turn answers, by the turn's place."""

    turns: Sequence[str]
    known: Sequence[str] = ()
    questions: dict[int, str] = field(default_factory=dict)

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        found = [clause for turn in self.turns for clause in moods.spoken(turn)]
        answers = [moods.answered(asked, self.turns[place]) for place, asked in self.questions.items()]
        return (*found, *answers)

    @cached_property
    def words(self) -> SpokenWords:
        return SpokenWords([*self.turns, *self.questions.values(), *self.known])

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Those of its clauses."""
        return tuple(dict.fromkeys(name for clause in self.clauses for name in clause.languages))

    def languages_with(self, statement: str) -> tuple[str, ...]:
        """Those that it and a statement show together: either may be too short to show one."""
        return moods.languages_of(f"{self.words.text[:_SHOWN]} {statement}", self.languages)


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
    return arrangements.swapped(parts, heard.clauses) or _added(statement, heard) if parts else ""


def _slip_of(part: Clause, parts: Sequence[Clause], heard: Heard, *, by_words: bool) -> str:
    supporting = supporting_clauses(part, heard.clauses)
    if not supporting and len(parts) == 1 and not by_words:
        # In other words, or in another language: what all of it is, is what counts.
        supporting = [clause for clause in heard.clauses if QUOTED not in clause.moods] or list(heard.clauses)
        if len(supporting) > 1:
            return _shared_fault([_slip_in_mood(part, parts, clause) for clause in supporting])
    found = [(clause, _slip_between(part, parts, clause, heard)) for clause in supporting]
    return _shared_fault([one for _, one in found]) or _parted(part, found)


def _parted(part: Clause, found: Sequence[tuple[Clause, str]]) -> str:
    """DENIED if a telling word is only said of what is left out: "with sugar" of "without sugar"."""
    for piece in words.of(part.text).pieces:
        saying = [(clause, one) for clause, one in found if not piece.is_plain and says(clause.words, piece)]
        if saying and all(clause.apart and one for clause, one in saying):
            return DENIED
    return ""


def _shared_fault(found: Sequence[str]) -> str:
    """The first of the faults if there are only faults."""
    return found[0] if found and all(found) else ""


def supporting_clauses(part: Clause, clauses: Iterable[Clause]) -> list[Clause]:
    """The clauses that have most of the part's words; none if they have too little."""
    clauses = list(clauses)
    voice = SpokenWords([clause.text for clause in clauses])
    shares = [(share(part, clause, voice), clause) for clause in clauses]
    best = max((found for found, _ in shares), default=0.0)
    if best < _FOUND:
        return []
    found = [clause for much, clause in shares if much >= _NEARLY * best]
    rest = [clause for much, clause in shares if much < _NEARLY * best]
    return [*found, *_completing(part, found, rest)]


def _completing(part: Clause, found: Sequence[Clause], others: Iterable[Clause]) -> list[Clause]:
    """Those with a telling word, a number or a date of the part that the best ones lack."""
    telling = [piece for piece in words.of(part.text).pieces if piece.is_distinctive]
    missing = [piece for piece in telling if not any(says(clause.words, piece) for clause in found)]
    counted = _counted(part) - frozenset().union(*map(_counted, found))
    return [
        clause for clause in others if any(says(clause.words, piece) for piece in missing) or counted & _counted(clause)
    ]


def _counted(clause: Clause) -> frozenset[str]:
    """Its numbers, and the days of its dates."""
    found = quantities.of(clause.text)
    return found.numbers | {f"{one.month}/{one.day}" for one in found.dates}


def share(part: Clause, clause: Clause, voice: SpokenWords | None = None) -> float:
    """How much of the part the clause says; `voice` says all that is compared."""
    statement = words.of(part.text)
    telling = [piece for piece in statement.pieces if not piece.is_plain]
    pieces = [(piece, _weight(piece, alone=not telling)) for piece in statement.pieces]
    if voice is not None:
        pieces = [(piece, weight) for piece, weight in pieces if weight and says(voice, piece)]
    found = sum(weight * _much(clause.words, piece) for piece, weight in pieces if weight)
    found += sum(_DISTINCTIVE for code in statement.codes if clause.words.has_code(code))
    numbers = statement.quantities.numbers & quantities.of(clause.text).numbers
    return max(found + _COMMON * len(numbers), _share_of_characters(part, clause))


def _much(voice: SpokenWords, piece: StatementWord) -> float:
    """How much of a word a side says: its idea alone is less than the word."""
    if voice.says(piece):
        return 1.0
    return _OF_IDEA if says(voice, piece) else 0.0


def _share_of_characters(part: Clause, clause: Clause) -> float:
    """Of a few Chinese or Japanese characters without a pair in common: whether half of them are said."""
    telling = arrangements.characters(part.text)
    said = sum(one in clause.text for one in telling)
    return _FOUND if 0 < len(telling) <= _FEW and 2 * said >= len(telling) and said >= min(2, len(telling)) else 0.0


def says(voice: SpokenWords, piece: StatementWord) -> bool:
    """Whether a side has the word, its idea, or another spelling of a name."""
    if voice.says(piece) or (piece.is_name and voice.resembles(piece.text)):
        return True
    if len(piece.text) > _FEW and not piece.is_name and not piece.is_plain and voice.begins_like(piece.text):
        return True
    return not piece.is_plain and not words.concepts_of(piece.text).isdisjoint(voice.concepts)


def _weight(piece: StatementWord, *, alone: bool) -> float:
    if piece.is_east:
        return _PAIR if piece.is_pair else 1.0
    if piece.is_distinctive:
        return _DISTINCTIVE
    if piece.is_common:
        return _COMMON
    if len(piece.text) <= _SHORT:
        return 0.0
    return _COMMON if alone else _PLAIN


def _slip_between(part: Clause, parts: Sequence[Clause], said: Clause, heard: Heard) -> str:
    return _slip_in_mood(part, parts, said) or (DENIED if are_opposed(part, said, heard.clauses) else "")


def _slip_in_mood(part: Clause, parts: Sequence[Clause], said: Clause) -> str:
    """What makes the clause no statement of this about the person."""
    told = frozenset(mood for one in parts for mood in one.moods)
    is_conditional = SUPPOSED in told or any(_CONDITION.search(one.folded) for one in parts)
    # What the statement says itself is no fault of it.
    is_told = {
        QUOTED: False,
        QUESTION: _wonders(parts),
        SUPPOSED: is_conditional,
        DOUBTFUL: bool(told & {DOUBTFUL, WISHED, SUPPOSED}) or _wonders(parts),
        WISHED: bool(told & {DOUBTFUL, WISHED, WILL, SUPPOSED}) or _tells_wish(parts),
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
    if said.others or part.others or said.says("me") or said.says("at_me"):
        return False
    verb = re.match(r"[^\W\d_]{2,}", part.folded)
    if not verb:
        return False
    named = re.match(rf"\W*([A-ZÀ-Þ][\w-]+)\s(?={verb[0]}\b)", said.text)
    if named and not any(moods.is_everyday(fold(named[1]), name) for name in said.languages):
        return not part.words.says(StatementWord(fold(named[1]), words.stems(fold(named[1]))))
    subject = _SUBJECT.match(said.folded)
    found = subject and re.compile(rf"(?:[\w'-]+\s){{1,7}}?(?={verb[0]}\b)").match(said.folded, subject.end())
    if not found:
        return False
    named = [piece for piece in words.of(found[0]).pieces if len(piece.text) > _SHORT]
    return bool(named) and not any(says(part.words, piece) for piece in named)


def _wonders(parts: Sequence[Clause]) -> bool:
    return any(one.says("wonders") for one in parts)


def _tells_wish(parts: Sequence[Clause]) -> bool:
    return any(one.says("preferred") or one.says("future") or one.says("wonders") for one in parts)


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
    if others.lower().endswith("they") and not any(_has_predicate(one, said) for one in parts):
        # Whoever they are, they did something: "They knocked 15% off the sofa".
        return True
    named = [piece for piece in words.of(others).pieces if not piece.is_plain]
    return any(one.words.says(piece) for one in parts for piece in named)


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


def _denies(clause: Clause, other: Clause) -> bool:
    """Whether the clause denies, beside what the other one says."""
    by_meaning = clause.against or stands_for(clause, other)
    if clause.over and not other.over:
        # What tells of the past says the same without the word.
        by_meaning = by_meaning or not other.is_past
    return (clause.denied != by_meaning) != arrangements.has_opposite(clause.folded, other.folded)


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
    return _has_predicate(part, said)


def _has_predicate(part: Clause, said: Clause) -> bool:
    """Whether the clause has the part's verb; where that is "is" or "has", all of its telling words."""
    bare = part.without("denies")
    if arrangements.is_east(bare):
        telling = arrangements.characters(bare)
        return bool(telling) and all(one in said.folded for one in telling)
    verbs = [word for word in re.findall(r"[^\W\d_]{2,}", bare.replace("'", " "))]
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
        and (_has_predicate(part, one) or _shares_character(part, one))
    )


def _shares_character(part: Clause, one: Clause) -> bool:
    return any(character in one.folded for character in arrangements.characters(part.without("denies")))


def _is_other_matter(part: Clause, said: Clause) -> bool:
    """Whether a "not" in what was said may leave the part as it is: it tells trouble, or the "not" is about something
    else of what is the person's."""
    if part.says("trouble") or any(one.word.search(part.folded) for one in arrangements.STANDING):
        return not said.says("trouble") and not any(
            one.word.search(part.folded) and one.word.search(said.folded) for one in arrangements.STANDING
        )
    if said.against or said.over or said.says("ended") or not said.denied:
        return False
    return _only_names(part, said)


def _only_names(part: Clause, said: Clause) -> bool:
    """Whether the clause has the part's telling words only as what is the person's: "my hearing aids can't cope"."""
    telling = [piece for piece in words.of(part.text).pieces if not piece.is_plain and says(said.words, piece)]
    owned = " ".join(found[0] for found in said.own_things())
    voice = SpokenWords([owned])
    return bool(owned) and bool(telling) and all(says(voice, piece) for piece in telling)


def stands_for(clause: Clause, other: Clause) -> bool:
    """Whether the clause denies by one word what the other one speaks of: "vegetarian" and "I eat meat"."""
    return any(
        one.word.search(clause.folded)
        and not one.about.search(clause.folded)
        and not one.word.search(other.folded)
        and one.about.search(other.folded)
        for one in arrangements.STANDING
    )


def _added(statement: str, heard: Heard) -> str:
    """A detail beside what was said: somebody whom nobody named, or one thing more than the person lists."""
    if _names_new_kin(statement, heard):
        return ADDED
    items = list(arrangements.items(statement))
    heard_text = heard.words.text
    if len(items) < 2:
        return ADDED if arrangements.other_relative(statement, heard_text) and not _lists_more(items, heard) else ""
    supported = {
        item: False if arrangements.other_relative(item, heard_text) else _is_supported(item, heard) for item in items
    }
    if False not in supported.values() or True not in supported.values():
        return ""
    return "" if _has_more(items, supported, heard) else ADDED


def _lists_more(items: Sequence[str], heard: Heard) -> bool:
    return _has_more(items, dict.fromkeys(items, True), heard)


def _has_more(items: Sequence[str], supported: Mapping[str, bool | None], heard: Heard) -> bool:
    """Whether the person lists something that none of the items repeats: one may say it in other words."""
    voices = [SpokenWords([item]) for item in items if supported[item]]
    for turn in heard.turns:
        for start, end in sentences.spans(turn):
            listed = [_telling(words.of(one).pieces) for one in arrangements.items(turn[start:end])]
            told = [any(says(voice, piece) for voice in voices for piece in pieces) for pieces in listed]
            if any(told) and any(pieces and not one for one, pieces in zip(told, listed, strict=True)):
                return True
    return False


def _telling(pieces: Iterable[StatementWord]) -> list[StatementWord]:
    return [piece for piece in pieces if not piece.is_plain]


def _names_new_kin(statement: str, heard: Heard) -> bool:
    found = [word for word in moods.kin_in(statement) if not moods.is_trade(word)]
    if not found or any(moods.kin_in(one) for one in [*heard.turns, *heard.known, *heard.questions.values()]):
        return False
    pieces = [piece for word in found for piece in words.of(word).pieces]
    return bool(pieces) and not any(says(heard.words, piece) for piece in pieces)


def _is_supported(item: str, heard: Heard) -> bool | None:
    """Whether the person has said a part of a list; None if it says nothing of its own."""
    statement = words.of(item)
    if any(heard.words.has_code(code) for code in statement.codes):
        return True
    return _is_supported_east(item, statement, heard) if arrangements.is_east(item) else _is_spelled(item, heard)


def _is_supported_east(item: str, statement: Statement, heard: Heard) -> bool | None:
    rest = arrangements.unsaid(item, heard.words.text)
    if rest and not _are_people(item):
        return bool(words.concepts_of(rest) & heard.words.concepts)
    return True if any(says(heard.words, piece) for piece in statement.pieces) else None


def _is_spelled(item: str, heard: Heard) -> bool | None:
    statement = words.of(item)
    full = [piece for piece in statement.pieces if len(piece.text) > _SHORT]
    dated = [word for word in words.number_words(item) if len(word) > _SHORT and word in heard.words.words]
    telling = _telling(statement.pieces)
    if dated or any(says(heard.words, piece) or _begins_alike(piece, heard) for piece in telling):
        return True
    if statement.codes or statement.quantities.numbers or _are_people(item):
        return None
    told = [piece for piece in full[1:] if heard.words.says(piece)]
    if len(told) > 1 or any(not piece.is_plain for piece in told):
        # Its verb may be another one.
        return True
    if any(piece.is_distinctive for piece in statement.pieces) or moods.kin_in(item):
        return False
    if len(full) < _SHORT and any(_tells(piece, item, heard) for piece in full):
        return False
    if any(heard.words.says(piece) for piece in full):
        return True
    # "… and hates cities": plain words, and a verb that says something of its own.
    return False if len(full) > 1 and any(one.against or one.says("verb") for one in moods.told(item)) else None


def _tells(piece: StatementWord, item: str, heard: Heard) -> bool:
    """Whether nobody said a word that is no plain one of their language, though it may be one of another."""
    languages = [name for name in moods.languages_of(item, heard.languages) if name in heard.languages]
    return len(languages) == 1 and not (says(heard.words, piece) or moods.is_everyday(piece.text, languages[0]))


def _are_people(item: str) -> bool:
    """Whether it names people of the person's, whom one calls by many words; not somebody whose trade it is."""
    found = moods.kin_in(item)
    if not found or any(map(moods.is_animal, found)):
        return False
    return not (_HAS.match(item) and all(map(moods.is_trade, found)))


def _begins_alike(piece: StatementWord, heard: Heard) -> bool:
    """Short verbs change their ends: "male" and "malt"."""
    return heard.words.begins_like(piece.text)
