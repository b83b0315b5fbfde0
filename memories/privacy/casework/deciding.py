"""What staff decide about a case: approval, run, hold, refusal, extension, and the end of those that need no run."""

import uuid
from datetime import date, datetime

from django.utils.translation import gettext as _

from memories import conf
from memories.audit import Actor
from memories.exceptions import InvalidInput
from memories.models import ActorKind, CaseState, CaseType, PrivacyCase, RefusalGround
from memories.privacy.casework import changing, restricting, stages
from memories.privacy.casework.changing import Step
from memories.privacy.casework.errors import CaseSamePerson
from memories.privacy.casework.stages import Verb


def approve_case(
    *, case_id: uuid.UUID, expected_version: int | None, typed_id: str, actor: Actor, now: datetime
) -> PrivacyCase:
    """Let an erasure run, at once; `typed_id` is the person's id, typed by a second person.

    A command needs neither, nor does it mind other cases: whoever has a shell on the server can do it all. Errors:
    those of `changing`, CaseSamePerson, InvalidInput (typed_id), CaseElsewhereHeld.
    """
    with changing.changing(Step(Verb.APPROVE, case_id, expected_version, actor, now)) as case:
        if actor.kind != ActorKind.COMMAND:
            _check_second(case, actor)
            _check_typed(case, typed_id)
            restricting.check_unheld(case)
        case.state = CaseState.APPROVED
        case.approved_at = now
        case.approved_kind, case.approved_by = actor.kind, actor.id
        changing.wake(case)
    return case


def run_case(*, case_id: uuid.UUID, expected_version: int | None, actor: Actor, now: datetime) -> PrivacyCase:
    """Begin to make an export, or go on with what failed. Errors: those of `changing`, CaseElsewhereHeld."""
    with changing.changing(Step(Verb.RUN, case_id, expected_version, actor, now)) as case:
        if case.type == CaseType.ERASURE and actor.kind != ActorKind.COMMAND:
            restricting.check_unheld(case)
        case.state = CaseState.APPROVED if case.type == CaseType.ERASURE else CaseState.RUNNING
        # Of the run that failed; its step stays, from which the next one goes on.
        case.failure, case.attempts = "", 0
        case.lease_token = case.lease_until = None
        changing.wake(case)
    return case


def refuse_case(
    *,
    case_id: uuid.UUID,
    expected_version: int | None,
    ground: str,
    reason: str,
    actor: Actor,
    now: datetime,
) -> PrivacyCase:
    """End the case without doing what was asked; it restricts no longer. Errors: those of `changing`, InvalidInput
    (ground, reason)."""
    with changing.changing(Step(Verb.REFUSE, case_id, expected_version, actor, now)) as case:
        if ground not in RefusalGround.values:
            raise InvalidInput.at("ground", _("This is not one of the choices."), code="invalid_choice")
        case.refusal = ground
        case.refusal_reason = changing.said("reason", reason)
        case.held_from = ""
        end(case, CaseState.REFUSED, now=now)
    return case


def extend_case(
    *,
    case_id: uuid.UUID,
    expected_version: int | None,
    months: int,
    reason: str,
    notice_on: date,
    actor: Actor,
    now: datetime,
) -> PrivacyCase:
    """Give the case one or two months more, once; who asked was told on `notice_on`, within the first month.

    Errors: those of `changing`, InvalidInput (months, reason, notice_on).
    """
    with changing.changing(Step(Verb.EXTEND, case_id, expected_version, actor, now)) as case:
        if months not in stages.EXTENSION_MONTHS:
            raise InvalidInput.at("months", _("A case can be extended by one or two months."))
        _check_notice(case, notice_on, now)
        case.extension_reason = changing.said("reason", reason)
        case.extension_notice_on = notice_on
        case.extended_at = now
        case.due_at = stages.due_at(case.received_at, further_months=months)
    return case


def complete_case(
    *, case_id: uuid.UUID, expected_version: int | None, outcome: str, told: str, actor: Actor, now: datetime
) -> PrivacyCase:
    """End a rectification or a restriction: what came of it, and which recipients were told (Art. 19), if any.

    Errors: those of `changing`, InvalidInput (outcome, told).
    """
    with changing.changing(Step(Verb.COMPLETE, case_id, expected_version, actor, now)) as case:
        case.outcome = changing.said("outcome", outcome)
        case.told = changing.short("told", told.strip()) or case.told
        end(case, CaseState.COMPLETED, now=now)
    return case


def tell_recipients(
    *, case_id: uuid.UUID, expected_version: int | None, told: str, actor: Actor, now: datetime
) -> PrivacyCase:
    """Note who among the recipients of the data was told (Art. 19), in place of what was noted before.

    Errors: those of `changing`, InvalidInput (told).
    """
    with changing.changing(Step(Verb.TELL, case_id, expected_version, actor, now)) as case:
        case.told = changing.said("told", told)
    return case


def end(case: PrivacyCase, state: CaseState, *, now: datetime) -> None:
    """Close a locked case: it restricts the person no longer, unless another one does."""
    case.state = state
    case.completed_at = now
    restricting.lift(case)


def _check_second(case: PrivacyCase, actor: Actor) -> None:
    """As the constraint case_two_people has it."""
    of_a_key = case.opened_kind != ActorKind.OPERATOR
    if actor.id == case.opened_by or (of_a_key and actor.id == case.verified_by):
        raise CaseSamePerson


def _check_typed(case: PrivacyCase, typed_id: str) -> None:
    """The id that the person has now or, when they are gone, the one that was asked for."""
    person = case.find_person()
    same = typed_id == person.external_id if person else _is_subject(case, typed_id)
    if not same:
        raise InvalidInput.at("typed_id", _("This is not the id of the person: type it as it is shown."))


def _is_subject(case: PrivacyCase, typed_id: str) -> bool:
    return bytes(case.subject) == conf.digest_of_person(case.tenant_id, typed_id)


def _check_notice(case: PrivacyCase, notice_on: date, now: datetime) -> None:
    first, last = stages.notice_days(case)
    if not first <= notice_on <= min(last, now.date()):
        raise InvalidInput.at("notice_on", _("Who asked must have been told by now, within a month of the receipt."))
