"""/attachments: files that came with turns, and their passages. They are posted with their turns (POST /turns)."""

from uuid import UUID

from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response

from memories.api import lookups
from memories.api.bound import Bound, NamedRow
from memories.api.endpoints import Endpoint
from memories.api.schema import operation
from memories.api.v1.attachments.serializers import (
    AttachmentsQuery,
    PassageSerializer,
    PassagesQuery,
    StoredAttachmentSerializer,
)
from memories.api.v1.fields import page_of
from memories.api.v1.filters import selected
from memories.curation.attachments import delete_attachment
from memories.models import Attachment, Passage, Scope

# The file itself may be large, and nobody is given it.
_SHOWN = Attachment.objects.select_related("session", "end_user").defer("content")
_NAMED = NamedRow("attachment_id", Attachment, "session__agent_id")


class AttachmentsView(Endpoint):
    @operation(
        "listAttachments",
        "List the files that came with a person's turns, newest first",
        scope=Scope.READ,
        bound=Bound.NAMED,
        parameters=[AttachmentsQuery],
        answers={200: page_of(StoredAttachmentSerializer)},
    )
    def get(self, request: Request) -> Response:
        given = self.query(AttachmentsQuery)
        person = lookups.readable_person(tenant=self.tenant, user_id=given["user_id"])
        rows = _SHOWN.filter(tenant=self.tenant, end_user=person) if person else _SHOWN.none()
        rows = selected(rows, AttachmentsQuery, given)
        return self.listed(rows, StoredAttachmentSerializer, given=given)


class AttachmentView(Endpoint):
    @operation(
        "getAttachment",
        "Get a file that came with a turn: what became of it",
        scope=Scope.READ,
        bound=_NAMED,
        answers={200: StoredAttachmentSerializer},
        problems=(404, 423),
    )
    def get(self, request: Request, attachment_id: UUID) -> Response:
        row = lookups.found(_SHOWN, tenant=self.tenant, pk=attachment_id)
        lookups.require_unrestricted(row.end_user)
        return Response(StoredAttachmentSerializer(row).data)

    @operation(
        "deleteAttachment",
        "Delete a file that came with a turn, and its passages",
        description="The turn stays. A worker that reads the file at this moment stores nothing.",
        scope=Scope.WRITE,
        bound=_NAMED,
        answers={204: None},
        problems=(404, 409, 423),
    )
    def delete(self, request: Request, attachment_id: UUID) -> Response:
        delete_attachment(
            attachment_id=attachment_id,
            tenant=self.tenant,
            actor=self.actor,
            now=self.now,
            write_trust=self.write_trust(),
        )
        return Response(status=204)


class PassagesView(Endpoint):
    @operation(
        "listPassages",
        "Read the text of a file that came with a turn, passage by passage",
        scope=Scope.READ,
        bound=_NAMED,
        parameters=[PassagesQuery],
        answers={200: page_of(PassageSerializer)},
        problems=(404, 423),
    )
    def get(self, request: Request, attachment_id: UUID) -> Response:
        given = self.query(PassagesQuery)
        row = lookups.found(_SHOWN, tenant=self.tenant, pk=attachment_id)
        lookups.require_unrestricted(row.end_user)
        rows = Passage.objects.filter(tenant=self.tenant, attachment=row)
        return self.listed(rows, PassageSerializer, given=given, ordering=("number",))


URLS = (
    path("attachments", AttachmentsView.as_view()),
    path("attachments/<uuid:attachment_id>", AttachmentView.as_view()),
    path("attachments/<uuid:attachment_id>/passages", PassagesView.as_view()),
)
