"""What the tests read of the machine's processes."""

import os
import subprocess
import sys

import pytest

from tests.faults.workers import processes


def test_a_command_line_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    command = [sys.executable, "-c", "input()", "x" * 200, "last"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        found = [(above, words) for pid, above, words in processes() if pid == child.pid]
        assert child.stdin
        child.stdin.close()
    assert found == [(os.getpid(), command)]
