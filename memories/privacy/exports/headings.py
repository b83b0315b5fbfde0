"""What an export begins with, and its rows a few at a time: data.json and the page for people are made of the same."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any
from uuid import UUID

from memories.privacy.exports import export_schema
from memories.privacy.exports.computed import Subject
from memories.privacy.exports.disclosures import about
from memories.privacy.exports.profiles import Section
from memories.privacy.exports.told import CHUNK, Told, rows


@dataclass(frozen=True)
class Heading:
    """Of whom, why and as of when; `rest` is called after every few rows."""

    subject: Subject
    case: UUID
    made_at: datetime
    rest: Callable[[], None]

    @cached_property
    def about(self) -> dict[str, Any]:
        return about(self.subject)

    @property
    def told(self) -> Told:
        return {
            "format": export_schema.FORMAT,
            "version": export_schema.VERSION,
            "profile": self.subject.profile,
            "case": self.case,
            "made_at": self.made_at,
            "about": self.about,
        }

    def chunks(self, section: Section) -> Iterator[list[Told]]:
        found = rows(section, self.subject)
        while chunk := list(islice(found, CHUNK)):
            yield chunk
            self.rest()
