"""How the clauses of a text are meant: what is denied, asked, supposed, wished or quoted, and of whom it is said; pure.

Of what a person says (`spoken`) the quotations and the texts that are only handed over are told apart. A statement
about the person (`told`) is read in the same way, so that the two can be compared (slips.py).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from memories.text import sentences, words
from memories.text.reading import patterns
from memories.text.reading.patterns import SHARED
from memories.text.words import SpokenWords

QUOTED, QUESTION, SUPPOSED, DOUBTFUL, WISHED, WILL = "quoted", "question", "supposed", "doubtful", "wished", "will"
# What a clause without a subject of its own takes over from the clause before it.
_CARRIED = frozenset([QUESTION, SUPPOSED, DOUBTFUL, WISHED, WILL])
_OF_DENIAL = frozenset(["against", "over"])
# A quotation of so few words or characters names something: a title, a nickname.
_TITLE_WORDS, _TITLE_CHARACTERS = 3, 8
# What goes on with a list has few words.
_LONGEST_OF_LIST = 6
# A clause of so few words that supposes something supposes all that follows: "Imagine: …".
_OPENING_WORDS, _OPENING_CHARACTERS = 3, 4
# Of a longer turn its beginning and its end are read.
_READ = 10_000
# Their "not" is a part of the word: "non-smoker", 不耐受.
_SELF_DENYING = re.compile("|".join(f"(?:{one['word']})" for one in patterns.DATA["stands_for"]))
# What somebody is called: "my son Ben", 我女儿禾禾.
_CALLED = re.compile(r",?\s[A-ZÀ-Þ][\w-]+|([\u4e00-\u9fff])\1|[小阿][\u4e00-\u9fff]|[\u4e00-\u9fff]{2}(?=今年)")
_LONGEST_ANSWER = 60
# Languages that name who does something.
_NAMING = frozenset(["en", "de", "fr"])
# Before a quotation so many characters are searched for who says it.
_NEAR = 40


@dataclass(frozen=True)
class Clause:
    """A part of a sentence, as written, in lower case, and so without phrases that deny nothing (`bare`); how it is
    meant (`moods`); the words that make somebody else its subject (empty: the person is)."""

    text: str
    folded: str
    bare: str
    languages: tuple[str, ...]
    moods: frozenset[str] = frozenset()
    others: str = ""
    denied: bool = False
    against: bool = False
    over: bool = False
    # It is only parted from what is said: "without sugar", "instead of tea".
    apart: bool = False
    # The number of its sentence in the text.
    sentence: int = 0

    @property
    def is_past(self) -> bool:
        return self.says("past")

    @cached_property
    def words(self) -> SpokenWords:
        return SpokenWords([self.text])

    def without(self, kind: str) -> str:
        """The text in lower case without what matches patterns of this kind."""
        text = self.bare
        for name in self.languages:
            text = patterns.pattern(name, kind).sub(" ", text)
        return text

    def own_things(self) -> list[re.Match[str]]:
        """What it calls the person's own: "my hearing aids"."""
        return [found for name in self.languages for found in patterns.owned(name).finditer(self.folded)]

    def says(self, kind: str) -> bool:
        """Whether a pattern of this kind is found in it."""
        text = self.bare if kind in _OF_DENIAL else self.folded
        return any(patterns.pattern(name, kind).search(text) for name in self.languages)


@lru_cache(maxsize=2_048)
def spoken(text: str) -> tuple[Clause, ...]:
    """The clauses of a person's turn."""
    text = patterns.normalise_apostrophes(text if len(text) <= 2 * _READ else f"{text[:_READ]}\n{text[-_READ:]}")
    own, quoted = _parted(text)
    among = patterns.languages_of(text)
    found = [*_clauses(own, among)]
    last = found[-1].sentence + 1 if found else 0
    foreign = [
        replace(one, moods=one.moods | {QUOTED}, sentence=last) for part in quoted for one in _clauses(part, among)
    ]
    return (*found, *foreign)


