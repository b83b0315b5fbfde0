"""What operators and keys do to a section of a person's profile.

Each verb rechecks under the person's lock, and writes a revision and an audit event. What an operator wrote, or
emptied, is binding: no job and no key changes it.
"""

import uuid
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from memories import audit, content_policy
from memories.audit import Actor
from memories.content_policy import Road
from memories.curation.change_sets import Changes
from memories.curation.writing import locked_person
from memories.exceptions import Conflict, OperatorWord, PreconditionFailed
from memories.models import EndUser, ExtractionRun, ProfileRevision, ProfileSection, Trust
from memories.text.secrets.scrubbing import scrubbed_text

# Verbs that say something new.
_SAYS = ("write", "approve", "restore")


@dataclass(frozen=True)
class _Basis:
    """What a text rests on: its trust, and the run and its turns that support it."""

    trust: str = Trust.USER
    run: ExtractionRun | None = None
    evidence: Sequence[int] = ()

    @classmethod
    def of(cls, actor: Actor, revision: ProfileRevision | None = None, *, trust: str = Trust.USER) -> "_Basis":
        """Of a text that the actor writes, with this trust, or takes over: an operator's is their word, else as in its
        revision."""
        if revision is None:
            return cls(Trust.OPERATOR if actor.is_operator else trust)
        trust = Trust.OPERATOR if actor.is_operator else revision.trust
        return cls(trust, revision.extraction, revision.evidence)


def write_profile_section(
    *,
    end_user: EndUser,
    section: str,
    summary: str,
    actor: Actor,
    now: datetime,
    agent_id: str = "",
    expected_version: int | None = None,
    reason: str = "",
    trust: str = Trust.USER,
) -> ProfileSection | None:
    """Write one section of the profile, or of the agent's, without secrets; an empty text empties it, and None is
    returned.

    `expected_version` is that of the section as the caller saw it, 0 when there was none; `trust` is that of a key's
    text. The text that it has already leaves no trace. Errors: NotFound, PersonRestricted and OperatorWord for a key,
    PreconditionFailed.
    """
    text = scrubbed_text(summary)
    with transaction.atomic():
        row = locked_section(end_user.pk, section, agent_id, actor=actor, expected_version=expected_version)
        changes = Changes(actor=actor, now=now, reason=reason)
        _write(
            row,
            text,
            "write" if text else "delete",
            changes,
            binding=actor.is_operator,
            basis=_Basis.of(actor, trust=trust),
        )
    return row if text else None


def restore_profile_section(
    *,
    revision: ProfileRevision,
    actor: Actor,
    now: datetime,
    expected_version: int | None = None,
    reason: str = "",
) -> ProfileSection:
    """Give the section the text of this revision again; by an operator it is binding from now on.

    Errors: as write_profile_section(); Conflict for a text that was only proposed.
    """
    if revision.version is None:
        raise Conflict(_("This text was only proposed. You can accept or reject it, not restore it."))
    with transaction.atomic():
        row = _locked_section_of(revision, actor=actor, expected_version=expected_version)
        changes = Changes(actor=actor, now=now, reason=reason)
        basis = _Basis.of(actor, revision)
        _write(row, revision.after, "restore", changes, binding=actor.is_operator, basis=basis)
    return row


def release_profile_section(
    *,
    end_user: EndUser,
    section: str,
    actor: Actor,
    now: datetime,
    agent_id: str = "",
    expected_version: int | None = None,
    reason: str = "",
) -> ProfileSection:
    """An operator lifts the binding of a section: its text stays until a job or a key writes another.

    Errors: as write_profile_section(); Conflict when it is not binding.
    """
    with transaction.atomic():
        row = locked_section(end_user.pk, section, agent_id, actor=actor, expected_version=expected_version)
        if not row.binding:
            raise Conflict(_("No operator wrote this section, so jobs and keys can already change it."))
        basis = _Basis(row.trust, row.extraction, row.evidence)
        changes = Changes(actor=actor, now=now, reason=reason)
        _write(row, row.summary, "release", changes, binding=False, basis=basis)
    return row


def take_proposed_section(
    *,
    revision: ProfileRevision,
    changes: Changes,
    summary: str | None = None,
    expected_version: int | None = None,
) -> ProfileSection:
    """An operator gives the section the proposed text, or `summary` in its place, without secrets: binding from now on.

    The caller keeps the change set and closes the review item. Errors: as write_profile_section(); Conflict when it
    was not proposed.
    """
    if revision.version is not None:
        raise Conflict(_("This text is not a proposal; it was part of the profile."))
    with transaction.atomic():
        actor = changes.actor
        row = _locked_section_of(revision, actor=actor, expected_version=expected_version)
        text = revision.after if summary is None else scrubbed_text(summary)
        _set_text(row, text, "approve", changes, binding=actor.is_operator, basis=_Basis.of(actor, revision))
    return row


