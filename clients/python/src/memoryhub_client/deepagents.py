"""Memory files of a hub as a backend of deepagents: `HubBackend`.

    backend = CompositeBackend(
        default=StateBackend(),
        routes={"/memories/": HubBackend(user_id="u1", agent_id="writer", root="/memories")},
    )
    agent = create_deep_agent(model, backend=backend, memory=["/memories/AGENTS.md"])

It behaves as deepagents' own `StoreBackend` and answers with its results and texts. What the hub refuses is an `error`
of the result, in the hub's words: agents read it. A hub that is away, or does not know the key, ends no run: the log
says so, and so does the result. Of a file that is loaded into the prompt its content says it.
"""

import asyncio
import base64
import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from datetime import datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar
from urllib.parse import quote

from deepagents.backends.protocol import (
    PERMISSION_DENIED,
    BackendProtocol,
    DeleteResult,
    EditResult,
    FileData,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.utils import (
    EMPTY_OLD_STRING_ERROR,
    InvalidGlobPatternError,
    _get_backend_read_file_type,
    compile_grep_include_glob,
    normalize_read_bounds,
    perform_string_replacement,
    slice_read_response,
)
from langgraph.config import get_config
from langgraph.runtime import Runtime, get_runtime

from memoryhub_client._memory import logged
from memoryhub_client._retrying import Retries
from memoryhub_client.client import AsyncMemoryHub, MemoryHub
from memoryhub_client.errors import (
    ForbiddenError,
    GoneError,
    MemoryHubError,
    ProblemError,
    RestrictedError,
    ServerError,
    ThrottledError,
    UnauthorizedError,
    explained,
)
from memoryhub_client.models import FileContent, FileEntry, FileToUpload, StatedBy

logger = logging.getLogger(__name__)
T = TypeVar("T")
FailurePolicy: TypeAlias = Literal["fail_open", "fail_closed"]
# A name, or what tells it for the run that is under way.
Named: TypeAlias = str | Callable[[Runtime[Any]], str | None] | None
# An operation of the client and its arguments, what it answers, and what comes of it.
Asking: TypeAlias = Generator[tuple[str, dict[str, Any]], Any, T]
# What the hub takes in one request.
MOST_FILES = 200
MOST_BYTES = 4_000_000
MOST_LINES = 100_000
LARGEST_OFFSET = 2**31 - 1
SCRATCH = "/temp"
# An agent does not wait long for its files.
TIMEOUT_SECONDS = 10.0
# How a file begins that is loaded into a prompt while it cannot be read.
UNREAD = "(This memory file could not be read."


def thread_folder(runtime: Runtime[Any] | None = None) -> str:  # noqa: ARG001  # as a backend calls it
    """The scratch folder of the thread that is running; the hub deletes its files some days after the last change."""
    thread_id = get_config().get("configurable", {}).get("thread_id")
    if not thread_id:
        raise RuntimeError("Scratch files are a thread's: run the graph with a thread_id in its config.")
    return f"{SCRATCH}/{quote(str(thread_id), safe='')}"


class HubBackend(BackendProtocol):
    """A person's memory files of one agent, or of requests that name no agent.

    `user_id`, `agent_id` and `root` are texts, or functions of the `Runtime` as `namespace` is of a `StoreBackend`.
    `root` is the folder of the hub that is `/` here: a `CompositeBackend` takes the route away from each path.
    Without `async_hub` the asynchronous twins ask `hub` in threads.

    `failure_policy`: what happens while the hub is away, or does not serve this key or person. With "fail_open" the run
    goes on, with "fail_closed" it ends with the error of the client.
    """

    def __init__(
        self,
        hub: MemoryHub | None = None,
        *,
        user_id: Named,
        agent_id: Named = None,
        root: str | Callable[[Runtime[Any]], str] = "/",
        stated_by: StatedBy | None = None,
        async_hub: AsyncMemoryHub | None = None,
        failure_policy: FailurePolicy = "fail_open",
    ) -> None:
        if failure_policy not in {"fail_open", "fail_closed"}:
            raise ValueError("failure_policy is fail_open or fail_closed")
        self._hub = hub or MemoryHub(timeout=TIMEOUT_SECONDS, retries=Retries(times=1, longest_wait=1.0))
        self._fails_open = failure_policy == "fail_open"
        self._async_hub = async_hub
        self._user_id, self._agent_id, self._root = user_id, agent_id, root
        self._stated_by = stated_by

    # Reading

    def ls(self, path: str) -> LsResult:
        return self._run(self._ls(path))

    async def als(self, path: str) -> LsResult:
        return await self._arun(self._ls(path))

    def _ls(self, path: str) -> Asking[LsResult]:
        files = self._files()
        try:
            found = yield "list_files", {**files.owner, "path": files.full(path)}
        except MemoryHubError as error:
            return LsResult(error=_error_text(error))
        return LsResult(entries=[files.info(one) for one in found.results])

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return self._run(self._read(file_path, offset, limit))

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        return await self._arun(self._read(file_path, offset, limit))

    def _read(self, file_path: str, offset: int, limit: int) -> Asking[ReadResult]:
        files = self._files()
        offset, limit = normalize_read_bounds(offset, limit)
        asked = {**files.owner, "path": files.full(file_path)}
        is_text = _get_backend_read_file_type(file_path) == "text"
        # What is no text is read as a whole, and nothing counts its lines.
        window = {"offset": min(offset, LARGEST_OFFSET), "limit": min(limit, MOST_LINES)} if is_text else {}
        try:
            found = yield "read_file", {**asked, **window}
            if found.blank and window != {}:
                found = yield "read_file", asked
        except ProblemError as error:
            return ReadResult(error=_why_not_read(error, file_path, offset))
        except MemoryHubError as error:
            return ReadResult(error=_error_text(error))
        return _window(found, offset, limit, is_text=is_text)

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        return self._run(self._grep(pattern, path, glob, max_count))

    async def agrep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        return await self._arun(self._grep(pattern, path, glob, max_count))

    def _grep(self, pattern: str, path: str | None, glob: str | None, max_count: int | None) -> Asking[GrepResult]:
        files = self._files()
        most = None if max_count is None else max(max_count, 0)
        try:
            if glob:
                compile_grep_include_glob(glob)
            asked = {**files.owner, "path": files.searched(path), "glob": glob or None, "max_count": most}
            found = yield "grep_files", {**asked, "pattern": pattern}
        except InvalidGlobPatternError as error:
            return GrepResult(error=str(error))
        except MemoryHubError as error:
            return GrepResult(error=_error_text(error))
        matches = [GrepMatch(path=files.own(one.path), line=one.line, text=one.text) for one in found.results]
        return GrepResult(matches=matches, truncated=found.truncated)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        return self._run(self._glob(pattern, path))

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        return await self._arun(self._glob(pattern, path))

    def _glob(self, pattern: str, path: str | None) -> Asking[GlobResult]:
        files = self._files()
        try:
            # Its refusals are in deepagents' words.
            compile_grep_include_glob(pattern)
            if not pattern.strip("/"):
                return GlobResult(matches=[])
            found = yield "glob_files", {**files.owner, "path": files.searched(path), "pattern": pattern}
        except InvalidGlobPatternError as error:
            return GlobResult(error=str(error))
        except MemoryHubError as error:
            return GlobResult(error=_error_text(error))
        matches = [files.info(one) for one in found.results]
        return GlobResult(
            matches=matches, truncated=found.truncated, truncation_reason="budget" if found.truncated else None
        )

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return self._run(self._download_files(paths))

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return await self._arun(self._download_files(paths))

    def _download_files(self, paths: Sequence[str]) -> Asking[list[FileDownloadResponse]]:
        files = self._files()
        responses = []
        for start in range(0, len(paths), MOST_FILES):
            wanted = paths[start : start + MOST_FILES]
            try:
                found = yield "download_files", {**files.owner, "paths": [files.full(path) for path in wanted]}
            except MemoryHubError as error:
                responses += [self._unread(path, error) for path in wanted]
                continue
            for path, one in zip(wanted, found.results, strict=True):
                content = None if one.error else _bytes(one.content, one.encoding)
                responses.append(FileDownloadResponse(path=path, content=content, error=one.error))
        return responses

    def _unread(self, path: str, error: MemoryHubError) -> FileDownloadResponse:
        """A file that cannot be had: deepagents ends a run for an error, and shows the agent a content."""
        if not self._fails_open:
            return FileDownloadResponse(path=path, error=_code(error))
        mark = f"{UNREAD} {explained(error)} It may say something: read it before you change it.)"
        return FileDownloadResponse(path=path, content=mark.encode())

    # Writing

    def write(self, file_path: str, content: str) -> WriteResult:
        return self._run(self._write(file_path, content))

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        return await self._arun(self._write(file_path, content))

    def _write(self, file_path: str, content: str) -> Asking[WriteResult]:
        files = self._files()
        given = {"path": files.full(file_path), "content": content, "stated_by": self._stated_by}
        if UNREAD in content:
            return WriteResult(error=WITHOUT_READING)
        try:
            yield "write_file", {**files.owner, **given}
        except MemoryHubError as error:
            return WriteResult(error=_not_done(error))
        return WriteResult(path=file_path)

    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,  # the protocol's
    ) -> EditResult:
        return self._run(self._edit(file_path, old_string, new_string, every=replace_all))

    async def aedit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,  # the protocol's
    ) -> EditResult:
        return await self._arun(self._edit(file_path, old_string, new_string, every=replace_all))

    def _edit(self, file_path: str, old: str, new: str, *, every: bool) -> Asking[EditResult]:
        files = self._files()
        path = files.full(file_path)
        given = {"path": path, "old_string": old, "new_string": new, "replace_all": every}
        try:
            if not old:
                # Whether the file is there is said first.
                [found] = (yield "download_files", {**files.owner, "paths": [path]}).results
                missing = f"Error: File '{file_path}' not found"
                return EditResult(error=missing if found.error else EMPTY_OLD_STRING_ERROR)
            stored = yield "edit_file", {**files.owner, **given, "stated_by": self._stated_by}
        except ProblemError as error:
            return EditResult(error=_why_not_edited(error, file_path, old))
        except MemoryHubError as error:
            return EditResult(error=_not_done(error))
        return EditResult(path=file_path, occurrences=stored.occurrences)

    def delete(self, file_path: str) -> DeleteResult:
        return self._run(self._delete(file_path))

    async def adelete(self, file_path: str) -> DeleteResult:
        return await self._arun(self._delete(file_path))

    def _delete(self, file_path: str) -> Asking[DeleteResult]:
        files = self._files()
        paths = [files.full(file_path.rstrip("/") or "/")]
        deleted = 0
        try:
            if paths == ["/"]:
                # The hub deletes no root at once.
                found = yield "list_files", {**files.owner, "path": "/"}
                paths = [one.path for one in found.results]
            for path in paths:
                deleted += (yield "delete_file", {**files.owner, "path": path}).deleted
        except MemoryHubError as error:
            missing = _missing(error) if isinstance(error, ProblemError) else None
            if missing is None:
                return DeleteResult(error=_not_done(error, "deleted"))
            return DeleteResult(error=f"Error: File '{file_path}' not found{missing}")
        return DeleteResult(path=file_path) if deleted else DeleteResult(error=f"Error: File '{file_path}' not found")

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return self._run(self._upload_files(files))

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return await self._arun(self._upload_files(files))

    def _upload_files(self, given: Sequence[tuple[str, bytes]]) -> Asking[list[FileUploadResponse]]:
        files = self._files()
        responses = []
        for batch in _batches(given):
            sent = [_to_upload(files.full(path), content) for path, content in batch]
            try:
                found = yield "upload_files", {**files.owner, "files": sent, "stated_by": self._stated_by}
            except MemoryHubError as error:
                responses += [FileUploadResponse(path=path, error=_code(error, _not_done)) for path, _ in batch]
                continue
            answers = zip(batch, found.results, strict=True)
            responses += [FileUploadResponse(path=path, error=one.error) for (path, _), one in answers]
        return responses

    # Asking the hub

    def _files(self) -> "_Paths":
        """Whose files they are in the run that is under way."""
        try:
            runtime: Runtime[Any] | None = get_runtime()
        except (RuntimeError, KeyError):
            runtime = None

        def resolved(named: Any) -> Any:
            return named(runtime) if callable(named) else named

        try:
            owner = {"user_id": resolved(self._user_id), "agent_id": resolved(self._agent_id)}
            return _Paths(owner, resolved(self._root))
        except AttributeError as error:
            if runtime is not None:
                raise
            raise RuntimeError(
                "What tells whose files these are reads the Runtime, but it is running outside a LangGraph graph "
                "execution. Use the backend inside a graph (create_deep_agent), or give it texts."
            ) from error

    def _run(self, asking: Asking[T]) -> T:
        step = _Question(asking)
        while step.asked:
            name, given = step.asked
            try:
                answer = getattr(self._hub, name)(**given)
                step.answered(answer.page() if name == "list_files" else answer)
            except MemoryHubError as error:  # a request each time
                self._fail(name, error)
                step.refused(error)
        return step.result

    async def _arun(self, asking: Asking[T]) -> T:
        if self._async_hub is None:
            return await asyncio.to_thread(self._run, asking)
        step = _Question(asking)
        while step.asked:
            name, given = step.asked
            try:
                answer = getattr(self._async_hub, name)(**given)
                step.answered(await (answer.page() if name == "list_files" else answer))
            except MemoryHubError as error:  # a request each time
                self._fail(name, error)
                step.refused(error)
        return step.result

    def _fail(self, name: str, error: MemoryHubError) -> None:
        """Raise or log what is not about a file or a text, but about all of the memory."""
        if isinstance(error, ProblemError) and not isinstance(error, OF_ALL_FILES):
            return
        if not self._fails_open:
            raise error
        logger.warning("The agent goes on without its memory files (%s): %s", name, logged(error))


