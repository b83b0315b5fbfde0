"""What labels show of a text that came in role user: transcripts, messages, examples, documents, questions; pure.

Each reader takes the text, the spans that are known as quoted, and those of code. It gives the spans of quoted
material, and whether a program may have made the text around the person's words.
"""

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

Span = tuple[int, int]
Found = tuple[list[Span], bool]
# What people tell of themselves behind a label.
_LONGEST_OF_ONESELF = 300
# So many lines that may begin a JSON value are tried.
_MOST_VALUES = 50

DATA = tomllib.loads((Path(__file__).parent / "data" / "authorship.toml").read_text(encoding="utf-8"))


def joined(name: str) -> str:
    return "".join(line.strip() for line in DATA[name].splitlines())


def _label(name: str) -> re.Pattern[str]:
    """Before a colon, in brackets, or a heading: `Context (two files):`, `[Tool result for x]`, `## Documents`."""
    words = rf"(?:{joined(name)})(?:[ \t]?(\d{{1,3}}))?"
    remark = r"(?:[(（][^)\n）]{1,60}[)）])?"
    return re.compile(
        rf"^[ \t#>*]{{0,8}}[\[【]?{words}[ \t*]{{0,4}}{remark}[ \t*\]】]{{0,4}}[:：][ \t*]{{0,4}}"
        rf"|^[ \t]*[\[【]{words}(?:[ \t][^\]\n】]{{1,60}})?[\]】](?![(\[])"
        rf"|^[ \t]*#{{1,6}}[ \t]+{words}[ \t*#]*$",
        re.MULTILINE | re.IGNORECASE,
    )


_MATERIAL, _RESULT, _ASKED, _ANSWERED = map(_label, ("material", "results", "asked", "answered"))
NAMES_MATERIAL = re.compile(rf"(?<!\w)(?:{joined('material')})(?!\w)", re.IGNORECASE)
_SITUATION = re.compile(joined("situation"), re.IGNORECASE)
_TASK = re.compile(joined("tasks"), re.IGNORECASE)
_SPEAKERS = "|".join(rf"(?P<{who}>{joined(f'{who}_labels')})" for who in ("person", "machine", "step"))
# After a time, if there is one; with a colon, or alone on a line that begins a paragraph.
_SPEAKER = re.compile(
    rf"^[ \t>*-]{{0,6}}(?:[\[(]?\d[\d:.,/T \t-]{{2,24}}(?:[AaPp]\.?[Mm]\.?)?[\])]?[ \t,-]{{0,4}})?\[?(?:{_SPEAKERS})"
    r"(?:[ \t]*[(（\[][^)\n）\]]{1,40}[)）\]])?\]?[ \t*]{0,4}[:：]",
    re.MULTILINE | re.IGNORECASE,
)
_SPEAKER_ALONE = re.compile(
    rf"(?:\A|(?<=\n\n))[ \t#*]{{0,8}}(?:{_SPEAKERS})[ \t*]{{0,4}}$", re.MULTILINE | re.IGNORECASE
)
_NAMED = re.compile(
    r"^[ \t]*\[(?P<name>[^\W\d][\w .-]{0,40})\](?:[ \t]+[^\W\d]{1,12})?[ \t]*[:：](?![ \t]*https?:)", re.MULTILINE
)
_MACHINE = re.compile(rf"(?<!\w)(?:{joined('machine_labels')})(?!\w)", re.IGNORECASE)
# A short label, and one that ends the text: `Q: … A: … Q: … A:`.
_ANY_LABEL = re.compile(r"^[ \t#*]{0,8}(?P<label>[^\W\d][\w ]{0,24})[ \t*]{0,4}[:：]", re.MULTILINE)
_BODY = re.compile(r"[ \t]*\n\s*")
_VALUE = re.compile(r"^[ \t]*(?=[\[{])", re.MULTILINE)
SELF = re.compile(joined("self"), re.IGNORECASE)
_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "「": "」", "«": "»", "„": "“", "`": "`"}
_LEADING = re.compile(r"(?:^|\n)[ \t]*(?:#{1,6}[ \t][^\n]{0,200}|[^\n]{0,200}[:：])[ \t]*\n?\s*\Z")
_MARKED = re.compile(r"^[ \t]*\[\[ ## (?P<name>[\w ]{1,60}) ## \]\][ \t]*$", re.MULTILINE)


def places(spans: Iterable[Span]) -> Callable[[int], bool]:
    """Whether a place is within one of the spans, in logarithmic time."""
    starts: list[int] = []
    ends: list[int] = []
    for start, end in sorted(spans):
        if ends and start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)

    def is_within(place: int) -> bool:
        at = bisect_right(starts, place) - 1
        return at >= 0 and place < ends[at]

    return is_within


def outside(matches: Iterable[re.Match[str]], spans: Iterable[Span]) -> list[re.Match[str]]:
    """The matches that begin within none of the spans."""
    is_within = places(spans)
    return [one for one in matches if not is_within(one.start())]


