"""The lines of a context: how each memory is written, and how lines become the rendered block.

Days are those of `zone`, the person's; the frame names it once. A day is told once, above the lines of that day: on
each line it took a quarter of a context of short turns.
"""

import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, tzinfo
from functools import partial
from typing import Any, NamedTuple

from memories.categories import CORRECTIVE
from memories.context.passages import passage
from memories.invisible import strip_invisible
from memories.llm.prompts.framing import escape, shorten
from memories.models import GraphTriple, Role, Section, Turn
from memories.retrieval.evidence import Level
from memories.retrieval.outdated import Outdated, Written
from memories.retrieval.visible_facts import FactText
from memories.text import uploads
from memories.text.memory_block import (
    CLOSING,
    DOCUMENTS,
    ENGLISH,
    EPISODES,
    FACTS,
    FILES,
    GRAPH,
    GROUPS,
    HISTORY,
    NAMED,
    OPENING,
    PLAIN_HEADINGS,
    SUMMARY_CLOSING,
    SUMMARY_OPENING,
    TURNS,
    USER_CONTEXT,
    Frame,
)
from memories.text.sentences import is_question
from memories.time_zones import day_of

# Section of the profile → its heading; in the order of their labels, and under one heading of their lines.
PROFILE_LINES: dict[str, int] = {
    Section.WORK_CONTEXT: USER_CONTEXT,
    Section.PERSONAL_CONTEXT: USER_CONTEXT,
    Section.TOP_OF_MIND: USER_CONTEXT,
    Section.RECENT_MONTHS: HISTORY,
    Section.EARLIER_CONTEXT: HISTORY,
    Section.LONG_TERM_BACKGROUND: HISTORY,
}


# What could end a label, however it is written, and how far into a line one reaches.
_COLON = re.compile(r"[:：﹕︓∶꞉ː։׃︰]")
_LABEL = 60
_FILE_MARK = "  | "
# Stands for the rest of a file's text.
FILE_CUT = "  | …"
# Spaces that are kept before a line of a file.
_DEEPEST = 12
# So many other days on which the same was said are named.
MOST_DAYS = 3


