"""Runs the hub's processes under one parent: starts them, restarts those that die, ends them together."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self

from django.conf import settings

LOOK_SECONDS = 0.1
# A little more than the web server and the worker each allow themselves.
GRACE_SECONDS = 12.0
FIRST_PAUSE_SECONDS = 0.5
# Noticing that a cluster hangs takes half a minute. With this pause a minute is enough to replace it, even the tenth
# time in a row.
LONGEST_PAUSE_SECONDS = 10.0
# A child that ran this long counts as healthy: its next crash counts as the first.
HEALTHY_SECONDS = 30.0
# Sent by Ctrl-C, a service manager, a terminal that closes.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

logger = logging.getLogger(__name__)


class StopRequests:
    """Counts stop signals while the block lasts. They do not interrupt what runs."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Self:
        # Under nohup a hub survives its terminal.
        has_nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        numbers = [number for number in STOP_SIGNALS if number != signal.SIGHUP or not has_nohup]
        self._before = {number: signal.signal(number, self._count) for number in numbers}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _count(self, _signum: int, _frame: FrameType | None) -> None:
        self.count += 1


class Child:
    """A program to keep running. It has a session of its own, so that Ctrl-C reaches the parent alone."""

    def __init__(self, name: str, command: Sequence[str], *, inherited: Sequence[int] = ()) -> None:
        """The program gets the descriptors `inherited` under the same numbers."""
        self.name = name
        self.process: subprocess.Popen[bytes] | None = None
        self.crashes = 0
        self._command = list(command)
        self._inherited = tuple(inherited)
        self._started_at = 0.0
        self._start_at = 0.0

    def look(self, *, now: float, leash: int) -> None:
        """Start the program if it is due, or note that it died. `now` is monotonic seconds."""
        if self.process is None and now >= self._start_at:
            self._started_at = now
            self.process = subprocess.Popen(
                self._command, stdin=leash, pass_fds=self._inherited, start_new_session=True
            )
            logger.info("%s started (process %d)", self.name, self.process.pid)
        elif self.process is not None and self.process.poll() is not None:
            self._note_death(now, self.process.returncode)

    def terminate(self) -> None:
        """Ask the program to end."""
        if self.process is not None:
            self.process.terminate()

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """End the program and the rest of its process group at once."""
        if self.process is not None:
            kill_group(self.process.pid)
            self.process.wait()

    def _note_death(self, now: float, exit_code: int) -> None:
        self.kill()
        self.process = None
        self.crashes = 1 if now - self._started_at >= HEALTHY_SECONDS else self.crashes + 1
        pause = pause_after(self.crashes)
        self._start_at = now + pause
        logger.error("%s ended with %s; starting it again in %.1f s", self.name, ending(exit_code), pause)


class Supervisor:
    """Keeps its children running until a stop signal, and then ends all of them.

    Only this process can write to the pipe that is the children's standard input. When it dies, by whatever cause, they
    read the end of the pipe and end themselves (see `follow_parent`).
    """

    def __init__(self, children: Sequence[Child]) -> None:
        self._children = children

    def run(self, look: Callable[[float], None]) -> None:
        """Returns after a stop signal. Calls `look` about ten times a second with the monotonic time."""
        leash, held = os.pipe()
        with StopRequests() as requests:
            try:
                while not requests.count:
                    now = time.monotonic()
                    for child in self._children:
                        child.look(now=now, leash=leash)
                    look(now)
                    time.sleep(LOOK_SECONDS)
            finally:
                self._end(requests)
                os.close(leash)
                os.close(held)

    def _end(self, requests: StopRequests) -> None:
        """Ask all to end, wait, then kill the rest. One more signal ends the waiting."""
        for child in self._children:
            child.terminate()
        asked = requests.count

        def is_running() -> bool:
            return any(child.is_running() for child in self._children)

        wait_until(lambda: requests.count > asked or not is_running(), GRACE_SECONDS)
        if is_running():
            logger.warning("not everything ended in time: killing the rest")
        for child in self._children:
            child.kill()


@contextmanager
def beside(child: Child, *, grace: float) -> Iterator[None]:
    """Keep a program running while the block lasts. Then it has `grace` seconds to end."""
    leash, held = os.pipe()
    ended = threading.Event()

    def keep() -> None:
        while not ended.wait(LOOK_SECONDS):
            child.look(now=time.monotonic(), leash=leash)

    keeper = threading.Thread(target=keep, name=f"keep-{child.name}", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        ended.set()
        keeper.join()
        child.terminate()
        wait_until(lambda: not child.is_running(), grace)
        child.kill()
        os.close(leash)
        os.close(held)


def own_command(*arguments: str) -> list[str]:
    """The command line of a command of the hub, as a child of this process."""
    # This process has run the checks. Without them the child need not import the admin and the API.
    options = ["--supervised", "--skip-checks"]
    manage = settings.BASE_DIR / "manage.py"
    program = [str(manage)] if manage.is_file() else ["-m", "memoryhub"]
    return [sys.executable, *program, *arguments, *options]


def pause_after(crashes: int) -> float:
    """Seconds before the restart of a program that died `crashes` times in a row: 0.5, 1, 2 … 10."""
    return min(FIRST_PAUSE_SECONDS * 2.0 ** (min(crashes, 10) - 1), LONGEST_PAUSE_SECONDS)


def ending(exit_code: int) -> str:
    """How a process ended, in words: subprocess reports a signal as a negative exit code."""
    return f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"


def kill_group(leader: int) -> None:
    """Kill the process group of this leader, even when the leader itself has gone."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
        return


def has_members(leader: int) -> bool:
    """Whether the process group of this leader still has a member."""
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def follow_parent(*, grace: float) -> None:
    """End this process when the supervisor is gone: SIGTERM first, SIGKILL `grace` seconds later."""

    def follow() -> None:
        # Nobody ever writes: this returns when the pipe has no writer any more.
        os.read(0, 1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(grace)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=follow, name="follow-parent", daemon=True).start()


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Look ten times a second until the condition holds, for so many seconds at most."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
