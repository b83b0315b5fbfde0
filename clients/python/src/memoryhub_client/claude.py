"""Claude's memory tool on memory files of a hub: `HubMemoryTool`, for the tool runner of Anthropic's package.

    client.beta.messages.run_tools(model=…, messages=…, tools=[HubMemoryTool(user_id="u1")], max_tokens=…).until_done()

Its commands (view, create, str_replace, insert, delete, rename) answer in the words that Claude knows. What the hub
refuses is a `ToolError` in the hub's words.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types.beta import (
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)

from memoryhub_client.client import MemoryHub
from memoryhub_client.errors import MemoryHubError, NotFoundError, VersionMismatchError, explained
from memoryhub_client.models import DownloadedFile, StatedBy

T = TypeVar("T")
ROOT = "/memories"
EDITED = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
# Digits of a line's number, as Claude is used to.
WIDTH = 6
# How often a change is made anew of what somebody else wrote meanwhile.
ATTEMPTS = 5
# What the hub reads in one request.
MOST_FILES = 200


class HubMemoryTool(BetaAbstractMemoryTool):
    """A person's memory files below /memories, of one agent or of requests that name none."""

    def __init__(
        self,
        hub: MemoryHub | None = None,
        *,
        user_id: str | None,
        agent_id: str | None = None,
        stated_by: StatedBy | None = None,
        cache_control: Any = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._hub = hub or MemoryHub()
        self._owner: dict[str, Any] = {"user_id": user_id, "agent_id": agent_id}
        self._stated_by = stated_by

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        path = _path(command.path)
        file = self._file(path)
        if file is None:
            return self._folder(path, command.path)
        lines = _text(file, command.path).split("\n")
        first, last = 1, len(lines)
        if command.view_range and len(command.view_range) == 2:
            first = max(1, command.view_range[0])
            last = last if command.view_range[1] == -1 else command.view_range[1]
        return f"Here's the content of {command.path} with line numbers:\n{_numbered(lines[:last], first)}"

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        self._write(_path(command.path), command.path, command.file_text)
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        path, old, new = _path(command.path), command.old_str, command.new_str or ""

        def replace(content: str, version: int) -> str:
            places = [content[:at].count("\n") + 1 for at in range(len(content)) if old and content.startswith(old, at)]
            if not places:
                raise ToolError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
                )
            if len(places) > 1:
                raise ToolError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                    f"{', '.join(map(str, places))}. Please ensure it is unique"
                )
            self._hub.edit_file(path, old, new, **self._owner, stated_by=self._stated_by, if_match=version)
            # As it is kept: without secrets.
            lines = _text(self._there(path, command.path), command.path).split("\n")
            snippet = _numbered(lines[: places[0] + 2], max(1, places[0] - 2))
            return f"{EDITED}\n{snippet}"

        return self._changed(path, command.path, replace)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        path = _path(command.path)

        def insert(content: str, version: int) -> str:
            lines = content.removesuffix("\n").split("\n") if content else []
            if not 0 <= command.insert_line <= len(lines):
                raise ToolError(
                    f"Invalid `insert_line` parameter: {command.insert_line}. "
                    f"It should be within the range [0, {len(lines)}]."
                )
            lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
            text = "\n".join(lines) + "\n"
            self._hub.write_file(path, text, **self._owner, stated_by=self._stated_by, if_match=version)
            return f"The file {command.path} has been edited."

        return self._changed(path, command.path, insert)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        path = _path(command.path)
        if path == ROOT:
            raise ToolError("Cannot delete the /memories directory itself")
        try:
            self._hub.delete_file(path, **self._owner)
        except NotFoundError as error:
            raise ToolError(f"The path {command.path} does not exist") from error
        except MemoryHubError as error:
            _refuse(error)
        return f"Successfully deleted {command.path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Files get their new names one after the other. If that breaks off, some have both; none is lost."""
        old, new = _path(command.old_path), _path(command.new_path)
        if old == ROOT:
            raise ToolError("Cannot rename the /memories directory itself")
        found = [old] if self._file(old) else self._below(old)
        if not found:
            raise ToolError(f"The path {command.old_path} does not exist")
        if self._file(new) or self._below(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        for start in range(0, len(found), MOST_FILES):
            for file in self._asked(lambda: self._hub.download_files(found[start : start + MOST_FILES], **self._owner)):  # noqa: B023
                if file.content is not None:
                    self._move(file, new + file.path.removeprefix(old), command.new_path)
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        try:
            self._hub.delete_file(ROOT, **self._owner)
        except NotFoundError:
            pass
        except MemoryHubError as error:
            _refuse(error)
        return "All memory cleared"

    # Asking the hub

    def _file(self, path: str) -> DownloadedFile | None:
        [found] = self._asked(lambda: self._hub.download_files([path], **self._owner))
        if found.error == "invalid_path":
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
        return None if found.error else found

    def _there(self, path: str, named: str) -> DownloadedFile:
        if file := self._file(path):
            return file
        if self._below(path) or path == ROOT:
            raise ToolError(f"The path {named} is not a file.")
        raise ToolError(f"The path {named} does not exist. Please provide a valid path.")

    def _below(self, folder: str) -> list[str]:
        """The paths of its files, also hidden ones."""
        found = [
            one.path
            for pattern in ("*", ".*")
            for one in self._asked(lambda: self._hub.glob_files(pattern, path=folder, **self._owner))  # noqa: B023
        ]
        return sorted(path for path in found if path.startswith(f"{folder}/"))

    def _folder(self, path: str, named: str) -> str:
        found = self._asked(lambda: self._hub.glob_files("*", path=path, **self._owner))
        sizes: dict[str, int] = {}
        for one in found:
            names = one.path.removeprefix(f"{path}/").split("/")
            if any(name.startswith(".") or name == "node_modules" for name in names):
                continue
            for depth in range(min(len(names), 2)):
                place = "/".join(names[: depth + 1]) + ("/" if depth + 1 < len(names) else "")
                sizes[place] = sizes.get(place, 0) + one.size
        if not found and path != ROOT:
            raise ToolError(f"The path {named} does not exist. Please provide a valid path.")
        whole = sum(size for place, size in sizes.items() if "/" not in place.rstrip("/"))
        lines = [f"{_size(whole)}\t{named}", *(f"{_size(sizes[place])}\t{path}/{place}" for place in sorted(sizes))]
        shown = f"up to 2 levels deep in {named}, excluding hidden items and node_modules"
        return "\n".join([f"Here're the files and directories {shown}:", *lines])

    def _changed(self, path: str, named: str, change: Callable[[str, int], str]) -> str:
        """Change the file as it is; of what somebody else wrote meanwhile the change is made anew."""
        for _ in range(ATTEMPTS):
            file = self._there(path, named)
            try:
                return change(_text(file, named), file.version or 0)
            except VersionMismatchError:
                continue
            except MemoryHubError as error:
                _refuse(error)
        raise ToolError(f"The file {named} is being changed by others. Try again.")

    def _write(self, path: str, named: str, text: str) -> None:
        """Errors: ToolError also when there is a file."""
        try:
            self._hub.write_file(path, text, **self._owner, stated_by=self._stated_by, if_match=0)
        except VersionMismatchError as error:
            raise ToolError(f"File {named} already exists") from error
        except MemoryHubError as error:
            _refuse(error)

    def _move(self, file: DownloadedFile, to: str, named: str) -> None:
        if file.encoding == "utf-8":
            self._write(to, named, str(file.content))
        else:
            sent = {"path": to, "content": str(file.content), "encoding": "base64"}
            answer = self._asked(lambda: self._hub.upload_files([sent], **self._owner, stated_by=self._stated_by))  # type: ignore[list-item]
            if answer[0].error:
                raise ToolError(answer[0].detail or answer[0].error)
        try:
            self._hub.delete_file(file.path, **self._owner, if_match=file.version)
        except MemoryHubError as error:
            _refuse(error)

    def _asked(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask().results
        except MemoryHubError as error:
            _refuse(error)


class AsyncHubMemoryTool(BetaAsyncAbstractMemoryTool):
    """As `HubMemoryTool`, for asyncio: each command is run in a thread."""

    def __init__(self, hub: MemoryHub | None = None, *, cache_control: Any = None, **given: Any) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = HubMemoryTool(hub, **given)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        return await asyncio.to_thread(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        return await asyncio.to_thread(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        return await asyncio.to_thread(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        return await asyncio.to_thread(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        return await asyncio.to_thread(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        return await asyncio.to_thread(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        return await asyncio.to_thread(self._tool.clear_all_memory)


def _path(path: str) -> str:
    """Errors: ToolError for what is not below /memories."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        raise ToolError(f"Path must start with /memories, got: {path}")
    if ".." in path.split("/"):
        raise ToolError(f"Path {path} would escape /memories directory")
    return path.rstrip("/")


def _text(file: DownloadedFile, named: str) -> str:
    if file.encoding != "utf-8":
        raise ToolError(f"Unsupported file type for {named}")
    return str(file.content)


def _numbered(lines: list[str], first: int) -> str:
    return "\n".join(f"{number:>{WIDTH}}\t{line}" for number, line in enumerate(lines[first - 1 :], first))


def _size(number: float) -> str:
    for unit in ("B", "K", "M"):
        if number < 1024 or unit == "M":
            break
        number /= 1024
    return f"{int(number)}{unit}" if number == int(number) else f"{number:.1f}{unit}"


def _refuse(error: MemoryHubError) -> NoReturn:
    raise ToolError(explained(error)) from error
