"""What operators and keys may do to a person's profile: each verb rechecks under the person's lock, and writes a
revision and an audit event. What an operator wrote, or emptied, is binding: no job and no key changes it."""

import uuid
from copy import copy
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from memories import audit
from memories.audit import Actor
from memories.curation.people_errors import PersonMerged
from memories.exceptions import Conflict, NotFound, OperatorWord, PersonRestricted, PreconditionFailed
from memories.models import EndUser, ExtractionRun, ProfileRevision, ProfileSection
from memories.pipeline.redaction import redact_text


@dataclass(frozen=True)
class _Deed:
    """What is done to a section, by whom, when and why; `change_set` as in audit.revise()."""

    verb: str
    actor: Actor
    now: datetime
    reason: str = ""
    change_set: uuid.UUID | None = None


def write_profile_section(
    *,
    end_user: EndUser,
    section: str,
    summary: str,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    reason: str = "",
) -> ProfileSection | None:
    """Write one section of the profile, without secrets; an empty one is emptied, and None is returned.

    `expected_version` is that of the section as the caller saw it, 0 when there was none. What it says already leaves
    no trace. Errors: NotFound, PersonRestricted and OperatorWord for a key, PreconditionFailed.
    """
    said = redact_text(summary)[0]
    with transaction.atomic():
        row = _hold(end_user.pk, section, actor=actor, expected_version=expected_version)
        deed = _Deed("write" if said else "delete", actor, now, reason)
        _say(row, said, deed, binding=actor.is_operator, run=None)
    return row if said else None


def restore_profile_section(
    *,
    revision: ProfileRevision,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    reason: str = "",
) -> ProfileSection:
    """Let the section say again what it said in this revision; by an operator it is binding from now on.

    Errors: as write_profile_section(); Conflict for a text that was only proposed.
    """
    if revision.version is None:
        raise Conflict("This text was only proposed: it is taken or dropped, not restored.")
    with transaction.atomic():
        row = _hold(revision.end_user_id, revision.section, actor=actor, expected_version=expected_version)
        deed = _Deed("restore", actor, now, reason)
        _say(row, revision.after, deed, binding=actor.is_operator, run=revision.extraction)
    return row


def release_profile_section(
    *,
    end_user: EndUser,
    section: str,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    reason: str = "",
) -> ProfileSection:
    """An operator gives a section back: its text stays until a job or a key writes another.

    Errors: as write_profile_section(); Conflict when it is nobody's word.
    """
    with transaction.atomic():
        row = _hold(end_user.pk, section, actor=actor, expected_version=expected_version)
        if not row.binding:
            raise Conflict("No operator wrote this section: jobs and keys change it already.")
        _say(row, row.summary, _Deed("release", actor, now, reason), binding=False, run=row.extraction)
    return row


def take_proposed_section(
    *,
    revision: ProfileRevision,
    actor: Actor,
    now: datetime,
    summary: str | None = None,
    change_set: uuid.UUID | None = None,
    expected_version: int | None = None,
    reason: str = "",
) -> ProfileSection:
    """An operator lets the section say what was proposed, or `summary` in its place, without secrets: binding from now
    on. The caller closes the question.

    Errors: as write_profile_section(); Conflict when it was not proposed.
    """
    _must_be_proposed(revision)
    with transaction.atomic():
        row = _hold(revision.end_user_id, revision.section, actor=actor, expected_version=expected_version)
        deed = _Deed("approve", actor, now, reason, change_set)
        said = revision.after if summary is None else redact_text(summary)[0]
        _say(row, said, deed, binding=actor.is_operator, run=revision.extraction)
    return row


def drop_proposed_section(*, revision: ProfileRevision, actor: Actor, now: datetime) -> None:
    """An operator turns a proposal down; it stays on record, so that the same text is not proposed again.

    The caller closes the question. Errors: as take_proposed_section().
    """
    _must_be_proposed(revision)
    with transaction.atomic():
        row = _hold(revision.end_user_id, revision.section, actor=actor, expected_version=None)
        audit.record(
            actor=actor, verb="reject", target=revision, object_id=revision.pk, tenant=row.end_user.tenant, now=now
        )


