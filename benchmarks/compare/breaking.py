"""What is left of a person who is deleted, and what a kill during writes loses or doubles."""

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import psycopg
from psycopg import sql

from benchmarks import load, rows
from benchmarks.compare.figures import HUB, Row
from benchmarks.compare.products import Peer, Product
from benchmarks.compare.searching import Course

LEAVER, LEAVING_ROWS, MARK = "leaver-quokka", 200, "quokka"
WRITERS, WRITING_SECONDS, AFTERWARDS = 4, 3.0, 10
_HEAD = b"SQLite format 3\0"
_TABLES = """
    SELECT table_schema, table_name FROM information_schema.tables
    WHERE table_schema NOT IN ('pg_catalog', 'information_schema') AND table_type = 'BASE TABLE'
"""


def erasing(course: Course) -> Iterator[Row]:
    """A person with 200 rows among the others is added row by row and deleted; then every table is looked into."""
    found = course.each("deletion of a person", _erased)
    notes = {
        name: ", ".join(f"{count} in {place}" for place, count in sorted(after.items()))
        for name, (_, after) in found.items()
        if after
    }
    what = f"rows that still hold words of a deleted person with {LEAVING_ROWS} rows"
    yield Row(what, "", {name: after.total() for name, (_, after) in found.items()}, notes=notes)
    what = f"deletion of a person with {LEAVING_ROWS} rows"
    yield Row(what, "s", {name: seconds for name, (seconds, _) in found.items()})


def _erased(one: Product) -> tuple[float, Counter[str]]:
    """Seconds of the deletion, and what is left by its place. Errors: RefusedError when it did not have the rows."""
    texts = [f"The {MARK} sleeps under shelf ({place})" for place in range(LEAVING_ROWS)]
    load.answers(one.server, [one.add(LEAVER, text, f"leaver-{place}") for place, text in enumerate(texts)])
    if one.name == HUB:
        rows.wait_for_the_embedder()
    before = _holding(one)
    if before.total() < LEAVING_ROWS:
        raise load.RefusedError(f"{one.title} has {before.total()} rows of {LEAVING_ROWS} that were added.")
    began = time.monotonic()
    one.erase(LEAVER)
    return time.monotonic() - began, _holding(one)


@dataclass
class Written:
    """What one writer sent, in order; the last one may have had no answer."""

    sent: list[tuple[str, str]] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)


def killing(course: Course) -> Iterator[Row]:
    """Writers of all products at once; SIGKILL to everything, PostgreSQL too; then all start again, and each writer
    sends what got no answer once more, with the same key, and some more."""
    written = {one.name: [Written() for _ in range(WRITERS)] for one in course.products}
    _write_until_killed(course.products, written)
    back = course.each("start after kill -9", lambda one: _seconds_until_back(one, course.ground.questions[0]))
    started = replace(course, products=[one for one in course.products if one.name in back])
    kept = started.each("writes after kill -9", lambda one: _lost_and_doubled(one, written[one.name]))
    lost, doubled = ({name: pair[at] for name, pair in kept.items()} for at in range(2))
    yield Row("rows that were answered and are lost after kill -9 of everything, PostgreSQL too", "", lost)
    yield Row("rows that are there twice, when what got no answer is sent again", "", doubled)
    yield Row("from the start after that kill to the first answer", "s", back)


def _seconds_until_back(one: Product, question: str) -> float:
    began = time.monotonic()
    one.start()
    load.answers(one.server, [one.search("somebody", question)])
    return time.monotonic() - began


def _lost_and_doubled(one: Product, written: Sequence[Written]) -> tuple[int, int]:
    for place, each in enumerate(written):
        _send_again(one, place, each)
    stored = Counter(one.texts(_writer(one)))
    answered = {text for each in written for text in each.answered}
    return sum(text not in stored for text in answered), sum(count - 1 for count in stored.values())


def _holding(one: Product) -> Counter[str]:
    """How many rows hold the mark or the name, by place: tables of its database, SQLite files and lines of logs in its
    folder, and what a peer itself lists of them, whose database may be another one."""
    found: Counter[str] = Counter()
    if isinstance(one, Peer):
        found["its own list"] = len(one.texts(LEAVER))
    with psycopg.connect(one.database()) as connection:
        for schema, table in connection.execute(_TABLES).fetchall():
            asked = sql.SQL("SELECT count(*) FROM {} t WHERE t::text LIKE %s").format(sql.Identifier(schema, table))
            counted = connection.execute(asked, [f"%{MARK}%"]).fetchone()
            found[table] += counted[0] if counted else 0
    for path in filter(_is_sqlite, one.folder().rglob("*")):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                rows_of_it = database.execute(f'SELECT * FROM "{table}"')
                found[f"{path.name}: {table}"] += sum(MARK.encode() in _bytes(row) for row in rows_of_it)
    for path in one.folder().rglob("*.jsonl"):
        found[path.name] += sum(MARK.encode() in line for line in path.read_bytes().splitlines())
    return +found


def _is_sqlite(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_HEAD)) == _HEAD


def _bytes(row: Sequence[object]) -> bytes:
    return b"\0".join(value if isinstance(value, bytes) else str(value).encode() for value in row)


def _write_until_killed(products: Sequence[Product], written: dict[str, list[Written]]) -> None:
    threads = [
        threading.Thread(target=_write, args=[one, place, each])
        for one in products
        for place, each in enumerate(written[one.name])
    ]
    for thread in threads:
        thread.start()
    time.sleep(WRITING_SECONDS)
    # The hub last: its end is that of the PostgreSQL on which the others are.
    for one in sorted(products, key=lambda one: one.name == HUB):
        one.kill()
    for thread in threads:
        thread.join()


def _write(one: Product, place: int, written: Written) -> None:
    """One row after the other over one connection, until it breaks."""
    number = 0
    while True:
        text = f"The otter of writer {place} counts shells ({number})"
        key = f"{one.name}-{place}-{number}"
        written.sent.append((text, key))
        try:
            load.answers(one.server, [one.add(_writer(one), text, key)])
        except (OSError, load.RefusedError):
            return
        written.answered.add(text)
        number += 1


def _send_again(one: Product, place: int, written: Written) -> None:
    more = [
        (f"The otter of writer {place} sorts pebbles ({at})", f"{one.name}-{place}-more-{at}")
        for at in range(AFTERWARDS)
    ]
    for text, key in [*(each for each in written.sent if each[0] not in written.answered), *more]:
        load.answers(one.server, [one.add(_writer(one), text, key)])
        written.answered.add(text)


def _writer(one: Product) -> str:
    return f"writer-{one.name}"
