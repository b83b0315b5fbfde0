"""A body that is a file, or a form with one: read as it comes, never held in memory."""

from collections.abc import Mapping
from tempfile import TemporaryFile
from typing import IO, Any

from django.core.exceptions import SuspiciousOperation
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, TemporaryFileUploadHandler
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.utils.http import parse_header_parameters
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser, MultiPartParser

from memories.api.parsers import incomplete
from memories.curation.imports.errors import ImportTooLarge
from memories.curation.imports.verbs import most_bytes
from memories.exceptions import InvalidInput

FILE = "file"
# A form has some bytes around its file.
_AROUND = 1 << 20
# What the type of a raw body says of its form, where no name does.
_SUFFIXES: Mapping[str, str] = {
    "text/csv": ".csv",
    "text/markdown": ".md",
    "application/x-ndjson": ".jsonl",
    "application/jsonl": ".jsonl",
}


class _Whole:
    """A body that is refused if it breaks off: half a file must not pass for a small one."""

    def __init__(self, stream: IO[bytes], length: int) -> None:
        self._stream, self._left = stream, length

    def read(self, size: int = -1) -> bytes:
        """Errors: InvalidInput."""
        piece = self._stream.read(size)
        self._left -= len(piece)
        if not piece and size and self._left > 0:
            raise incomplete()
        return piece


class UploadParser(BaseParser):
    """The fields of a form with the file among them, or the file alone."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> dict[str, Any]:
        """Errors: ImportTooLarge, InvalidInput."""
        context = parser_context or {}
        request: HttpRequest = context["request"]._request
        length = int(request.META.get("CONTENT_LENGTH") or 0)
        if length > most_bytes() + _AROUND:
            raise ImportTooLarge
        body: Any = _Whole(stream, length)
        kind, _parameters = parse_header_parameters(media_type or "")
        if kind != MultiPartParser.media_type:
            return {FILE: body, "name": _SUFFIXES.get(kind, "")}
        try:
            found = MultiPartParser().parse(body, media_type, context)
        except (ParseError, MultiPartParserError, SuspiciousOperation) as error:
            raise InvalidInput.at("", "The form cannot be read.", code="syntax") from error
        file: Any = found.files.get(FILE)
        # A field of this name without a file is none.
        fields = {name: values[-1] for name, values in found.data.lists() if name != FILE}
        return {**fields, **({FILE: file, "name": file.name or ""} if file else {})}


class UnnamedUpload(TemporaryFileUploadHandler):
    """Large files of any form lie on the disk without a name: a process that is killed leaves none."""

    def new_file(self, *arguments: Any, **named: Any) -> None:
        FileUploadHandler.new_file(self, *arguments, **named)
        about: tuple[Any, ...] = (self.file_name, self.content_type, 0, self.charset, self.content_type_extra)
        self.file: Any = UploadedFile(TemporaryFile(), *about)  # noqa: SIM115  (closed with the request)

    def upload_interrupted(self) -> None:
        if hasattr(self, "file"):
            self.file.close()


def accept_spooled(request: HttpRequest) -> None:
    """Set the length of a chunked body, which the web server has read to its end."""
    file: Any = request.META.get("wsgi.input")
    if request.META.get("CONTENT_LENGTH") or file is None or "HTTP_TRANSFER_ENCODING" not in request.META:
        return
    if hasattr(file, "seek"):
        request.META["CONTENT_LENGTH"] = str(file.seek(0, 2))
        file.seek(0)
        request._stream = file
