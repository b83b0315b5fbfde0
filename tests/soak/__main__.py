"""`python -m tests.soak --hours 2 --seed 7`: run a soak, print and write its page; exit code 1: a verdict fails."""

import argparse
import random
import sys
from pathlib import Path

import django

from tests.soak import judge, report, stage
from tests.soak.journal import read

LEAST_HOURS = 0.02


def main() -> int:
    given = _arguments()
    folder = given.journals.absolute()
    if not given.judge:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.jsonl"):
            old.unlink()
        _say(f"Seed {given.seed}, {given.hours * 60:.0f} minutes; logs in {folder}")
        _soak(folder, given)
    journals = read(folder)
    judged = judge.verdicts(journals)
    page = report.page(journals, judged, made_by=_made_by(given))
    if given.write:
        given.write.write_text(page, encoding="utf-8")
    _say(page)
    return 0 if all(verdict.holds for verdict in judged) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--hours", type=_hours, default=2.0, help="e.g. 0.1 (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(10_000), help="of an earlier run")
    parser.add_argument("--pace", type=float, default=1.0, help="2: clients wait twice as long (%(default)s)")
    parser.add_argument("--journals", type=Path, default=Path(".soak"), help="folder of the logs, emptied before")
    parser.add_argument("--judge", action="store_true", help="only judge the logs that are there")
    parser.add_argument("--write", type=Path, help="the page of the report")
    return parser.parse_args()


def _made_by(given: argparse.Namespace) -> str:
    """The words that do it again."""
    return f"HOURS={given.hours:g} SEED={given.seed}" + (f" PACE={given.pace:g}" if given.pace != 1 else "")


def _hours(text: str) -> float:
    hours = float(text)
    if not LEAST_HOURS <= hours <= 100:
        raise argparse.ArgumentTypeError(f"from {LEAST_HOURS} (a fault or two) to 100")
    return hours


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _soak(folder: Path, given: argparse.Namespace) -> None:
    with stage.opened() as stood:
        stage.choose(stood.home)
        django.setup(set_prefix=False)
        # What follows needs Django.
        from tests.llm import endpoint
        from tests.soak import running

        with endpoint.running() as listening:
            plan = running.Plan(given.seed, given.hours * 3600, given.pace)
            running.soak(listening, stood, folder, plan)


if __name__ == "__main__":
    sys.exit(main())
