"""The ZIP file of an export, written row by row: data.json, readable.html, README.txt and schema.json.

data.json and the page that people read are made of the same rows. The page has no script and loads nothing.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from itertools import islice
from typing import IO, Any
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from django.apps import apps
from django.template.defaultfilters import yesno
from django.template.loader import render_to_string

from memories.privacy.exports import schema
from memories.privacy.exports.disclosures import about
from memories.privacy.exports.profiles import ExportSection, sections_of
from memories.privacy.exports.rows import CHUNK, ExportRow, Subject, as_text, rows

Counts = dict[str, int]
# The page shows them beside what they are about; data.json has all of their fields.
_SHOWN_ABOVE = ("evidence", "revisions")


@dataclass(frozen=True)
class Heading:
    """Whose export it is, why and as of when; `after_chunk` is called after every few rows, with the rows so far.

    `counts`: the number of rows of each list that data.json has.
    """

    subject: Subject
    case: UUID
    made_at: datetime
    after_chunk: Callable[[Counts], None]
    counts: Counts = field(default_factory=dict)

    @cached_property
    def about(self) -> dict[str, Any]:
        return about(self.subject)

    def chunks(self, section: ExportSection) -> Iterator[list[ExportRow]]:
        found = rows(section, self.subject)
        while chunk := list(islice(found, CHUNK)):
            yield chunk
            self.after_chunk(dict(self.counts))


def write(file: IO[bytes], heading: Heading) -> Counts:
    """Write the archive in the language in force; return the number of rows of each list.

    All reads should be of one snapshot. The same rows at the same moment give the same bytes.
    """
    with ZipFile(file, "w") as archive:
        _write_member(archive, heading, "data.json", _data(heading))
        _write_member(archive, heading, "readable.html", _page(heading))
        readme = render_to_string("memories/export_readme.txt", {"heading": heading})
        _write_member(archive, heading, "README.txt", [readme])
        _write_member(archive, heading, "schema.json", [json.dumps(schema.document(), indent=1)])
    return heading.counts


def _write_member(archive: ZipFile, heading: Heading, name: str, parts: Iterator[str] | list[str]) -> None:
    entry = ZipInfo(name, heading.made_at.timetuple()[:6])
    entry.compress_type = ZIP_DEFLATED
    # The size is not known beforehand.
    with archive.open(entry, "w", force_zip64=True) as member:
        for part in parts:
            member.write(part.encode())


def _data(heading: Heading) -> Iterator[str]:
    """data.json, one row a line; fills the counts of the heading."""
    counts = heading.counts
    head = {
        "format": schema.FORMAT,
        "version": schema.VERSION,
        "profile": heading.subject.profile,
        "case": heading.case,
        "made_at": heading.made_at,
        "about": heading.about,
    }
    yield "{\n"
    for name, value in head.items():
        yield f"{_json(name)}: {_json(value)},\n"
    for section in sections_of(heading.subject.profile):
        counts[section.name] = 0
        yield f"{_json(section.name)}: ["
        for chunk in heading.chunks(section):
            lead = ",\n" if counts[section.name] else "\n"
            counts[section.name] += len(chunk)
            yield lead + ",\n".join(_json(row) for row in chunk)
        yield "\n],\n"
    yield f'"counts": {_json(counts)}\n}}\n'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=as_text)


def _page(heading: Heading) -> Iterator[str]:
    """readable.html, a few rows a part, with the counts of data.json; times are in the time zone in force."""
    counts = heading.counts
    sections = [section for section in sections_of(heading.subject.profile) if counts[section.name]]
    contents = [(one.name, one.title, counts[one.name], one.is_data_only) for one in sections]
    yield render_to_string("memories/export_head.html", {"heading": heading, "contents": contents})
    sessions: dict[Any, ExportRow] = {}
    for section in sections:
        if not section.is_data_only:
            yield from _page_section(heading, section, sessions)
    yield render_to_string("memories/export_foot.html", {"heading": heading})


def _page_section(heading: Heading, section: ExportSection, sessions: dict[Any, ExportRow]) -> Iterator[str]:
    """A list of the page; `sessions` collects the sessions, for the turns to name the one that begins."""
    title = {"name": section.name, "title": section.title}
    yield render_to_string("memories/export_section.html", title)
    templates, last = [f"memories/export_{section.name}.html", "memories/export_rows.html"], None
    for chunk in heading.chunks(section):
        words = _words(section.store)
        shown = [{**row, "all": list(_filled(row))} for row in chunk]
        for row in shown:
            row["label"] = {name: words[name][row[name]] for name in words if row.get(name) in words[name]}
            if section.name == "sessions":
                sessions[row["id"]] = row
            elif section.name == "turns" and row["session"] != last:
                last = row["session"]
                row["begins"] = sessions.get(last)
        yield render_to_string(templates, {"rows": shown, "heading": heading})
    yield "</section>\n"


@cache
def _words(store: str) -> dict[str, dict[Any, Any]]:
    """Column → code → what it means, translated when it is shown."""
    columns = apps.get_model(store)._meta.concrete_fields
    return {column.name: dict(column.flatchoices) for column in columns if column.choices}


def _filled(row: ExportRow) -> Iterator[tuple[str, Any]]:
    """Values that are not empty, as text, by their names in data.json."""
    for name, value in row.items():
        if value in ("", None, [], {}) or name in _SHOWN_ABOVE:
            continue
        if isinstance(value, bool):
            yield name, yesno(value)
        elif isinstance(value, dict | list):
            yield name, "\n".join(_lines(value))
        else:
            yield name, value


def _lines(value: Any, indent: str = "") -> Iterator[str]:
    """What has parts, for people: a part a line, and the parts of a part further in."""
    if isinstance(value, list) and not any(isinstance(one, dict | list) for one in value):
        yield indent + ", ".join(map(_plain, value))
        return
    for name, one in value.items() if isinstance(value, dict) else enumerate(value, 1):
        if one and isinstance(one, dict | list):
            yield f"{indent}{name}:"
            yield from _lines(one, f"{indent}  ")
        else:
            yield f"{indent}{name}: {_plain(one)}"


def _plain(value: Any) -> str:
    """A value without parts; one that has none is a dash."""
    if value in ("", None, [], {}):
        return "–"
    return str(yesno(value)) if isinstance(value, bool) else str(value)
