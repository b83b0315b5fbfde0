"""Extraction without a model (rules.md, 10). A request to remember something, a wish how to be answered and a plain
statement of oneself become facts in the user's own words, and what takes a known fact back ends it. Another sentence
that signals a preference, identity, goal or decision becomes a suggestion, and so does what gives the person rights or
money. Pure; patterns: data/requests.toml, plain.py, own_claims.py.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memories.extraction import own_claims, plain
from memories.facts.review_items import CLAIMS_RIGHTS, SUGGESTED
from memories.models.folding import fold
from memories.reconcile.batches import ShownFact
from memories.text import authorship, quantities, sentences, signals
from memories.text.reading import endings, moods
from memories.text.signals import Patterns
from memories.text.transcript import TranscriptTurn

EXTRACTOR = "rules-v1"

_LONGEST = 2_000
_LONGEST_SUGGESTION = 500
_LONGEST_NOUN = 200
# A turn of 1 MB may be nothing but requests.
_LONGEST_TURN = 20_000
# A longer one is a document rather than what people say of themselves.
_LONGEST_PLAIN_TURN = 1_000
_MOST = 50
_ASKED_CONFIDENCE, _ASKED_IMPORTANCE = 0.9, 0.7
# The least that the gate admits: the rules are right on 40 % of unseen text.
_SUGGESTED_CONFIDENCE, _SUGGESTED_IMPORTANCE = 0.7, 0.4
_SUGGESTING = ("identity", "preference", "goal", "decision")

_DATA = tomllib.loads((Path(__file__).parent / "data" / "requests.toml").read_text(encoding="utf-8"))
_APOSTROPHES = str.maketrans("’‘ʼ＇", "''''")
_ITEM = re.compile(r"\s{0,8}(?:[-*•·]|\d{1,2}[.)、．]|[（(]\d{1,2}[)）])[ \t]{0,4}(?P<item>[^\n]{1,2000})")
_MARK = "[redacted:"
# What says of itself that it holds for longer has no end that anybody waits for.
_LONGEST_LASTING = 3 * 366
_DAYS = {
    "day": 1,
    "week": 7,
    "fortnight": 14,
    "month": 30,
    "year": 365,
    "天": 1,
    "日": 1,
    "周": 7,
    "星期": 7,
    "礼拜": 7,
    "月": 30,
    "年": 365,
}


def _compiled(pattern: str) -> re.Pattern[str]:
    names = (
        ("{polite}", "polite"),
        ("{请}", "chinese_polite"),
        ("{datum}", "datum"),
        ("{chinese_datum}", "chinese_datum"),
    )
    for name, key in names:
        pattern = pattern.replace(name, _DATA[key])
    return re.compile(pattern, re.IGNORECASE)


_LEAD_INS = [_compiled(pattern) for pattern in _DATA["lead_in"]]
_REQUESTS = [_compiled(pattern) for pattern in _DATA["requests"]]
_NOUNS = [_compiled(pattern) for pattern in _DATA["nouns"]]
_POINTS_BACK, _POINTS_ON = _compiled(_DATA["points_back"]), _compiled(_DATA["points_on"])
_NOT_FOLLOWED_BY = [_compiled(pattern) for pattern in _DATA["not_followed_by"]]
_PREDICATE = _compiled(f"{_DATA['predicate']}|{_DATA['chinese_predicate']}")
_CLAUSE = _compiled(_DATA["clause"])
_LASTING = [_compiled(pattern) for pattern in _DATA["lasting"]]
_CALLED = {name: _compiled(pattern) for name, pattern in _DATA["called"].items()}
_CATEGORIES = {name: _compiled(pattern) for name, pattern in _DATA["category"].items()}
_DOTTED = re.compile(r"\b[a-z]\.[a-z]\.\Z", re.IGNORECASE)
_POLITE_WISH = re.compile(
    r".{0,40}?\b(?:can|could|would|will) you\b|.{0,8}(?:能不能|可不可以|可以|可否|能)", re.IGNORECASE
)
# "Keep in mind that you are …" tells the agent about itself; "that you should …" is a wish of the person's.
_OF_THE_AGENT = re.compile(
    r"\s*(?:you(?:['’]re|['’]ve)?|your(?:self|selves)?|du|dein\w*|tu|vous|votre|tú|usted|você|ты|вы|твой|ваш)\b"
    r"(?!\s+(?:should|must|need|ought|have\s+to|are\s+to|always|never|do\s?n[o']t|can(?:not|['’]t)?\s+(?:use|answer|call)|may|will|answer"
    r"|reply|use|call|sollst|musst|kannst|immer|nie|dois|devez|toujours|debes|siempre|nunca|deve|должен|всегда)\b)"
    r"|\s*(?:你|您|あなた)(?:是|有|很|擅长|知道|は)",
    re.IGNORECASE,
)
_POLITE_QUESTION = re.compile(r"(?:can|could|would|will) you|你?(?:能不能|可以|可否|能)", re.IGNORECASE)


@dataclass(frozen=True)
class Extracted:
    """Items of the form of memory_update's `new_facts`; those at the places `suggested` wait for review, and so do
    those at the places `claims`, that give the person rights or money.

    `unread`: the number of requests to remember something in which the rules found no statement.
    """

    new_facts: list[dict[str, Any]]
    suggested: frozenset[int]
    claims: frozenset[int] = frozenset()
    unread: int = 0

    @property
    def held(self) -> dict[int, str]:
        """Why items wait for review, by place."""
        return {**dict.fromkeys(self.suggested, SUGGESTED), **dict.fromkeys(self.claims, CLAIMS_RIGHTS)}


@dataclass(frozen=True)
class _OwnSentence:
    """A sentence as written; in `own`, all but the person's own words is blanked out."""

    text: str
    own: str
    end: int


