"""An operator rewrites the running summary of a session: the next compaction folds what leaves the window into it."""

import uuid
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit, content_policy
from memories.audit import Actor
from memories.content_policy import Road
from memories.curation.change_sets import Action, Changes, Table
from memories.curation.writing import lock_person
from memories.exceptions import Conflict, NotFound, PreconditionFailed
from memories.models import Change, ChangeSet, WorkingMemory
from memories.models.folding import text_digest
from memories.queue import queue_rows
from memories.text.secrets.scrubbing import scrubbed_text

REWRITE = "rewrite_summary"
_FIELDS = ("summary", "extractor", "prompt_version")


def version_of_summary(summary: str) -> int:
    """A summary has no version: a number that another text does not have stands for one."""
    return int.from_bytes(text_digest(summary)[:4]) >> 1


def rewrite_summary(
    *, session_id: uuid.UUID, summary: str, actor: Actor, now: datetime, expected_version: int | None = None
) -> None:
    """Give the running summary this text, without secrets; a compaction in flight is thrown away and begins anew.

    `expected_version` is the version_of_summary() that the operator saw. Errors: NotFound,
    PreconditionFailed, ContentForbidden.
    """
    text = scrubbed_text(summary).strip()
    with transaction.atomic():
        row = _locked([session_id]).get(session_id)
        if row is None or not row.summary:
            raise NotFound
        lock_person(row.session.end_user_id)
        person = row.session.end_user
        if expected_version is not None and expected_version != version_of_summary(row.summary):
            raise PreconditionFailed
        if text == row.summary:
            return
        content_policy.check(row.session.tenant, Road.EPISODE, [text])
        changes = Changes(actor=actor, now=now)
        before = {name: getattr(row, name) for name in _FIELDS}
        row.summary, row.extractor, row.prompt_version = text, "operator", ""
        _save(row, now=now)
        version = version_of_summary(text)
        changes.record_row_change(Table.SUMMARY, Action.CHANGED, session_id, version=version, before=before)
        changes.save(REWRITE, person)
        audit.record(
            actor=actor, verb=REWRITE, target=row.session, object_id=session_id, tenant=row.session.tenant, now=now
        )


def lock_for_undo(done: ChangeSet) -> None:
    """Lock the summaries that it rewrote, then the person: the order of compaction."""
    _locked([change.uuid for change in _rewritten(done) if change.uuid])
    lock_person(done.end_user_id)


def put_summaries_back(done: ChangeSet, changes: Changes) -> None:
    """Make locked summaries what they were before. Errors: Conflict when one was written again since, or is gone."""
    found = list(_rewritten(done))
    if not found:
        raise Conflict(_("This can no longer be undone, because the summary has changed since."))
    rows = _locked([change.uuid for change in found if change.uuid])
    for change in found:
        row = rows.get(change.uuid) if change.uuid else None
        if row is None or version_of_summary(row.summary) != change.version:
            raise Conflict(_("This can no longer be undone, because the summary has changed since."))
        for name in _FIELDS:
            setattr(row, name, change.before[name])
        _save(row, now=changes.now)


def _rewritten(done: ChangeSet) -> Iterable[Change]:
    return done.changes.filter(table=Table.SUMMARY).order_by("pk")


def _locked(sessions: Iterable[uuid.UUID]) -> dict[uuid.UUID, WorkingMemory]:
    rows = WorkingMemory.objects.select_for_update(of=("self",)).select_related("session__end_user", "session__tenant")
    return {row.pk: row for row in rows.filter(pk__in=list(sessions)).order_by("pk")}


def _save(row: WorkingMemory, *, now: datetime) -> None:
    row.updated_at = now
    if row.lease_token:
        # Its holder has read the old summary, and would write it again.
        queue_rows.release(row)
    row.save()
