"""Whose words a message of role user holds, as far as its text alone tells (rules.md, 1.6); pure.

Clients put texts of their own into the user's role: documents, results of tools, instructions, transcripts, orders.
What stands in blocks, between rules or behind labels is quoted material; the rest is the person's.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from memories.models import Author
from memories.text import labels, uploads
from memories.text.labels import DATA, SELF, Span, joined

# A longer text is a document; how its end reads tells no more.
_LONGEST = 200_000
_LONGEST_ORDER = 4_000
# So many tags are looked at.
_MOST_TAGS = 20_000

_TYPED, _FORMATTING = frozenset(DATA["typed_tags"]), frozenset(DATA["formatting_tags"])
_NAME = r"(?P<name>[^\W\d][\w.:-]{0,60})"
# <name …>, <|name|> and <<name>>, [name], 【名】, {{name}}
_TAG = (
    rf"[ \t]{{0,8}}(?:(?P<angle><<?\|?)|(?P<other>\[|【|\{{\{{)){_NAME}"
    r"(?(angle)(?:\s[^<>]{0,500})?\|?>>?|(?:[ =][^\]】}\n]{0,200})?(?:\]|】|\}\}))"
)
_OPENING, _NEXT = re.compile(rf"^{_TAG}", re.MULTILINE), re.compile(_TAG)
_CLOSING = re.compile(rf"(?P<mark><\|?|\[|【|\{{\{{)/{_NAME}")
# By the first character of the mark: any tag of a name.
_TAGS = {
    "<": r"<<?\|?(?P<end>/)?{name}(?:\s[^<>]{{0,500}})?\|?>>?",
    "[": r"\[(?P<end>/)?{name}(?:[ =][^\]\n]{{0,200}})?\]",
    "【": "【(?P<end>/)?{name}】",
    "{": r"\{{\{{(?P<end>/)?{name}\}}\}}",
}
# <<<BEGIN X>>> … <<<END X>>>, -----BEGIN X----- … -----END X-----, [BEGIN X] … [END X],
# <!-- BEGIN X --> … <!-- END X -->
_BEGIN = re.compile(
    r"^[ \t]*(?P<mark>[<\[#=*-]{1,10}|<!--)[ \t]*(?:BEGIN|START)\b(?P<name>[^\n>\]]{0,60})[^\n]{0,12}$", re.MULTILINE
)
_COMMENT = re.compile(r"^[ \t]{0,8}<!--", re.MULTILINE)
_RULE = re.compile(r"^[ \t]{0,3}([-=*_#~—─])\1{2,}[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"```.{0,100000}?(?:```|\Z)", re.DOTALL)
# Lines of three quotation marks.
_TRIPLE = re.compile(
    r"^[ \t]*(?P<mark>\"{3}|'{3})[ \t]*\n.{0,100000}?^[ \t]*(?P=mark)[ \t]*$", re.MULTILINE | re.DOTALL
)
_QUOTED = re.compile(r"`[^`\n]{1,400}`|\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|「[^」\n]{1,400}」")
# For texts in lower case: a pattern that ignores the case takes ten times as long, and each posted message is read.
_FORM, _WRONG, _AGAIN = (re.compile(rf"(?:{joined(name)})") for name in ("form", "wrong", "again"))


class Reading(NamedTuple):
    """Whose words a text holds; `own` are the spans that are its author's, None for all of it. `is_doubtful`: it looks
    like a text that a program made around the person's words."""

    author: Author
    own: Sequence[Span] | None = None
    is_doubtful: bool = False


PERSONS = Reading(Author.PERSON)
APPLICATIONS = Reading(Author.APPLICATION)


