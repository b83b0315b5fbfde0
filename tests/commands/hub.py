"""A hub of its own for a test: `manage.py …` as a process, with a home and a port that nobody else uses."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings

from memoryhub.embedded_postgres import is_running, locks
from memoryhub.embedded_postgres.place import locate
from tests.ports import free_port

# Generous: the machine may be busy with other things.
PATIENCE_SECONDS = 300.0
# The last line that `up` prints when all is well.
RUNNING = "Ctrl-C stops everything."


class Hub:
    """One home; `run` starts a command in it, whose output is collected in `text`."""

    def __init__(self, home: Path, program: Sequence[str] = (sys.executable, "manage.py")) -> None:
        """`program` runs the commands: the checkout's manage.py, or what was installed."""
        self.home = home
        self.program = program
        self.port = free_port()
        self._log = home.parent / "output.log"
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def process(self) -> "subprocess.Popen[bytes]":
        """The one started last."""
        return self._processes[-1]

    def is_running(self) -> bool:
        return bool(self._processes) and self.process.poll() is None

    def run(self, *arguments: str, **environ: str) -> "subprocess.Popen[bytes]":
        own = {"MEMORYHUB_HOME": str(self.home), "MEMORYHUB_PORT": str(self.port)}
        # As a user's shell has it: the buffers are part of what is tested.
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        with self._log.open("wb") as log:
            process = subprocess.Popen(
                [*self.program, *arguments],
                cwd=settings.BASE_DIR if "manage.py" in self.program else self.home.parent,
                env={**inherited, "DJANGO_SETTINGS_MODULE": "memoryhub.settings", **own, **environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes.append(process)
        return process

    @property
    def text(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def wait_for(self, text: str, times: int = 1) -> None:
        """Until the output holds `text` so many times."""
        wait_until(lambda: self.text.count(text) >= times, lambda: f"no {text!r} in:\n{self.text}")

    def pid(self, child: str) -> int:
        """The process number of the child as last started."""
        return int(re.findall(rf"{child} started \(process (\d+)\)", self.text)[-1])

    def paste_curl(self) -> dict[str, Any]:
        """Do what the printed line says, without needing curl itself."""
        line = next(line for line in self.text.splitlines() if line.startswith("curl "))
        words = shlex.split(line)
        headers = [words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H"]
        address = next(word for word in words if word.startswith("http"))
        data = words[words.index("-d") + 1].encode()
        request = urllib.request.Request(address, data=data, headers=dict(headers))
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            body: dict[str, Any] = json.load(answer)
        return body

    def is_gone(self) -> bool:
        """No process of the hub holds the database, and no process of the database is left."""
        where = locate(self.home)
        return not is_running(self.home) and not (
            locks.is_held(where.server_lock) or locks.is_held(where.users_lock, by_anyone=True)
        )

    def end(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=PATIENCE_SECONDS)


def wait_until(condition: Callable[[], bool], complaint: Callable[[], str] = lambda: "waited in vain") -> None:
    begun = time.monotonic()
    while not condition():
        waited = time.monotonic() - begun
        assert waited < PATIENCE_SECONDS, complaint()
        time.sleep(pause_after(waited))


def pause_after(waited: float) -> float:
    """Seconds until the next look: a look often takes a connection, and what is waited for wants the processor."""
    return min(max(waited / 20, 0.01), 0.25)
