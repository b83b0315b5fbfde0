"""Files that come with turns: stored in the transaction that stores the turn, and read later by a worker."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memories import conf
from memories.invisible import strip_invisible
from memories.models import Attachment, AttachmentReason, AttachmentState, Tenant, Turn
from memories.models.memories.attachments import KINDS, LONGEST_NAME, digest_of
from memories.text.secrets.redaction import redact_text


@dataclass(frozen=True)
class PostedAttachment:
    """A file that came with a message. Its type may be one that nothing reads."""

    name: str
    media_type: str
    content: bytes


def of(turn: Turn, posted: PostedAttachment, tenant: Tenant) -> Attachment:
    """A row for the file, which store() completes. What is not going to be read is refused now, with its reason: the
    turn says what it says all the same."""
    name, _secrets = redact_text(" ".join(strip_invisible(posted.name).split()))
    reason = _refused(posted, tenant)
    return Attachment(
        turn_id=turn.pk,
        name=name[:LONGEST_NAME],
        media_type=posted.media_type,
        size=len(posted.content),
        sha256=digest_of(posted.content),
        state=AttachmentState.REFUSED if reason else AttachmentState.PENDING,
        reason=reason,
        content=None if reason else posted.content,
    )


def _refused(posted: PostedAttachment, tenant: Tenant) -> str:
    most = conf.rules(tenant).attachment_kilobytes * 1024
    if not most:
        return AttachmentReason.OFF
    if posted.media_type not in KINDS:
        return AttachmentReason.UNSUPPORTED
    return AttachmentReason.TOO_LARGE if len(posted.content) > most else ""


def store(
    turns: Sequence[Turn], files: Mapping[uuid.UUID, Sequence[Attachment]]
) -> Mapping[uuid.UUID, Sequence[uuid.UUID]]:
    """Store the `files` of these turns, which are new and stored; by turn, the ids of its files. A turn that was there
    already has its own."""
    rows = []
    for turn in turns:
        for one in files.get(turn.pk, ()):
            one.tenant_id, one.end_user_id, one.session_id = turn.tenant_id, turn.end_user_id, turn.session_id
            one.key_id, one.created_at = turn.key_id, turn.created_at
            rows.append(one)
    Attachment.objects.bulk_create(rows)
    return {turn.pk: [one.pk for one in files[turn.pk]] for turn in turns if turn.pk in files}
