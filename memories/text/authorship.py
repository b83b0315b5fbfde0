"""Whose words a message of role user holds, as far as its text alone tells (rules.md, 1.6); pure.

Clients put texts of their own into the user's role: documents, results of tools, instructions, transcripts, orders.
What stands in blocks, between rules or behind labels is quoted material; the rest is the person's.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from memories.models import Author
from memories.text import uploads

Span = tuple[int, int]
# A longer text is a document; how its end reads tells no more.
_LONGEST = 200_000
_LONGEST_ORDER = 4_000
# What people tell of themselves behind a label.
_LONGEST_OF_ONESELF = 300

_DATA = tomllib.loads((Path(__file__).parent / "data" / "authorship.toml").read_text(encoding="utf-8"))


def _joined(name: str) -> str:
    return "".join(line.strip() for line in _DATA[name].splitlines())


_TYPED, _FORMATTING = frozenset(_DATA["typed_tags"]), frozenset(_DATA["formatting_tags"])
_OPENING = re.compile(r"^[ \t]{0,8}<(?P<name>[A-Za-z_][\w.:-]{0,60})(?:\s[^<>\n]{0,500})?>", re.MULTILINE)
# <<<BEGIN X>>> … <<<END X>>>, -----BEGIN X----- … -----END X-----, [BEGIN X] … [END X]
_BEGIN = re.compile(
    r"^[ \t]*(?P<mark>[<\[#=*-]{1,10})[ \t]*(?:BEGIN|START)\b(?P<name>[^\n>\]]{0,60})[^\n]{0,12}$", re.MULTILINE
)
_RULE = re.compile(r"^[ \t]{0,3}([-=*_#~—─])\1{2,}[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"```.{0,100000}?(?:```|\Z)", re.DOTALL)
_MARKED = re.compile(r"^[ \t]*\[\[ ## (?P<name>[\w ]{1,60}) ## \]\][ \t]*$", re.MULTILINE)


def _label(name: str) -> re.Pattern[str]:
    return re.compile(
        rf"^[ \t#>*]{{0,8}}(?:{_joined(name)})(?:[ \t]\d{{1,3}})?[ \t*]{{0,4}}[:：][ \t*]{{0,4}}",
        re.MULTILINE | re.IGNORECASE,
    )


_MATERIAL, _RESULT, _ASKED, _ANSWERED = map(_label, ("material", "results", "asked", "answered"))
_SPEAKER = re.compile(
    rf"^[ \t>*-]{{0,6}}\[?(?:(?P<person>{_joined('person_labels')})|(?P<machine>{_joined('machine_labels')})"
    rf"|(?P<step>{_joined('step_labels')}))"
    r"(?:[ \t]*[(（][^)\n）]{1,40}[)）])?\]?[ \t*]{0,4}[:：]",
    re.MULTILINE | re.IGNORECASE,
)
_FORM, _WRONG, _AGAIN = (re.compile(rf"(?:{_joined(name)})", re.IGNORECASE) for name in ("form", "wrong", "again"))
_SELF = re.compile(_joined("self"), re.IGNORECASE)
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "「": "」", "«": "»", "„": "“"}
_LEADING = re.compile(r"(?:^|\n)[ \t]*(?:#{1,6}[ \t][^\n]{0,200}|[^\n]{0,200}[:：])[ \t]*\n?\s*\Z")


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
    if inner := _unquoted(text):
        return Reading(Author.PERSON, [inner])
    if not _may_hold_material(text) or not text.strip():
        return PERSONS
    cuts, is_doubtful = _cuts(text[:_LONGEST])
    own = list(_left(text, cuts))
    if own and own[0] == (0, len(text)):
        return Reading(Author.PERSON, None, is_doubtful)
    if not own:
        return PERSONS if _is_formatting_alone(text) or _is_between_rules_alone(text) else APPLICATIONS
    return Reading(Author.PERSON, own, is_doubtful)


def mends_form(text: str) -> bool:
    """Whether it is an order to mend the form of the last answer, which a program gives: it names the form, says what
    is wrong with it and asks again, and says nothing of whoever speaks."""
    if len(text) > _LONGEST_ORDER or _SELF.search(text):
        return False
    return all(pattern.search(text) for pattern in (_FORM, _WRONG, _AGAIN))


def introduces(text: str) -> bool:
    """Whether a message ends by announcing the next one: what follows it is quoted."""
    return text.rstrip().endswith((":", "："))


def without_speaker(text: str) -> str:
    """A line of a transcript without the label of who speaks."""
    label = _SPEAKER.match(text)
    return text[label.end() :].strip() if label else text


def without(spans: Iterable[Span], text: str, own: Sequence[Span] | None) -> list[Span]:
    """What is left of the own spans of a text without these."""
    kept = [(0, len(text))] if own is None else list(own)
    for start, end in spans:
        kept = [part for first, last in kept for part in ((first, min(last, start)), (max(first, end), last))]
        kept = [(first, last) for first, last in kept if text[first:last].strip()]
    return [_trimmed(text, span) for span in kept]


def _may_hold_material(text: str) -> bool:
    """A cheap look before the patterns: most messages are plain."""
    return "<" in text or "[" in text or ":" in text or "：" in text or _RULE.search(text) is not None


def _unquoted(text: str) -> Span | None:
    """What stands inside quotation marks around the whole text, as a shell leaves them."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    closing = _QUOTES.get(text[start]) if start < end else None
    if end - start < 3 or closing is None or text[end - 1] != closing:
        return None
    inner = text[start + 1 : end - 1]
    return (start + 1, end - 1) if text[start] not in inner and closing not in inner else None