def transcript(text: str, found: Sequence[Span], fences: Sequence[Span]) -> Found:
    """From the first speaker's label on, where two speak, one of them a machine; a last paragraph of its own stays."""
    labels = sorted(
        (one for pattern in (_SPEAKER, _SPEAKER_ALONE) for one in pattern.finditer(text)), key=lambda one: one.start()
    )
    labels = outside(labels, [*found, *fences])
    speakers = {one.lastgroup for one in labels}
    if not {"person", "machine"} <= speakers:
        return [], False
    # A program does not call the person "Me".
    is_pasted = any(SELF.search(one[0]) for one in labels)
    return [(leading(text, labels[0].start()), _behind_last(text, labels[-1].end()))], not is_pasted


def speakers(text: str, found: Sequence[Span], fences: Sequence[Span]) -> Found:
    """From the first of several `[name]:` on; a last paragraph of its own stays."""
    labels = outside(_NAMED.finditer(text), [*found, *fences])
    if len({one["name"] for one in labels}) < 2:
        return [], bool(labels)
    return [(leading(text, labels[0].start()), _behind_last(text, labels[-1].end()))], True


def messages(text: str, _found: Sequence[Span], _fences: Sequence[Span]) -> Found:
    """Values of JSON that are messages with their roles."""
    spans: list[Span] = []
    if '"role"' not in text:
        return spans, False
    decoder = json.JSONDecoder()
    for start, _ in zip(_VALUE.finditer(text), range(_MOST_VALUES), strict=False):
        if spans and start.end() < spans[-1][1]:
            continue
        try:
            value, end = decoder.raw_decode(text, start.end())
        except (ValueError, RecursionError):
            continue
        if any(isinstance(one, dict) and "role" in one for one in (value if isinstance(value, list) else [value])):
            spans.append((start.end(), end))
    return spans, False


def examples(text: str, _found: Sequence[Span], fences: Sequence[Span]) -> Found:
    """Before the last case, where the text ends with a label that waits for what follows it in the examples above."""
    labels = outside(_ANY_LABEL.finditer(text), fences)
    if len(labels) < 4 or text[labels[-1].end() :].strip():
        return [], False
    names = [one["label"].strip().lower() for one in labels]
    earlier = [at for at, name in enumerate(names[:-1]) if name == names[-1]]
    if not earlier:
        return [], False
    known = set(names[: earlier[-1]])
    case = next((at for at in range(earlier[-1] + 1, len(labels) - 1) if names[at] in known), None)
    start = labels[case].end() if case is not None else labels[-1].start()
    return [(0, start), (labels[-1].start(), len(text))], True


def is_announced_by_machine(text: str) -> bool:
    """Whether it begins with a line that names a machine and announces its words: `Report of the search agent:`"""
    first = text.lstrip()[:120].partition("\n")[0].rstrip()
    return first.endswith((":", "：")) and _MACHINE.search(first) is not None and SELF.search(first) is None


def sections(text: str, _found: Sequence[Span], _fences: Sequence[Span]) -> Found:
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


def unquoted(text: str, start: int = 0, end: int | None = None) -> Span | None:
    """What stands inside quotation marks around the whole of a passage, one or three, as shells and templates put them
    there; None where there are none."""
    end = len(text) if end is None else end
    start, end = end - len(text[start:end].lstrip()), start + len(text[start:end].rstrip())
    closing = _QUOTES.get(text[start]) if start < end else None
    if closing is None:
        return None
    width = 3 if text.startswith(text[start] * 3, start) else 1
    first, last = start + width, end - width
    # A fence is around code.
    if first >= last or text[last:end] != closing * width or text.startswith("```", start):
        return None
    inner = text[first:last]
    return (first, last) if text[start] not in inner and closing not in inner else None


def without_speaker(text: str) -> str:
    """A line of a transcript without the label of who speaks."""
    label = _SPEAKER.match(text)
    return text[label.end() :].strip() if label else text


def labelled(text: str, found: Sequence[Span], fences: Sequence[Span]) -> Found:
    """What stands behind labels of documents and results, and the labels of questions and answers themselves."""
    labels = _labels(text, [*found, *fences])
    if not labels or (not found and _is_own_form(text, labels)):
        return [], False
    kinds = {kind for _, kind in labels}
    is_framed = (
        bool(found)
        or {"asked", "answered"} <= kinds
        or (len(kinds) > 1 and not kinds.isdisjoint({"material", "result"}))
    )
    begins = not text[: labels[0][0].start()].strip()
    is_bare = begins and not found and kinds <= {"material", "asked"}
    asks = [label.start() for label, kind in labels if kind == "asked"]
    last, last_kind = labels[-1]
    waits = last_kind == "answered" and not text[last.end() :].strip()
    is_slot = last_kind == "asked" and is_framed and unquoted(text, last.end()) is not None
    is_prompt = bool(asks) and (waits or is_slot)
    # A text that ends where the answer is to stand, or with a question in marks, is a template: what it asks is its
    # last slot.
    spans: list[Span] = [(0, asks[-1])] if is_prompt and asks[-1] else []
    for (label, kind), following in zip(labels, [*labels[1:], None], strict=True):
        start, end = label.span()
        until = following[0].start() if following else len(text)
        if kind == "result":
            spans.append((start, until))
        elif kind == "material" and is_framed and not _is_told_of_oneself(label, text[end:until], is_bare=is_bare):
            spans.append((start, until if following else _last_paragraph(text, end)))
        elif kind == "material" and not is_framed and (paragraph := _first_paragraph(text, label, until)):
            spans.append((start, paragraph))
        elif kind == "answered" and is_framed:
            spans.append((start, until if following else _last_of_oneself(text, end)))
        elif kind == "asked" and (is_framed or (begins and labels[0][1] == "asked")):
            inner = unquoted(text, end, until)
            spans += [(start, inner[0]), (inner[1], until)] if inner else [(start, end)]
    is_question = len(labels) == 1 and labels[0][1] == "asked" and _is_plain_question(labels[0][0])
    return spans, bool(spans) and not is_question


