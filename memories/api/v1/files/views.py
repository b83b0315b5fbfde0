"""/files: memory files of a person and an agent."""

import base64
import binascii
import json
from collections.abc import Collection, Iterable, Iterator
from json.encoder import encode_basestring
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.schema import etag, if_match, operation
from memories.api.v1.fields import page_of
from memories.api.v1.files.serializers import (
    ContentQuery,
    DownloadedSerializer,
    DownloadSerializer,
    FileContentSerializer,
    FileDeletion,
    FileEditSerializer,
    FileEntrySerializer,
    FileHistoryQuery,
    FileRestoreSerializer,
    FilesDeletedSerializer,
    FileSerializer,
    FilesQuery,
    FileVersionSerializer,
    FoundFilesSerializer,
    FoundLinesSerializer,
    GlobSerializer,
    GrepSerializer,
    NewContentSerializer,
    StoredFileSerializer,
    UploadedSerializer,
    UploadSerializer,
)
from memories.curation.files import (
    FileWriter,
    NewContent,
    WrittenFile,
    delete_files,
    edit_file,
    restore_file,
    write_file,
)
from memories.curation.people.records import person_for_writing
from memories.exceptions import (
    Conflict,
    FileIsFolder,
    FileNotFound,
    FileTooLarge,
    InvalidInput,
    OffsetBeyondEnd,
    OperatorWord,
)
from memories.files import paths, texts
from memories.files.globs import InvalidPattern
from memories.files.reading import Entry, FileTree, Match
from memories.models import Encoding, EndUser, FileVersion, MemoryFile, Scope, SkillTrial
from memories.skills import serving, trials
from memories.skills.serving import Offer

_BOOLEAN = {False: "false", True: "true"}


class FileEndpoint(Endpoint):
    """What the views of files share."""

    # The skills of the request's session, where its paths may lead to them.
    offered: Offer | None = None

    def tree(self, given: dict[str, Any], *wanted: str) -> FileTree:
        """The files that are read, with skills where one of the `wanted` paths may lead to them; of a restricted person
        none."""
        person = lookups.find_person(tenant=self.tenant, user_id=given["user_id"])
        if person and person.restricted_at:
            return self._tree(None, given)
        return self._tree(person, given, self._offer(person, given, wanted))

    def tree_of_one(self, given: dict[str, Any]) -> FileTree:
        """The same for the content of one file. Errors: PersonRestricted."""
        person = lookups.find_person(tenant=self.tenant, user_id=given["user_id"])
        person = lookups.require_unrestricted(person) if person else None
        return self._tree(person, given, self._offer(person, given, [given["path"]]))

    def note(self, read: Collection[str] = ()) -> None:
        """Note which skills the session was given, or kept without; `read`: paths of files of which it got the text."""
        if self.offered:
            names = {one.name for one in self.offered.served if one.path in read}
            trials.note(self.offered, SkillTrial.Via.FILES, now=self.now, read=names)

    def writing(self, given: dict[str, Any]) -> dict[str, Any]:
        """Arguments of the verbs that make files. Errors: PersonRestricted, Erased."""
        person = person_for_writing(tenant=self.tenant, user_id=given["user_id"], now=self.now)
        return self._changing(person, given)

    def changing(self, given: dict[str, Any]) -> dict[str, Any]:
        """Arguments of the verbs on what is there. Errors: FileNotFound, PersonRestricted."""
        person = lookups.find_person(tenant=self.tenant, user_id=given["user_id"])
        if person is None:
            # The first file is read of anybody, and can be edited.
            if self._tree(None, given).file(given["path"]) is None:
                self._check_own(None, given)
                raise FileNotFound
            return self.writing(given)
        self._check_own(lookups.require_unrestricted(person), given)
        return self._changing(person, given)

    def stored(self, written: WrittenFile, *, status: int = 200) -> Response:
        shown = {
            **FileSerializer(written.file).data,
            "created": written.is_new,
            "occurrences": written.occurrences,
            "redactions": written.redactions,
        }
        return Response(shown, status=status, headers={"ETag": f'"{written.file.version}"'})

    def _tree(self, person: EndUser | None, given: dict[str, Any], offered: Offer | None = None) -> FileTree:
        self.offered = offered
        return FileTree(
            self.tenant, person, given.get("agent_id") or "", self.now, given=offered.files() if offered else {}
        )

    def _offer(self, person: EndUser | None, given: dict[str, Any], wanted: Iterable[str]) -> Offer | None:
        """The skills of the session, if one of these paths is theirs, or the folder of all."""
        if not any(path == paths.ROOT or paths.folder(path).startswith(serving.FOLDER) for path in wanted):
            return None
        session = serving.Session(self.tenant, person, given.get("agent_id") or "", given.get("session_id") or "")
        return serving.offer(session)

    def _check_own(self, person: EndUser | None, given: dict[str, Any]) -> None:
        """Errors: OperatorWord, where the path is that of a skill, and no file of the agent's own is there."""
        offered = self._offer(person, given, [given["path"]])
        if offered and given["path"] in offered.files() and self._tree(person, given).file(given["path"]) is None:
            raise OperatorWord(
                _("This file is a skill that the hub serves: it stays. Write a file of your own at its path instead.")
            )

    def _changing(self, person: EndUser, given: dict[str, Any]) -> dict[str, Any]:
        self.subjects.add(person.pk)
        writer = FileWriter(self.actor, self.now, self.write_trust(given.get("stated_by")))
        return {"end_user": person, "agent_id": given.get("agent_id") or "", "writer": writer}