@dataclass(frozen=True)
class _QuotedText:
    content: str
    quote: str
    # None given: the patterns of categories decide.
    category: str = ""
    key: str = ""


def extract(turns: Iterable[TranscriptTurn], patterns: Patterns | None = None) -> Extracted:
    """Requests and suggestions of the user turns among `turns`; each text once, requests first.

    Suggestions are sentences with signals by `patterns`, the hub's own unless given.
    """
    users = [turn for turn in turns if turn.is_user]
    asked = [_candidate(turn, found, patterns, asked=True) for turn in users for found in _requests(turn.text)]
    # Wishes how to be answered, and what people plainly say of themselves.
    asked += [
        _candidate(turn, statement, patterns, asked=True)
        for turn in users
        if _is_plain(turn.text)
        for statement in map(_plain_statement, _sentences(turn.text))
        if statement
    ]
    doubtful = frozenset(turn.number for turn in users if turn.is_doubtful)
    suggested = [
        _candidate(turn, found, patterns, asked=False) for turn in users for found in _suggestions(turn.text, patterns)
    ]
    first = {fold(item["content"]): item for item in reversed([*asked, *suggested])}
    items = [item for item in [*asked, *suggested] if first[fold(item["content"])] is item][:_MOST]
    wait = frozenset(
        place
        for place, item in enumerate(items)
        if not doubtful.isdisjoint(item["evidence"]) or not any(item is other for other in asked)
    )
    claims = frozenset(place for place, item in enumerate(items) if own_claims.are_made(item["content"]))
    unread = sum(_is_unread(sentence) for turn in users for sentence in _sentences(turn.text))
    return Extracted(items, wait, claims, unread=unread)


def ended(turns: Iterable[TranscriptTurn], shown: Sequence[ShownFact]) -> list[dict[str, Any]]:
    """Items of the form of memory_update's `removed`: the shown facts of which the person plainly says that they are
    over, with the sentence that says so."""
    said = [
        (turn.number, sentence.text)
        for turn in turns
        if turn.is_user and _is_plain(turn.text)
        for sentence in _sentences(turn.text)
    ]
    found = []
    for place, fact in enumerate(shown, start=1):
        for number, sentence in said:
            if endings.is_retracted(fact.content, sentence):
                found.append({"fact": place, "reason": sentence, "evidence": [number], "replaced_by": None})
                break
    return found