@lru_cache(maxsize=4_096)
def told(statement: str, among: tuple[str, ...] = ()) -> tuple[Clause, ...]:
    """The clauses of a statement about a person, or of a person's own that is kept.

    `among`: the languages of what was said. A short statement may show none of its own.
    """
    return tuple(_clauses(patterns.normalise_apostrophes(SHARED["who"].sub("", statement, count=1)), among))


def answered(question: str, answer: str) -> Clause:
    """What a person says by answering a question in few words: "Are you vegetarian?" "Yes, since 2010"."""
    asked = patterns.normalise_apostrophes(question).rstrip("? ")
    languages = patterns.languages_of(asked)
    denies = re.match(
        r"\W*(?:no|nope|nein|non|não|нет|いいえ|いや|不是?|没有?|沒)\b|\W*(?:不|没|いいえ|いや)", answer.lower()
    )
    whole = f"{asked} {answer}"
    clause = Clause(whole, whole.lower(), whole.lower(), languages)
    return replace(clause, denied=_denies(asked.lower(), languages) != bool(denies), against=_is(clause, "against"))


def last_question(text: str) -> str:
    """The question that a turn ends with; empty if it ends otherwise."""
    spans = list(sentences.spans(text[-_READ:]))
    last = text[-_READ:][slice(*spans[-1])] if spans else ""
    return last if sentences.is_question(last) else ""


def is_short(text: str) -> bool:
    """Whether a turn may be no more than the answer to a question."""
    return len(text) <= _LONGEST_ANSWER


def whose_own(others: str) -> str:
    """Somebody without "my"."""
    return re.sub(r"\A(?:(?:my|our|mein\w*|mi|mon|ma)\s|我们?的?|(?:私|僕|俺|うち)の)", "", others, flags=re.IGNORECASE)


def compares_with_me(clause: Clause) -> bool:
    return SHARED["than_me"].search(clause.folded) is not None


def is_of_speaker(sentence: str) -> bool:
    """Whether the sentence names its speaker, or is in a language that need not."""
    folded = patterns.normalise_apostrophes(sentence).casefold()
    return SHARED["speaker"].search(folded) is not None or not _NAMING.issuperset(patterns.languages_of(folded))


def kin_in(text: str) -> list[str]:
    """The people and animals that a text names by what they are to somebody."""
    folded = patterns.normalise_apostrophes(text).lower()
    languages = patterns.languages_of(folded)
    is_east = patterns.HAN.search(folded) or patterns.KANA.search(folded)
    before, after = ("", "") if is_east else (r"(?<!\w)", r"(?!\w)")
    return [
        found[0] for name in languages for found in re.finditer(before + patterns.filled(name, "kin") + after, folded)
    ]


def is_trade(word: str) -> bool:
    """Whether it may be somebody's work."""
    return word.startswith(tuple(patterns.DATA["trades"]["words"].split("|")))


def is_animal(word: str) -> bool:
    return word.startswith(tuple(patterns.DATA["animals"]["words"].split("|")))


def mentions(text: str, kind: str) -> re.Match[str] | None:
    """The first match of a pattern of this kind, in any language."""
    folded = patterns.normalise_apostrophes(text).lower()
    found = (patterns.pattern(name, kind).search(folded) for name in patterns.languages_of(folded))
    return next((match for match in found if match), None)


def is_handed_over(heading: str) -> bool:
    """Whether a sentence that ends with a colon introduces a text that is not about the person."""
    folded = patterns.normalise_apostrophes(heading).lower()
    return any(patterns.handing(name).search(folded) for name in patterns.languages_of(folded))


