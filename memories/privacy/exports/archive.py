"""The ZIP file of an export, written row by row: data.json, readable.html, README.txt and schema.json."""

import json
from collections.abc import Iterator
from typing import IO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from django.template.loader import render_to_string

from memories.privacy.exports import export_page, export_schema
from memories.privacy.exports.headings import Heading
from memories.privacy.exports.profiles import sections_of
from memories.privacy.exports.told import plain

Counts = dict[str, int]


def write(file: IO[bytes], heading: Heading) -> Counts:
    """Write the archive in the language in force; how many rows each list has.

    All reads should be of one snapshot. The same rows at the same moment give the same bytes.
    """
    counts: Counts = {}
    with ZipFile(file, "w") as archive:
        _write(archive, heading, "data.json", _data(heading, counts))
        _write(archive, heading, "readable.html", export_page.parts(heading, counts))
        _write(archive, heading, "README.txt", [render_to_string("memories/export_readme.txt", {"heading": heading})])
        _write(archive, heading, "schema.json", [json.dumps(export_schema.document(), indent=1)])
    return counts


def _write(archive: ZipFile, heading: Heading, name: str, parts: Iterator[str] | list[str]) -> None:
    entry = ZipInfo(name, heading.made_at.timetuple()[:6])
    entry.compress_type = ZIP_DEFLATED
    # Nobody knows beforehand how long it gets.
    with archive.open(entry, "w", force_zip64=True) as member:
        for part in parts:
            member.write(part.encode())


def _data(heading: Heading, counts: Counts) -> Iterator[str]:
    """data.json, a row a line; fills `counts`."""
    yield "{\n"
    for name, value in heading.told.items():
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
    return json.dumps(value, ensure_ascii=False, default=plain)
