"""The frame of every step of a case: the lock, who may, the version, the table of steps, and the trail."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _
from django_q.tasks import async_task

from memories import audit
from memories.audit import Actor
from memories.exceptions import InvalidInput, NotFound, PreconditionFailed
from memories.models import ActorKind, PrivacyCase, Tenant
from memories.pipeline.redaction import redact_text
from memories.privacy.casework import stages
from memories.privacy.casework.errors import CaseNeedsOperator
from memories.privacy.casework.stages import Verb

RUN_TASK = "memories.tasks.run_case"
STAFF = (ActorKind.OPERATOR, ActorKind.COMMAND)
LONGEST_TEXT = 2000


@dataclass(frozen=True)
class Step:
    """What somebody does to a case, and when; `version` is of the case as they saw it, None when nobody looked."""

    verb: Verb
    case_id: uuid.UUID
    version: int | None
    actor: Actor
    now: datetime


def find_case(*, tenant: Tenant, case_id: uuid.UUID) -> PrivacyCase:
    """A case of the tenant. Errors: NotFound."""
    found = PrivacyCase.objects.filter(tenant=tenant, pk=case_id).first()
    if found is None:
        raise NotFound
    found.tenant = tenant
    return found


def looked_at(step: Step) -> PrivacyCase:
    """The case as it is, when this step would be possible now; of what takes long before it can be locked.

    Errors: those of `changing`.
    """
    case = PrivacyCase.objects.select_related("tenant").filter(pk=step.case_id).first()
    if case is None:
        raise NotFound
    _check(step, case)
    return case


@contextmanager
def changing(step: Step) -> Iterator[PrivacyCase]:
    """The locked case, to be changed by this step; saved and audited at the end of the block, all in one transaction.

    Errors: CaseNeedsOperator, NotFound, PreconditionFailed, those of the table of steps.
    """
    with transaction.atomic():
        case = _locked(step.case_id)
        _check(step, case)
        yield case
        case.version += 1
        case.save()
        record(step.verb, case, actor=step.actor, now=step.now)


def record(verb: Verb, case: PrivacyCase, *, actor: Actor, now: datetime) -> None:
    """The event of a step, in the trail of the case."""
    audit.record(actor=actor, verb=str(verb), target=case, object_id=case.pk, tenant=case.tenant, now=now, case=case.pk)


def wake(case: PrivacyCase) -> None:
    """Have a worker look at the case, from when this transaction is committed: the wake-up is a row as well."""
    async_task(RUN_TASK, str(case.pk))


def said(pointer: str, text: str, *, longest: int = LONGEST_TEXT) -> str:
    """What had to be said. Errors: InvalidInput when it was not, or is too long."""
    text = text.strip()
    if not text:
        raise InvalidInput.at(pointer, _("Say it in a few words."), code="required")
    return short(pointer, text, longest=longest)


def short(pointer: str, text: str, *, longest: int = LONGEST_TEXT) -> str:
    """A text that may be empty, without secrets. Errors: InvalidInput when it is too long for its column, or holds a
    NUL."""
    if len(text) > longest or "\0" in text:
        raise InvalidInput.at(pointer, _("This may have at most %(count)s characters.") % {"count": longest})
    # A mark may be longer than the secret in whose place it stands.
    return redact_text(text)[0][:longest]


def _check(step: Step, case: PrivacyCase) -> None:
    if step.actor.kind not in STAFF:
        raise CaseNeedsOperator
    if step.version not in (None, case.version):
        raise PreconditionFailed
    if refusal := stages.refusal_of(step.verb, case):
        raise refusal


def _locked(case_id: uuid.UUID) -> PrivacyCase:
    rows = PrivacyCase.objects.select_for_update(of=("self",), no_key=True).select_related("tenant")
    case = rows.filter(pk=case_id).first()
    if case is None:
        raise NotFound
    return case
