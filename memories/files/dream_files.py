"""Which memory files dreams may edit: the lines of a tenant's setting, and the files that an agent has. Pure.

A line is the path of a file, or with a slash at its end that of a folder, in which all files may be edited. Frameworks
keep the same file in different places, so one that is missing is begun only beside files that the agent has, and never
as a second one of its name: nobody would show it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memories.files import paths
from memories.text.secrets.redaction import redact_text

MOST_LINES = 20


@dataclass(frozen=True)
class EditableFiles:
    """The files and folders of the setting, and which of these files the agent has."""

    files: Sequence[str]
    folders: Sequence[str]
    present: Collection[str] = ()

    def shown(self) -> list[str]:
        """What a dream is shown: the files that there are, and those that it may begin."""
        there = [path for path in self.files if path in self.present]
        homes = {_folder(path) for path in there or self.files[:1]}
        names = {_name(path) for path in there}
        shown = []
        for path in self.files:
            if path in self.present or (_folder(path) in homes and _name(path) not in names):
                shown.append(path)
                names.add(_name(path))
        return shown

    def named(self, path: str) -> str | None:
        """The file that a path of an answer names, with or without a slash before it; None if no dream may edit it.

        A bare name, and a file that is missing, mean the one of this name that is there. Where the agent has some of
        these files, only those are begun that it was shown, or their like in another folder.
        """
        named = f"/{path.removeprefix('./').removeprefix('/')}"
        if named in self.files or named == f"/{_name(named)}":
            alike = [one for one in self.files if _name(one) == _name(named)]
            there = [one for one in alike if one in self.present]
            if not there and self.present and _name(named) not in map(_name, self.shown()):
                return None
            if alike:
                fitting = there or alike
                return named if named in fitting else fitting[0]
        is_below = any(named.startswith(folder) for folder in self.folders)
        return named if is_below and paths.fault_of_file(named) is None and not redact_text(named)[1] else None


def of_lines(lines: Sequence[str]) -> EditableFiles:
    """The setting without an agent."""
    return EditableFiles(
        [line for line in lines if not line.endswith("/")], [line for line in lines if line.endswith("/")]
    )


def wrong_line(lines: Sequence[str]) -> str | None:
    """The first line that is neither a path of a file that lasts nor of a folder below the root."""
    for line in lines:
        is_folder = line.endswith("/") and line != paths.ROOT
        fault = paths.fault_of_folder(line) if is_folder else paths.fault_of_file(line)
        if fault is not None or line.startswith(paths.SCRATCH) or redact_text(line)[1]:
            return line
    return None


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