def _cuts(text: str) -> tuple[list[Span], bool]:
    """The spans of quoted material, and whether the text looks like a program's frame."""
    fences = [found.span() for found in _FENCE.finditer(text)]
    found = _with_headings(text, [*_tagged(text, fences), *_between_marks(text)])
    found += _uploaded(text)
    doubtful = False
    for reader in (_between_rules, _sections, _transcript, _labelled):
        spans, is_frame = reader(text, found, fences)
        found += spans
        doubtful = doubtful or is_frame
    return found, doubtful


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
    if "</" not in text:
        return
    place = 0
    while opening := _OPENING.search(text, place):
        name = opening["name"]
        end = None if _is_within(opening.start(), fences) else _closing(text, opening)
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
            place = opening.end()
            # Tags inside are read; the closing tag is cut already.
            continue
        yield opening.start(), end[1]
        place = end[1]


def _closing(text: str, opening: re.Match[str]) -> Span | None:
    """The closing tag of this opening one, with those of its name in between."""
    tags = re.compile(rf"<(?P<end>/)?{re.escape(opening['name'])}(?:\s[^<>\n]{{0,500}})?>", re.IGNORECASE)
    depth = 1
    last = None
    for tag in tags.finditer(text, opening.end()):
        depth += -1 if tag["end"] else 1
        last = tag if tag["end"] else last
        if depth == 0:
            return tag.span()
    # A file may hold an opening tag of the same name: then the last closing one ends the block.
    return last.span() if last else None


def _between_marks(text: str) -> Iterator[Span]:
    """From BEGIN … to END … of the same name, each on a line of its own."""
    place = 0
    while begin := _BEGIN.search(text, place):
        end = re.compile(
            rf"^[ \t]*{re.escape(begin['mark'][0])}+[ \t]*END\b[^\n]*$", re.MULTILINE | re.IGNORECASE
        ).search(text, begin.end())
        if end is None:
            place = begin.end()
            continue
        yield begin.start(), end.end()
        place = end.end()


def _with_headings(text: str, spans: Sequence[Span]) -> list[Span]:
    """With the line above each block that names it: a heading, or one that ends in a colon."""
    found = []
    for start, end in spans:
        leading = _LEADING.search(text, max(0, start - 400), start) if text[end - 1] == ">" else None
        found.append((leading.start() if leading else start, end))
    return found


def _between_rules(text: str, _found: Sequence[Span], fences: Sequence[Span]) -> tuple[list[Span], bool]:
    rules = [rule.span() for rule in _RULE.finditer(text) if not _is_within(rule.start(), fences)]
    if len(rules) < 2 or not text[rules[0][1] : rules[-1][0]].strip():
        return [], False
    return [(rules[0][0], rules[-1][1])], False


