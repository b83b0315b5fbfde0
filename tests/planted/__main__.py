"""Plants faults in a copy of the repository and reports which of them the tests catch.

python -m tests.planted                   all of them; the exit code says whether each was caught
python -m tests.planted --only erased     those whose name holds the word
python -m tests.planted --page            only write the table of docs/planted-faults.md
"""

import argparse
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.planted.faults import BEGIN, PAGE, ROOT, Fault, load, table
from tests.scratch import scratch_folder

LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".memoryhub", "__pycache__")
# A fault can make a test wait for ever.
SECONDS = 600
FAILED_TEST = re.compile(r"^FAILED ([^\s\[]+)", re.MULTILINE)
PASSED, FAILED = "passed", "failed "
# A set-up that fails says nothing about the fault.
CAUGHT, MISSED, NO_VERDICT = "caught", "MISSED", "NO VERDICT"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("--only", default="", help="Part of the faults' names.")
    parser.add_argument("--page", action="store_true", help="Write the table of docs/planted-faults.md.")
    options = parser.parse_args()
    faults = load()
    if options.page:
        prose = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
        PAGE.write_text(prose + table(faults), encoding="utf-8")
        return 0
    chosen = [one for one in faults if options.only in one.name]
    tree = scratch_folder() / "copy"
    shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
    try:
        # Else a test that always fails would catch everything.
        sound = run(list(dict.fromkeys(test for one in chosen for test in one.tests)), tree)
        if sound != PASSED:
            sys.stdout.write(f"Without a fault: {sound}\n")
            return 2
        uncaught = [f"{one.name} ({verdict})" for one in chosen if (verdict := verdict_on(one, tree)) != CAUGHT]
    finally:
        shutil.rmtree(tree.parent)
    count = f"{len(chosen) - len(uncaught)} of {len(chosen)} faults were caught"
    sys.stdout.write("\n  not: ".join([count, *uncaught]) + "\n")
    return 1 if uncaught or not chosen else 0


def verdict_on(fault: Fault, tree: Path) -> str:
    """CAUGHT if one of its tests fails with the fault, MISSED if they pass, else NO_VERDICT. Prints a line."""
    begun = time.monotonic()
    fault.plant(tree)
    outcome = run(fault.tests, tree)
    fault.repair(tree)
    verdict = MISSED if outcome == PASSED else CAUGHT if outcome.startswith(FAILED) else NO_VERDICT
    sys.stdout.write(f"{verdict}  {fault.name}  {outcome}  {time.monotonic() - begun:.0f} s\n")
    sys.stdout.flush()
    return verdict


def run(tests: list[str], tree: Path) -> str:
    """`passed`, `failed` with the first test that did, or why the tests told nothing."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        ended = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer within {SECONDS} s"
    failed = FAILED_TEST.search(ended.stdout)
    if ended.returncode == 1 and failed:
        return FAILED + failed.group(1)
    return PASSED if ended.returncode == 0 else f"pytest ended with {ended.returncode}: {ended.stdout[-300:]}"


if __name__ == "__main__":
    sys.exit(main())
