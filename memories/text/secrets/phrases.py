"""Secrets that are announced: "my password is …", "api_key=…", 我的密码是…; pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from memories.text.secrets import effort, fields
from memories.text.secrets.formats import DATA, Span, places
from memories.text.secrets.values import Announced, announces, can_be_value, is_phrase, is_secret

_LOOK_AHEAD = 40
_LOOK_BACK = 160
_LOOK_NEAR = 60


@dataclass(frozen=True)
class Keyword:
    """What a keyword announces: the kind of secret and the rule for its value."""

    kind: str
    rule: str


def _keywords() -> dict[str, Keyword]:
    """By the words without spaces."""
    keywords: dict[str, Keyword] = {}
    for entry in DATA["keyword"]:
        for words in product(entry.get("after", [""]), entry["words"]):
            keywords.setdefault("".join(words).replace(" ", ""), Keyword(entry["kind"], entry["rule"]))
    return keywords


_KEYWORDS = _keywords()
_LONGEST = max(map(len, _KEYWORDS))
# The last words are searched in the text; the words before them are checked there.
_LAST_WORDS = {word.split()[-1] for entry in DATA["keyword"] for word in entry["words"]}
# Sorted: of two kinds that overlap, the one found first counts.
_HEADS = sorted(
    head for head in _LAST_WORDS if not any(head != other and head.endswith(other) for other in _LAST_WORDS)
)
# The keywords that end with each, the longest first.
_BY_HEAD = {
    head: tuple(sorted((word for word in _KEYWORDS if word.endswith(head)), key=len, reverse=True)) for head in _HEADS
}

# The value: in quotes, or a run of printable ASCII that ends where the sentence, the query string or the tag does.
_QUOTED = r"""(?P<q>\\?["'`])(?P<quoted>[^\n"`]{1,200}?)(?P=q)"""
_BARE = (
    r"""\\?["'`]?(?P<bare>(?:[^\s"'`<>\\,;&\x00-\x1f\x7f-\U0010ffff]|<(?![/A-Za-z!])|>|\\(?![nrt"'\\])"""
    r"""|[,;&](?![\s"'\x7f-\U0010ffff]|\Z|[A-Za-z_. -]{1,30}[:=])|'(?=[A-Za-z0-9])){1,256}+)"""
)
# Case-sensitive: without case, a class up to U+10FFFF includes "i", "k" and "s", which have variants in it.
_VALUE = f"(?-i:{_QUOTED}|{_BARE})"
_FOR = r"(?:\s{1,2}(?:for|to|of|on|at)\s[^\n.,:;=!?]{1,40}?)?"
_SCHEME = r"(?:bearer|basic|token|bot|digest|apikey|api-key)\s{1,2}"
# Before the value of a header.
SCHEME = re.compile(_SCHEME, re.IGNORECASE)
_SIGN = (
    r"""\s{0,3}(?P<sign>:=|=>|->|→|[:=]|(?<=\s)\|(?=\s))\s{0,3}[*_]{0,2}\s{0,2}"""
    rf"""(?P<scheme>\\?["'`]?{_SCHEME})?"""
)
_VERB_EN = (
    r"(?:'s|\s{1,3}(?:(?:has\sbeen|was|is|were|are)\s(?:now|currently|still|just|simply|changed|set|reset|updated)(?:\sto)?"
    r"|is|was|will\sbe|should\sbe|equals|becomes|changed\sto|set\sto|reset\sto|updated\sto))(?:\s{1,3}|\s?:\s{0,3})"
)
_VERB_ZH = (
    r"\s{0,3}[我你他她们现在目前一直刚才已经设用的呢仍然都也,，]{0,4}?\s?"
    r"(?:就是|都是|还是|应该是|用的是|是|为|[改换设变](?:成|为)了?|设置[成为]了?|更[新改]为|叫)\s{0,3}(?:\s?:\s{0,3})?"
)
_END_OF_WORD = r"""(?:(?<![A-Za-z0-9])|\d?(?![A-Za-z0-9]))\\?["'`*\]]{0,3}(?:\s?\([^()\n]{0,30}\))?"""
_LINKED = re.compile(
    rf"{_END_OF_WORD}{_FOR}(?:{_SIGN}|(?P<verb>{_VERB_EN}|{_VERB_ZH})|(?P<to>\sto\s)){_VALUE}", re.IGNORECASE
)
_NEAR = re.compile(rf"{_END_OF_WORD}(?:(?<=[\u4e00-\u9fff])[ \t]{{0,2}}|[ \t]{{1,2}}){_VALUE}")
_TRAILING = ".,;:!?)]}*_`>|\\"
_OPENERS = {")": "(", "]": "[", "}": "{", ">": "<"}

# Where a value can follow its keyword directly: after Chinese words, options of commands, and beside an account's name.
_NEAR_AFTER = re.compile(
    r"(?:--|(?:user ?name|user|login|account|账号|用户名?)\s?[:=]?\s?[^\s]{1,60}[,;/]?\s(?:and\s|with\s)?)\Z",
    re.IGNORECASE,
)
# "my new password hunter2", "the wifi password sunflower99": whose it is, and nothing that joins them.
_OWNED = re.compile(r"\b(?:my|our|your|his|her|their)\s(?:[A-Za-z0-9-]{1,20}\s){0,2}\Z", re.IGNORECASE)
_NAMED = re.compile(r"(?:\bthe\s|(?:\A|[\n.;:,!?(])\s{0,2})(?:[A-Za-z0-9-]{1,20}\s){0,2}\Z", re.IGNORECASE)
_NAMED_BACK = 64
_SETS = re.compile(r"\b(?:set|change|reset|update|make|switch)[a-z]{0,3}\s[^\n.;!?]{0,30}\Z", re.IGNORECASE)
# Every match of that pattern has one of these, at most so far back; searching them costs a tenth.
_ACCOUNTS = ("user", "login", "account", "账号", "用户")
_ACCOUNT_BACK = 90
_NOT_NEAR_AFTER = ("忘记", "忘了", "重置", "修改", "找回", "输入", "重设", "更改", "设置", "无")

_REVERSED = {entry["kind"]: [re.compile(pattern) for pattern in entry["patterns"]] for entry in DATA["reversed"]}
# A value before its keyword needs one of these close to the keyword.
_CLUES = re.compile(r"\s(?:is|as)\s|[!-~]\s?(?:就?是|[为作当做])|[0-9]\s?[(（\u4e00-\u9fff]")
_WORDS = re.compile(
    r"(?:\s?(?:is|was|are|是|为)\s?:?|\s?[:=])\s?[\"'`]?(?P<words>(?:[a-z]{3,12}[ ,]{1,2}){3,23}[a-z]{3,12})(?![a-z])"
)
_SEED_WORDS = 12


class _KeywordPlace(NamedTuple):
    """The position of a keyword in a text."""

    keyword: Keyword
    start: int
    end: int
    text: str

    @property
    def before(self) -> str:
        return self.text[max(0, self.start - _LOOK_BACK) : self.start]


def find(text: str) -> Iterator[Span]:
    """Every value that a keyword announces; `text` has full-width letters and colons in their ASCII form."""
    for place in _places(text):
        yield from _words_after(place) if place.keyword.rule == "words" else _value_after(place)
        yield from _value_before(place)


def count_places(text: str) -> int:
    """In how many places find() would look."""
    lower = text.lower()
    return sum(map(lower.count, _HEADS))


def names_secret(key: str) -> Keyword | None:
    """The keyword that a JSON key like mysqlPassword or API_KEY ends with; None for other keys."""
    return next((place.keyword for place in _places(key) if place.end == len(key)), None)


def before_word(key: str) -> str:
    """What stands before that keyword: of nextPageToken it is nextPage."""
    return next((key[: place.start] for place in _places(key) if place.end == len(key)), "")


def _places(text: str) -> Iterator[_KeywordPlace]:
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    # Most texts have none. To find that out first costs a tenth.
    for head in [head for head in _HEADS if head in lower]:
        found = places(lower, [head])
        effort.start_clock()
        for start in found:
            effort.examine()
            place = _place(text, lower, start + len(head), _BY_HEAD[head])
            if place:
                yield place


def _place(text: str, lower: str, end: int, words: tuple[str, ...]) -> _KeywordPlace | None:
    """The longest of `words` that ends here, unless it ends another word: db_password, not compassword."""
    if text[end - 1].isascii() and text[end : end + 1].isascii() and text[end : end + 1].isalpha():
        return None
    joined = lower[max(0, end - 2 * _LONGEST) : end].replace(" ", "").replace("_", "").replace("-", "")
    if not joined.endswith(words):
        return None
    word = next(word for word in words if joined.endswith(word))
    start = end - len(word)
    if not lower.startswith(word, start):
        start = end
        for letter in reversed(word):
            start = lower.rindex(letter, 0, start)
    before = text[start - 1 : start] if start else ""
    if (
        before.isascii()
        and before.isalnum()
        and text[start].isascii()
        and not (before.islower() and text[start].isupper())
    ):
        return None
    return _KeywordPlace(_KEYWORDS[word], start, end, text)


def _value_after(place: _KeywordPlace) -> Iterator[Span]:
    text = place.text
    tail = _LINKED.match(text, place.end)
    beside = "" if tail else _link_beside(place)
    near = _NEAR.match(text, place.end) if beside else None
    if tail and not tail["to"]:
        # 密码是mango: between Chinese words a Latin one is a value, as after a colon.
        plain = tail["sign"] or not text[place.end - 1].isascii()
        yield from _judged(tail, place, link="sign" if plain else "verb")
    elif tail and _SETS.search(place.before):
        yield from _judged(tail, place, link="near")
    elif near:
        yield from _judged(near, place, link=beside)


def _judged(tail: re.Match[str], place: _KeywordPlace, *, link: str) -> Iterator[Span]:
    text, quoted = place.text, tail["quoted"] is not None
    start, end = tail.span("quoted" if quoted else "bare")
    if not quoted:
        end = start + len(_trimmed(text[start:end]))
    found = Announced(text[start:end], link, quoted=quoted, after=text[end : end + _LOOK_AHEAD])
    if can_be_value(found.value) and (announces(place.keyword.rule, found) or _is_field(place, tail, found)):
        # {"pin": 1234} stays JSON.
        bare_in_json = (
            not quoted
            and tail[0].startswith('"')
            and text[start - 1] not in "\"'`"
            and not (link == "sign" and tail["scheme"])
        )
        yield Span(start, end, place.keyword.kind, '"' if bare_in_json else "")
    elif text[place.start : place.end].lower().endswith("phrase"):
        yield from _words_after(place)


def _is_field(place: _KeywordPlace, tail: re.Match[str], found: Announced) -> bool:
    rule, name = place.keyword.rule, place.text[max(0, place.start - _LOOK_NEAR) : place.start]
    if found.link == "near":
        # An option of a command.
        return (
            rule in ("key", "token")
            and name.endswith("--")
            and fields.is_value("inline", rule, found, name="", sign=" ")
        )
    if found.link != "sign" or not tail["sign"] or not fields.may_be_value(rule, found.value):
        return False
    form = fields.form_of(place.text, place.start, place.end, place.text[place.end : tail.end("sign")])
    if tail["scheme"] and not tail["scheme"][0].isalpha():
        found = replace(found, quoted=True)
    return bool(form) and fields.is_value(form, rule, found, name=name, sign=tail["sign"])


def _trimmed(value: str) -> str:
    """Without the punctuation of the sentence around it; a bracket that it opened itself stays closed."""
    while value and value[-1] in _TRAILING and _OPENERS.get(value[-1], "\0") not in value:
        value = value[:-1]
    return value


def _link_beside(place: _KeywordPlace) -> str:
    """What joins a keyword to a value that follows it directly, for values.py; "": nothing does."""
    if _may_be_near(place):
        return "near"
    if place.keyword.rule != "password" or not place.text[place.end - 1].isascii():
        return ""
    before = place.before[-_NAMED_BACK:]
    if _OWNED.search(before):
        return "owned"
    # A cut beginning is no beginning of a text.
    return "named" if _NAMED.search(before if place.start <= _NAMED_BACK else f" {before}") else ""


def _may_be_near(place: _KeywordPlace) -> bool:
    text, start = place.text, place.start
    if not text[place.end - 1].isascii():
        return not text.endswith(_NOT_NEAR_AFTER, max(0, start - _LOOK_BACK), start)
    if text.endswith("--", 0, start):
        return True
    first = max(0, start - _ACCOUNT_BACK)
    before = text[first:start].casefold()
    return any(word in before for word in _ACCOUNTS) and bool(_NEAR_AFTER.search(text, first, start))


def _value_before(place: _KeywordPlace) -> Iterator[Span]:
    patterns = _REVERSED.get(place.keyword.kind)
    if not patterns or not _has_clue(place.text[max(0, place.start - _LOOK_NEAR) : place.start]):
        return
    before, offset = place.before, place.start - len(place.before)
    for pattern in patterns:
        found = pattern.search(before)
        if found and is_secret(place.keyword.rule, Announced(found["value"], "near")):
            start, end = found.span("value")
            yield Span(offset + start, offset + end, place.keyword.kind)


def _has_clue(text: str) -> bool:
    """Whether _CLUES finds anything; in ASCII one of these is part of it."""
    if text.isascii() and "is" not in text and "as" not in text and "(" not in text:
        return False
    return bool(_CLUES.search(text))


def _words_after(place: _KeywordPlace) -> Iterator[Span]:
    found = _WORDS.match(place.text, place.end)
    if found is None:
        return
    words = found["words"].replace(",", " ").split()
    if len(words) >= _SEED_WORDS:
        yield Span(*found.span("words"), "seed_phrase")
    elif is_phrase(words):
        yield Span(*found.span("words"), place.keyword.kind)
