"""Attachments of turns, and the passages that were read from them."""

from typing import Any

from rest_framework import serializers

from memories.api.v1.fields import AgentId, Identifier, OneOf, OrNull, PageQuery, Strict, Timestamp
from memories.api.v1.filters import where
from memories.models import Attachment, AttachmentState, Author


class AttachmentsQuery(PageQuery, Strict):
    user_id = Identifier()
    agent_id = where("session__agent_id", AgentId(help_text="Only files of this agent's sessions."))
    session_id = where(
        "session__external_id",
        Identifier(required=False, help_text="Only files that came in a session that you call so."),
    )
    state = where("state", OneOf(AttachmentState.values, required=False, help_text="Only files of which this became."))


class StoredAttachmentSerializer(serializers.Serializer[Attachment]):
    """A file that came with a turn, and what became of it."""

    id = serializers.UUIDField()
    turn_id = serializers.UUIDField()
    session_id = serializers.CharField(source="session.external_id")
    agent_id = OrNull(source="session.agent_id")
    name = OrNull()
    media_type = serializers.CharField()
    size = serializers.IntegerField(help_text="In bytes.")
    sha256 = serializers.SerializerMethodField(help_text="Of the file, in hexadecimal digits.")
    state = serializers.ChoiceField(
        AttachmentState.values, help_text="`pending` until a worker has read it; the file itself is deleted then."
    )
    reason = OrNull(help_text="Why it was not read (`encrypted`, `too_large` …), or `cut`: only its beginning was.")
    detail = OrNull(source="get_reason_display", help_text="The reason in words.")
    pages = serializers.IntegerField(allow_null=True)
    created_at = Timestamp()
    read_at = Timestamp(allow_null=True)

    def get_sha256(self, row: Attachment) -> str:
        return bytes(row.sha256).hex()


class PassageSerializer(serializers.Serializer[Any]):
    """A piece of a file's text, and where it stands there."""

    id = serializers.UUIDField()
    number = serializers.IntegerField(help_text="From 1, in the order of the text.")
    page = serializers.IntegerField(allow_null=True)
    place = OrNull(help_text="The headings above it, outermost first.")
    start = serializers.IntegerField(help_text="Where it begins in the text, in characters.")
    text = serializers.CharField(source="content")
    author = serializers.ChoiceField(
        Author.values, help_text="`application`: a document's words; `model`: a picture's."
    )
    flagged = serializers.BooleanField(help_text="It speaks to a model: nothing to be obeyed.")


class PassagesQuery(PageQuery):
    pass
