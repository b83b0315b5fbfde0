"""The columns of the database's catalogue that can hold words of people: a column that came later is one of them.

What is left out stands here with its reason, or among the waivers of the privacy registry.
"""

import json
import re
from collections.abc import Iterator

from memories.privacy.searching.tables import Column, SearchedTable
from memories.privacy.stores.waivers import WAIVERS

# The type of columns whose texts are looked for as they are.
PROSE = "text"
_VALUES = ("varchar", "bpchar", "json", "jsonb", "_text", "_varchar", "_bpchar")
# Of each value that is read; whole files and documents say the same further on.
MOST_CHARACTERS = 20_000
# A text of JSON, and the colon after the name of a field.
_STRING = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?')
# Ids, digests and moments: of others, too.
_CODE = re.compile(r"[0-9a-fA-F-]+|\d{4}-\d\d-\d\d[T ][0-9:.+Z-]+")

# Model, or place → why none of its texts is a search term.
UNSEARCHED: dict[str, str] = {
    "memories.PrivacyCase": "an erasure keeps its codes, and its texts until it is closed",
    "memories.EndUser.external_id": "looked for as a whole, as a name",
    "memories.EndUser.time_zone": "one of the world's, which settings name, too",
    "memories.LoggedContext.memory": "repeats memories, those of others among them, between sentences of the program",
    "memories.SentBlock.text": "repeats memories, those of others among them, between sentences of the program",
    "memories.Session.external_id": "looked for as a whole, unless others have it, too",
    "memories.SkillTrial.session_id": "looked for as a whole, as the session's",
    "memories.Trajectory.session_id": "looked for as a whole, as the session's",
    "memories.Trajectory.external_id": "looked for as a whole, unless others have it, too",
    "memories.Trajectory.family": "the application's label for a kind of task, which others have, too",
    "memories.Trajectory.skills_named": "names of skills, which others follow, too",
    "memories.TrajectoryStep.tool": "the name of a tool, which others use, too",
    "memories.TrajectoryStep.call_id": "looked for as a whole, unless others have it, too",
    "memories.Turn.external_id": "looked for as a whole, unless others have it, too",
}
# Column → why none of that name is: wherever it stands it is the application's word.
UNSEARCHED_NAMES: dict[str, str] = {"agent_id": "names an agent of the application, which speaks with others, too"}
# Model → the condition for the rows whose texts are somebody's own, and why.
ROWS: dict[str, tuple[str, str]] = {
    "memories.Turn": ("role <> 'system'", "system turns say the application's words to everybody")
}


def searched(table: SearchedTable) -> list[Column]:
    """The columns whose texts are search terms when the row is of the person."""
    return [
        column
        for column in of_words(table)
        if not ({table.label, table.place(column.name)} & UNSEARCHED.keys() or column.name in UNSEARCHED_NAMES)
    ]


def of_words(table: SearchedTable) -> list[Column]:
    """The columns that can hold somebody's words: of texts, of values, of JSON, of lists; not those that are waived."""
    waived = {field for waiver in WAIVERS if waiver.model == table.label for field in waiver.fields or ("*",)}
    if "*" in waived:
        return []
    kinds = (PROSE, *_VALUES)
    return [
        column for column in table.columns
        if column.type in kinds and table.place(column.name).rpartition(".")[2] not in waived
    ]  # fmt: skip


def start(column: Column) -> str:
    """SQL for the beginning of the column's value as JSON text."""
    if column.type == PROSE:
        return f"to_jsonb(left({column.sql}, {MOST_CHARACTERS}))::text"
    return f"left(to_jsonb({column.sql})::text, {MOST_CHARACTERS})"


def strings(value: str) -> Iterator[str]:
    """The whole texts in the beginning of a JSON text, without the names of its fields."""
    for text, colon in _STRING.findall(value):
        if not colon:
            yield json.loads(text)


def says_something(value: str) -> bool:
    """Whether a value is more than a code: an ASCII text without a space names a model, a tool, a file, a choice."""
    is_token = value.isascii() and not any(letter.isspace() or letter == "@" for letter in value)
    return not (is_token or _CODE.fullmatch(value.strip()))
