"""`python -m tests.redteam`: play cases on a database of its own and print a table per round, and what went wrong."""

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import django

from tests.redteam.corpus import FOLDERS

if TYPE_CHECKING:
    from tests.redteam.stage import Outcome


def main() -> None:
    from tests.redteam import report

    given = _arguments()
    for number in [given.round] if given.round else FOLDERS:
        outcomes = _played(number, given.only, disarmed=given.disarmed)
        sys.stdout.write("\n".join([f"Round {number}", report.table(outcomes), "", *report.bad(outcomes), "", ""]))
        if given.write:
            page = given.write.read_text(encoding="utf-8")
            given.write.write_text(report.inserted(page, report.table(outcomes), number), encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.redteam", description=__doc__)
    parser.add_argument("--only", default="", metavar="PREFIX", help="of ids, e.g. echo.zh or key.en.a")
    parser.add_argument("--round", type=int, choices=tuple(FOLDERS), help="this one alone")
    parser.add_argument("--disarmed", action="store_true", help="without the hub's guards: what the measure sees")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the tables between the marks of this page")
    return parser.parse_args()


def _played(number: int, prefix: str, *, disarmed: bool) -> "Sequence[Outcome]":
    from django.test.utils import (
        setup_databases,
        setup_test_environment,
        teardown_databases,
        teardown_test_environment,
    )

    from tests.redteam import corpus, stage

    logging.disable(logging.WARNING)
    setup_test_environment()
    made = setup_databases(verbosity=0, interactive=False)
    try:
        with stage.disarmed() if disarmed else nullcontext():
            return stage.played(case for case in corpus.cases(number) if case.id.startswith(prefix))
    finally:
        teardown_databases(made, verbosity=0)
        teardown_test_environment()


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    main()