def _candidate(
    turn: TranscriptTurn, statement: _QuotedText, patterns: Patterns | None, *, asked: bool
) -> dict[str, Any]:
    days = _lasting(statement.content)
    return {
        "content": statement.content,
        "category": statement.category or _category(statement.content, patterns),
        "confidence": _ASKED_CONFIDENCE if asked else _SUGGESTED_CONFIDENCE,
        "importance": _ASKED_IMPORTANCE if asked else _SUGGESTED_IMPORTANCE,
        "key": statement.key or None,
        "value": statement.content if statement.key else None,
        "tags": [],
        "durability": "temporary" if days else "durable",
        "about": "user",
        "evidence": [turn.number],
        "quote": statement.quote,
        "source_error": None,
        "expires_in_days": days,
    }


def _lasting(content: str) -> int | None:
    """The days for which a statement says that it holds ("for two weeks only"); None if it sets itself no end."""
    for pattern in _LASTING:
        if found := pattern.search(content.translate(_APOSTROPHES)):
            counts = [int(one) for one in quantities.of(found["count"]).numbers if one.isdigit()]
            unit = next((days for name, days in _DAYS.items() if found["unit"].casefold().startswith(name)), 0)
            days = max(counts, default=1) * unit
            return days if 0 < days <= _LONGEST_LASTING else None
    return None


def _category(content: str, patterns: Patterns | None) -> str:
    straight = content.translate(_APOSTROPHES)
    for name in ("constraint", "relationship"):
        if _CATEGORIES[name].search(straight):
            return name
    kinds = {match.kind for match in signals.matches(straight, patterns)}
    for name in _SUGGESTING:
        if name in kinds:
            return name
    return next((name for name in ("identity", "preference") if _CATEGORIES[name].search(straight)), "other")


def _requests(text: str) -> Iterator[_QuotedText]:
    """The statements that the turn asks to remember."""
    found = list(_sentences(text))
    for place, sentence in enumerate(found):
        own = sentence.own
        start = _after_lead_in(own)
        if (on := _POINTS_ON.match(own, start)) and on.end() == len(own):
            yield from _below(text, sentence, found[place + 1 : place + 2])
        elif _POINTS_BACK.fullmatch(own, start):
            yield from _pointed_at(found[:place])
        elif statement := _requested(sentence, start) or _noun(sentence, start):
            yield statement


def _is_unread(sentence: _OwnSentence) -> bool:
    start = _after_lead_in(sentence.own)
    asking = _asking(sentence.own, start)
    if asking is None or sentences.is_question(sentence.own) or not sentence.own[asking.end() :].strip(" .。!！~"):
        return False
    if any(pattern.match(sentence.own, asking.end()) for pattern in _NOT_FOLLOWED_BY):
        return False
    return not (_POINTS_ON.match(sentence.own, start) or _requested(sentence, start) or _noun(sentence, start))


def _is_plain(text: str) -> bool:
    return len(text) <= _LONGEST_PLAIN_TURN


def _plain_statement(sentence: _OwnSentence) -> _QuotedText | None:
    start = plain.after_greetings(sentence.own)
    own = sentence.own[start:]
    if sentences.is_question(own) and not _POLITE_WISH.match(own):
        return None
    kind = plain.kind_of(own)
    content = _trimmed(sentence.text[start:]).rstrip("?？ ")
    if (
        kind is None
        or authorship.introduces(content)
        or _MARK in content
        or _asking(sentence.own, _after_lead_in(sentence.own))
    ):
        return None
    return _QuotedText(content, sentence.text, kind.category, kind.key)


def _suggestions(text: str, patterns: Patterns | None) -> Iterator[_QuotedText]:
    """Sentences that signal something lasting, and are neither requests nor plain."""
    is_plain = _is_plain(text)
    for sentence in _sentences(text):
        kinds = {match.kind for match in signals.matches(sentence.own, patterns)}
        content = _trimmed(sentence.text)
        if kinds.isdisjoint(_SUGGESTING) or not 0 < len(content) <= _LONGEST_SUGGESTION or _MARK in content:
            continue
        if not _asking(sentence.own, _after_lead_in(sentence.own)) and not (is_plain and _plain_statement(sentence)):
            yield _QuotedText(content, sentence.text)


