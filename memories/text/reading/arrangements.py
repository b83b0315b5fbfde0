"""How the parts of a statement are put together: from where to where, what is preferred to what, how much of which
unit, at which time of the day, and what belongs to whom; pure.

Only what both sides say is compared. data/arrangements.toml has the words.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from memories.scoring.terms import fold
from memories.text import quantities, words
from memories.text.reading import moods
from memories.text.reading.moods import Clause
from memories.text.words import SpokenWords

SWAPPED = "swapped"
_FOLDER = Path(__file__).parent / "data"
_DATA = tomllib.loads((_FOLDER / "arrangements.toml").read_text(encoding="utf-8"))
_MOODS = tomllib.loads((_FOLDER / "moods.toml").read_text(encoding="utf-8"))
_EAST = re.compile(r"[\u3041-\u30ff\u3400-\u9fff]")
_KANA = re.compile(r"[\u3041-\u30ff]")
_NUMBER = r"(?P<n>\d+(?:[.,:]\d+)?)"
_MOST_CLAUSES = 200
_SHORT = 3


@dataclass(frozen=True)
class Standing:
    """A word that denies something by itself, and what it speaks of."""

    word: re.Pattern[str]
    about: re.Pattern[str]


def _compiled(text: str) -> re.Pattern[str]:
    """Words as wholes, where they are written apart."""
    parts = [rf"\b(?:{one})\b" if not _EAST.search(one) else one for one in _alternatives(text)]
    return re.compile("|".join(parts))


def _alternatives(text: str) -> Iterator[str]:
    """What the outermost "|" part."""
    depth, start = 0, 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and not depth:
            yield text[start:place]
            start = place + 1
    yield text[start:]


STANDING = tuple(Standing(_compiled(one["word"]), _compiled(one["about"])) for one in _MOODS["stands_for"])
_OPPOSITES = tuple(
    tuple(re.compile(side) for side in line.split(" :: "))
    for line in _MOODS["opposites"]["pairs"].split("\n")
    if line.strip()
)
_COUNT = r"(\d[\d.,]*|[〇零一二三四五六七八九十百千万两]+|[a-zà-ÿа-я]+(?:-[a-zà-ÿ]+)?)"
_UNITS = {
    kind: {unit: re.compile(pattern.replace("{n}", _COUNT)) for unit, pattern in table.items()}
    for kind, table in _DATA["units"].items()
}
_ORDERS = tuple(re.compile(line) for line in _DATA["orders"]["patterns"].split("\n") if line.strip())
_PREFERRED = tuple(re.compile(line) for line in _DATA["orders"]["preferred"].split("\n") if line.strip())
_HALVES = {half: re.compile(pattern) for half, pattern in _DATA["day"].items()}
_LISTED = re.compile(_DATA["lists"]["splits"])
_EAST_LISTED = re.compile(_DATA["lists"]["east"])
_THAN = re.compile(_DATA["orders"]["than"])
_RELATIVE = re.compile(_DATA["anchors"]["relative"])
_LIVES = re.compile(_DATA["orders"]["lives"])
_LITTLE = frozenset(_DATA["lists"]["little"])
_HELPING = frozenset(_DATA["lists"]["helping"].split())
_FUNCTION = re.compile(_DATA["lists"]["function"])


def swapped(parts: Sequence[Clause], clauses: Sequence[Clause]) -> str:
    """SWAPPED if the statement puts together otherwise what the person said; empty if not."""
    told, said = [one.text for one in parts], [one.text for one in clauses[:_MOST_CLAUSES]]
    whole_told, whole_said = fold_all(told), fold_all(said)
    if _other_unit(whole_told, whole_said) or _other_half(whole_told, whole_said):
        return SWAPPED
    if _other_member(whole_told, whole_said) or _other_way_round(parts, clauses[:_MOST_CLAUSES]):
        return SWAPPED
    is_where = not any(one.denied or one.over or one.against for one in parts)
    if _turned(whole_told, whole_said, is_where=is_where) or _exchanged(told, said):
        return SWAPPED
    return ""


def _other_member(told: str, said: str) -> bool:
    """Whether they name weekdays or months, and none in common; a day that follows from another one may be any."""
    if _RELATIVE.search(said):
        return False
    for table in (_DATA["anchors"]["same"], _DATA["anchors"]["months"]):
        ours, theirs = ({name for name, one in table.items() if re.search(one, text)} for text in (told, said))
        if ours and theirs and ours.isdisjoint(theirs):
            return True
    return False


def other_relative(told: str, said: str) -> bool:
    """Whether the statement names a member of a family that nobody named, where others of it were: a son beside a
    daughter, a dog beside a cat."""
    ours, theirs = _relatives(told), _relatives(said)
    return any(
        theirs[family] and named - theirs[family] - {"any"} and "any" not in theirs[family]
        for family, named in ours.items()
    )


@lru_cache(maxsize=64)
def _relatives(text: str) -> dict[str, frozenset[str]]:
    """The members of each family that a text names."""
    folded = fold_all([text])
    return {
        family: frozenset(name for name, one in members.items() if re.search(one, folded))
        for family, members in _DATA["families"].items()
    }


def _other_way_round(parts: Sequence[Clause], clauses: Sequence[Clause]) -> bool:
    """Whether somebody who is more than the person has become less: "My brother is taller than me"."""
    for clause in clauses:
        if not clause.others or not moods.compares_with_me(clause):
            continue
        for part in parts:
            found = None if part.others else _THAN.search(part.folded)
            if found and _alike(next(one for one in found.groups() if one), moods.whose_own(clause.others)):
                return not (has_opposite(part.folded, clause.folded) or has_opposite(clause.folded, part.folded))
    return False


def fold_all(texts: Iterable[str]) -> str:
    return " ; ".join(quantities.normalised(text).lower() for text in texts)


def has_opposite(one: str, other: str) -> bool:
    """Whether `one` has the first word of a pair of opposites, `other` the second, and neither has both.

    Only one of the two sides counts it, so that a pair is counted once.
    """
    count = 0
    for left, right in _OPPOSITES:
        first, second = (bool(left.search(one)), bool(right.search(one)))
        third, fourth = (bool(left.search(other)), bool(right.search(other)))
        if first and not second and fourth and not third:
            count += 1
    return count % 2 == 1


def _counted(text: str) -> dict[str, dict[str, set[str]]]:
    """The units of each number, by kind of unit."""
    found: dict[str, dict[str, set[str]]] = {}
    for kind, table in _UNITS.items():
        for unit, pattern in table.items():
            for match in pattern.finditer(text):
                number = next(one for one in match.groups() if one)
                for value in quantities.of(number).numbers:
                    found.setdefault(kind, {}).setdefault(value, set()).add(unit)
    return found


def _other_unit(told: str, said: str) -> bool:
    ours, theirs = _counted(told), _counted(said)
    return any(
        value in theirs.get(kind, {}) and units.isdisjoint(theirs[kind][value])
        for kind, values in ours.items()
        for value, units in values.items()
    )


def _halves(text: str) -> dict[str, set[str]]:
    """In which half of the day an hour is said to be."""
    found: dict[str, set[str]] = {}
    for half, pattern in _HALVES.items():
        for match in pattern.finditer(text):
            number = next(one for one in match.groups() if one)
            for value in quantities.of(number.replace(".", ":")).numbers:
                if value.isdigit() and int(value) <= 24:
                    hour = int(value)
                    found.setdefault(str(hour - 12 if hour > 12 else hour), set()).add(half)
    for match in re.finditer(r"(?<!\d)(1[3-9]|2[0-3])[:.h时時]\d{0,2}", text):
        found.setdefault(str(int(match[1]) - 12), set()).add("pm")
    return found


def _other_half(told: str, said: str) -> bool:
    ours, theirs = _halves(told), _halves(said)
    return any(hour in theirs and halves.isdisjoint(theirs[hour]) for hour, halves in ours.items())


def _pairs(text: str) -> Iterator[tuple[str, str, str]]:
    """(kind, first, second): from first to second, first rather than second."""
    for kind, patterns in (("order", _ORDERS), ("preferred", _PREFERRED)):
        for pattern in patterns:
            for match in pattern.finditer(text):
                yield kind, match["a"].strip(), match["b"].strip()


def _turned(told: str, said: str, *, is_where: bool) -> bool:
    """Whether the two parts of a pair are turned round, or what was left is told as the place where somebody is."""
    theirs = list(_pairs(said))
    for kind, first, second in _pairs(told):
        for other, begin, end in theirs:
            if kind == other and _alike(first, end) and _alike(second, begin) and not _alike(first, begin):
                return True
    for kind, begin, end in theirs:
        if is_where and kind == "order" and (lives := _LIVES.search(told)):
            place = next(one for one in lives.groups() if one)
            if _alike(place, begin) and not _alike(place, end):
                return True
    return False


def _alike(one: str, other: str) -> bool:
    """Whether they have a telling word in common."""
    if _EAST.search(one):
        shorter, longer = sorted((one, other), key=len)
        return bool(shorter) and (shorter in longer or shorter[:2] in longer)
    voice = SpokenWords([other])
    pieces = [piece for piece in words.of(one).pieces if not piece.is_plain or len(piece.text) > 3]
    if not pieces and not words.of(one).quantities.numbers:
        return bool(one) and fold(one) in fold(other)
    numbers = words.of(one).quantities.numbers
    if numbers:
        return bool(numbers & quantities.of(other).numbers)
    return any(voice.says(piece) for piece in pieces)


_NAMED = re.compile(
    r"\b(?:named|called|is|heißt|namens|llama|llamad[oa]|se llama|s'appelle|appelée?|nommée?)\s([A-ZÀ-Þ][\w-]{1,20})"
)
# What can change places: weekdays, parts of the day, numbers, names, relations.
_ONE = re.compile(r"\b(?:one|une?|una|uno|eine?n?|1)\b|一")
_DAYS = re.compile(_DATA["anchors"]["days"])


def _anchors(text: str) -> dict[str, set[str]]:
    """The things of each kind that a clause names."""
    found: dict[str, set[str]] = {}
    found["day"] = {_day(match[0]) for match in _DAYS.finditer(quantities.normalised(text).lower())}
    statement = words.of(text)
    found["number"] = {number for number in statement.quantities.numbers if number != "1"}
    found["name"] = {piece.text for piece in statement.pieces if piece.is_name}
    found["name"] |= {
        one.lower()
        for one in re.findall(
            r"(?:^|(?<=[\s、,]))[A-Z][\w-]{1,20}(?=\s(?:(?:is|ist|es|est|e)\s|(?:my|mein\w*|mi|mon|ma)\s))", text
        )
    }
    found["name"] |= {one.lower() for one in _NAMED.findall(text)}
    found["name"] = {one for one in found["name"] if not _DAYS.fullmatch(one)}
    found["kin"] = {_member(word) for word in moods.kin_in(text)}
    folded = quantities.normalised(text).lower()
    found["part"] = {name for name, one in _DATA["anchors"]["parts"].items() if re.search(one, folded)}
    if found["part"] and _ONE.search(folded):
        found["number"].add("1")
    pieces = [piece.text for piece in statement.pieces if not piece.is_plain or len(piece.text) > _SHORT]
    kin = set(moods.kin_in(text))
    found["other"] = {one for one in pieces if one not in kin and not _DAYS.fullmatch(one)}
    return found


def _member(kin: str) -> str:
    """What somebody is in the family, by whatever word."""
    members = ((name, one) for family in _DATA["families"].values() for name, one in family.items() if name != "any")
    return next((name for name, one in members if re.search(one, kin)), kin)


def _day(word: str) -> str:
    table: dict[str, str] = _DATA["anchors"]["same"]
    for name, pattern in table.items():
        if re.fullmatch(pattern, word):
            return name
    return word


def _exchanged(told: Sequence[str], said: Sequence[str]) -> bool:
    """Whether two things have changed places: of what was said of one the statement says what was said of the other."""
    theirs = [_anchors(part) for text in said for part in items(text)]
    for text in (part for one in told for part in items(one)):
        ours = _anchors(text)
        for kind in ("day", "number", "name", "kin", "part"):
            for beside in ("day", "number", "name", "kin", "part", "other"):
                if beside == kind or {kind, beside} == {"name", "other"}:
                    continue
                pairs = [(one, other) for one in ours[kind] for other in ours[beside]]
                if any(
                    _is_exchanged(kind, one, beside, other, theirs)
                    and not _goes_with((kind, one), (beside, other), ours, theirs)
                    for one, other in pairs
                ):
                    return True
    return False


def _goes_with(
    first: tuple[str, str], second: tuple[str, str], ours: dict[str, set[str]], clauses: Sequence[dict[str, set[str]]]
) -> bool:
    """Whether the statement has more of what was said of `one`, and none of what was said of `other` alone."""
    (kind, one), (beside, other) = first, second
    rest = ours["other"] - {one, other}
    of_one = {word for clause in clauses if one in clause[kind] for word in clause["other"]}
    of_other = {word for clause in clauses if other in clause[beside] for word in clause["other"]}
    return bool(rest & (of_one - of_other)) and not rest & (of_other - of_one)


def _is_exchanged(kind: str, one: str, beside: str, other: str, clauses: Sequence[dict[str, set[str]]]) -> bool:
    """`one` is said beside another thing, `other` beside another one, and the two never together."""
    with_one = [clause for clause in clauses if one in clause[kind]]
    with_other = [clause for clause in clauses if other in clause[beside]]
    if not with_one or not with_other or any(one in clause[kind] for clause in with_other):
        return False
    return all(clause[beside] - {other} for clause in with_one) and all(clause[kind] - {one} for clause in with_other)


def items(statement: str) -> Iterator[str]:
    """The parts of a list, or of what is told with "and"."""
    text = quantities.normalised(statement)
    splits = _EAST_LISTED if _EAST.search(text) else _LISTED
    yield from (one for one in (part.strip(" .。,，()（）") for part in splits.split(text)) if one)


def is_east(text: str) -> bool:
    return _EAST.search(text) is not None


def characters(text: str) -> set[str]:
    """The Chinese and Japanese characters of a text that tell something."""
    return set(re.findall(r"[\u3400-\u9fff]", words.without_plain(text))) - _LITTLE


def is_helping(word: str) -> bool:
    """Whether it only helps a verb: an article, a pronoun, "has", "is", "can"."""
    return word in _HELPING


def unsaid(item: str, said: str) -> str:
    """The longest run of characters of a part of a list of which none was said; empty if it is too short."""
    rest = words.without_plain(_FUNCTION.sub("", item))
    # Beside kana a character is no word of its own.
    little = frozenset() if _KANA.search(item) else _LITTLE
    runs = re.findall(
        r"[\u30a1-\u30ff\u3400-\u9fff]+", "".join(" " if fold(one) in said or one in little else one for one in rest)
    )
    # Words of a Japanese list that are one character, or none.
    spelled = re.match(r"[ぁ-ん]{3,8}(?=を)|[\u3400-\u9fff](?=[のをがには])", item)
    if spelled and spelled[0] not in said:
        return spelled[0]
    head = max(runs, key=len, default="")
    # Another one of a kind that was said: 法语 beside 英语.
    if re.fullmatch(r"[\u3400-\u9fff]{2,3}", rest) and len(head) == len(rest) - 1 and rest.startswith(head):
        return rest
    return head if len(head) > 1 else ""
