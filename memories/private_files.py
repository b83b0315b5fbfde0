"""Small files beside the database, readable by their owner alone."""

import os
import uuid
from collections.abc import Iterable
from pathlib import Path


def write(path: Path, content: bytes) -> None:
    """As `write_parts`, of what is in memory."""
    write_parts(path, [content])


def write_parts(path: Path, parts: Iterable[bytes]) -> None:
    """Write or replace the file: complete or not at all, mode 0600, on the disk when this returns.

    Errors: OSError. The name of a draft that a killed process leaves begins with the file's own name.
    """
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