class MemoryLine(NamedTuple):
    """One memory as one line; (`heading`, `place`) is where the rendered block shows it."""

    kind: str
    id: uuid.UUID
    text: str
    heading: int
    place: tuple[Any, ...]
    score: float | None = None
    score_parts: dict[str, float] | None = None
    # Makes what `text` is a part of, told instead where there is room.
    whole: Callable[[], str] | None = None
    # The lines of `text`, if it may be cut after any of them but the first where there is no room for all.
    parts: tuple[str, ...] = ()
    # Turns that say the same, newest first: it stands for them.
    also: tuple["MemoryLine", ...] = ()
    # Whether every context tells it, whatever it was asked for.
    stands: bool = False
    # How strong it is as evidence that it has to do with the query, if it was ranked for one.
    level: Level | None = None
    # What its heading names; lines of one heading and name stand together.
    name: str = ""
    # Stands above it and the other lines of its heading, name and day, which `place` keeps together.
    day: str = ""
    # The text that it tells, and what makes the line of another `text`: both of what can go out of date.
    written: Written | None = None
    line_of: Callable[..., "MemoryLine"] | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Its name beside other lines."""
        return self.kind, str(self.id)

    @property
    def below(self) -> tuple[int, str, str]:
        """Where it stands: lines with the same have the same titles."""
        return self.heading, self.name, self.day

    def titles(self, frame: Frame) -> tuple[str, ...]:
        """The headings above it, from the first to the one directly above."""
        title = frame.headings[self.heading].replace(NAMED, self.name)
        return (title, f"{self.day}:") if self.day else (title,)

    def without(self, outdated: Outdated) -> "MemoryLine | None":
        """The line of what of its text still holds; None if nothing does."""
        if self.written is None or self.line_of is None:
            return self
        text = outdated.told(self.written)
        if text == self.written.text:
            return self
        return line_that_ages(self.line_of, replace(self.written, text=text)) if text else None


def line_that_ages(line_of: Callable[..., MemoryLine], written: Written) -> MemoryLine:
    """The line of a text, which can be made again of what of it still holds."""
    return line_of(text=written.text)._replace(written=written, line_of=line_of)


def profile_line(*, row_id: uuid.UUID, section: str, text: str, frame: Frame = ENGLISH) -> MemoryLine:
    """`- Work: …` and its like (rules.md, 9.1)."""
    place = list(PROFILE_LINES).index(section)
    written = f"- {frame.labels[place]}{one_line(text)}"
    return MemoryLine("profile", row_id, written, PROFILE_LINES[section], (place,), stands=True)


def field_line(*, row_id: uuid.UUID, text: str, place: int) -> MemoryLine:
    """`- Home airport (travel): Eindhoven`, below the sections: a fact that is a field of a profile."""
    return MemoryLine("fact", row_id, f"- {one_line(text)}", USER_CONTEXT, (len(PROFILE_LINES), place), stands=True)


def fact_line(
    fact: FactText,
    *,
    place: int,
    score: float,
    score_parts: dict[str, float],
    confident: bool = False,
    stands: bool = False,
    level: Level | None = None,
) -> MemoryLine:
    """`- [category] content`, or `- [category | 0.95] content`; a correction also names what to avoid."""
    has_error = fact.category in CORRECTIVE and fact.source_error
    avoid = f" (avoid: {one_line(fact.source_error)})" if has_error else ""
    label = f"{fact.category} | {fact.confidence:.2f}" if confident else fact.category
    text = f"- [{label}] {one_line(fact.content)}{avoid}"
    return MemoryLine("fact", fact.id, text, FACTS, (place,), score, score_parts, stands=stands, level=level)


def triple_line(
    triple: GraphTriple, *, text: str, place: int, score: float, score_parts: dict[str, float], zone: tzinfo = UTC
) -> MemoryLine:
    """`- [since 2024-03-01] Max works at Acme`, with the days since and until when it holds, if known; `text`: its
    sentence."""
    limits = (("since", triple.valid_from), ("until", triple.valid_to))
    holds = " ".join(f"{word} {_limit(at, zone)}" for word, at in limits if at)
    beginning = f"- [{holds}] " if holds else "- "
    content = one_line(strip_invisible(text))
    return MemoryLine("triple", triple.pk, beginning + content, GRAPH, (place,), score=score, score_parts=score_parts)


def _limit(at: datetime, zone: tzinfo) -> str:
    """A day that somebody stated is kept as its midnight in UTC, and is no moment."""
    is_day = at.astimezone(UTC).time() == time.min
    return day_of(at, UTC if is_day else zone)


def episode_line(
    *,
    row_id: uuid.UUID,
    text: str,
    ended_at: datetime,
    score: float | None,
    score_parts: dict[str, float],
    zone: tzinfo = UTC,
    level: Level | None = None,
) -> MemoryLine:
    """`- its summary` below the day on which it ended."""
    day = day_of(ended_at, zone)
    place = (day, ended_at, row_id)
    line = MemoryLine("episode", row_id, f"- {one_line(text)}", EPISODES, place, score, score_parts, day=day)
    return line._replace(level=level)


def turn_line(
    turn: Turn,
    text: str | None = None,
    score: float | None = None,
    score_parts: dict[str, float] | None = None,
    *,
    words: Sequence[str] = (),
    length: int | None = None,
    zone: tzinfo = UTC,
) -> MemoryLine:
    """`- …` of the person, `- assistant: …` of others, below the day on which it was sent; a long one keeps its ends.

    `text`: what text_of() found. Up to `length` bytes it is the passage that says most about the words of a query,
    until there is room for more. Texts of uploaded files are left out: they belong to their session, and nobody said
    them.
    """
    sent_at, speaker = turn.sent_at, turn.speaker
    day = day_of(sent_at, zone)
    content = shorten(text_of(turn) if text is None else text)
    shown = content if length is None else passage(content, words, length)
    whole = partial(_said, speaker, content) if shown != content else None
    place = (day, sent_at, turn.session_id, turn.number)
    return MemoryLine("turn", turn.id, _said(speaker, shown), TURNS, place, score, score_parts, whole, day=day)


def said_again(line: MemoryLine, others: Sequence[MemoryLine], text: str) -> MemoryLine:
    """The line of a turn with this text for `others`, too, which say the same: with their days, the first and the last
    of them, unless it asks something."""
    *first, last = sorted({line.day, *(one.day for one in others)} - {line.day}) or [""]
    if not last or is_question(text):
        return line._replace(also=tuple(others))
    days = [*first[:1], *first[1:][-(MOST_DAYS - 2) :], last]
    behind = f" (also on {', '.join(days)})"
    whole = line.whole and partial(_joined, line.whole, behind)
    return line._replace(text=line.text + behind, whole=whole, also=tuple(others))


def _joined(text: Callable[[], str], behind: str) -> str:
    return text() + behind


def _said(speaker: str, text: str) -> str:
    """The person is not named, unless the text could pass for what somebody else said."""
    said = one_line(text)
    is_plain = speaker == Role.USER and not _COLON.search(said[:_LABEL])
    return f"- {said}" if is_plain else f"- {speaker}: {said}"


def file_line(
    *,
    row_id: uuid.UUID,
    path: str,
    text: str,
    changed_at: datetime,
    place: int,
    is_cut: bool,
    zone: tzinfo = UTC,
) -> MemoryLine:
    """`- [2026-11-03] /memories/notes.md:` with the day of its last change, and below it the lines of the text.

    Each begins with a bar, so that none can pass for a heading or a memory of another kind. Blank ones are left out.
    `is_cut`: the text goes on after these lines.
    """
    day = day_of(changed_at, zone)
    indented = [_indented(line) for line in text.splitlines() if line.strip()]
    parts = (f"- [{day}] {one_line(path)}:", *indented, *([FILE_CUT] if is_cut else []))
    return MemoryLine("file", row_id, "\n".join(parts), FILES, (place,), parts=parts)


def plain_line(
    kind: str, *, row_id: uuid.UUID, topic: str, text: str, at: datetime, place: int, zone: tzinfo = UTC
) -> MemoryLine:
    """`- topic: …` below the day on which it was written; further lines of the note stand below it.

    Each of these begins with a bar, as those of files do.
    """
    day = day_of(at, zone)
    first, *rest = [line for line in text.splitlines() if line.strip()] or [""]
    about = f"{one_line(strip_invisible(topic))}: " if topic else ""
    parts = (f"- {about}{one_line(strip_invisible(first))}", *(_indented(line) for line in rest))
    order = (_newest_first(day), place)
    return MemoryLine(kind, row_id, "\n".join(parts), PLAIN_HEADINGS[kind], order, parts=parts, day=day)


def document_line(
    *,
    row_id: uuid.UUID,
    name: str,
    page: int | None,
    where: str,
    text: str,
    at: datetime,
    place: int,
    score: float,
    score_parts: dict[str, float],
    level: Level,
    zone: tzinfo = UTC,
) -> MemoryLine:
    """`- [2026-11-03] lease.pdf, page 2, Lease › Deposit:` with the day on which the file came, and below it the
    lines of the passage; each begins with a bar, as those of files do."""
    named = ", ".join(filter(None, (name or "a file", f"page {page}" if page else "", where)))
    lines = [_indented(line) for line in text.splitlines() if line.strip()]
    parts = (f"- [{day_of(at, zone)}] {one_line(strip_invisible(named))}:", *lines)
    line = MemoryLine("document", row_id, "\n".join(parts), DOCUMENTS, (place,), score, score_parts, parts=parts)
    return line._replace(level=level)


def group_line(
    *,
    row_id: uuid.UUID,
    group: str,
    text: str,
    at: datetime,
    place: tuple[int, int],
    score: float | None = None,
    score_parts: dict[str, float] | None = None,
    zone: tzinfo = UTC,
    level: Level | None = None,
) -> MemoryLine:
    """`- …` below the name of its group, which is escaped, and the day on which a member last said it."""
    day = day_of(at, zone)
    order = (place[0], _newest_first(day), place[1])
    line = MemoryLine("group_fact", row_id, f"- {one_line(text)}", GROUPS, order, score, score_parts, day=day)
    return line._replace(name=group, level=level)


def _newest_first(day: str) -> int:
    return -date.fromisoformat(day).toordinal()


def _indented(line: str) -> str:
    """With its own indentation, because lists in lists are told by it."""
    beginning = len(line) - len(line.lstrip(" \t"))
    return f"{_FILE_MARK}{' ' * min(beginning, _DEEPEST)}{one_line(strip_invisible(line))}".rstrip()


def text_of(turn: Turn) -> str:
    """The part of a turn that a context shows; empty when it holds nothing but uploads."""
    own = turn.own_text
    text = uploads.cut_blocks(own)
    return text if text == own else text.strip()


def one_line(text: str) -> str:
    """White space folded and markup escaped, so that no stored text can end its line, close the block or hide in it."""
    return " ".join(escape(text).split())


def render_summary(summary: str, frame: Frame = ENGLISH) -> str:
    """The block of a conversation's running summary; an empty string for none."""
    if not summary:
        return ""
    return "\n".join([SUMMARY_OPENING, frame.summary_notice, one_line(summary), SUMMARY_CLOSING])


def render(lines: Sequence[MemoryLine], frame: Frame = ENGLISH) -> str:
    """The block of these lines under their headings; an empty string for none."""
    if not lines:
        return ""
    parts = [OPENING, frame.notice]
    above: tuple[str, ...] = ()
    below: tuple[int, str, str] | None = None
    for line in sorted(lines, key=lambda line: (line.heading, line.place)):
        if line.below != below:
            titles, below = line.titles(frame), line.below
            # Below another heading the day is told again.
            parts += titles if titles[:1] != above[:1] else titles[1:] if titles != above else ()
            above = titles
        parts.append(line.text)
    return "\n".join([*parts, CLOSING])