def _labels(text: str, others: Sequence[Span]) -> list[tuple[re.Match[str], str]]:
    """The labels and their kinds, the first first."""
    patterns = (("material", _MATERIAL), ("result", _RESULT), ("asked", _ASKED), ("answered", _ANSWERED))
    found = [(label, kind) for kind, pattern in patterns for label in pattern.finditer(text)]
    is_quoted = places(others)
    found = [one for one in found if not is_quoted(one[0].start())]
    # "Results of the call to my bank:" is no tool's.
    found = [(label, kind) for label, kind in found if kind != "result" or SELF.search(label[0]) is None]
    return sorted(found, key=lambda one: one[0].start())


def _is_own_form(text: str, labels: Sequence[tuple[re.Match[str], str]]) -> bool:
    """Whether it is an order that somebody parts by labels: their own situation, and a task; no program asks so for an
    answer out of documents."""
    # "Output: a table" waits for no answer.
    ends = [label.start() for label, _ in labels[1:]] + [len(text)]
    labels = [
        one
        for one, end in zip(labels, ends, strict=True)
        if one[1] != "answered" or not text[one[0].end() : end].strip()
    ]
    kinds = {kind for _, kind in labels}
    if kinds != {"material", "asked"} or text[: labels[0][0].start()].strip():
        return False
    for (label, kind), following in zip(labels, [*labels[1:], None], strict=True):
        part = text[label.end() : following[0].start() if following else len(text)]
        if kind == "asked" and _TASK.search(label[0]) is None:
            return False
        if kind == "material" and not _is_situation(label, part):
            return False
    return True


def _is_plain_question(label: re.Match[str]) -> bool:
    """Whether it is one word that people write before what they ask, too: "Question: I am a nurse, …"."""
    return len(re.findall(r"\w+", label[0])) == 1 and _TASK.search(label[0]) is None


def _is_situation(label: re.Match[str], part: str) -> bool:
    is_numbered = any(label.groups())
    return not is_numbered and _SITUATION.search(label[0]) is not None and len(part.strip()) <= _LONGEST_OF_ONESELF


def _is_told_of_oneself(label: re.Match[str], part: str, *, is_bare: bool) -> bool:
    """Whether somebody tells of themselves on the label's own line: people write "Context: I am a nurse." Where nothing
    but labels shows a program, a few lines may be theirs."""
    line, _, rest = part.partition("\n")
    is_line = len(line) <= _LONGEST_OF_ONESELF and not rest.strip() and SELF.match(line.strip()) is not None
    return (is_line and not any(label.groups())) or (is_bare and _is_situation(label, part))


def _first_paragraph(text: str, label: re.Match[str], until: int) -> int:
    """Where the paragraph under a label ends that stands on a line of its own; 0 where nothing follows."""
    body = _BODY.match(text, label.end())
    if body is None or _SITUATION.search(label[0]):
        return 0
    at = text.find("\n\n", body.end(), until)
    # Nothing is cut where nothing would be left.
    return at if at >= 0 and text[at:until].strip() else (until if until < len(text) else 0)


def _last_paragraph(text: str, start: int) -> int:
    """Where the last paragraph behind `start` begins, if there are two."""
    at = text.rstrip().rfind("\n\n", start)
    return at if at >= 0 and text[start:at].strip() else len(text)


def _last_of_oneself(text: str, start: int) -> int:
    """Where a last paragraph in which somebody speaks of themselves begins: what stands above it was answered."""
    at = _last_paragraph(text, start)
    return at if SELF.search(text, at) else len(text)


def _behind_last(text: str, start: int) -> int:
    """Where what the last speaker said ends: before a last paragraph, if there is one behind it."""
    rest = text.rfind("\n\n", start)
    return rest if rest >= 0 and text[start:rest].strip() else len(text)


def leading(text: str, start: int) -> int:
    """Where the line above begins that announces what starts here: of a line in which somebody speaks of themselves
    its last sentence."""
    leading = _LEADING.search(text, max(0, start - 400), start)
    if leading is None:
        return start
    line = leading[0]
    if SELF.search(line) is None:
        return leading.start()
    ends = [mark.end() for mark in re.finditer(r"[.!?](?=\s)|[。！？]", line)]
    return leading.start() + ends[-1] if ends else start


READERS = (sections, examples, messages, transcript, speakers, labelled)
