"""Whether a sentence repeats, word after word, what one sentence of a memory says; pure.

The same words in another order, or with others left out between them, say another thing: "Tom's mother is a doctor" has
all words of "Tom is a doctor". So of a memory's sentence only a run of words may be taken, from where something begins
to where it may end; between them only words that change nothing may be missing.
"""

import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from memories.scoring.terms import fold
from memories.text import quantities, sentences, words

# The person, by whatever word; where a part ends.
PERSON, END, _COLON = "§", ",", ":"
_CLOSES = " \n\"'”’»」』)）!！"
# In which voice a text has the person: their own, that of somebody who speaks to them, or of them.
OWN, TO, ABOUT = "own", "to", "about"
# The answer itself, which may speak to them in English or Chinese: other words for that mean more ("du").
_ANSWER = "answer"
_YOU = frozenset(["you", "your", "yours"])
_THEIRS = frozenset(["they", "them", "their", "theirs"])
_DATA = tomllib.loads((Path(__file__).parent / "data" / "in_order.toml").read_text(encoding="utf-8"))


def _listed(*names: str) -> frozenset[str]:
    return frozenset(fold(word) for name in names for word in _DATA[name].split())


_ARTICLES, _OWN, _SPOKEN_TO = _listed("articles"), _listed("own"), _listed("spoken_to")
_IDLE, _JOINS, _WHEN, _AFTER, _UNLESS = map(_listed, ("idle", "joins", "when", "after", "unless"))
_TURNS, _KIN = _listed("others", "tells"), _listed("kin")
_GOVERNS, _SWEEPING, _GOES_ON, _LEADS = map(_listed, ("governs", "sweeping", "goes_on", "leads"))
_FIXED = _listed("fixed", "joins", "unless", "others", "idle")
_SAME_FORM = dict(one.split("=") for one in _DATA["same"].split())
_ABOUT = re.compile(
    r"\b(?:(?:the|der|die|dem|den|des|el|la|il|lo|o|a)\s+|l['’])?(?:users?|nutzer(?:in|s)?|utilisat\w+|utente|usu[aá]ri[oa])\b"
    r"(?:['’]s?)?|\bпользовател\w+|用户|ユーザー",
    re.IGNORECASE,
)
_OWN_EAST, _SPOKEN_TO_EAST = re.compile("我们|我|私|僕"), re.compile("你们|你|您|あなた")
_OPENING = _IDLE | _JOINS | _WHEN | {END}
_SHORTENED = re.compile(r"(?<=[a-z])n['’]t\b|(?<=[a-z])(?=['’](?:m|re|ve|ll|d)\b)", re.IGNORECASE)
_IRREGULAR = {"ca": "can", "wo": "will", "sha": "shall"}
_ENDINGS = frozenset(["", "e", "t", "st", "en", "et", "n", "es", "s"])
_SHORTEST_ROOT = 4
_TOKEN = re.compile(
    r"§|['’](?:s|m|re|ve|ll|d)\b|[\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff々]|\d+(?:[.,:]\d+)*"
    r"|(?:(?![\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff々])[^\W\d_])+|(?<=\s)-(?=\s)|[,;:.!?()\n、，。；：！？（）—–]"
)
_PARTS = re.compile(r"[;；，]\s*|,?\s+(?:and|but|und|aber|et|mais|y|pero)\s+|,\s+")
_MOST_TOKENS, _MOST_SENTENCES, _MOST_PARTS = 400, 200, 4


def parts_of(sentence: str) -> list[str]:
    """The parts, if there are a few, that can each be said alone; one without a subject has that of the first."""
    found = [part for part in _PARTS.split(sentence.strip(" .。!！")) if part]
    if not 1 < len(found) <= _MOST_PARTS:
        return []
    person = _ABOUT.match(found[0])
    subject = person[0] if person and not person[0].endswith(("'s", "’s")) else ""
    rest = []
    for part in found[1:]:
        if _ABOUT.match(part) or part[0].isupper():
            rest.append(part)
        elif subject:
            rest.append(f"{subject} {part}")
        else:
            return []
    return [found[0], *rest]


def sentences_of(text: str) -> list[str]:
    """The sentences of a memory that are compared: those that ask say nothing."""
    found = (text[start:end] for start, end in islice(sentences.spans(text), _MOST_SENTENCES))
    return [one for one in found if not one.rstrip(_CLOSES).endswith(("?", "？"))]


def repeats(part: str, said: str, *, voice: str, resolved: frozenset[str] = frozenset()) -> bool:
    """Whether the part is a run of what was said. `voice`: in which the person is spoken of (OWN, TO, ABOUT).
    `resolved`: words for days of which the day alone was compared."""
    ours = [one for one in _tokens(_named(part), _ANSWER) if one not in (END, _COLON, "'s")]
    ours = _without(ours, resolved)
    theirs = _tokens(_named(said) if voice == ABOUT else said, voice)
    if not theirs or len(ours) < 2:
        return False
    # "The user loves their dog."
    ways = [ours, [PERSON if one in _THEIRS else one for one in ours]] if ours[0] == PERSON else [ours]
    return any(
        any(_runs_from(way, theirs, place) for place in range(len(theirs))) or _without_person(way, theirs, voice)
        for way in ways
    )


def _named(text: str) -> str:
    return _ABOUT.sub(f" {PERSON} ", text)