def written_sections(end_user: EndUser, agent_id: str = "") -> QuerySet[ProfileSection]:
    """The sections with a text: the person's and those of all agents, or those of this one."""
    rows = ProfileSection.objects.written().filter(end_user=end_user)
    return rows.filter(agent_id=agent_id) if agent_id else rows


def empty_sections(end_user: EndUser, changes: Changes, *, agent_id: str = "") -> int:
    """Empty the sections of a locked person and of all agents, or of this one; for a key without those that an operator
    wrote. Returns how many.

    Nobody is bound by that: what is said from now on is written again.
    """
    return empty_some(written_sections(end_user, agent_id), changes)


def empty_some(sections: QuerySet[ProfileSection], changes: Changes) -> int:
    """The same for these sections of a locked person."""
    rows = sections.select_related("end_user__tenant", "extraction")
    emptied = [row for row in rows.order_by("agent_id", "section") if changes.actor.is_operator or not row.binding]
    return sum(_set_text(row, "", "delete", changes, binding=False, basis=_Basis()) for row in emptied)


def put_back_section(row: ProfileSection, revision: ProfileRevision, verb: str, changes: Changes) -> None:
    """Make a locked section what it was before this revision, binding or not."""
    earlier = ProfileRevision.objects.of(revision).filter(version__lt=revision.version)
    previous = earlier.select_related("extraction").order_by("-version").first()
    basis = _Basis(previous.trust, previous.extraction, previous.evidence) if previous else _Basis()
    _set_text(row, revision.before, verb, changes, binding=revision.binding_before, basis=basis)


def locked_section(
    person_id: uuid.UUID, section: str, agent_id: str, *, actor: Actor, expected_version: int | None
) -> ProfileSection:
    """Lock the person; the section as it is now, of version 0 when nobody has written it yet. An empty `agent_id` means
    the person's own.

    Errors: NotFound, PersonMerged, PreconditionFailed; PersonRestricted and OperatorWord for a key.
    """
    # The person's row serialises the first writers of a section, which has no row to lock yet; jobs hold it too.
    person = locked_person(person_id, actor)
    named = {"tenant": person.tenant, "end_user": person, "agent_id": agent_id, "section": section}
    row = ProfileSection.objects.filter(**named).first() or ProfileSection(**named, version=0)
    row.end_user = person
    if row.binding and not actor.is_operator:
        raise OperatorWord(_("An operator wrote this section. Only an operator can change it."))
    if expected_version is not None and expected_version != row.version:
        raise PreconditionFailed
    return row


def _locked_section_of(revision: ProfileRevision, *, actor: Actor, expected_version: int | None) -> ProfileSection:
    """locked_section() for the one that this is a version or a proposal of."""
    named = (revision.end_user_id, revision.section, revision.agent_id)
    return locked_section(*named, actor=actor, expected_version=expected_version)


def _write(row: ProfileSection, summary: str, verb: str, changes: Changes, *, binding: bool, basis: _Basis) -> None:
    """_set_text() as a change set of its own."""
    if _set_text(row, summary, verb, changes, binding=binding, basis=basis):
        changes.save(verb, row.end_user)


def _set_text(row: ProfileSection, summary: str, verb: str, changes: Changes, *, binding: bool, basis: _Basis) -> bool:
    """Save this text on this basis, with its revision and audit event; what changes nothing leaves no trace.

    Errors: ContentForbidden.
    """
    if (summary, binding) == (row.summary, row.binding):
        return False
    # An undo brings back what there was, as it does for facts.
    if summary != row.summary and verb in _SAYS:
        content_policy.check(row.end_user.tenant, Road.PROFILE, [summary])
    before = copy(row)
    row.summary, row.binding, row.actor_kind = summary, binding, changes.actor.kind
    row.extraction, row.prompt_version = basis.run, basis.run.prompt_version if basis.run else ""
    row.trust, row.evidence = basis.trust, list(basis.evidence)
    changes.revise_section(row, verb, before)
    audit.record(
        actor=changes.actor, verb=verb, target=row, object_id=row.pk, tenant=row.end_user.tenant, now=changes.now
    )
    return True


def trust_of(row: ProfileSection) -> str:
    """The trust of a text that the section had before: that of its last revision with it, else the user's."""
    same = ProfileRevision.objects.of(row).filter(after=row.summary)
    trust = same.exclude(version=None).order_by("-version").values_list("trust", flat=True).first()
    return trust or Trust.USER
