"""Runs the program that reads one file (program.py), and takes no more from it than is allowed: it may hang, crash, or
say anything at all."""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from memories.models import AttachmentReason

PROGRAM = Path(__file__).with_name("program.py")
# A little more than the program gives itself: here it is killed. Shorter than a lease.
SECONDS = 28.0
# What it may say: a million characters, in which most of them are escaped, and their places.
MOST_BYTES = 16 * 1024 * 1024
# A line of it is a block.
_MOST_LINES = 60_000
# What JSON may hold that a place is made of.
_LONGEST_HEADINGS = 12
_CHUNK = 65_536
# Codes that the program may answer with.
_REASONS = frozenset(
    {AttachmentReason.ENCRYPTED, AttachmentReason.DAMAGED, AttachmentReason.NO_TEXT, AttachmentReason.TOO_COSTLY}
)
# Signals that end it when its time is over.
_ENDED = {int(one): AttachmentReason.TOO_SLOW for one in (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL)}


@dataclass(frozen=True)
class Block:
    """A piece of the text, with the headings above it and its page, where there are any."""

    text: str
    headings: tuple[str, ...] = ()
    page: int | None = None


@dataclass(frozen=True)
class ReadFile:
    """What came of a file. With a `reason` other than "cut" nothing was read."""

    blocks: Sequence[Block] = ()
    pages: int | None = None
    reason: str = ""

    @property
    def is_read(self) -> bool:
        return self.reason in ("", AttachmentReason.CUT)


def read_file(content: bytes, kind: str, *, program: Path = PROGRAM, seconds: float = SECONDS) -> ReadFile:
    """The text of a file of this kind (a key of program.READERS). No file makes it raise, or take longer."""
    with _file_of(content) as file:
        child = subprocess.Popen(
            # -I: neither the environment nor a folder of somebody's decides what it imports.
            [sys.executable, "-I", str(program), kind],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,
        )
    try:
        said, is_whole = _said(child, until=time.monotonic() + seconds)
        if is_whole:
            # It has closed its end, and ends.
            with suppress(subprocess.TimeoutExpired):
                child.wait(timeout=1)
    finally:
        child.kill()
        child.wait()
        if child.stdout:
            child.stdout.close()
    if not is_whole:
        return ReadFile(reason=AttachmentReason.TOO_SLOW if len(said) <= MOST_BYTES else AttachmentReason.TOO_COSTLY)
    if child.returncode:
        return ReadFile(reason=_ENDED.get(-child.returncode, AttachmentReason.DAMAGED))
    return _result(said)


@contextmanager
def _file_of(content: bytes) -> Iterator[IO[bytes]]:
    """The content as a file without a name: in memory where the system lets us have such files."""
    try:
        opened: IO[bytes] = os.fdopen(os.memfd_create("attachment"), "w+b")
    except (AttributeError, OSError):
        # macOS, and containers that do not allow it.
        opened = tempfile.TemporaryFile()  # noqa: SIM115  (closed below)
    with opened as file:
        file.write(content)
        file.flush()
        file.seek(0)
        yield file


def _said(child: "subprocess.Popen[bytes]", *, until: float) -> tuple[bytes, bool]:
    """What it says, and whether it came to its end in time."""
    assert child.stdout  # noqa: S101  (a pipe)
    said = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while len(said) <= MOST_BYTES:
            if not selector.select(timeout=max(0.0, until - time.monotonic())):
                return bytes(said), False
            chunk = os.read(child.stdout.fileno(), _CHUNK)
            if not chunk:
                return bytes(said), True
            said += chunk
    return bytes(said), False


def _result(said: bytes) -> ReadFile:
    """What was said, as far as it has the form."""
    if said.count(b"\n") > _MOST_LINES:
        return ReadFile(reason=AttachmentReason.DAMAGED)
    try:
        lines = [json.loads(line) for line in said.splitlines()]
        last = lines.pop()
        if "reason" in last:
            reason = last["reason"]
            return ReadFile(reason=reason if reason in _REASONS else AttachmentReason.DAMAGED)
        blocks = [_block(line) for line in lines]
        pages = last["pages"] if isinstance(last["pages"], int) and 0 <= last["pages"] < 2**31 else None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return ReadFile(reason=AttachmentReason.DAMAGED)
    if not any(block.text.strip() for block in blocks):
        return ReadFile(reason=AttachmentReason.NO_TEXT)
    return ReadFile(blocks, pages, AttachmentReason.CUT if last["cut"] else "")


def _block(line: Any) -> Block:
    text, headings, page = line["text"], line["headings"], line["page"]
    if not isinstance(text, str) or not all(isinstance(one, str) for one in headings):
        raise ValueError
    page = page if isinstance(page, int) and 0 < page < 2**31 else None
    return Block(text, tuple(headings)[:_LONGEST_HEADINGS], page)
