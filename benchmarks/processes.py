"""Processes by what stands in their environment: how much memory they have, and how they end."""

import os
import signal
import time
from collections.abc import Collection, Iterator
from pathlib import Path

KILOBYTES = 1_000
PATIENCE_SECONDS = 60.0


def megabytes(mark: str, *, without: Collection[str] = ()) -> float:
    """Pss of all processes with `NAME=value` in the environment that they started with, but for this one and for
    programs of these names."""
    return sum(_pss(path) for path in _marked(mark) if _program(path) not in without) / KILOBYTES


def end(mark: str, by: signal.Signals) -> None:
    """Send that to all of them, and wait until there are none."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while found := [int(path.name) for path in _marked(mark)]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(found)} processes do not end.")
        for pid in found:
            try:
                os.kill(pid, by)
            except ProcessLookupError:
                continue
        time.sleep(0.1)


def _marked(mark: str) -> Iterator[Path]:
    sought = f"{mark}\0".encode()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            is_marked = sought in (path / "environ").read_bytes() and int(path.name) != os.getpid()
        except OSError:
            continue
        if is_marked and _state(path) != "Z":
            yield path


def _program(process: Path) -> str:
    try:
        return (process / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _state(process: Path) -> str:
    try:
        return (process / "stat").read_text(encoding="utf-8", errors="replace").rpartition(") ")[2][:1]
    except OSError:
        return "Z"


def _pss(process: Path) -> int:
    try:
        lines = (process / "smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