def _parted(text: str) -> tuple[str, list[str]]:
    """The person's own words, and the quotations and texts that they only hand over."""
    blanked, quoted = sentences.own_words(text), []
    own = list(blanked)
    for run in re.finditer(rf"{sentences.BLANK}+", blanked):
        part = text[slice(*run.span())]
        if _is_title(part) and not _is_said(text[: run.start()], text[run.end() :]):
            own[slice(*run.span())] = part
        else:
            quoted.append(part.strip("\"'“”„‘’«»「」『』`> \n"))
    kept = "".join(own).replace(sentences.BLANK, " ")
    headings = [found for name in patterns.languages_of(kept) if (found := patterns.handing(name).search(kept.lower()))]
    starts = [found.end() for found in headings if not SHARED["of_oneself"].search(kept.lower()[: found.end()][-200:])]
    if starts and kept[min(starts) :].strip():
        quoted.append(kept[min(starts) :])
        kept = kept[: min(starts)]
    return kept, quoted


def _is_said(before: str, after: str) -> bool:
    """Whether a quotation between these texts is what somebody says."""
    return (
        SHARED["says_before"].search(before[-_NEAR:].lower()) is not None
        or SHARED["says_after"].match(after) is not None
    )


def _is_title(quotation: str) -> bool:
    inner = quotation.strip("\"'“”„‘’«»「」『』` ")
    if patterns.HAN.search(inner) or patterns.KANA.search(inner):
        return len(inner) <= _TITLE_CHARACTERS and not SHARED["said"].search(inner)
    return len(inner.split()) <= _TITLE_WORDS and not SHARED["said"].search(inner.lower())


def _clauses(text: str, among: tuple[str, ...]) -> Iterator[Clause]:
    for number, (start, end) in enumerate(sentences.spans(text)):
        yield from (replace(clause, sentence=number) for clause in _of_sentence(text[start:end], among))


def _of_sentence(sentence: str, among: tuple[str, ...]) -> list[Clause]:
    languages = patterns.languages_of(sentence.lower(), among)
    lowered = sentence.lower()
    bare = lowered
    for name in languages:
        bare = patterns.pattern(name, "neutral").sub(lambda found: " " * len(found[0]), bare)
    asked = _asked(lowered, languages)
    found: list[Clause] = []
    supposing = False
    for start, end, apart in _pieces(bare, languages):
        clause = Clause(sentence[start:end].strip(), lowered[start:end].strip(), bare[start:end], languages)
        if not clause.folded:
            continue
        clause = _read(clause, found[-1] if found else None, apart=apart)
        if supposing:
            clause = replace(clause, moods=clause.moods | {SUPPOSED})
        supposing = supposing or (SUPPOSED in clause.moods and _is_opening(clause))
        found.append(clause)
    return _with_sentence(found, asked)


def _is_opening(clause: Clause) -> bool:
    words = clause.folded.split()
    if patterns.HAN.search(clause.folded):
        return len(clause.folded) <= _OPENING_CHARACTERS
    return len(words) <= _OPENING_WORDS


def _pieces(folded: str, languages: tuple[str, ...]) -> Iterator[tuple[int, int, bool]]:
    """(start, end, whether it is parted as denied) of the clauses."""
    cuts = {_cut(found) for name in languages for found in patterns.pattern(name, "splits").finditer(folded)}
    apart = {found.start() for name in languages for found in patterns.pattern(name, "apart").finditer(folded)}
    places = sorted({0, *cuts, *apart})
    # "Coffee, I can't stand it": what is only named goes with what is said of it.
    if len(places) > 1 and places[1] not in apart and _is_topic(folded[: places[1]], languages):
        del places[1]
    for start, end in zip(places, [*places[1:], len(folded)], strict=True):
        yield start, end, start in apart


def _is_topic(folded: str, languages: tuple[str, ...]) -> bool:
    if any(patterns.pattern(name, kind).search(folded) for name in languages for kind in ("me", "supposed", "others")):
        return False
    if patterns.HAN.search(folded):
        return len(folded) <= _OPENING_CHARACTERS
    has_verb = any(patterns.pattern(name, "verb").search(f" {folded} ") for name in languages)
    return not has_verb and 0 < len(folded.split()) <= _OPENING_WORDS


