"""Reads attachments under a lease: claim, read in a process apart, store the passages and delete the file.

Nothing is open while a file is read. Whoever deletes the turn, or the person, takes the row: the commit then finds no
lease, and what was read is thrown away. Whatever comes of a file, its bytes are deleted with it.
"""

import random
import re
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django_q.tasks import async_task

from memories.attachments import pictures
from memories.attachments.passages import MOST, SEPARATOR, TextPassage, clean, passages_of
from memories.attachments.pictures import Later
from memories.attachments.sandbox import ReadFile, read_file
from memories.db import tenancy
from memories.exceptions import LeaseLost, TooManySecrets
from memories.models import Attachment, AttachmentReason, AttachmentState, Author, Passage
from memories.models.memories.attachments import KINDS, PICTURE
from memories.queue import leases, own_models, spending
from memories.queue.leases import Lease
from memories.text.injection import flagged_turns
from memories.text.secrets import effort

TASK = "memories.tasks.read_attachments"
# A file that kills its workers, or that a model fails at, is given up after so many.
MOST_ATTEMPTS = 3
# Files that are read at a time, on all machines: other work must not wait for them.
MOST_AT_ONCE = 2
_SHORTEST = timedelta(minutes=1)


def enqueue() -> None:
    async_task(TASK)


def is_due() -> bool:
    return Attachment.objects.due().exists()


def run_slice(*, now: datetime, seconds: float) -> bool:
    """Read what waits for about so long, of a person the oldest first; True when more is left to do now."""
    until = time.monotonic() + seconds
    being_read = Attachment.objects.pending().leased().filter(lease_until__gt=Now())
    while time.monotonic() < until:
        # Two workers that ask at a time may both find room.
        work = _claim_next() if being_read.count() < MOST_AT_ONCE else None
        if work is None:
            return False
        with tenancy.of_tenant(work.row.tenant_id):
            read(work, now=now)
    return is_due()


def _claim_next() -> Lease[Attachment] | None:
    """The lease of a file: the oldest of a person of a tenant, who are drawn by lot, so that nobody waits for a
    thousand files of somebody else. What others have claimed meanwhile is passed over."""
    due = Attachment.objects.due().order_by()
    waiting: dict[uuid.UUID, list[uuid.UUID]] = {}
    for tenant, person in due.values_list("tenant", "end_user").distinct():
        waiting.setdefault(tenant, []).append(person)
    for tenant in random.sample(list(waiting), len(waiting)):
        person = random.choice(waiting[tenant])  # noqa: S311  (a lot, and no secret)
        for pk in due.filter(end_user=person).order_by("created_at", "pk").values_list("pk", flat=True)[:10]:
            if work := claim(pk):
                return work
    return None


@transaction.atomic
def claim(pk: uuid.UUID) -> Lease[Attachment] | None:
    def give_up(row: Attachment) -> None:
        ended = {
            "state": AttachmentState.FAILED,
            "reason": AttachmentReason.WORKER_LOST,
            "content": None,
            "read_at": Now(),
        }
        leases.revoke(Attachment.objects.filter(pk=row.pk), **ended)

    row = leases.lock(Attachment.objects.due().select_related("tenant"), pk)
    token = leases.take(row, give_up=give_up, most_attempts=MOST_ATTEMPTS) if row else None
    return Lease(row=row, token=token) if row and token else None


def read(work: Lease[Attachment], *, now: datetime) -> bool:
    """Read a claimed file and store what came of it; whether it was read. A lease that was lost stores nothing."""
    row = work.row
    kind = KINDS[row.media_type]
    author = Author.MODEL if kind == PICTURE else Author.APPLICATION
    try:
        # To judge many passages can take longer than to read them.
        with leases.keep_alive(work):
            if kind == PICTURE:
                result = pictures.describe(row, before_call=work.check, now=now)
            else:
                result = read_file(bytes(row.content or b""), kind)
            passages = _passages(row, result, author)
    except Later as later:
        if row.attempts < MOST_ATTEMPTS or later.is_capped:
            return _put_off(work, later, now=now)
        passages, result = [], ReadFile(reason=AttachmentReason.MODEL_FAILED)
    except TooManySecrets:
        passages, result = [], ReadFile(reason=AttachmentReason.TOO_MANY_SECRETS)
    except LeaseLost:
        return False
    if result.is_read and len(passages) > MOST:
        passages, result = passages[:MOST], ReadFile((), result.pages, AttachmentReason.CUT)
    try:
        _store(work, result, passages)
    except LeaseLost:
        return False
    return result.is_read


def _put_off(work: Lease[Attachment], later: Later, *, now: datetime) -> bool:
    row = work.row
    with suppress(LeaseLost), transaction.atomic():
        if not later.is_capped:
            # The first time it may be a moment, the second time an outage.
            leases.release(work, pause=later.pause * 60 ** (row.attempts - 1), failure="")
        # A day that is over its cap is no failure of the file. A cap that is raised meanwhile finds the row.
        elif (own := own_models.own_of(row.tenant_id)) and (until := spending.wait_until(row.tenant, own, now=now)):
            leases.release(work, pause=max(until - now, _SHORTEST), attempts=0, failure=spending.CAPPED)
        else:
            leases.release(work, attempts=0, failure="")
    return False


def _passages(row: Attachment, result: ReadFile, author: Author) -> Sequence[Passage]:
    """The passages that are kept. Errors: TooManySecrets."""
    if not result.is_read:
        return []
    with effort.bounded():
        blocks = clean(result.blocks)
    found = [one for _number, one in zip(range(MOST + 1), passages_of(blocks), strict=False)]
    # A name is told with each passage; in names of files words are joined.
    is_named_so = flagged_turns.judged(author, re.sub(r"[_.+-]+", " ", row.name))
    return [_passage(row, number, one, author, is_named_so=is_named_so) for number, one in enumerate(found, start=1)]


def _passage(row: Attachment, number: int, one: TextPassage, author: Author, *, is_named_so: bool) -> Passage:
    made = Passage(
        tenant_id=row.tenant_id,
        attachment=row,
        number=number,
        page=one.page,
        start=one.start,
        author=author,
        created_at=row.created_at,
        # A document may be told to a model, with the headings above it: what speaks to it there is nothing to obey.
        flagged=is_named_so or flagged_turns.judged(author, "\n".join([*one.place.split(SEPARATOR), one.text])),
    )
    made.set_text(one.text, place=one.place)
    return made


def _store(work: Lease[Attachment], result: ReadFile, passages: Sequence[Passage]) -> None:
    """Errors: LeaseLost, with nothing stored."""
    state = AttachmentState.READ if result.is_read else AttachmentState.FAILED
    if result.reason == AttachmentReason.NO_VISION_MODEL:
        state = AttachmentState.REFUSED
    changes: dict[str, Any] = {"state": state, "reason": result.reason, "pages": result.pages, "content": None}
    changes["failure"] = ""
    with transaction.atomic():
        # Its person may be another one since: people are merged.
        row = leases.fence(work)
        for one in passages:
            one.end_user_id = row.end_user_id
        Passage.objects.bulk_create(passages)
        leases.release(work, attempts=0, read_at=Now(), **changes)
