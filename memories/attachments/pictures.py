"""Pictures: the tenant's model describes them, if it is marked as one that sees. The description is the model's."""

from base64 import b64encode
from collections.abc import Callable
from datetime import datetime, timedelta

from memories.attachments.sandbox import Block, ReadFile
from memories.exceptions import ModelError
from memories.llm import client
from memories.llm.prompts import picture_description
from memories.models import Attachment, AttachmentReason, LanguageModel, ModelUse
from memories.queue import own_models, spending
from memories.queue.spending import Spent

# How each type begins: no other bytes are sent to a model as a picture.
_BEGINNINGS = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
MOST_WRITTEN = 2_000
_OUTAGE = timedelta(minutes=1)


class Later(Exception):
    """The model cannot be asked now; how long to wait. `is_capped`: nothing failed, the day has no more."""

    def __init__(self, pause: timedelta = _OUTAGE, *, is_capped: bool = False) -> None:
        super().__init__()
        self.pause, self.is_capped = pause, is_capped


def describe(row: Attachment, *, before_call: Callable[[], None], now: datetime) -> ReadFile:
    """What a model says of the picture; its calls count for the tenant's caps. Errors: Later, and those of
    `before_call`."""
    own = own_models.own_of(row.tenant_id)
    config = own_models.config_of(row.tenant_id)
    if not sees(own) or not client.is_configured(config):
        return ReadFile(reason=AttachmentReason.NO_VISION_MODEL)
    content = bytes(row.content or b"")
    if not content.startswith(_BEGINNINGS[row.media_type]):
        return ReadFile(reason=AttachmentReason.DAMAGED)
    day = spending.day_of(row.tenant, own, now=now)
    if day.is_capped:
        raise Later(is_capped=True)
    spent, calls = Spent(), 0

    def count() -> None:
        nonlocal calls
        before_call()
        calls += 1

    try:
        completion = client.complete(
            messages=picture_description.build(name=row.name),
            answer=picture_description.ANSWER,
            max_calls=2,
            before_call=count,
            config=config,
            most_tokens=MOST_WRITTEN,
            picture=f"data:{row.media_type};base64,{b64encode(content).decode()}",
        )
        spent.add(completion.prompt_tokens, completion.completion_tokens)
    except ModelError as error:
        spent.add(error.prompt_tokens, error.completion_tokens)
        if error.retryable:
            raise Later(timedelta(seconds=error.retry_after or 0) or _OUTAGE) from None
        return ReadFile(reason=AttachmentReason.MODEL_FAILED)
    finally:
        tokens = {"prompt_tokens": spent.prompt_tokens, "completion_tokens": spent.completion_tokens}
        spending.count(row.tenant, **tokens, prices=config.prices, now=now)
        spending.note(row.tenant, ModelUse.Purpose.PICTURES, calls=calls, spent=spent, prices=config.prices, now=now)
    text = completion.answer.description[: picture_description.LONGEST_DESCRIPTION].strip()
    return ReadFile([Block(text)]) if text else ReadFile(reason=AttachmentReason.MODEL_FAILED)


def sees(own: LanguageModel | None) -> bool:
    """Whether the tenant marked the model in force as one that is asked to describe pictures."""
    return own is not None and own.sees_pictures
