"""What the hub holds once the traffic has ended: asked by its API, and of the database for traces."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import psycopg

from tests.commands.hub import Hub
from tests.faults.evidence import wrong
from tests.faults.posting import is_drained
from tests.scratch import connect
from tests.soak.asking import Caller
from tests.soak.journal import Journal, marks
from tests.soak.people import Person

PATIENCE_SECONDS = 600.0
LOOK_SECONDS = 0.5
# In what talkers say over REST, and nobody else.
KEPT = "I keep a"
SERVER = "postgres"
_TABLES = """
    SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
    WHERE schemaname NOT IN ('pg_catalog', 'information_schema')
"""


def drain(hub: Hub, journal: Journal) -> None:
    """Wait until nothing is left to do, now or later; note how long it took, None where it took too long."""
    journal.note(do="drained", seconds=wait(hub))


def wait(hub: Hub) -> float | None:
    begun = time.monotonic()
    while not is_drained(hub):
        if time.monotonic() - begun > PATIENCE_SECONDS:
            return None
        time.sleep(LOOK_SECONDS)
    return round(time.monotonic() - begun, 1)


def note_turns(caller: Caller, person: Person, journal: Journal) -> None:
    """All turns of all sessions of a person, as the API lists them."""
    for session in _pages(caller, f"/api/v1/sessions?{urlencode({'user_id': person.user_id, 'page_size': 200})}"):
        noted = {"person": person.prefix, "session": session["session_id"]}
        for turn in _pages(caller, f"/api/v1/sessions/{session['id']}/turns?page_size=200"):
            found = (marks(str(turn["content"])) or [""])[0]
            shown = {"number": turn["number"], "role": turn["role"], "mark": found, "left": turn["left_at"]}
            journal.note(do="held", **noted, **shown)


def note_facts(caller: Caller, person: Person, journal: Journal) -> None:
    """The marks of all facts of a person."""
    path = f"/api/v1/facts?{urlencode({'user_id': person.user_id, 'status': 'all', 'page_size': 200})}"
    found = [mark for fact in _pages(caller, path) for mark in marks(fact["content"])]
    journal.note(do="facts of", person=person.prefix, marks=found)


def note_files(caller: Caller, person: Person, journal: Journal) -> None:
    """The marks of all files of a person, with what became of each."""
    path = f"/api/v1/attachments?{urlencode({'user_id': person.user_id, 'page_size': 200})}"
    found = [[mark, file["state"]] for file in _pages(caller, path) for mark in marks(file["name"])]
    journal.note(do="files of", person=person.prefix, files=found)


def note_trajectories(caller: Caller, person: Person, journal: Journal) -> None:
    path = f"/api/v1/trajectories?{urlencode({'user_id': person.user_id, 'page_size': 200})}"
    found = [mark for one in _pages(caller, path) for mark in marks(one["task"])]
    journal.note(do="trajectories of", person=person.prefix, marks=found)


def note_fact(caller: Caller, fact: str, journal: Journal) -> None:
    answer = caller.send("GET", f"/api/v1/facts/{fact}", None, {})
    if answer.status == 200:
        journal.note(do="fact in the end", id=fact, seen=[answer.body["status"], answer.body["content"]])


def _pages(caller: Caller, path: str | None) -> Iterator[dict[str, Any]]:
    while path:
        answer = caller.send("GET", path, None, {})
        if answer.status != 200:
            raise ConnectionError(f"{path} answered {answer.status} in the end")
        yield from answer.body["results"]
        following = answer.body["next"]
        path = "?".join(urlsplit(following)[2:4]) if following else None


def note_extraction(hub: Hub, journal: Journal) -> None:
    with connect(hub.home) as database:
        for what, rows in wrong(database, KEPT).items():
            journal.note(do="wrong", what=what, rows=[[str(value) for value in row] for row in rows])


def note_traces(hub: Hub, journal: Journal, erased: Iterable[str]) -> None:
    """Where marks of erased people are: in any table, plain or in hex, or in a file of the hub."""
    sought = {person: (person.encode(), person.encode().hex().encode()) for person in erased}
    with connect(hub.home) as database:
        tables = [name for (name,) in database.execute(_TABLES).fetchall()]
        places: Iterable[tuple[str, bytes]] = ((name, _copied(database, name)) for name in tables)
        for place, data in (*places, *_files(hub.home)):
            for person, forms in sought.items():
                if any(form in data for form in forms):
                    journal.note(do="trace", person=person, place=place)
    journal.note(do="searched", tables=len(tables), people=len(sought))


def _copied(database: psycopg.Connection, table: str) -> bytes:
    with database.cursor() as cursor, cursor.copy(f"COPY (TABLE {table}) TO STDOUT".encode()) as copy:
        return b"".join(bytes(part) for part in copy)


def _files(home: Path) -> Iterator[tuple[str, bytes]]:
    """The hub's own; those of the server are searched as tables."""
    for path in home.rglob("*"):
        if path.is_file() and SERVER not in path.parts:
            yield f"the file {path.name}", path.read_bytes()