def _cut(found: re.Match[str]) -> int:
    """Where the next clause begins: at the group that says so, or where the match does."""
    return next((found.start(name) for name in found.re.groupindex if found[name] is not None), found.start())


def _read(clause: Clause, before: Clause | None, *, apart: bool) -> Clause:
    moods = {kind for kind in (DOUBTFUL, WISHED, WILL) if _is(clause, kind)}
    if WISHED in moods and _is(clause, "of_you"):
        moods.discard(WISHED)
    if _is(clause, "supposed") and not _is(clause, "harmless"):
        moods.add(SUPPOSED)
    read = replace(
        clause,
        moods=frozenset(moods),
        others=_others(clause),
        apart=apart,
        denied=apart or _denies(_once(clause), clause.languages),
        against=_is(clause, "against"),
        over=_is(clause, "over"),
    )
    return _carried(read, before) if before else read


def _carried(clause: Clause, before: Clause) -> Clause:
    """What it takes over from the clause before it: a list goes on with a denial, a further verb with the subject."""
    has_subject = bool(clause.others) or _is(clause, "me")
    is_list = not _is(clause, "verb") and not _is(clause, "fresh") and not has_subject
    # "I must not eat nuts, allergy" does not deny the allergy.
    is_list = is_list and len(clause.folded.split()) <= _LONGEST_OF_LIST and not _is(clause, "trouble")
    if is_list:
        denied, against, over = (
            clause.denied or (before.denied and not before.apart),
            clause.against or before.against,
            clause.over or before.over,
        )
        clause = replace(clause, denied=denied, against=against, over=over)
    if has_subject and not SHARED["complement"].match(clause.folded):
        return clause
    moods = before.moods & _CARRIED if not SHARED["now"].search(clause.folded) else frozenset()
    return replace(clause, others=clause.others if has_subject else before.others, moods=clause.moods | moods)


def _with_sentence(found: list[Clause], asked: str) -> list[Clause]:
    """What the sentence as a whole makes of its clauses: a question, a condition."""
    if asked == QUESTION:
        asks, last = True, len(found) - 1
        asking = [place for place, clause in enumerate(found) if _begins_question(clause) or _is(clause, "hands_over")]
        for place, clause in enumerate(found):
            # What has no subject of its own goes on with the clause before it; the last one asks, if none begins so.
            if not place or clause.others or _is(clause, "me") or begins_with_own(clause):
                asks = not _states(clause, is_last=place == last)
            else:
                asks = asks or place == last
            asks = asks and not (place < min(asking, default=0) and "¿" in found[min(asking)].text)
            if asks or (place == last and not clause.apart and not asking):
                found[place] = replace(clause, moods=clause.moods | {QUESTION})
        found = [
            replace(clause, moods=clause.moods - {QUESTION}) if _presumes(clause) or _goes_on(clause, place) else clause
            for place, clause in enumerate(found)
        ]
    if any(SHARED["undecided"].search(clause.folded) for clause in found):
        found = [clause if _presumes(clause) else replace(clause, moods=clause.moods | {DOUBTFUL}) for clause in found]
    if any(SUPPOSED in clause.moods for clause in found):
        found = [
            replace(clause, moods=clause.moods | {SUPPOSED})
            if (clause.moods & {WILL, QUESTION} or SHARED["then"].match(clause.folded)) and not _presumes(clause)
            else clause
            for clause in found
        ]
        # What follows from it is not so yet; the same verb tells the same ("If you must know, I'm vegan").
        if SUPPOSED in found[0].moods and SHARED["if"].match(found[0].folded):
            found = [
                clause if SUPPOSED in clause.moods else replace(clause, moods=clause.moods | {WILL}) for clause in found
            ]
    return found