def read(text: str) -> Reading:
    """The reading of a text that came in role user."""
    if mends_form(text):
        return APPLICATIONS
    if inner := labels.unquoted(text):
        return Reading(Author.PERSON, [inner])
    # A cheap look before the patterns: most messages are plain.
    if not any(mark in text for mark in "<[【{:：\n") or not text.strip():
        return PERSONS
    cuts, is_doubtful = _cuts(text[:_LONGEST])
    left = list(_left(text, cuts))
    if left and left[0] == (0, len(text)):
        return Reading(Author.PERSON, None, is_doubtful)
    if not left:
        return PERSONS if _is_formatting_alone(text) or _is_between_rules_alone(text) else APPLICATIONS
    return Reading(Author.PERSON, left, is_doubtful)


def mends_form(text: str) -> bool:
    """Whether it is an order to mend the form of the last answer, which a program gives: it names the form, says what
    is wrong with it and asks again, and says nothing of whoever speaks."""
    if len(text) > _LONGEST_ORDER:
        return False
    lowered = text.lower()
    is_order = all(pattern.search(lowered) for pattern in (_FORM, _WRONG, _AGAIN))
    return is_order and SELF.search(_QUOTED.sub(" ", text)) is None


def introduces(text: str) -> bool:
    """Whether a message ends by announcing the next one: what follows it is quoted."""
    return text.rstrip().endswith((":", "："))


def quotations(text: str) -> Iterator[str]:
    """What stands in quotation marks within a line."""
    return (quoted[0][1:-1] for quoted in _QUOTED.finditer(text))


def without(spans: Iterable[Span], text: str, own: Sequence[Span] | None) -> list[Span]:
    """What is left of the own spans of a text without these."""
    kept = [(0, len(text))] if own is None else list(own)
    for start, end in spans:
        kept = [part for first, last in kept for part in ((first, min(last, start)), (max(first, end), last))]
        kept = [(first, last) for first, last in kept if text[first:last].strip()]
    return [_trimmed(text, span) for span in kept]


def _cuts(text: str) -> tuple[list[Span], bool]:
    """The spans of quoted material, and whether the text looks like a program's frame."""
    fences = [fence.span() for fence in _FENCE.finditer(text)]
    blocks = [*_tagged(text, fences), *_between_marks(text)]
    # With the line above each block that names it: a heading, or one that ends in a colon.
    cuts = [(labels.leading(text, start) if text[end - 1] in ">]】}" else start, end) for start, end in blocks]
    cuts += [quoted.span() for quoted in labels.outside(_TRIPLE.finditer(text), fences)]
    cuts += _comments(text, fences)
    cuts += _uploaded(text)
    doubtful = False
    for reader in (_between_rules, *labels.READERS):
        spans, is_frame = reader(text, cuts, fences)
        cuts += spans
        doubtful = doubtful or is_frame
    return cuts, doubtful or labels.is_announced_by_machine(text)


def _comments(text: str, fences: Sequence[Span]) -> Iterator[Span]:
    """Comments of HTML, which nobody is to see; one within a line is what the person speaks of."""
    is_code = labels.places(fences)
    place = 0
    while (opening := _COMMENT.search(text, place)) and (end := text.find("-->", opening.end())) >= 0:
        place = end + len("-->")
        if not is_code(opening.start()):
            yield opening.start(), place


def _uploaded(text: str) -> list[Span]:
    places, start = [], 0
    for block in uploads.blocks(text) if "</" in text else ():
        at = text.find(block, start)
        if at >= 0:
            places.append((at, at + len(block)))
            start = at + len(block)
    return places


def _tagged(text: str, fences: Sequence[Span]) -> Iterator[Span]:
    """From an opening tag at a line's start to its closing tag; of a tag that holds what was typed, the tags alone."""
    closed = {(found["mark"][0], found["name"].lower()): found.start() for found in _CLOSING.finditer(text)}
    if not closed:
        return
    is_code = labels.places(fences)
    place, budget = 0, iter(range(_MOST_TAGS))
    # What was typed may begin with a block: [INST] <<SYS>>
    is_typed = False
    while opening := (is_typed and _NEXT.match(text, place)) or _OPENING.search(text, place):
        is_typed = False
        name = opening["name"]
        has_end = closed.get((_mark_of(opening), name.lower()), 0) >= opening.end() and not is_code(opening.start())
        end = _closing(text, opening, budget) if has_end else None
        if end is None:
            place = opening.end()
            continue
        if name.lower() in _FORMATTING and text[end[1] :].partition("\n")[0].strip():
            # It gives words of a sentence their looks.
            place = opening.end()
            continue
        if name.lower() in _TYPED:
            yield opening.span()
            yield end
            place, is_typed = opening.end(), True
            # Tags inside are read; the closing tag is cut already.
            continue
        yield opening.start(), end[1]
        place = end[1]