def _sections(text: str, _found: Sequence[Span], _fences: Sequence[Span]) -> tuple[list[Span], bool]:
    """Between marks `[[ ## name ## ]]`: what the section asks is the person's, if it is its first paragraph."""
    marks = list(_MARKED.finditer(text))
    if not marks:
        return [], False
    spans = [(0, marks[0].start())]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        end = following.start() if following else len(text)
        is_asked = _ASKED.match(f"{mark['name']}:") is not None
        paragraph = text.find("\n\n", mark.end(), end)
        spans += [mark.span(), (paragraph if paragraph >= 0 else end, end)] if is_asked else [(mark.start(), end)]
    return spans, True


def _transcript(text: str, found: Sequence[Span], fences: Sequence[Span]) -> tuple[list[Span], bool]:
    """From the first speaker's label on, where two speak, one of them a machine; a last paragraph of its own stays."""
    labels = [one for one in _SPEAKER.finditer(text) if not _is_within(one.start(), [*found, *fences])]
    speakers = {one.lastgroup for one in labels}
    if not {"person", "machine"} <= speakers:
        return [], False
    rest = text.rfind("\n\n", labels[-1].end())
    end = rest if rest >= 0 and text[labels[-1].end() : rest].strip() else len(text)
    start = labels[0].start()
    leading = _LEADING.search(text, max(0, start - 400), start)
    return [(leading.start() if leading else start, end)], True


def _labelled(text: str, found: Sequence[Span], fences: Sequence[Span]) -> tuple[list[Span], bool]:
    """What stands behind labels of documents and results, and the labels of questions and answers themselves."""
    others = [*found, *fences]
    labels = sorted(
        (label.start(), label.end(), kind)
        for kind, pattern in (("material", _MATERIAL), ("result", _RESULT), ("asked", _ASKED), ("answered", _ANSWERED))
        for label in pattern.finditer(text)
        if not _is_within(label.start(), others)
    )
    if not labels:
        return [], False
    kinds = {kind for _, _, kind in labels}
    has_frame = (
        bool(found)
        or {"asked", "answered"} <= kinds
        or (len(kinds) > 1 and not kinds.isdisjoint({"material", "result"}))
    )
    starts_with = labels[0][2] if labels and not text[: labels[0][0]].strip() else ""
    asks = [start for start, _, kind in labels if kind == "asked"]
    is_prompt = bool(asks) and labels[-1][2] == "answered" and not text[labels[-1][1] :].strip()
    # A text that ends where the answer is to stand is a template: what it asks is its last slot.
    spans: list[Span] = [(0, asks[-1])] if is_prompt and asks[-1] else []
    for (start, end, kind), following in zip(labels, [*labels[1:], None], strict=True):
        until = following[0] if following else len(text)
        if kind == "result":
            spans.append((start, until))
        elif kind == "material" and has_frame and not _is_told_of_oneself(text[end:until]):
            spans.append((start, until if following else _last_paragraph(text, end)))
        elif kind == "answered" and has_frame:
            spans.append((start, until))
        elif kind == "asked" and (has_frame or starts_with == "asked"):
            spans.append((start, end))
    return spans, bool(spans)


def _is_told_of_oneself(text: str) -> bool:
    """Whether somebody tells of themselves on the label's own line: people write "Context: I am a nurse." """
    line, _, rest = text.partition("\n")
    return len(line) <= _LONGEST_OF_ONESELF and not rest.strip() and _SELF.match(line.strip()) is not None


def _last_paragraph(text: str, start: int) -> int:
    """Where the last paragraph behind `start` begins, if there are two."""
    at = text.rstrip().rfind("\n\n", start)
    return at if at >= 0 and text[start:at].strip() else len(text)


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


def _is_within(place: int, spans: Iterable[Span]) -> bool:
    return any(start <= place < end for start, end in spans)


def _is_between_rules_alone(text: str) -> bool:
    """Whether all of it stands between two rules, and nothing else quotes it."""
    inner = _RULE.sub("", text)
    return inner != text and read(inner).author == Author.PERSON


def _is_formatting_alone(text: str) -> bool:
    names = [opening["name"].lower() for opening in _OPENING.finditer(text)]
    return bool(names) and all(name in _FORMATTING for name in names) and _RULE.search(text) is None
