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
FAILED = re.compile(r"^FAILED ([^\s\[]+)", re.MULTILINE)


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
        if sound != "passed":
            sys.stdout.write(f"Without a fault: {sound}\n")
            return 2
        missed = [one.name for one in chosen if not is_caught(one, tree)]
    finally:
        shutil.rmtree(tree.parent)
    sys.stdout.write(
        "\n  not: ".join([f"{len(chosen) - len(missed)} of {len(chosen)} faults were caught", *missed]) + "\n"
    )
    return 1 if missed or not chosen else 0


def is_caught(fault: Fault, tree: Path) -> bool:
    """Whether one of its tests fails with the fault. Prints a line."""
    begun = time.monotonic()
    fault.plant(tree)
    verdict = run(fault.tests, tree)
    fault.repair(tree)
    is_caught = verdict.startswith("failed ")
    said = "caught" if is_caught else "MISSED"
    sys.stdout.write(f"{said}  {fault.name}  {verdict}  {time.monotonic() - begun:.0f} s\n")
    sys.stdout.flush()
    return is_caught


def run(tests: list[str], tree: Path) -> str:
    """`passed`, `failed` with the first test that did, or why the tests told nothing."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        ended = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer within {SECONDS} s"
    failed = FAILED.search(ended.stdout)
    if ended.returncode == 1 and failed:
        return f"failed {failed.group(1)}"
    return "passed" if ended.returncode == 0 else f"pytest ended with {ended.returncode}: {ended.stdout[-300:]}"


if __name__ == "__main__":
    sys.exit(main())
