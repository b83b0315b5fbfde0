"""Run the hub's processes under one parent: start them, start them again when they die, end them together."""

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
# To notice that a cluster is wedged takes half a minute: with this pause it is replaced within one, also for the
# tenth time in a row.
LONGEST_PAUSE_SECONDS = 10.0
# A child that ran this long is taken for healthy: its next crash counts as a first one.
HEALTHY_SECONDS = 30.0
# Who wants to stop a hub: Ctrl-C, a service manager, a terminal that is closed.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

logger = logging.getLogger(__name__)


class StopRequests:
    """Counts the signals that ask for an end while the block lasts, instead of interrupting what runs."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in self._numbers()}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _numbers(self) -> list[signal.Signals]:
        # Under nohup a closed terminal is no reason to stop.
        survives = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        return [number for number in STOP_SIGNALS if number != signal.SIGHUP or not survives]

    def _note(self, _signum: int, _frame: FrameType | None) -> None:
        self.count += 1


class Child:
    """One program to keep running, in a session of its own so that Ctrl-C reaches the parent alone."""

    def __init__(self, name: str, command: Sequence[str], *, inherited: Sequence[int] = ()) -> None:
        """`inherited` are descriptors that the program gets under the same numbers."""
        self.name = name
        self.process: subprocess.Popen[bytes] | None = None
        self.crashes = 0
        self._command = list(command)
        self._inherited = tuple(inherited)
        self._started_at = 0.0
        self._start_at = 0.0

    def look(self, *, now: float, leash: int) -> None:
        """Start the program if it is due, or note that it died; `now` is monotonic seconds."""
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
        """End the program and whatever is left of its process group, at once."""
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
    """Keeps its children running until a signal asks it to stop; then none of them is left.

    The children's standard input is a pipe that only this process could write to: when it dies, however,
    they read the end of it and go (see `follow_parent`).
    """

    def __init__(self, children: Sequence[Child]) -> None:
        self._children = children

    def run(self, look: Callable[[float], None]) -> None:
        """Returns after a stop signal; `look` is called about ten times a second with the monotonic time."""
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
        """Ask all, wait, then kill what is left; one more signal ends the waiting."""
        for child in self._children:
            child.terminate()
        asked = requests.count
        deadline = time.monotonic() + GRACE_SECONDS
        while any(child.is_running() for child in self._children):
            if requests.count > asked or time.monotonic() > deadline:
                logger.warning("not everything ended in time: killing the rest")
                break
            time.sleep(LOOK_SECONDS)
        for child in self._children:
            child.kill()


@contextmanager
def beside(child: Child, *, grace: float) -> Iterator[None]:
    """Keep a program running while the block lasts; then it has `grace` seconds to end."""
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
        deadline = time.monotonic() + grace
        while child.is_running() and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        child.kill()
        os.close(leash)
        os.close(held)


def own_command(*arguments: str) -> list[str]:
    """The command line of one of manage.py's commands, as a child of ours."""
    # This process ran the checks already; the child is spared importing the admin and the API for them.
    options = ["--supervised", "--skip-checks"]
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments, *options]


def pause_after(crashes: int) -> float:
    """Seconds before a program that died `crashes` times in a row is started again: 0.5, 1, 2 … 10."""
    return min(FIRST_PAUSE_SECONDS * 2.0 ** (min(crashes, 10) - 1), LONGEST_PAUSE_SECONDS)


def ending(exit_code: int) -> str:
    """How a process ended, in words: subprocess reports a signal as a negative exit code."""
    return f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"


def kill_group(leader: int) -> None:
    """Kill the process group that `leader` made, also when the leader itself is gone already."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
        return


def has_members(leader: int) -> bool:
    """Whether anybody is left of the process group that `leader` made."""
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def follow_parent(*, patience: float) -> None:
    """End this process when the supervisor is gone: SIGTERM first, SIGKILL `patience` seconds later."""
    threading.Thread(target=_follow, args=(patience,), name="follow-parent", daemon=True).start()


def _follow(patience: float) -> None:
    os.read(0, 1)  # nothing is ever written: this returns when the pipe has no writer any more
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(patience)
    os.kill(os.getpid(), signal.SIGKILL)