class _Question(Generic[T]):
    """How far an asking is: what it asks next, None at its end, and then its result."""

    asked: tuple[str, dict[str, Any]] | None
    result: T

    def __init__(self, asking: Asking[T]) -> None:
        self._asking = asking
        self._go(lambda: next(asking))

    def answered(self, answer: Any) -> None:
        self._go(lambda: self._asking.send(answer))

    def refused(self, error: MemoryHubError) -> None:
        self._go(lambda: self._asking.throw(error))

    def _go(self, on: Callable[[], tuple[str, dict[str, Any]]]) -> None:
        try:
            self.asked = on()
        except StopIteration as end:
            self.asked, self.result = None, end.value


class _Paths:
    """Paths of a backend and of the hub. Those that do not begin with a slash go as they are, for the hub to refuse."""

    def __init__(self, owner: dict[str, Any], root: str) -> None:
        self.owner = owner
        self._root = "/" + root.strip("/") if root.strip("/") else ""

    def full(self, path: str) -> str:
        if not path.startswith("/"):
            return path
        return self._root + path if path != "/" else self._root or "/"

    def searched(self, path: str | None) -> str:
        """As deepagents completes the path of a search."""
        path = path or "/"
        return self.full(path if path.startswith("/") else f"/{path}")

    def own(self, path: str) -> str:
        return path.removeprefix(self._root) or "/"

    def info(self, one: FileEntry) -> FileInfo:
        modified = one.modified_at.isoformat() if isinstance(one.modified_at, datetime) else ""
        return FileInfo(path=self.own(one.path), is_dir=one.is_dir, size=one.size, modified_at=modified)