def undo_profile_change(
    *,
    revision: ProfileRevision,
    actor: Actor,
    now: datetime,
    change_set: uuid.UUID | None = None,
    reason: str = "",
) -> ProfileSection:
    """Put the section back to what it was before this revision, binding or not.

    Errors: as write_profile_section(); Conflict for a proposal, PreconditionFailed when it was changed since.
    """
    if revision.version is None:
        raise Conflict("This text was only proposed: there is nothing to undo.")
    with transaction.atomic():
        row = _hold(revision.end_user_id, revision.section, actor=actor, expected_version=None)
        if not _is_as_left(row, revision):
            raise PreconditionFailed
        deed = _Deed("undo", actor, now, reason, change_set)
        _say(row, revision.before, deed, binding=revision.binding_before, run=_run_before(revision))
    return row


def _hold(person_id: uuid.UUID, section: str, *, actor: Actor, expected_version: int | None) -> ProfileSection:
    """The section as it is now, of version 0 when nobody has written it yet; its person is locked."""
    # The person's row serialises the first writers of a section, which has no row to lock yet; jobs hold it too.
    people = EndUser.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    person = people.filter(pk=person_id).first()
    if person is None:
        raise NotFound
    if person.merged_into_id:
        raise PersonMerged
    if person.restricted_at and not actor.is_operator:
        raise PersonRestricted
    row = ProfileSection.objects.filter(end_user=person, section=section).first()
    row = row or ProfileSection(tenant=person.tenant, end_user=person, section=section, version=0)
    row.end_user = person
    if row.binding and not actor.is_operator:
        raise OperatorWord("An operator wrote this section: only an operator can change it.")
    if expected_version is not None and expected_version != row.version:
        raise PreconditionFailed
    return row


def _say(row: ProfileSection, summary: str, deed: _Deed, *, binding: bool, run: ExtractionRun | None) -> None:
    """Let the section say this, on the evidence of `run`; what changes nothing leaves no trace."""
    if (summary, binding) == (row.summary, row.binding):
        return
    actor, now, before = deed.actor, deed.now, copy(row)
    row.summary, row.binding, row.actor_kind = summary, binding, actor.kind
    row.extraction, row.prompt_version = run, run.prompt_version if run else ""
    row.version, row.updated_at = row.version + 1, now
    row.save()
    reason = redact_text(deed.reason)[0]
    audit.revise_section(
        row=row, verb=deed.verb, actor=actor, before=before, now=now, reason=reason, change_set=deed.change_set
    )
    audit.record(actor=actor, verb=deed.verb, target=row, object_id=row.pk, tenant=row.end_user.tenant, now=now)


def _must_be_proposed(revision: ProfileRevision) -> None:
    if revision.version is not None:
        raise Conflict("This text is no proposal: it stood in the profile.")


def _is_as_left(row: ProfileSection, revision: ProfileRevision) -> bool:
    """Whether the section is what this revision made it: nobody touched it since, or all of that was undone."""
    if row.version == revision.version:
        return True
    later = ProfileRevision.objects.filter(end_user=row.end_user, section=row.section, version__gt=revision.version)
    rows = list(later.order_by("version"))
    if not rows or rows[-1].verb != "undo":
        return False
    return (row.summary, row.binding) == (revision.after, rows[0].binding_before)


def _run_before(revision: ProfileRevision) -> ExtractionRun | None:
    """The run that the version before rested on."""
    earlier = ProfileRevision.objects.filter(end_user=revision.end_user_id, section=revision.section)
    previous = earlier.filter(version__lt=revision.version).select_related("extraction").order_by("-version").first()
    return previous.extraction if previous else None
