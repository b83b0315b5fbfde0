"""Which paths a file can have. Pure."""

import re
from collections.abc import Iterator

from memories.invisible import strip_invisible
from memories.models.memories.files import LONGEST_PATH

ROOT = "/"
# What is below it is kept for a time only. By habit the next name is that of a thread.
SCRATCH = "/temp/"
# A pattern is matched against names of at most so many characters.
LONGEST_NAME = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def fault_of_file(path: str) -> str | None:
    """Why this is no path of a file, as a sentence; None if it is one."""
    if path.endswith("/") and path != ROOT:
        return "A path of a file does not end with a slash."
    return "This is the folder of all files: name a file." if path == ROOT else _fault(path)


def fault_of_folder(path: str) -> str | None:
    """The same of a folder, with or without a slash at the end."""
    return None if path == ROOT else _fault(path.removesuffix("/"))


def folder(path: str) -> str:
    """The folder's path with its slash."""
    return path if path.endswith("/") else f"{path}/"


def folders_above(path: str) -> Iterator[str]:
    """Of `/a/b/c.md`: `/a`, `/a/b`. None of them may be a file."""
    end = path.find("/", 1)
    while end > 0:
        yield path[:end]
        end = path.find("/", end + 1)


def _fault(path: str) -> str | None:
    names = path[1:].split("/")
    faults = (
        (not path.startswith("/"), "A path begins with a slash, like /memories/notes.md."),
        (
            len(path.encode("utf-8", "surrogatepass")) > LONGEST_PATH,
            f"A path has at most {LONGEST_PATH} bytes in UTF-8.",
        ),
        (
            _CONTROL.search(path) is not None or strip_invisible(path) != path,
            "A path has no control characters and no invisible ones.",
        ),
        ("\\" in path, "A path has slashes, no backslashes."),
        (not {"", ".", ".."}.isdisjoint(names), "A path has no empty parts, and neither `.` nor `..`."),
        (any(name != name.strip() for name in names), "No part of a path begins or ends with a space."),
        (max(map(len, names)) > LONGEST_NAME, f"A part of a path has at most {LONGEST_NAME} characters."),
    )
    return next((text for is_so, text in faults if is_so), None)