class FilesView(FileEndpoint):
    @operation(
        "listFiles",
        "List a folder of a person's memory files",
        description="Its files and folders, without what is in these, by path: all in one answer. "
        "Empty for a folder that does not exist.",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[FilesQuery],
        answers={200: page_of(FileEntrySerializer)},
    )
    def get(self, request: Request) -> HttpResponse:
        given = self.query(FilesQuery)
        entries = self.tree(given, given["path"]).list_folder(given["path"])
        if given["path"] != paths.ROOT:
            self.note()
        return _written(map(_entry, entries), next=None, previous=None)

    @operation(
        "deleteFile",
        "Delete a file, or a folder with all that is in it",
        description="A deleted file can be restored until it leaves the trash. One that an operator locked answers 409 "
        "`operator_word`, and then nothing is deleted.",
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        parameters=[FileDeletion, if_match()],
        answers={200: FilesDeletedSerializer},
        problems=(404, 409, 412, 423),
    )
    def delete(self, request: Request) -> Response:
        given = self.query(FileDeletion)
        path = given["path"].removesuffix("/")
        if not path:
            raise InvalidInput.at("path", "Name a file or a folder: all files cannot be deleted at once.")
        number = delete_files(
            path=path, expected_version=self.expected_version(), **self.changing({**given, "path": path})
        )
        return Response({"path": given["path"], "deleted": number})


class FileContentView(FileEndpoint):
    @operation(
        "readFile",
        "Read lines of a file",
        description="A file that is no text is given whole, in base64. An offset beyond the end answers 400 "
        "`offset_beyond_end` with `total_lines`.",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[ContentQuery, etag(200)],
        answers={200: FileContentSerializer},
        problems=(404, 423),
    )
    def get(self, request: Request) -> Response:
        given = self.query(ContentQuery)
        file = self.tree_of_one(given).file(given["path"])
        self.note({given["path"]} if file is not None and file.locked and file._state.adding else ())
        if file is None:
            raise FileNotFound
        blank = not file.content.strip()
        if file.is_text:
            window = texts.window(file.content, offset=given["offset"], limit=given["limit"])
            if given["offset"] >= window.total_lines and given["offset"] and not blank:
                raise OffsetBeyondEnd(offset=given["offset"], total_lines=window.total_lines)
        else:
            window = texts.TextWindow(file.content, 0)
        shown = {**FileSerializer(file).data, **vars(window), "blank": blank}
        return Response(shown, headers={"ETag": f'"{file.version}"'})

    @operation(
        "writeFile",
        "Write a file",
        description=(
            'It is made, or gets this content. `If-Match` names the version that you read; `"0"`: there is none yet. '
            "Secrets are cut out. One that an operator locked answers 409 `operator_word`; a text that speaks to a "
            "model answers 409 `review_needed` and says where."
        ),
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=NewContentSerializer,
        parameters=[if_match(), etag(200, 201)],
        answers={200: StoredFileSerializer, 201: StoredFileSerializer},
        problems=(404, 409, 410, 412, 423),
    )
    def put(self, request: Request) -> Response:
        given = self.body(NewContentSerializer)
        content = NewContent(given["content"], Encoding.UTF_8, len(given["content"].encode()))
        written = write_file(
            path=given["path"], content=content, expected_version=self.expected_version(), **self.writing(given)
        )
        return self.stored(written, status=201 if written.is_new else 200)


