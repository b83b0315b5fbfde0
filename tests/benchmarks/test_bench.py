"""The bench runs, a slow hub does not pass, and a wrong answer is no measurement."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from benchmarks import exactness, load, report, rows
from benchmarks.figures import Figure, Target, at_least, at_most
from benchmarks.load import Server
from benchmarks.stage import MIGRATED, ROOT, SIZES, Stage
from tests import homes
from tests.each import each


@contextmanager
def answering(*, status: int = 200, seconds: float = 0.0) -> Iterator[Server]:
    """A server that answers every request like that."""

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(seconds)
            self.send_response(status)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Server(server.server_port)
        server.shutdown()


@each(
    ("target", "value", "verdict"),
    [
        (at_least(250, 450), 249.9, "not met"),
        (at_least(250, 450), 250, "reach"),
        (at_least(250, 450), 450, "beyond"),
        (at_most(3, 2), 3.01, "not met"),
        (at_most(3, 2), 3, "reach"),
        (at_most(3, 2), 2, "beyond"),
    ],
)
def test_a_figure_says_how_far_it_came(target: Target, value: float, verdict: str) -> None:
    assert Figure("x", value, "ms", target).verdict == verdict
    assert Figure("x", value * 10, "ms", target, floor=10).verdict == verdict


@each(("seconds", "verdict"), [(0.5, "not met"), (0.0, "met")])
def test_a_slow_hub_is_reported_as_not_met(seconds: float, verdict: str) -> None:
    """Its floor takes 40 ms, so that even a busy machine makes a quick hub pass."""
    with answering(seconds=seconds) as hub, answering(seconds=0.04) as floor:
        [figure] = rows.ROWS["post"](Stage(hub, floor, SIZES["smoke"]))
    assert (figure.verdict == "not met") is (verdict == "not met")
    assert ("| not met" in report.table([figure])) is (verdict == "not met")


def test_a_figure_without_a_target_is_told_and_not_judged() -> None:
    figure = Figure("x", 7, "ms")
    assert figure.verdict == ""
    assert "| x      | 7.0 ms   |       |       |       |        |         |" in report.table([figure])


@each(
    ("found", "agreement", "missing"),
    [(["a", "b"], 1.0, 0), (["b", "a"], 1.0, 0), (["a", "c"], 0.5, 0), (["a"], 0.5, 1)],
)
def test_a_search_that_misses_something_does_not_agree(found: list[str], agreement: float, missing: int) -> None:
    expected = exactness.Expected(2, {}, ["a", "b"])
    compared = exactness.held_against(expected, {"results": [{"id": one} for one in found]})
    assert compared == exactness.Compared(2, agreement, missing)


def test_a_refusal_is_no_measurement() -> None:
    with answering(status=503) as busy, pytest.raises(load.RefusedError, match="503"):
        load.run(busy, [[busy.request("POST", "/", {})]])
    with answering() as well:
        assert len(load.run(well, [[well.request("POST", "/", {})] * 3] * 2).milliseconds) == 6


def test_the_page_names_the_kind_of_machine_and_the_day() -> None:
    page = report.page([Figure("x", 1, "ms", at_most(3, 2))], day=date(2026, 11, 3), on=report.machine("18.6"))
    assert "2026-11-03" in page
    assert "PostgreSQL 18.6" in page


def test_what_is_not_measured_anew_keeps_its_line_and_its_day() -> None:
    first = report.page([Figure("x", 1, "ms"), Figure("y", 9, "ms")], day=date(2026, 11, 3), on="a machine")
    then = report.page(
        [Figure("y", 5, "ms"), Figure("z", 7, "ms")], day=date(2026, 11, 9), on="a machine", before=first
    )
    told = [(line[1].strip(), line[2].strip(), line[-2].strip()) for line in map(_split, then.splitlines()[-3:])]
    assert told == [("x", "1.00 ms", "2026-11-03"), ("y", "5.0 ms", "2026-11-09"), ("z", "7.0 ms", "2026-11-09")]


def _split(line: str) -> list[str]:
    return line.split("|")


def test_the_bench_runs() -> None:
    # Without the rows that take half a minute or more by themselves, and those that start another hub: one such row, of
    # what is fresh, is enough to see that this works.
    left_out = {"exact", "decay", "long_session", "heavy", "million", "due", "wall"}
    names = [name for name in rows.ROWS if name not in left_out]
    command = [sys.executable, "-m", "benchmarks", *names, "--size", "smoke"]
    home = homes.kept()
    environ = {**os.environ, MIGRATED: str(home)} if home else None
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n| ") >= 2 + len(names)
    assert str(ROOT) not in done.stdout


def test_an_unknown_row_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks", "nonsense"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False).returncode == 2
