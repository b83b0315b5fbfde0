"""The archive of the embedded server: its write-ahead log (WAL) and base backups, in the folder MEMORYHUB_ARCHIVE.

`wal/` has a compressed file for each segment, written by the server itself, and `base/` the base backups. The server
goes on when the folder is full or gone: it keeps its WAL and tries again. Standard library only.
"""

import gzip
import os
import re
import shlex
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memoryhub.embedded_postgres.place import Place

SETTING = "MEMORYHUB_ARCHIVE"
# A quiet hub loses so much at most. An unfilled segment is compressed to a few kilobytes.
TIMEOUT_SECONDS = 300
SEGMENT = re.compile(r"([0-9A-F]{8})([0-9A-F]{16})")
# Drafts of an archiver that was killed. None takes so long.
DRAFT_SECONDS = 86_400
SCRIPT = "archive_wal.sh"
# As initdb makes them.
SEGMENT_BYTES = 1 << 24
# `put` is called by the server until it succeeds, also for a file that it had archived before a crash. `get` may fail
# with 1 for a file that is not there; above 125 the server does not start, rather than take a broken file for the end.
SCRIPT_TEXT = """\
#!/bin/sh
# Written by the hub at each start of its PostgreSQL; archive_command and restore_command call it.
# put PATH NAME FOLDER CLUSTER: keep the file of WAL, whole or not at all, and never instead of another one.
# get NAME PATH FOLDER OLD: give it back, from the archive or from the WAL that a broken server has left.
set -u
umask 077
verb=$1
if [ "$verb" = put ]; then
    path=$2 name=$3 folder=$4
    if [ "$(cat "$folder/cluster")" != "$5" ]; then
        echo "$folder is the archive of another cluster" >&2
        exit 1
    fi
    kept="$folder/wal/$name.gz" draft="$folder/wal/.$name.$$"
    if [ -e "$kept" ]; then
        if gzip -dc "$kept" | cmp -s - "$path"; then exit 0; fi
        echo "$kept is there and differs" >&2
        exit 1
    fi
    trap 'rm -f "$draft"' EXIT
    gzip -c -3 "$path" >"$draft" && sync "$draft" && ln "$draft" "$kept" && sync "$folder/wal"
    exit $?
fi
name=$2 path=$3 folder=$4 old=$5
if [ -e "$folder/wal/$name.gz" ]; then
    gzip -dc "$folder/wal/$name.gz" >"$path" || exit 200
    exit 0
fi
[ -n "$old" ] && [ -e "$old/$name" ] && cp "$old/$name" "$path"
"""


def folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """The archive as it is set; None without one."""
    named = (os.environ if environ is None else environ).get(SETTING, "").strip()
    return Path(named).expanduser().absolute() if named else None


def settings_of(place: Place) -> dict[str, str]:
    """The server's settings for an archive; none without one."""
    kept = folder()
    if kept is None:
        return {}
    words = [_script(place), "put"]
    tail = [kept, cluster_of(place.data)]
    quoted = " ".join([*(_quoted(word) for word in words), '"%p" "%f"', *(_quoted(word) for word in tail)])
    return {"archive_mode": "on", "archive_timeout": str(TIMEOUT_SECONDS), "archive_command": f"/bin/sh {quoted}"}


def restore_command(place: Place, kept: Path) -> str:
    """How a server in recovery gets WAL: from the archive, else what the present data folder has left."""
    left = place.with_data("data").data / "pg_wal"
    return f'/bin/sh {_quoted(_script(place))} get "%f" "%p" {_quoted(kept)} {_quoted(left)}'


def prepare(place: Place, kept: Path) -> str:
    """Make the folders, writable by whoever runs the server, and bind them to this cluster. Returns what is wrong."""
    try:
        kept.mkdir(mode=0o700, exist_ok=True)
        for part in (kept / "wal", kept / "base"):
            part.mkdir(mode=0o700, exist_ok=True)
        mark = kept / "cluster"
        cluster = cluster_of(place.data)
        if not mark.exists() and cluster:
            write(mark, cluster.encode())
        if mark.read_text() != cluster:
            return (
                f"{kept} is the archive of another cluster. Restore from it with manage.py restore --to, or name an "
                "empty folder."
            )
        if place.account:
            for path in (kept / "wal", mark):
                place.account.give(path)
            # Passed through by the account that runs the server; nobody else may look.
            os.chown(kept, -1, place.account.gid)
            kept.chmod(0o710)
    except OSError as error:
        return f"{error.filename or kept} cannot be used: {error.strerror}."
    if place.account and not place.may_enter(kept / "wal"):
        return f"the account that runs PostgreSQL (user {place.account.uid}) cannot reach {kept}."
    return ""