def _without_person(ours: Sequence[str], theirs: Sequence[str], voice: str) -> bool:
    """Whether they leave the person out: "Lives in Lyon", "I moved to Ghent and work at the mill". What begins without
    anybody is no statement in what people say: "Write a poem"."""
    if ours[0] != PERSON:
        return False
    # Before it is what may be left out.
    first = next((place for place, word in enumerate(theirs) if word not in _OPENING), len(theirs))
    if voice == ABOUT and _runs_from(ours[1:], theirs, first):
        return True
    if first >= len(theirs) or theirs[first] != PERSON:
        return False
    joined = [place + 1 for place, word in enumerate(theirs) if word in _JOINS and place > first + 1]
    return any(not _TURNS & set(theirs[first:place]) and _runs_from(ours[1:], theirs, place) for place in joined)


def _runs_from(ours: Sequence[str], theirs: Sequence[str], start: int) -> bool:
    """Whether all of ours follow from there, with nothing but idle words between them, from a beginning to an end."""
    if start >= len(theirs) or not _same(ours[0], theirs[start]) or not _may_begin(ours, theirs, start):
        return False
    place = start + 1
    for one in ours[1:]:
        while place < len(theirs) and not _same(one, theirs[place]):
            if theirs[place] not in _IDLE and theirs[place] != END:
                return False
            place += 1
        if place >= len(theirs):
            return False
        place += 1
    # "with" of "with others" is no end.
    return _may_end(ours, theirs, place) and (ours[-1] not in _AFTER or theirs[place : place + 1] in ((), (END,)))


def _may_begin(ours: Sequence[str], theirs: Sequence[str], start: int) -> bool:
    before: list[str] = []
    for place in range(start - 1, -1, -1):
        if theirs[place] == END or theirs[place] in _JOINS:
            # "Tom said, I lie and I steal."
            if _GOVERNS & set(theirs[:place]):
                return False
            break
        before.insert(0, theirs[place])
    # "My sister Ana plays": Ana plays.
    is_called = len(before) > 1 and before[-2] == PERSON and ours[0] != PERSON
    if is_called and before[-1] in _KIN:
        before = before[:-2]
    return all(one in _IDLE or one in _WHEN or _is_number(one) for one in before)


def _may_end(ours: Sequence[str], theirs: Sequence[str], place: int) -> bool:
    rest = list(theirs[place:])
    tail = rest[: rest.index(END)] if END in rest else rest
    behind = rest[len(tail) + 1 :]
    # Also behind a comma: "everything, except mushrooms", "…, said Tom", "…, not!".
    if _UNLESS & {*tail, *behind[:1]} or _GOVERNS & set(behind[:2]) or behind[:2] in (["not"], ["not", END]):
        return False
    if tail[:2] == ["at", "all"]:
        return True
    # "No coffee after six" is not no coffee, and half of a number is another one.
    is_sweeping = tail and _SWEEPING & set(ours) and (tail[0] not in _GOES_ON or ours[-1] in _SWEEPING)
    if is_sweeping or (tail and quantities.of(ours[-1]).numbers and _is_number(tail[0])):
        return False
    return not tail or tail[0] in _AFTER or (tail[0] in _IDLE and tail[0] not in _LEADS) or _is_number(tail[0])


def _is_number(word: str) -> bool:
    return word[0].isdigit() or quantities.is_number_word(word)


def _without(ours: list[str], resolved: frozenset[str]) -> list[str]:
    """Without days that the memory names otherwise ("yesterday"), and what leads to them."""
    kept: list[str] = []
    for one in ours:
        if one in resolved:
            if kept and kept[-1] in ("on", "in", "of", "am", "is", "le", "el"):
                kept.pop()
            continue
        kept.append(one)
    return kept


def _same(ours: str, theirs: str) -> bool:
    if ours == theirs:
        return ours != END
    if PERSON in (ours, theirs) or END in (ours, theirs) or len(ours) < 2 or len(theirs) < 2:
        return False
    numbers = quantities.of(ours).numbers
    if numbers or ours[0].isdigit():
        return bool(numbers & quantities.of(theirs).numbers)
    if ours in _FIXED or theirs in _FIXED or _is_past(ours) != _is_past(theirs):
        return False
    if not words.stems(ours).isdisjoint(words.stems(theirs)):
        return True
    size = max(_SHORTEST_ROOT, max(len(ours), len(theirs)) - 2)
    return ours[:size] == theirs[:size] and ours[size:] in _ENDINGS and theirs[size:] in _ENDINGS


def _is_past(word: str) -> bool:
    return word.endswith("ed") and len(word) > _SHORTEST_ROOT


@lru_cache(maxsize=4_096)
def _tokens(text: str, voice: str) -> tuple[str, ...]:
    text = _SHORTENED.sub(lambda found: " not" if found[0] else " ", quantities.normalised(text))
    text = (_SPOKEN_TO_EAST if voice in (TO, _ANSWER) else _OWN_EAST).sub(PERSON, text)
    person = {TO: _SPOKEN_TO, _ANSWER: _YOU}.get(voice, _OWN)
    found: list[str] = []
    for one in _TOKEN.findall(text):
        if not (one == PERSON or one[0].isalnum() or one[0] in "'’"):
            # Before a colon stands who says it: nothing begins there.
            found.append(_COLON if one in ":：" else END)
            continue
        word = fold(one)
        word = _IRREGULAR.get(word, word)
        if word in person:
            found.append(PERSON)
        elif word not in _ARTICLES:
            found.append(_SAME_FORM.get(word, word))
    # "does not" and "do not" deny alike.
    return tuple(
        one
        for place, one in enumerate(found[:_MOST_TOKENS])
        if not (one in ("do", "does") and found[place + 1 : place + 2] == ["not"])
    )