# Results and texts

NOT_THERE = {"file_not_found", "not_found"}
OF_ALL_FILES = (UnauthorizedError, ForbiddenError, GoneError, RestrictedError, ThrottledError, ServerError)
WITHOUT_READING = "Error: Nothing was kept. The text has the note of an unread file in it: read the file first."


def _window(found: FileContent, offset: int, limit: int, *, is_text: bool) -> ReadResult:
    data = FileData(
        content=found.content,
        encoding=found.encoding,
        created_at=found.created_at.isoformat(),
        modified_at=found.modified_at.isoformat(),
    )
    if not is_text or found.blank:
        return ReadResult(file_data=data)
    if found.encoding == "base64":
        return slice_read_response(data, offset, limit)
    if limit == 0:
        return ReadResult(file_data=data, no_lines_requested=True)
    return ReadResult(
        file_data=data,
        total_lines=found.total_lines,
        start_line=found.start_line,
        end_line=found.end_line,
        next_offset=found.next_offset,
    )


def _missing(error: ProblemError) -> str | None:
    """What is added to "not found"; None if the file may be there. It is not at a path that no file can have."""
    if error.code in NOT_THERE:
        return ""
    faults = [one.detail for one in error.errors if one.code == "invalid_path"]
    return f". {' '.join(faults)}" if faults else None


