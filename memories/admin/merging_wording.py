"""What a merge of two people does, in plain words: counts side by side, and where the two meet."""

from collections.abc import Mapping
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.curation import Fate, PersonMergePreview
from memories.models import PersonMerge, Section

Words = str | Promise
# What is compared → how it is called.
COMPARED: Mapping[str, Words] = {
    "sessions": _("Sessions"),
    "turns": _("Turns"),
    "active": _("Active facts"),
    "facts": _("Facts in all"),
    "episodes": _("Episodes"),
    "sections": _("Profile sections"),
    "questions": _("Waiting for review"),
    "refusals": _("Refused for good"),
}
FIELDS: Mapping[str, Words] = {
    "display_name": _("Display name"),
    "time_zone": _("Time zone"),
    "language": _("Language"),
    "metadata": _("Metadata"),
    "capture": _("Turns are not stored"),
    "serve": _("Memory is not served"),
}
SAME_TEXTS = (_("Facts that both have"), _("The stronger one stays; the other is superseded by it."))
ASKED = (_("Questions for the review queue"), _("Two facts about one key, and what was refused of the other."))
RENAMED = (_("Sessions with the same id"), _("Those of the person who goes get another id."))
SECTION_OF = {
    Fate.MOVED: _("Moves over: only the person who goes has it."),
    Fate.WRITTEN: _("The text of the person who goes takes its place."),
    Fate.ASKED: _("The survivor's stays; the other text waits for review."),
    Fate.LEFT: _("Stays as it is: both say the same, or the other nothing."),
}
DONE: Mapping[str, tuple[Words, Words]] = {
    "sessions": (_("Sessions"), ""),
    "facts": (_("Facts"), ""),
    "twins": SAME_TEXTS,
    "asked": ASKED,
    "renamed": RENAMED,
    "sections": (_("Profile sections"), _("Moved, written, or put to review.")),
    "refusals": (_("Refused for good"), ""),
    "kept": (_("Left as it was"), _("It had changed since the merge.")),
}


class Compared(NamedTuple):
    """One line of the table: how many of something each of the two has."""

    name: Words
    survivor: int
    merged: int


class Meeting(NamedTuple):
    """Something that both have, how often (None: it is one), and what becomes of it."""

    name: Words
    number: int | None
    says: Words


def rows_of(preview: PersonMergePreview) -> list[Compared]:
    """What each of the two has, in a fixed order; what neither has is left out."""
    rows = [Compared(words, preview.survivor[name], preview.merged[name]) for name, words in COMPARED.items()]
    return [row for row in rows if row.survivor or row.merged]


def meetings(of: PersonMergePreview | PersonMerge) -> list[Meeting]:
    """Where the two meet; of a merge that was done, what it did."""
    if isinstance(of, PersonMerge):
        return [Meeting(name, of.counts[code], says) for code, (name, says) in DONE.items() if of.counts.get(code)]
    found = [
        Meeting(SAME_TEXTS[0], of.same_texts, SAME_TEXTS[1]),
        Meeting(ASKED[0], of.same_keys + of.refused, ASKED[1]),
        Meeting(RENAMED[0], of.same_sessions, RENAMED[1]),
    ]
    sections = [Meeting(Section(section).label, None, SECTION_OF[fate]) for section, fate in of.sections.items()]
    return [*(one for one in found if one.number), *sections]


def fields_taken(preview: PersonMergePreview) -> list[Words]:
    """Fields of the record that the survivor takes over."""
    return [FIELDS[name] for name in preview.taken]