class FileEditView(FileEndpoint):
    @operation(
        "editFile",
        "Replace a text in a file",
        description=(
            "A text that is not there answers 404 `text_not_found`; `newline_only` says that it is the end of the file "
            "but for its last newline. One that is there more than once answers 409 `text_not_unique` with "
            "`occurrences`, unless `replace_all` is set."
        ),
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=FileEditSerializer,
        parameters=[if_match(), etag(200)],
        answers={200: StoredFileSerializer},
        problems=(404, 409, 410, 412, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(FileEditSerializer)
        written = edit_file(
            path=given["path"],
            old=given["old_string"],
            new=given["new_string"],
            every=given["replace_all"],
            expected_version=self.expected_version(),
            **self.changing(given),
        )
        return self.stored(written)


class FileGlobView(FileEndpoint):
    @operation(
        "globFiles",
        "Find files by a pattern",
        description=(
            "Without a slash the pattern is for names at any depth, with one for paths below `path`; a slash at its "
            "beginning only anchors it. `**` crosses folders, `{a,b}` `[!a]` `?` and `*` are known, and names with a "
            "dot at their beginning match a part that has it, too. Files only, the newest first."
        ),
        scope=Scope.READ,
        bound=Bound.NAMED,
        request=GlobSerializer,
        answers={200: FoundFilesSerializer},
    )
    def post(self, request: Request) -> HttpResponse:
        given = self.body(GlobSerializer)
        try:
            found = self.tree(given, given["path"]).glob(given["pattern"], path=given["path"])
            self.note()
        except InvalidPattern as error:
            raise InvalidInput.at("/pattern", str(error), code="invalid_pattern") from error
        return _written(map(_entry, found.entries), truncated=found.truncated)


class FileGrepView(FileEndpoint):
    @operation(
        "grepFiles",
        "Find lines by their text",
        description="The pattern is text as it is. Files that are no text are passed over.",
        scope=Scope.READ,
        bound=Bound.NAMED,
        request=GrepSerializer,
        answers={200: FoundLinesSerializer},
    )
    def post(self, request: Request) -> HttpResponse:
        given = self.body(GrepSerializer)
        try:
            found = self.tree(given, given["path"]).grep(
                given["pattern"], path=given["path"], glob=given.get("glob") or "", most=given.get("max_count")
            )
            self.note()
        except InvalidPattern as error:
            raise InvalidInput.at("/glob", str(error), code="invalid_pattern") from error
        return _written(_matches(found.lines), truncated=found.truncated)


class FileUploadView(FileEndpoint):
    @operation(
        "uploadFiles",
        "Store many files",
        description="Each by itself, in this order: what is wrong with one is its `error`. At most 200 files.",
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=UploadSerializer,
        answers={200: UploadedSerializer},
        problems=(410, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(UploadSerializer)
        arguments = self.writing(given)
        return Response({"results": [_upload(one, arguments) for one in given["files"]]})


class FileDownloadView(FileEndpoint):
    @operation(
        "downloadFiles",
        "Read many files",
        description="Each whole, in this order; what is no UTF-8 is base64. What is wrong with one is its `error`.",
        scope=Scope.READ,
        bound=Bound.NAMED,
        request=DownloadSerializer,
        answers={200: DownloadedSerializer},
    )
    def post(self, request: Request) -> Response:
        given = self.body(DownloadSerializer)
        tree = self.tree(given, *(path for path in given["paths"] if path != paths.ROOT))
        files = tree.contents([path for path in given["paths"] if paths.fault_of_file(path) is None])
        self.note({path for path, file in files.items() if file._state.adding})
        return Response({"results": [_downloaded(path, files.get(path), tree) for path in given["paths"]]})


class FileHistoryView(FileEndpoint):
    @operation(
        "listFileHistory",
        "List a file's versions, newest first",
        description="Also of a deleted file, until it leaves the trash.",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[FileHistoryQuery],
        answers={200: page_of(FileVersionSerializer)},
        problems=(404, 423),
    )
    def get(self, request: Request) -> Response:
        given = self.query(FileHistoryQuery)
        tree = self.tree_of_one(given)
        row = tree.rows.filter(path=given["path"]).first()
        if row is None and tree.file(given["path"]) is None:
            raise FileNotFound
        versions = FileVersion.objects.filter(file=row) if row else FileVersion.objects.none()
        return self.listed(versions, FileVersionSerializer, given=given, ordering=["-version"], long=["content"])


class FileRestoreView(FileEndpoint):
    @operation(
        "restoreFile",
        "Give a file the content of an earlier version",
        description="Also a deleted one, until it leaves the trash.",
        scope=Scope.WRITE,
        bound=Bound.NAMED,
        request=FileRestoreSerializer,
        parameters=[if_match(), etag(200)],
        answers={200: StoredFileSerializer},
        problems=(404, 409, 410, 412, 423),
        idempotent=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(FileRestoreSerializer)
        person = lookups.find_person(tenant=self.tenant, user_id=given["user_id"])
        if person is None:
            raise FileNotFound
        written = restore_file(
            path=given["path"],
            version=given["version"],
            expected_version=self.expected_version(),
            **self._changing(lookups.require_unrestricted(person), given),
        )
        return self.stored(written)


def _written(results: Iterable[str], **around: bool | None) -> HttpResponse:
    """The answer of a list. There may be ten thousand results: to make objects of them, and JSON of those, takes longer
    than to find them."""
    document = f'{json.dumps(around, separators=(",", ":"))[:-1]},"results":[{",".join(results)}]}}'
    # As REST framework writes JSON: a script could not contain these two.
    for separator in ("\u2028", "\u2029"):
        document = document.replace(separator, f"\\u{ord(separator):x}")
    return HttpResponse(document.encode(), content_type="application/json")


def _entry(entry: Entry) -> str:
    """As FileEntrySerializer has it. The moment is written already, and the numbers are Python's own."""
    path, size, modified_at, version, locked = entry
    if version is None:
        around = '"is_dir":true,"size":0,"modified_at":null,"version":null,"locked":false'
        return f'{{"path":{encode_basestring(path)},{around}}}'
    return (
        f'{{"path":{encode_basestring(path)},"is_dir":false,"size":{size},"modified_at":"{modified_at}",'
        f'"version":{version},"locked":{_BOOLEAN[locked]}}}'
    )


def _matches(lines: Iterable[Match]) -> Iterator[str]:
    """Each as FileMatchSerializer has it. Those of a file stand together: its path is written once."""
    last, written = "", ""
    for path, line, text in lines:
        if path != last:
            last, written = path, encode_basestring(path)
        yield f'{{"path":{written},"line":{line},"text":{encode_basestring(text)}}}'


def _upload(one: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Store one file. Errors: PersonRestricted, NotFound (erased meanwhile); others are in the answer."""
    path, answer = one["path"], {"path": one["path"], "detail": None, "version": None, "redactions": 0}
    if fault := paths.fault_of_file(path):
        return {**answer, "error": "invalid_path", "detail": fault}
    try:
        content = _content_of(one)
        written = write_file(path=path, content=content, verb=FileVersion.Verb.UPLOAD, **arguments)
    except FileIsFolder as error:
        return {**answer, "error": "is_directory", "detail": error.detail}
    except InvalidInput as error:
        return {**answer, "error": "permission_denied", "detail": " ".join(fault.detail for fault in error.faults)}
    except (Conflict, FileTooLarge) as error:
        return {**answer, "error": "permission_denied", "detail": error.detail}
    return {**answer, "error": None, "version": written.file.version, "redactions": written.redactions}


def _content_of(one: dict[str, Any]) -> NewContent:
    """Errors: InvalidInput."""
    if one["encoding"] == Encoding.UTF_8:
        return NewContent(one["content"], Encoding.UTF_8, len(one["content"].encode()))
    try:
        data = base64.b64decode(one["content"], validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput.at("content", "This is no base64.") from error
    return NewContent.of(data, base64.b64encode(data).decode("ascii"))


def _downloaded(path: str, file: MemoryFile | None, tree: FileTree) -> dict[str, Any]:
    nothing = dict.fromkeys(("content", "encoding", "version", "created_at", "modified_at"))
    if file is not None:
        shown = {"content": file.content, "encoding": file.encoding, "version": file.version}
        return {"path": path, **shown, "created_at": file.created_at, "modified_at": file.updated_at, "error": None}
    if path and paths.fault_of_folder(path) is None and tree.is_folder(path):
        return {"path": path, **nothing, "error": "is_directory"}
    return {"path": path, **nothing, "error": "invalid_path" if paths.fault_of_file(path) else "file_not_found"}