def _why_not_read(error: ProblemError, file_path: str, offset: int) -> str:
    if error.code == "offset_beyond_end":
        return f"Line offset {offset} exceeds file length ({error.document.get('total_lines')} lines)"
    missing = _missing(error)
    return _error_text(error) if missing is None else f"File '{file_path}' not found{missing}"


def _why_not_edited(error: ProblemError, file_path: str, old: str) -> str:
    """In deepagents' words: it is given a text that has as many occurrences as the file."""
    if (missing := _missing(error)) is not None:
        return f"Error: File '{file_path}' not found{missing}"
    if error.code == "binary_file":
        return "Error: Cannot edit binary files with text replacements."
    like = None
    if error.code == "text_not_unique":
        like = f"{old}\0" * int(error.document["occurrences"])
    elif error.code == "text_not_found" and error.document.get("newline_only"):
        like = f"\0{old.removesuffix(chr(10))}" * int(error.document["occurrences_without_newline"])
    elif error.code == "text_not_found":
        like = ""
    return _not_done(error) if like is None else str(perform_string_replacement(like, old, ""))


def _error_text(error: MemoryHubError) -> str:
    return f"Error: {explained(error)}"


def _not_done(error: MemoryHubError, done: str = "kept") -> str:
    """Of a change: what came of it, too."""
    if error.may_be_done:
        return f"Error: Nobody knows whether this was {done}: the memory did not answer. Look before you try again."
    return f"Error: Nothing was {done}. {explained(error)}"


def _code(error: MemoryHubError, said: Callable[[MemoryHubError], str] = _error_text) -> str:
    """Of a request for many files, all of which it concerns."""
    return PERMISSION_DENIED if isinstance(error, ForbiddenError | GoneError | RestrictedError) else said(error)


def _bytes(content: str, encoding: str) -> bytes:
    return base64.b64decode(content) if encoding == "base64" else content.encode("utf-8", "surrogatepass")


def _to_upload(path: str, content: bytes) -> FileToUpload:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return {"path": path, "content": base64.b64encode(content).decode("ascii"), "encoding": "base64"}
    return {"path": path, "content": text, "encoding": "utf-8"}


def _batches(files: Sequence[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    batch: list[tuple[str, bytes]] = []
    size = 0
    for one in files:
        if batch and (len(batch) == MOST_FILES or size + len(one[1]) > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += len(one[1])
    if batch:
        yield batch
