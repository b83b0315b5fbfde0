"""The diary: keys write entries. Nobody changes one; deleted and restored they are as all of a plain kind (plain.py).

The person is locked, so that a write and an erasure, or a write and a merge, follow each other. Secrets and
invisible letters are cut out. A key's text that speaks to a model is refused, with the place, as in memory files: what
an agent reads as its own notes steers it in every later conversation. Entries need no review otherwise, whoever the key
speaks for: only the agent that wrote them reads them.
"""

from datetime import datetime

from django.utils.translation import gettext as _

from memories import audit, conf, content_policy
from memories.audit import Actor
from memories.content_policy import Road
from memories.curation.statements import guarding
from memories.curation.statements.write_trust import WriteTrust
from memories.curation.writing import WriteResult, open_write
from memories.exceptions import InvalidInput, ReviewNeeded, TooManyEntries
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
