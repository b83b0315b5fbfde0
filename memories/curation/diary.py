"""The diary: keys write entries and delete them, operators delete and restore them. Nobody changes one.

Each verb locks the person, so that a write and an erasure, or a deletion and a merge, follow each other. Secrets and
invisible letters are cut out. A key's text that speaks to a model is refused, with the place, as in memory files: what
an agent reads as its own notes steers it in every later conversation. Entries need no review otherwise, whoever the key
speaks for: only the agent that wrote them reads them.
"""

import uuid
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit, conf, content_policy
from memories.audit import Actor
from memories.content_policy import Road
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import AS_USER, WriteTrust
from memories.curation.writing import WriteResult, locked_row, open_write
from memories.exceptions import Conflict, InvalidInput, NotFound, PersonRestricted, ReviewNeeded, TooManyEntries
from memories.files.passages import ChangedText
from memories.invisible import strip_invisible
from memories.models import DiaryEntry, EndUser
from memories.text.cleaning import clean_lines
from memories.text.secrets.redaction import redact_text


def write_entry(
    *, end_user: EndUser, agent_id: str, content: str, topic: str, actor: Actor, now: datetime, write_trust: WriteTrust
) -> WriteResult[DiaryEntry]:
    """Add an entry to this agent's diary about the person. The same text twice makes two entries.

    Errors: NotFound (erased meanwhile), PersonRestricted, TooManyEntries, ReviewNeeded, InvalidInput (nothing is left),
    ContentForbidden.
    """
    text, redactions = redact_text(strip_invisible(content))
    subject, more = redact_text(" ".join(clean_lines(topic).split()))
    if not text.strip():
        raise InvalidInput.at("/content", _("Nothing of this text can be kept: write a note in words."))
    content_policy.check(end_user.tenant, Road.DIARY, [subject, text])
    _check(text, subject)
    with open_write(end_user, actor, follows_merge=True) as person:
        most = conf.rules(person.tenant).diary_entries
        # Those of all agents count together; the trash does not count.
        if most and DiaryEntry.objects.of(person.tenant, person).present().count() >= most:
            detail = _("A person can have %(most)d diary entries. Delete some, or have the limit raised.")
            raise TooManyEntries(detail % {"most": most})
        entry = DiaryEntry(
            tenant=person.tenant,
            end_user=person,
            agent_id=agent_id,
            actor_kind=actor.kind,
            actor_id=actor.id,
            trust=write_trust.trust,
            created_at=now,
        )
        entry.set_text(text, topic=subject)
        entry.save(force_insert=True)
        audit.record(actor=actor, verb="write", target=entry, now=now)
    return WriteResult(entry, redactions=redactions + more)


def delete_entry(*, entry_id: uuid.UUID, actor: Actor, now: datetime, write_trust: WriteTrust = AS_USER) -> None:
    """Move the entry to the trash; an operator can restore it for a while.

    Errors: NotFound (erased, or in the trash already), PersonRestricted.
    """
    with transaction.atomic():
        entry = _locked(entry_id, actor)
        if entry.trashed_at:
            raise NotFound
        guarding.check_outranks(entry.trust, write_trust)
        entry.trashed_at = now
        entry.save(update_fields=["trashed_at"])
        audit.record(actor=actor, verb="delete", target=entry, now=now)


def restore_entry(*, entry_id: uuid.UUID, actor: Actor, now: datetime) -> None:
    """Take the entry out of the trash. Errors: NotFound, PersonRestricted, Conflict (it is not there)."""
    with transaction.atomic():
        entry = _locked(entry_id, actor)
        if entry.trashed_at is None:
            raise Conflict(_("Somebody else has done this meanwhile."))
        # The undo of what deleted it leaves it alone from now on.
        entry.trashed_at = entry.change_set = None
        entry.save(update_fields=["trashed_at", "change_set"])
        audit.record(actor=actor, verb="restore", target=entry, now=now)


def _check(text: str, topic: str) -> None:
    """Errors: ReviewNeeded with the lines that speak to a model."""
    if guarding.newly_speaks(ChangedText("", topic)):
        raise ReviewNeeded(_("The topic speaks to a model: name what the entry is about."))
    found = guarding.newly_speaks(ChangedText("", text))
    if found:
        detail = _(
            "The entry was not kept: %(where)s tell a model what to do, whom to believe or what to keep from "
            "people. Write what the user said or wants as a note about them."
        )
        guarding.refuse_at(found, text, detail)


def _locked(entry_id: uuid.UUID, actor: Actor) -> DiaryEntry:
    """The entry, with its person locked. Errors: NotFound, PersonRestricted for a key."""
    entry = locked_row(DiaryEntry, entry_id)
    if entry.end_user.restricted_at and not actor.is_operator:
        raise PersonRestricted
    return entry
