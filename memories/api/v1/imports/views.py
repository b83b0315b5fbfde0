"""/imports: files with what people have elsewhere, imported by a worker."""

import uuid
from typing import Any

from drf_spectacular.types import OpenApiTypes
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from memories import upload_heads
from memories.api import lookups, shapes
from memories.api.bound import Bound
from memories.api.endpoints import Endpoint
from memories.api.parsers import parameters
from memories.api.schema import operation
from memories.api.v1.fields import page_of
from memories.api.v1.filters import selected
from memories.api.v1.imports.serializers import (
    ImportSerializer,
    ImportsQuery,
    ResumeSerializer,
    UploadQuery,
    options_of,
)
from memories.api.v1.imports.uploads import FILE, UploadParser, accept_spooled
from memories.curation.imports import verbs
from memories.exceptions import InvalidInput
from memories.models import Import, Scope, WritesAs

_FORM = {
    "type": "object",
    "properties": {FILE: {"type": "string", "format": "binary"}},
    "additionalProperties": {"type": "string"},
    "required": [FILE],
}
_UNTRUSTED = "An import states what people said. This key writes as an agent, and cannot."


class ImportsView(Endpoint):
    parser_classes = (UploadParser,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        accept_spooled(request._request)
        super().initial(request, *args, **kwargs)

    @operation(
        "listImports",
        "List the imports, newest first",
        scope=Scope.READ,
        bound=Bound.IMPORTS,
        parameters=[ImportsQuery],
        answers={200: page_of(ImportSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(ImportsQuery)
        rows = selected(Import.objects.filter(tenant=self.tenant), ImportsQuery, given)
        return self.listed(rows, ImportSerializer, given=given)

    @operation(
        "createImport",
        "Upload a file, and import what people have elsewhere",
        description=(
            "The body is the file, or a form with the part `file`: an export as it comes. A worker reads it; ask for "
            "the import until it is `done`. With `dry_run` it says what it would do and is `checked`: `resume` "
            "starts it within a day. The key has the scope `ingest`, too. A file can be sent again: each message, "
            "memory, file and item is stored once."
        ),
        scope=Scope.WRITE,
        bound=Bound.IMPORTS,
        parameters=[UploadQuery],
        request={"multipart/form-data": _FORM, "application/octet-stream": OpenApiTypes.BINARY},
        answers={202: ImportSerializer},
        problems=(409, 410, 423),
    )
    def post(self, request: Request) -> Response:
        require_ingest(self)
        # Before the body comes, too; of two at once one is refused below.
        verbs.check_room(self.tenant)
        if upload_heads.let_come(request._request.META):
            return Response()
        sent = dict(self.request.data)
        file = sent.pop(FILE, None)
        given = shapes.validated(UploadQuery, sent | parameters(request._request))
        if file is None:
            raise InvalidInput.at(f"/{FILE}", "Send the file as the body, or as this part of a form.", code="required")
        row = verbs.upload(
            tenant=self.tenant,
            file=file,
            options=options_of(given),
            dry_run=bool(given.get("dry_run")),
            actor=self.actor,
            now=self.now,
        )
        return Response(self.shown(row, ImportSerializer), status=202)


class ImportView(Endpoint):
    @operation(
        "getImport",
        "Get an import: where it stands, and what came of it",
        scope=Scope.READ,
        bound=Bound.IMPORTS,
        answers={200: ImportSerializer},
        problems=(404,),
    )
    def get(self, request: Request, import_id: uuid.UUID) -> Response:
        return Response(self.shown(self.found(import_id), ImportSerializer))

    def found(self, import_id: uuid.UUID) -> Import:
        """Errors: NotFound."""
        return lookups.found(Import.objects.all(), tenant=self.tenant, pk=import_id)


class ImportPauseView(Endpoint):
    @operation(
        "pauseImport",
        "Let an import rest",
        description="What is stored stays. `resume` goes on within a day.",
        scope=Scope.WRITE,
        bound=Bound.IMPORTS,
        answers={200: ImportSerializer},
        problems=(404, 409),
        idempotent=True,
    )
    def post(self, request: Request, import_id: uuid.UUID) -> Response:
        require_trusted(self)
        row = verbs.pause(import_id=import_id, tenant=self.tenant, actor=self.actor, now=self.now)
        return Response(_without_texts(self.shown(row, ImportSerializer)))


class ImportResumeView(Endpoint):
    @operation(
        "resumeImport",
        "Start an import that was checked, or go on with one that rests",
        description=(
            "Also after a failure, while the hub has the file. The key has the scope `ingest`, too. Before it has "
            "begun `user_id` and `authors` can be said anew."
        ),
        scope=Scope.WRITE,
        bound=Bound.IMPORTS,
        request=ResumeSerializer,
        answers={202: ImportSerializer},
        problems=(404, 409, 410, 423),
        idempotent=True,
    )
    def post(self, request: Request, import_id: uuid.UUID) -> Response:
        require_ingest(self)
        given = self.body(ResumeSerializer)
        row = verbs.resume(import_id=import_id, tenant=self.tenant, actor=self.actor, now=self.now, **given)
        return Response(_without_texts(self.shown(row, ImportSerializer)), status=202)


class ImportUndoView(Endpoint):
    @operation(
        "undoImport",
        "Take an import back",
        description=(
            "A worker deletes what the import stored: messages with what was made of them, facts, files, items, and "
            "people whom it made if nothing else is there of them. What somebody changed since stays, and counts as "
            "`kept`. The same file can be imported again."
        ),
        scope=Scope.WRITE,
        bound=Bound.IMPORTS,
        answers={202: ImportSerializer},
        problems=(404, 409),
        idempotent=True,
    )
    def post(self, request: Request, import_id: uuid.UUID) -> Response:
        require_trusted(self)
        row = verbs.undo(import_id=import_id, tenant=self.tenant, actor=self.actor, now=self.now)
        return Response(_without_texts(self.shown(row, ImportSerializer)), status=202)


def _without_texts(shown: dict[str, Any]) -> dict[str, Any]:
    """The import without people and samples: this answer is kept under an Idempotency-Key, and names no person whose
    erasure would find it."""
    return {**shown, "preview": {}}


def require_ingest(view: Endpoint) -> None:
    """An import stores turns, too. Errors: PermissionDenied."""
    if Scope.INGEST not in view.caller.key.scopes:
        raise PermissionDenied(f"This key lacks the scope '{Scope.INGEST}'.", code="missing_scope")
    require_trusted(view)


def require_trusted(view: Endpoint) -> None:
    """Errors: PermissionDenied, where the key writes as an agent."""
    if view.caller.key.writes_as != WritesAs.USER:
        raise PermissionDenied(_UNTRUSTED, code="writes_as_agent")