def _asked(sentence: str, languages: tuple[str, ...]) -> str:
    """QUESTION if it asks whether or what; empty if it states, or asks for agreement or for a deed."""
    if any(patterns.pattern(name, "hands_over").search(sentence) for name in languages) and not SHARED[
        "of_oneself"
    ].search(sentence):
        return QUESTION
    # People leave the mark out.
    if not re.search(r"[?？]\W*\Z", sentence) and not any(
        patterns.pattern(name, "unmarked").search(sentence) for name in languages
    ):
        return ""
    if any(patterns.pattern(name, "request").search(sentence) for name in languages):
        return ""
    for name in languages:
        if (tag := patterns.pattern(name, "tag").search(sentence)) and not patterns.pattern(name, "asking").match(
            sentence[: tag.start()]
        ):
            return ""
    return QUESTION


def _states(clause: Clause, *, is_last: bool) -> bool:
    """Whether a clause of a question states something: it has a subject and does not begin as a question."""
    if SHARED["subordinate"].match(clause.folded) or any(
        patterns.pattern(name, "asking").search(clause.folded) for name in clause.languages
    ):
        return False
    # "My knee hurts, should I …", "My sister is a nurse, is that …": the question comes after it.
    return _is(clause, "me") or (not is_last and bool(clause.others or begins_with_own(clause)))


def _begins_question(clause: Clause) -> bool:
    return any(patterns.pattern(name, "asking").match(clause.folded.lstrip(" ,;—–")) for name in clause.languages)


def begins_with_own(clause: Clause) -> bool:
    """Whether it begins with what is the person's: "my knee"."""
    return any(re.match(rf"\W*(?:{patterns.filled(name, 'mine')})", clause.folded) for name in clause.languages)


def _presumes(clause: Clause) -> bool:
    if SHARED["about_mine"].match(clause.folded) or (
        SHARED["of_anybody"].search(clause.folded) and not _is(clause, "me")
    ):
        return False
    return _is(clause, "presumes") or (_is(clause, "which") and _is(clause, "mine"))


def _goes_on(clause: Clause, place: int) -> bool:
    """Whether a clause of a question tells more of somebody: "for my sister, who is …"."""
    return place > 0 and SHARED["relative"].match(clause.folded) is not None


def _others(clause: Clause) -> str:
    """The words that make somebody else the subject."""
    for name in clause.languages:
        found = patterns.pattern(name, "others").match(clause.folded)
        if found is None:
            found = re.compile(rf"\W*(?:[^\W\d_]\w+)\s(?={patterns.filled(name, 'names')}\b)").match(clause.folded)
            if found is None or not _is_name(clause, found):
                continue
        # "My brother is taller than me" is said of the brother.
        rest = SHARED["than_me"].sub(" ", clause.folded[found.end() :])
        if patterns.pattern(name, "me").search(rest) and name != "es":
            return ""
        if patterns.pattern(name, "at_me").search(rest):
            return ""
        called = _CALLED.match(clause.text, found.end())
        return clause.text[: called.end() if called else found.end()].strip()
    return ""


def _is_name(clause: Clause, found: re.Match[str]) -> bool:
    word = clause.text[: found.end()].strip(" \"'-–—•*")
    return word[:1].isupper() and not _are_plain(word)


def _are_plain(word: str) -> bool:
    """Whether it is a word that any text has, and so no name."""
    pieces = words.of(f"x {word.lower()}").pieces
    return not pieces or all(piece.is_plain or piece.is_common for piece in pieces)


def _denies(folded: str, languages: tuple[str, ...]) -> bool:
    folded = _SELF_DENYING.sub(" ", folded)
    return any(patterns.pattern(name, "denies").search(folded) for name in languages)


def _once(clause: Clause) -> str:
    """Its text without the "not" of words that deny by their meaning: "can't stand"."""
    text = clause.bare
    for name in clause.languages:
        text = patterns.pattern(name, "against").sub(
            lambda found: " " * len(found[0]) if _denies(found[0], clause.languages) else found[0], text
        )
    return text


def _is(clause: Clause, kind: str) -> bool:
    return clause.says(kind)
