"""The frame of every step of a case: the lock, the permitted actors, the version, the workflow, and the audit event."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from memories import audit
from memories.audit import Actor
from memories.exceptions import InvalidInput, NotFound, PreconditionFailed
from memories.models import EXPORTING, ActorKind, PrivacyCase
from memories.privacy.casework import workflow
from memories.privacy.casework.errors import CaseNeedsOperator
from memories.privacy.casework.workflow import CaseVerb
from memories.text.secrets.scrubbing import scrubbed_text

STAFF = (ActorKind.OPERATOR, ActorKind.COMMAND)
LONGEST_TEXT = 2000


@contextmanager
def changing(
    verb: CaseVerb, case_id: uuid.UUID, version: int | None, actor: Actor, now: datetime
) -> Iterator[PrivacyCase]:
    """Lock the case for the block; save and audit it at the end of the block, all in one transaction.

    `version` is the one that the actor saw, None when nobody looked. Errors: CaseNeedsOperator, NotFound,
    PreconditionFailed, those of the workflow.
    """
    with transaction.atomic():
        rows = PrivacyCase.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
        case = _check(rows.filter(pk=case_id).first(), verb, version, actor)
        yield case
        case.version += 1
        case.save()
        record(verb, case, actor=actor, now=now)


def checked(verb: CaseVerb, case_id: uuid.UUID, version: int | None, actor: Actor) -> PrivacyCase:
    """The case without a lock, when the step is possible now: for work that must come before the lock.

    Errors: those of `changing`.
    """
    case = PrivacyCase.objects.select_related("tenant").filter(pk=case_id).first()
    return _check(case, verb, version, actor)


def _check(case: PrivacyCase | None, verb: CaseVerb, version: int | None, actor: Actor) -> PrivacyCase:
    if case is None:
        raise NotFound
    if actor.kind not in STAFF and not _is_own_export(verb, case, actor):
        raise CaseNeedsOperator
    if version not in (None, case.version):
        raise PreconditionFailed
    if refusal := workflow.refusal_of(verb, case):
        raise refusal
    return case


def _is_own_export(verb: CaseVerb, case: PrivacyCase, actor: Actor) -> bool:
    """Whether the person starts the export that they asked for on their own page, which the application let them open:
    nobody else needs to check who they are."""
    is_own = actor.is_person and (case.opened_kind, case.opened_by) == (actor.kind, actor.id)
    return is_own and case.type in EXPORTING and verb in (CaseVerb.VERIFY, CaseVerb.RUN)


def record(verb: CaseVerb, case: PrivacyCase, *, actor: Actor, now: datetime) -> None:
    audit.record(actor=actor, verb=str(verb), target=case, now=now, case=case.pk)


def required_text(pointer: str, text: str) -> str:
    """A text that must be there, without secrets. Errors: InvalidInput when it is empty or too long."""
    text = text.strip()
    if not text:
        raise InvalidInput.at(pointer, _("Enter a few words."), code="required")
    return optional_text(pointer, text)


def optional_text(pointer: str, text: str, *, longest: int = LONGEST_TEXT) -> str:
    """A text that may be empty, without secrets. Errors: InvalidInput when it is too long, or holds a NUL."""
    if len(text) > longest or "\0" in text:
        raise InvalidInput.at(pointer, _("Enter at most %(count)s characters.") % {"count": longest})
    # The mark of a redaction can be longer than the secret that it replaces.
    return scrubbed_text(text, longest=longest)