def _sentences(text: str) -> Iterator[_OwnSentence]:
    """The sentences up to one that introduces another text."""
    text = text[:_LONGEST_TURN]
    own = sentences.own_words(text).translate(_APOSTROPHES)
    for start, end in sentences.spans(own):
        yield _OwnSentence(text[start:end], own[start:end], end)
        if moods.is_handed_over(own[start:end]):
            return


def _after_lead_in(own: str) -> int:
    return max(match.end() for pattern in _LEAD_INS if (match := pattern.match(own)))


def _asking(own: str, start: int) -> re.Match[str] | None:
    """The words that ask, at the beginning of the sentence."""
    return next((match for pattern in _REQUESTS if (match := pattern.match(own, start))), None)


def _requested(sentence: _OwnSentence, start: int) -> _QuotedText | None:
    own = sentence.own
    asking = _asking(own, start)
    if asking is None or (sentences.is_question(own) and not _POLITE_QUESTION.match(own, start)):
        return None
    if _OF_THE_AGENT.match(own, asking.end()):
        return None
    if any(pattern.match(own, asking.end()) for pattern in _NOT_FOLLOWED_BY):
        return None
    content = _trimmed(sentence.text[asking.end() :])
    if sentences.is_question(own):
        content = content.rstrip("?？ ").removesuffix("吗")
    # What follows "that" has a verb; a bare "remember my …" may only name something.
    is_clause = asking[0].rstrip().casefold().endswith("that") and _CLAUSE.match(content.translate(_APOSTROPHES))
    return _QuotedText(content, sentence.text) if _is_statement(content, is_clause=bool(is_clause)) else None


def _noun(sentence: _OwnSentence, start: int) -> _QuotedText | None:
    """What a request names without a verb; "save this preference: …" says the category, too."""
    asking = next((match for pattern in _NOUNS if (match := pattern.match(sentence.own, start))), None)
    if asking is None or sentences.is_question(sentence.own):
        return None
    content = value = _trimmed(sentence.text[asking.end() :])
    if "named" in asking.groupdict():
        # In 把我的邮箱记下来：… the request stands between the two.
        between = "" if asking.end("named") == asking.end() else "："
        content = f"{sentence.text[slice(*asking.span('named'))]}{between}{value}"
    is_short = len(content) <= _LONGEST_NOUN and not _ITEM.match(value)
    if not value or not is_short or _MARK in content:
        return None
    called = next((name for name, pattern in _CALLED.items() if pattern.search(asking[0])), "")
    return _QuotedText(content, sentence.text, called)


def _pointed_at(before: Sequence[_OwnSentence]) -> Iterator[_QuotedText]:
    """The statement before a mere "please remember that"."""
    if not before or sentences.is_question(before[-1].own) or _asking(before[-1].own, 0):
        return
    content = _trimmed(before[-1].text)
    if _is_statement(content):
        yield _QuotedText(content, before[-1].text)


def _below(text: str, heading: _OwnSentence, following: Sequence[_OwnSentence]) -> Iterator[_QuotedText]:
    """The items of the list under "remember the following:", or the one sentence after it."""
    place = heading.end
    items = []
    while item := _ITEM.match(text, place):
        items.append(_trimmed(item["item"]))
        place = item.end()
    for content in items or [_trimmed(sentence.text) for sentence in following]:
        if _is_statement(content):
            yield _QuotedText(content, content)


def _trimmed(content: str) -> str:
    """Without the mark at its end, unless it is that of an abbreviation such as "7 a.m."."""
    kept = content.strip()
    return kept if _DOTTED.search(kept) else kept.rstrip(".。!！~;； ")


def _is_statement(content: str, *, is_clause: bool = False) -> bool:
    """Whether it is a statement of sensible length without a redacted secret; `is_clause`: its verb was found."""
    own = sentences.own_words(content).replace(sentences.BLANK, "").translate(_APOSTROPHES)
    if _MARK in content or len(content) > _LONGEST:
        return False
    enough = len(own) >= 4 and (not own.isascii() or len(own.split()) >= 2)
    return enough and (is_clause or _PREDICATE.search(own) is not None)
