"""readable.html of an export: the rows of data.json as a page for people, in parts; no script, nothing loaded."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from django.apps import apps
from django.template.defaultfilters import yesno
from django.template.loader import render_to_string
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories.privacy.exports.headings import Heading
from memories.privacy.exports.profiles import Section, sections_of
from memories.privacy.exports.told import Told, plain

# Numbers that say nothing to people: told in data.json alone.
_DATA_ONLY = ("turn_vectors", "fact_vectors", "episode_vectors")
# Each beside what it is about, and with all of its fields in data.json.
_SHOWN_ABOVE = ("evidence", "revisions")
_TITLES: dict[str, str | Promise] = {
    "people": _("Your record"),
    "sessions": _("Conversations"),
    "turns": _("What was said"),
    "facts": _("What is remembered"),
    "profile_sections": _("Your profile"),
    "profile_history": _("How the profile changed"),
    "episodes": _("Episodes"),
    "review_items": _("Questions that people decide"),
    "runs": _("Runs of the model"),
    "refusals": _("What was refused for good"),
    "fact_merges": _("Statements that were made one"),
    "merges": _("Records that were made one"),
    "turn_vectors": _("Vectors of turns"),
    "fact_vectors": _("Vectors of statements"),
    "episode_vectors": _("Vectors of episodes"),
    "kept_answers": _("Copies of answers to the application"),
    "cases": _("Requests about your data"),
    "exports": _("Copies like this one"),
}


def parts(heading: Heading, counts: dict[str, int]) -> Iterator[str]:
    """The page from its head to its end, a few rows a part; `counts` as data.json tells them.

    Times are in the zone in force.
    """
    sections = [section for section in sections_of(heading.subject.profile) if counts[section.name]]
    contents = [(one.name, _TITLES[one.name], counts[one.name], one.name in _DATA_ONLY) for one in sections]
    yield render_to_string("memories/export_head.html", {"heading": heading, "contents": contents})
    sessions: dict[Any, Told] = {}
    for section in sections:
        if section.name not in _DATA_ONLY:
            yield from _section(heading, section, sessions)
    yield render_to_string("memories/export_foot.html", {"heading": heading})


def _section(heading: Heading, section: Section, sessions: dict[Any, Told]) -> Iterator[str]:
    title = {"name": section.name, "title": _TITLES[section.name]}
    yield render_to_string("memories/export_section.html", title)
    ours, last = [f"memories/export_{section.name}.html", "memories/export_rows.html"], None
    for chunk in heading.chunks(section):
        shown = [_shown(row, section) for row in chunk]
        for row in shown:
            last = _begin(row, section, sessions, last)
        yield render_to_string(ours, {"rows": shown, "heading": heading})
    yield "</section>\n"


def _begin(row: Told, section: Section, sessions: dict[Any, Told], last: Any) -> Any:
    """Note a session, or say with a turn which session begins there; the session that the row is of."""
    if section.name == "sessions":
        sessions[row["id"]] = row
    if section.name != "turns":
        return None
    if row["session"] != last:
        row["begins"] = sessions.get(row["session"])
    return row["session"]


def _shown(row: Told, section: Section) -> Told:
    """The row with its codes as words (`label`) and all that it says as a list (`all`)."""
    return {**row, "label": _labels(row, section), "all": list(_all(row))}


def _labels(row: Told, section: Section) -> dict[str, Any]:
    words = _words(section.store)
    return {name: words[name][row[name]] for name in words if row.get(name) in words[name]}


@cache
def _words(store: str) -> dict[str, dict[Any, Any]]:
    """Column → code → what it means, to be translated when it is shown."""
    columns = apps.get_model(store)._meta.concrete_fields
    return {column.name: dict(column.flatchoices) for column in columns if column.choices}


def _all(row: Told) -> Iterator[tuple[str, Any]]:
    """What is not empty, by its name in data.json."""
    for name, value in row.items():
        if value in ("", None, [], {}) or name in _SHOWN_ABOVE:
            continue
        yield name, _text(value)


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return yesno(value)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False, default=plain, indent=1) if isinstance(value, dict | list) else value
