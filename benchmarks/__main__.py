"""`python -m benchmarks [ROW …] [--size …] [--write FILE]`: measure, print the table, write the page."""

import argparse
from datetime import date
from pathlib import Path

from benchmarks import (
    browsing,
    calls,
    exactness,
    files,
    forgetting,
    gateway,
    graphing,
    heavy,
    lasting,
    leaving,
    mcp,
    report,
    searching,
    storing,
    waking,
    walling,
)
from benchmarks.figures import Figure
from benchmarks.rows import ROWS
from benchmarks.stage import SIZES, opened

# Each registers its rows when it is imported.
MORE_ROWS = (
    searching,
    storing,
    exactness,
    waking,
    calls,
    lasting,
    forgetting,
    leaving,
    browsing,
    gateway,
    mcp,
    files,
    graphing,
    heavy,
    walling,
)
# Rows that are measured when they are named.
ON_DEMAND = ("million",)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"{', '.join(ROWS)}; all when none is named")
    parser.add_argument(
        "--size", choices=SIZES, default="full", help="quick: while working on it; smoke: that it runs, not how fast"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the page; what is not measured stays")
    given = parser.parse_args()
    unknown = set(given.rows) - set(ROWS)
    if unknown:
        parser.error(f"There is no row {', '.join(sorted(unknown))}.")
    figures: list[Figure] = []
    with opened(SIZES[given.size]) as stage:
        for name in given.rows or [name for name in ROWS if name not in ON_DEMAND]:
            report.say(f"Measuring {name} …")
            figures += ROWS[name](stage)
        on = report.machine(_server_version())
    report.say(report.table(figures))
    judged = [figure.verdict for figure in figures if figure.target]
    report.say(f"{sum(verdict != 'not met' for verdict in judged)} of {len(judged)} met; {on}.")
    if given.write:
        before = given.write.read_text(encoding="utf-8") if given.rows and given.write.exists() else ""
        given.write.write_text(report.page(figures, day=date.today(), on=on, before=before), encoding="utf-8")


def _server_version() -> str:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        version = str(cursor.fetchone()[0])
    connection.close()
    return version


if __name__ == "__main__":
    main()
