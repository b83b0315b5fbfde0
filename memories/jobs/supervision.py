"""Runs the hub's processes under one parent: starts them, restarts those that die, ends them together."""

import atexit
import ctypes
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn, Self

from django.conf import settings

from memoryhub.__main__ import main

LOOK_SECONDS = 0.1
# A little more than the web server and the worker each allow themselves.
GRACE_SECONDS = 12.0
# From one more signal until the end, for children that heed it.
LAST_SECONDS = 3.0
FIRST_PAUSE_SECONDS = 0.5
# Noticing that a cluster hangs takes half a minute. With this pause a minute is enough to replace it, even the tenth
# time in a row.
LONGEST_PAUSE_SECONDS = 10.0
# A child that ran this long was healthy: the next one starts at once.
HEALTHY_SECONDS = 30.0
# After so many crashes in a row a child is not forked any more: what it shares with its parent may be what ends it.
MOST_FORKED_CRASHES = 2
# Sent by Ctrl-C, a service manager, a terminal that closes.
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Of commands that are children. The parent has run the checks: without them a program need not import the admin and the
# API.
OPTIONS = ("--supervised", "--skip-checks")
# The descriptors of this process, on Linux. Elsewhere nothing is forked: libraries of macOS do not survive it.
DESCRIPTORS = Path("/proc/self/fd")
# Its threads, those of libraries too.
TASKS = Path("/proc/self/task")

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


class Fork:
    """A fork of this process, with what `Child` asks of a `subprocess.Popen`. It shares the memory of all that is
    loaded, and nothing else: it has a session of its own and no descriptor but the standard ones and `inherited`.

    Only for a process that is `alone`: of other threads the fork would have the locks, and nobody to release them.
    """

    def __init__(self, run: Callable[[], object], *, stdin: int, inherited: Sequence[int] = ()) -> None:
        """The fork calls `run` and ends."""
        self.returncode: int | None = None
        # What waits in a buffer would be written twice.
        _flush()
        # A signal that comes before the fork has its own handlers must wait.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        self.pid = os.fork()
        if self.pid == 0:
            _be(run, stdin, {0, 1, 2, *inherited}, mask)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def poll(self) -> int | None:
        if self.returncode is None:
            self._reap(os.WNOHANG)
        return self.returncode

    def wait(self) -> int:
        if self.returncode is None:
            self._reap(0)
        return self.returncode or 0

    def terminate(self) -> None:
        # Once it was waited for, its number may be another process's.
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)

    def _reap(self, options: int) -> None:
        pid, status = os.waitpid(self.pid, options)
        if pid:
            self.returncode = os.waitstatus_to_exitcode(status)


def _be(run: Callable[[], object], stdin: int, kept: set[int], mask: set[int | signal.Signals]) -> NoReturn:
    """What a fork does. It never returns to the frames that it shares with its parent."""
    code = 1
    # What the parent would clean up at its end.
    atexit._clear()
    try:
        os.setsid()
        os.dup2(stdin, 0)
        for descriptor in [int(path.name) for path in DESCRIPTORS.iterdir()]:
            # The one of the list itself is closed already.
            with suppress(OSError):
                if descriptor not in kept:
                    os.close(descriptor)
        for number in STOP_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        run()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    finally:
        kind, error, trace = sys.exc_info()
        if kind and error:
            sys.excepthook(kind, error, trace)
        # As at the end of a program: what this process registered may have something to send or to write.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        _flush()
        os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        # A terminal that was closed.
        with suppress(OSError, ValueError):
            stream.flush()


class Child:
    """A program to keep running. It has a session of its own, so that Ctrl-C reaches the parent alone."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        inherited: Sequence[int] = (),
        forked: Callable[[], object] | None = None,
    ) -> None:
        """The program gets the descriptors `inherited` under the same numbers. With `forked`, which does the same as
        the program, it is a fork of this process, as is what replaces it: that needs not load anything. Where this
        process has threads, and after some crashes in a row, it is a new program, which shares nothing."""
        self.name = name
        self.process: subprocess.Popen[bytes] | Fork | None = None
        self.crashes = 0
        self._command = list(command)
        self._inherited = tuple(inherited)
        self._forked = forked
        self._started_at = 0.0
        self._start_at = 0.0

    def look(self, *, now: float, leash: int) -> None:
        """Start the program if it is due, or note that it died. `now` is monotonic seconds."""
        if self.process is None and now >= self._start_at:
            self._started_at = now
            if self._forked and self.crashes <= MOST_FORKED_CRASHES and alone():
                self.process = Fork(self._forked, stdin=leash, inherited=self._inherited)
            else:
                self.process = subprocess.Popen(
                    self._command, stdin=leash, pass_fds=self._inherited, start_new_session=True
                )
            logger.info("%s started (process %d)", self.name, self.process.pid)
        elif self.process is not None and (exit_code := self.process.poll()) is not None:
            self.kill()
            self.process = None
            self.crashes = crashes_after(self.crashes, lived=now - self._started_at)
            pause = pause_after(self.crashes)
            self._start_at = now + pause
            when = f"in {pause:.1f} s" if pause else "at once"
            logger.error("%s ended with %s; starting it again %s", self.name, ending(exit_code), when)

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


class Supervisor:
    """Keeps its children running until a stop signal, and then ends all of them.

    Only this process can write to the pipe that is the children's standard input. When it dies, by whatever cause, they
    read the end of the pipe and end themselves (see `follow_parent`).
    """

    def __init__(self, children: Sequence[Child]) -> None:
        self._children = children

    def run(self, look: Callable[[float], None] = lambda _now: None) -> None:
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
            # They have processes of their own, and kill those.
            for child in self._children:
                child.terminate()
            wait_until(lambda: not is_running(), LAST_SECONDS)
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


def own_child(*arguments: str, inherited: Sequence[int] = ()) -> Child:
    """A command of the hub to keep running, with all that this process has loaded."""

    def run() -> None:
        sys.argv = [sys.argv[0], *arguments, *OPTIONS]
        title = f"memoryhub {arguments[0]}".encode()
        # What lists of processes show is the command line, which a fork has from its parent. proc(5): the fields
        # arg_start and arg_end, behind the name in brackets, which is the second.
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        begin, end = int(fields[45]), int(fields[46])
        # Filled with zeros, of which one must be the last: else the environment counts as a part of it.
        ctypes.memmove(begin, title[: end - begin - 1].ljust(end - begin, b"\0"), end - begin)
        main(sys.argv)

    return Child(arguments[0], own_command(*arguments), inherited=inherited, forked=run)


def own_command(*arguments: str) -> list[str]:
    """The command line of a command of the hub, as a child of this process."""
    manage = settings.BASE_DIR / "manage.py"
    program = [str(manage)] if manage.is_file() else ["-m", "memoryhub"]
    return [sys.executable, *program, *arguments, *OPTIONS]


def alone() -> bool:
    """Whether this process has no other thread, and may fork; False where nobody knows."""
    return TASKS.is_dir() and len(list(TASKS.iterdir())) == 1


def crashes_after(crashes: int, *, lived: float) -> int:
    """Crashes in a row, once more after so many seconds of life; 0 after a healthy one."""
    return 0 if lived >= HEALTHY_SECONDS else crashes + 1


def pause_after(crashes: int) -> float:
    """Seconds before the restart of what died `crashes` times in a row, each time young: 0, 0.5, 1, 2 … 10."""
    return min(FIRST_PAUSE_SECONDS * 2.0 ** (min(crashes, 10) - 1), LONGEST_PAUSE_SECONDS) if crashes else 0.0


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
