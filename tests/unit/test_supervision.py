"""Children are kept running, asked to end, and killed when they do not."""

import atexit
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from memories.jobs import supervision
from memories.jobs.supervision import Child, Fork, StopRequests, Supervisor, ending, has_members, pause_after
from tests.each import each

PROJECT = Path(__file__).resolve().parents[2]
SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]
# Writes to the descriptor that it is given once it ignores SIGTERM.
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.write(int(sys.argv[1]), b"ready")
time.sleep(60)
"""
# Leaves a process behind, which inherits the descriptor, and ends.
ORPHANING = """
import os, subprocess, sys
orphan = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=[int(sys.argv[1])])
os.write(int(sys.argv[1]), str(orphan.pid).encode())
"""


@each(("crashes", "seconds"), [(0, 0), (1, 0.5), (2, 1), (3, 2), (6, 10), (8, 10), (2_000, 10)])
def test_pause_after(crashes: int, seconds: float) -> None:
    assert pause_after(crashes) == seconds


@each(("exit_code", "words"), [(3, "exit code 3"), (0, "exit code 0"), (-9, "signal 9")])
def test_ending(exit_code: int, words: str) -> None:
    assert ending(exit_code) == words


def dead(child: Child) -> bool:
    """Let the child that was just started end by itself."""
    assert isinstance(child.process, subprocess.Popen)
    child.process.wait(timeout=10)
    return True


def test_a_child_that_dies_is_started_again_after_a_pause(caplog: pytest.LogCaptureFixture) -> None:
    child = Child("worker", [sys.executable, "-c", "raise SystemExit(3)"])
    child.look(now=100.0, leash=0)
    assert dead(child)
    child.look(now=101.0, leash=0)
    assert "worker ended with exit code 3; starting it again in 0.5 s" in caplog.text
    child.look(now=101.4, leash=0)
    assert child.process is None
    child.look(now=101.6, leash=0)
    assert dead(child)
    child.look(now=102.0, leash=0)
    assert child.crashes == 2
    assert "starting it again in 1.0 s" in caplog.text


def test_a_long_healthy_life_forgives_earlier_crashes() -> None:
    child = Child("worker", [sys.executable, "-c", ""])
    child.crashes = 7
    child.look(now=100.0, leash=0)
    assert dead(child)
    child.look(now=100.0 + supervision.HEALTHY_SECONDS, leash=0)
    assert child.crashes == 0
    child.look(now=100.0 + supervision.HEALTHY_SECONDS, leash=0)
    assert dead(child), "its successor started at once"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read_end, write_end = os.pipe()
    yield read_end, write_end
    os.close(read_end)
    os.close(write_end)


def test_what_a_dead_child_left_in_its_group_is_killed(pipe: tuple[int, int]) -> None:
    read_end, write_end = pipe
    child = Child("web", [sys.executable, "-c", ORPHANING, str(write_end)], inherited=[write_end])
    child.look(now=0.0, leash=0)
    orphan = int(os.read(read_end, 20))
    assert dead(child)
    os.kill(orphan, 0)
    child.look(now=1.0, leash=0)
    # Closes our own write end; the fixture closes the number again.
    os.dup2(read_end, write_end)
    # The end of the pipe: nobody who had inherited it is alive.
    assert os.read(read_end, 1) == b""


@pytest.mark.skipif(not supervision.DESCRIPTORS.is_dir(), reason="forks on Linux alone")
class TestForks:
    """The first life of a child: all that is loaded, and nothing else of its parent."""

    @pytest.mark.parametrize(
        ("does", "ending"),
        [
            (lambda: None, 0),
            (lambda: sys.exit(3), 3),
            (lambda: sys.exit("no space left"), 1),
            (lambda: 1 // 0, 1),
            (lambda: os.kill(os.getpid(), signal.SIGKILL), -signal.SIGKILL),
        ],
    )
    def test_it_ends_as_a_program_does(self, does: Callable[[], None], ending: int) -> None:
        fork = Fork(does, stdin=0)
        assert fork.wait() == ending
        assert fork.poll() == ending
        # Its number may be somebody else's by now.
        fork.terminate()

    @pytest.mark.parametrize(
        ("does", "last"),
        [(lambda: sys.exit("it cannot start"), "it cannot start"), (lambda: 1 // 0, "ZeroDivisionError: ")],
    )
    def test_it_says_what_was_wrong(
        self, capfd: pytest.CaptureFixture[str], does: Callable[[], None], last: str
    ) -> None:
        def run() -> None:
            # That of pytest is a file of its own, which the fork does not have.
            sys.stderr = os.fdopen(2, "w", closefd=False)
            does()

        Fork(run, stdin=0).wait()
        assert capfd.readouterr().err.splitlines()[-1].startswith(last)

    def test_it_holds_nothing_that_it_was_not_given(self, pipe: tuple[int, int]) -> None:
        read_end, write_end = pipe
        unasked = os.open(os.devnull, os.O_RDONLY)

        def tell() -> None:
            held = {int(path.name) for path in supervision.DESCRIPTORS.iterdir()} & {0, 1, 2, *pipe, unasked}
            os.write(write_end, repr((held, os.getsid(0) == os.getpid())).encode())

        assert Fork(tell, stdin=read_end, inherited=[write_end]).wait() == 0
        assert os.read(read_end, 200).decode() == repr(({0, 1, 2, write_end}, True))
        os.close(unasked)

    def test_what_its_parent_cleans_up_stays(self, tmp_path: Path) -> None:
        kept, own = tmp_path / "kept", tmp_path / "own"
        kept.touch()
        atexit.register(kept.unlink)
        try:
            assert Fork(lambda: atexit.register(own.touch), stdin=0).wait() == 0
        finally:
            atexit.unregister(kept.unlink)
        assert kept.exists()
        assert own.exists()

    @pytest.mark.parametrize(
        ("crashes", "kind"),
        [(0, "fork"), (supervision.MOST_FORKED_CRASHES, "fork"), (supervision.MOST_FORKED_CRASHES + 1, "program")],
    )
    def test_so_is_its_successor_until_it_has_crashed_too_often(
        self, monkeypatch: pytest.MonkeyPatch, pipe: tuple[int, int], crashes: int, kind: str
    ) -> None:
        # pytest has threads of its own.
        monkeypatch.setattr(supervision, "alone", lambda: True)
        assert lives(pipe, crashes) == [kind, kind if crashes < supervision.MOST_FORKED_CRASHES else "program"]

    def test_a_process_with_threads_starts_programs(self, pipe: tuple[int, int]) -> None:
        ended = threading.Event()
        thread = threading.Thread(target=ended.wait)
        thread.start()
        try:
            assert lives(pipe) == ["program", "program"]
        finally:
            ended.set()
            thread.join()

    def test_a_fork_is_alone_until_it_has_a_thread(self) -> None:
        def run() -> None:
            assert supervision.alone()
            threading.Thread(target=threading.Event().wait, daemon=True).start()
            assert not supervision.alone()
            os._exit(7)

        assert Fork(run, stdin=0).wait() == 7


def lives(pipe: tuple[int, int], crashes: int = 0) -> list[str]:
    """What a child was in two lives, the first after so many crashes."""
    read_end, write_end = pipe
    program = [sys.executable, "-c", f"import os; os.write({write_end}, b'program')"]
    child = Child("web", program, inherited=[write_end], forked=partial(os.write, write_end, b"fork"))
    child.crashes = crashes
    found = []
    for now in (100.0, 200.0):
        child.look(now=now, leash=0)
        assert child.process
        child.process.wait()
        found.append(os.read(read_end, 20).decode())
        child.look(now=now + 1, leash=0)
    return found


def run_until(children: list[Child], look: Callable[[float], None]) -> float:
    """Seconds from the first stop signal, which `look` is expected to send, to the end of `run`."""
    started: list[float] = []

    def timed(now: float) -> None:
        if not started and all(child.is_running() for child in children):
            look(now)
            started.append(time.monotonic())

    Supervisor(children).run(timed)
    return time.monotonic() - started[0]


def test_a_group_has_members_until_the_last_is_dead(pipe: tuple[int, int]) -> None:
    read, write = pipe
    leader = subprocess.Popen([sys.executable, "-c", ORPHANING, str(write)], pass_fds=[write], start_new_session=True)
    assert leader.wait(timeout=10) == 0
    assert has_members(leader.pid)
    os.kill(int(os.read(read, 20)), signal.SIGKILL)
    deadline = time.monotonic() + 10
    while has_members(leader.pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@each("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_signal_ends_all_children(number: signal.Signals) -> None:
    # Under nohup a hangup is ignored, and stays so.
    before = signal.signal(number, signal.SIG_DFL)
    children = [Child("web", SLEEPER), Child("worker", SLEEPER)]
    try:
        assert run_until(children, lambda _now: os.kill(os.getpid(), number)) < 5
    finally:
        signal.signal(number, before)
    assert not any(child.is_running() for child in children)


@pytest.fixture
def stubborn(monkeypatch: pytest.MonkeyPatch, pipe: tuple[int, int]) -> Child:
    """Asked to end it does not; nobody waits for it long after that."""
    monkeypatch.setattr(supervision, "LAST_SECONDS", 0.1)
    return Child("worker", [sys.executable, "-c", STUBBORN, str(pipe[1])], inherited=[pipe[1]])


def test_a_second_signal_ends_the_patience(stubborn: Child, pipe: tuple[int, int]) -> None:
    def twice(_now: float) -> None:
        assert os.read(pipe[0], 5) == b"ready"
        os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    assert 0.2 < run_until([stubborn], twice) < 5
    assert not stubborn.is_running()


def test_patience_ends_by_itself(monkeypatch: pytest.MonkeyPatch, stubborn: Child, pipe: tuple[int, int]) -> None:
    monkeypatch.setattr(supervision, "GRACE_SECONDS", 0.3)

    def once(_now: float) -> None:
        assert os.read(pipe[0], 5) == b"ready"
        os.kill(os.getpid(), signal.SIGTERM)

    assert 0.2 < run_until([stubborn], once) < 5
    assert not stubborn.is_running()


def test_children_end_when_looking_fails() -> None:
    child = Child("web", SLEEPER)

    def fail(_now: float) -> None:
        raise RuntimeError("the database is gone")

    with pytest.raises(RuntimeError):
        Supervisor([child]).run(fail)
    assert not child.is_running()


def test_stop_requests_put_the_handlers_back() -> None:
    before = [signal.getsignal(number) for number in supervision.STOP_SIGNALS]
    with StopRequests() as requests:
        os.kill(os.getpid(), signal.SIGTERM)
        assert requests.count == 1
    assert [signal.getsignal(number) for number in supervision.STOP_SIGNALS] == before


def test_nohup_is_respected() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopRequests() as requests:
            os.kill(os.getpid(), signal.SIGHUP)
            assert requests.count == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@each(("obeys", "returncode"), [(True, -signal.SIGTERM), (False, -signal.SIGKILL)])
def test_a_child_follows_its_parent(obeys: bool, returncode: int) -> None:
    stubborn = "" if obeys else "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    program = (
        f"import signal, time\n{stubborn}from memories.jobs.supervision import follow_parent\n"
        "follow_parent(grace=0.2)\nprint('ready', flush=True)\ntime.sleep(60)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", program], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin
    assert child.stdout
    assert child.stdout.readline() == b"ready\n"
    assert child.poll() is None
    child.stdin.close()
    assert child.wait(timeout=10) == returncode
    child.stdout.close()