def cluster_of(data: Path) -> str:
    """The identifier that initdb gave a cluster: the first eight bytes of its control file. "" without one."""
    try:
        with (data / "global/pg_control").open("rb") as control:
            (found,) = struct.unpack("=Q", control.read(8))
    except (FileNotFoundError, struct.error):
        return ""
    return str(found)


@dataclass(frozen=True)
class WalSegment:
    """A file of WAL: `position` counts segments along a timeline; nothing in it was written after `until`."""

    timeline: int
    position: int
    until: float
    path: Path


def segments(kept: Path) -> list[WalSegment]:
    """What the archive has, in order."""
    found = [segment for path in kept.glob("wal/*.gz") if (segment := _segment(path, _written_at(path)))]
    return sorted(found, key=lambda one: (one.until, one.position))


def segments_left(data: Path) -> list[WalSegment]:
    """What a data folder has in its own WAL."""
    found = (_segment(path, path.stat().st_mtime) for path in (data / "pg_wal").glob("*"))
    return sorted((one for one in found if one), key=lambda one: (one.until, one.position))


def forks(kept: Path, timeline: int) -> dict[int, int]:
    """Ancestor of the timeline → the position (a byte's, an LSN) at which the next one left it."""
    path = kept / "wal" / f"{timeline:08X}.history.gz"
    if not path.is_file():
        return {}
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    found = (re.match(r"\s*(\d+)\s+([0-9A-F]+/[0-9A-F]+)", line) for line in lines)
    return {int(line[1]): lsn(line[2]) for line in found if line}


def lsn(text: str) -> int:
    """A position in WAL such as 0/2000028 as a number."""
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


def keep_history(place: Place, kept: Path) -> None:
    """Put the histories of timelines into the archive, so that no later restore takes their numbers again."""
    for path in place.data.glob("pg_wal/*.history"):
        kept_as = kept / "wal" / f"{path.name}.gz"
        if not kept_as.exists():
            write(kept_as, gzip.compress(path.read_bytes(), mtime=path.stat().st_mtime))
            if place.account:
                place.account.give(kept_as)


def delete_before(kept: Path, position: int) -> int:
    """Delete the segments before this position, and drafts that were left; how many segments. Histories stay."""
    count = 0
    for segment in segments(kept):
        if segment.position < position:
            segment.path.unlink(missing_ok=True)
            count += 1
    for path in kept.glob("wal/*.backup.gz"):
        if _position(path.name[8:24]) < position:
            path.unlink(missing_ok=True)
    for draft in kept.glob("wal/.*"):
        with suppress(FileNotFoundError):
            if time.time() - draft.stat().st_mtime > DRAFT_SECONDS:
                draft.unlink()
    return count


def write(path: Path, content: bytes) -> None:
    """Whole or not at all, mode 0600, on the disk when it returns."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync(path.parent)


def sync(folder: Path) -> None:
    """Names in the folder are on the disk when this returns."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _script(place: Place) -> Path:
    """The script, where the account that runs the server can read it."""
    path = place.base / SCRIPT
    if not path.is_file() or path.read_text() != SCRIPT_TEXT:
        write(path, SCRIPT_TEXT.encode())
    if place.account:
        place.account.give(path)
    return path


def _quoted(word: object) -> str:
    # The server reads %% as %.
    return shlex.quote(str(word)).replace("%", "%%")


def _segment(path: Path, until: float) -> WalSegment | None:
    found = SEGMENT.fullmatch(path.name.removesuffix(".gz"))
    return WalSegment(int(found[1], 16), _position(found[2]), until, path) if found else None


def _position(name: str) -> int:
    """The number of a segment of 16 MB, of the last 16 digits of its name."""
    return (int(name[:8], 16) << 8) + int(name[8:], 16)


def _written_at(path: Path) -> float:
    """When the segment was last written: gzip notes it, and a copy of the archive keeps it."""
    with path.open("rb") as file:
        (noted,) = struct.unpack("<4xI", file.read(8))
    return float(noted) or path.stat().st_mtime
