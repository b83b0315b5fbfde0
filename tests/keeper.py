"""A process that keeps the tests' server on until its standard input ends, and then leaves nothing of it.

The input ends with the tests, also when these are killed, which no `finally` and no `atexit` of theirs survives.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from memoryhub import embedded_postgres

PROJECT = Path(__file__).resolve().parent.parent


def start(home: Path) -> "subprocess.Popen[bytes]":
    """Returns when the server of `home` is ready; `end` stops it and removes the home."""
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.keeper", home],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C is meant for the tests, which still need the server while they end.
        start_new_session=True,
    )
    assert keeper.stdout
    with keeper.stdout as said:
        assert said.readline() == b"ready\n", "the embedded server did not start"
    return keeper


def end(keeper: "subprocess.Popen[bytes]") -> None:
    assert keeper.stdin
    keeper.stdin.close()
    keeper.wait()


def main(home: Path) -> None:
    with embedded_postgres.attached(home, fast=True):
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.read()
    for folder in (embedded_postgres.folder(home), home):
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