def _mark_of(opening: re.Match[str]) -> str:
    """The first character of its mark."""
    return (opening["angle"] or opening["other"])[0]


def _closing(text: str, opening: re.Match[str], budget: Iterator[int]) -> Span | None:
    """The closing tag of this opening one, with those of its name in between."""
    tags = re.compile(_TAGS[_mark_of(opening)].format(name=re.escape(opening["name"])), re.IGNORECASE)
    depth = 1
    last = None
    for tag, _ in zip(tags.finditer(text, opening.end()), budget, strict=False):
        depth += -1 if tag["end"] else 1
        last = tag if tag["end"] else last
        if depth == 0:
            return tag.span()
    # A file may hold an opening tag of the same name: then the last closing one ends the block.
    return last.span() if last else None


def _between_marks(text: str) -> Iterator[Span]:
    """From BEGIN … to END … of the same name, each on a line of its own."""
    place, open_ends = 0, set()
    while begin := _BEGIN.search(text, place):
        mark = begin["mark"][0]
        pattern = re.compile(rf"^[ \t]*{re.escape(mark)}+(?:!--)?[ \t]*END\b[^\n]*$", re.MULTILINE | re.IGNORECASE)
        end = None if mark in open_ends else pattern.search(text, begin.end())
        if end is None:
            open_ends.add(mark)
            place = begin.end()
            continue
        yield begin.start(), end.end()
        place = end.end()


def _between_rules(text: str, _found: Sequence[Span], fences: Sequence[Span]) -> tuple[list[Span], bool]:
    rules = [rule.span() for rule in labels.outside(_RULE.finditer(text), fences)]
    if len(rules) < 2 or not text[rules[0][1] : rules[-1][0]].strip():
        return [], False
    before = text[: rules[0][0]].rstrip()
    around = before[before.rfind("\n") + 1 :][-400:] + "\n" + text[rules[-1][1] :].lstrip().partition("\n")[0][:400]
    if all(_stands_alone(text, rule) for rule in rules) and labels.NAMES_MATERIAL.search(around) is None:
        # Lines that part the text, as people draw them in Markdown.
        return [], introduces(before)
    return [(rules[0][0], rules[-1][1])], False


def _stands_alone(text: str, rule: Span) -> bool:
    """Whether there is an empty line before and behind a rule."""
    before, behind = text[max(0, rule[0] - 2) : rule[0]], text[rule[1] : rule[1] + 2]
    return before in ("", "\n", "\n\n") and behind in ("", "\n", "\n\n")


def _left(text: str, cuts: Iterable[Span]) -> Iterator[Span]:
    """What the cuts leave, without outer white space; the whole text where they cut nothing."""
    place = 0
    merged = sorted(cuts)
    if not merged:
        yield 0, len(text)
        return
    for start, end in [*merged, (len(text), len(text))]:
        if text[place:start].strip():
            yield _trimmed(text, (place, start))
        place = max(place, end)


def _trimmed(text: str, span: Span) -> Span:
    start, end = span
    part = text[start:end]
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def _is_between_rules_alone(text: str) -> bool:
    """Whether all of it stands between two rules, and nothing else quotes it."""
    inner = _RULE.sub("", text)
    return inner != text and read(inner).author == Author.PERSON


def _is_formatting_alone(text: str) -> bool:
    names = [opening["name"].lower() for opening in _OPENING.finditer(text)]
    return bool(names) and all(name in _FORMATTING for name in names) and _RULE.search(text) is None
