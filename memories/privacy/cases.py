"""The verbs of privacy cases: admin, API and commands call these; only the run of a case changes it otherwise.

Each verb locks the case and then the person, raises the version of the case by one, records an audit event, and returns
the case. `expected_version` is the version that the actor saw; None when nobody looked. The errors that each verb can
raise beside its own are those of `frame.changing`.
"""

import uuid
from datetime import date, datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from memories import conf, outbox
from memories.audit import Actor
from memories.exceptions import InvalidInput, NotFound, PreconditionFailed
from memories.models import (
    ActorKind,
    Asker,
    CaseState,
    CaseType,
    EndUser,
    Event,
    IdentityCheck,
    PrivacyCase,
    RefusalGround,
    ReturnPolicy,
    Tenant,
)
from memories.outbox import WebhookEvent
from memories.privacy import case_leases, registry
from memories.privacy.casework import frame, restriction, workflow
from memories.privacy.casework.errors import CaseOwnAccount, CaseSamePerson
from memories.privacy.casework.frame import changing, optional_text, required_text
from memories.privacy.casework.workflow import CaseVerb
from memories.privacy.searching import mentions
from memories.privacy.trail import second_person

LONGEST_CHANNEL = 40
LONGEST_REFERENCE = 255
# The key of the preview that stands beside the stores.
MENTIONS = "mentions"
_Choices = type[CaseType | Asker | IdentityCheck | ReturnPolicy | RefusalGround]


def open_case(
    *,
    tenant: Tenant,
    user_id: str,
    type: str,  # noqa: A002 - the field's name
    actor: Actor,
    now: datetime,
    channel: str = "",
    reference: str = "",
    asked_by: str = Asker.SUBJECT,
    received_at: datetime | None = None,
) -> PrivacyCase:
    """Take in a request about the person whom the tenant calls `user_id`, received now or earlier.

    Errors: NotFound (no such person), InvalidInput (type, asked_by, received_at, channel, reference).
    """
    received_at = received_at or now
    if received_at > now:
        raise InvalidInput.at("received_at", _("The day of receipt cannot be in the future."))
    if received_at < now - workflow.OLDEST_RECEIPT:
        raise InvalidInput.at("received_at", _("The day of receipt cannot be more than a year ago."))
    with transaction.atomic():
        # Locked: an erasure that is ending at this moment is waited for, and then the person is not found.
        person = EndUser.objects.called(tenant, user_id).select_for_update(of=("self",), no_key=True).first()
        if person is None:
            raise NotFound
        case = PrivacyCase(
            tenant=tenant,
            end_user=person,
            subject=conf.digest_of_person(tenant.pk, user_id),
            type=_choice("type", CaseType, type),
            asked_by=_choice("asked_by", Asker, asked_by),
            channel=optional_text("channel", channel, longest=LONGEST_CHANNEL),
            reference=optional_text("reference", reference, longest=LONGEST_REFERENCE),
            received_at=received_at,
            due_at=workflow.due_at(received_at),
            opened_kind=actor.kind,
            opened_by=actor.id,
            created_at=now,
        )
        case.save(force_insert=True)
        frame.record(CaseVerb.OPEN, case, actor=actor, now=now)
        # Who asked is not told: the case says so to whoever may read it.
        data = {"case_id": case.pk, "type": case.type, "due_at": case.due_at}
        outbox.publish(tenant.pk, [WebhookEvent(Event.CASE_OPENED, data)], now=now, tenant=tenant)
    return case


def verify_identity(
    *, case_id: uuid.UUID, expected_version: int | None, how: str, actor: Actor, now: datetime
) -> PrivacyCase:
    """Note how the identity of the requester was checked, never what they showed.

    A case of a restricting type restricts the person from now on. Errors: InvalidInput (how).
    """
    with changing(CaseVerb.VERIFY, case_id, expected_version, actor, now) as case:
        case.state = CaseState.VERIFIED
        case.verified_at = now
        case.verified_how = _choice("how", IdentityCheck, how)
        case.verified_kind, case.verified_by = actor.kind, actor.id
        restriction.restrict(case, now=now)
    return case


def scope_case(
    *, case_id: uuid.UUID, expected_version: int | None, policy: str, actor: Actor, now: datetime
) -> PrivacyCase:
    """Count the person's rows, and set what an erasure means for whoever returns under the id.

    The case keeps the preview: store → rows, and under `mentions` place → rows of others that name the person. It can
    be repeated until the case is approved. Call it outside of any transaction. Errors: InvalidInput (policy).
    """
    seen = frame.checked(CaseVerb.SCOPE, case_id, expected_version, actor)
    policy = _choice("policy", ReturnPolicy, policy)
    # Counting may take seconds, and nobody should wait for it: it comes before the lock.
    person = seen.find_person()
    if person is None:
        preview: dict[str, Any] = {**{store.model: 0 for store in registry.all_stores()}, MENTIONS: {}}
    else:
        preview = {**registry.counts(person), MENTIONS: mentions.mentions_of(person)}
    with changing(CaseVerb.SCOPE, case_id, expected_version, actor, now) as case:
        if case.find_person() != person:
            # A merge, its undo or an erasure came between: these were somebody else's rows.
            raise PreconditionFailed
        case.state, case.preview = CaseState.SCOPED, preview
        case.policy, case.scoped_at = policy, now
    return case


def approve_case(
    *, case_id: uuid.UUID, expected_version: int | None, typed_id: str, actor: Actor, now: datetime
) -> PrivacyCase:
    """Let an erasure run at once; a second person types the person's id as `typed_id`.

    A command needs neither, and ignores other cases: whoever has a shell on the server can do it all. Errors:
    CaseSamePerson, CaseOwnAccount, InvalidInput (typed_id), CaseElsewhereHeld.
    """
    with changing(CaseVerb.APPROVE, case_id, expected_version, actor, now) as case:
        if actor.kind != ActorKind.COMMAND:
            _check_second_person(case, actor, now)
            _check_typed_id(case, typed_id)
            restriction.check_not_held(case)
        case.state = CaseState.APPROVED
        case.approved_at = now
        case.approved_kind, case.approved_by = actor.kind, actor.id
        case_leases.enqueue(case.pk)
    return case


def _check_second_person(case: PrivacyCase, actor: Actor, now: datetime) -> None:
    """As the constraint case_two_people has it; and the second account must not be one that the first person made."""
    opened_by_key = case.opened_kind != ActorKind.OPERATOR
    if actor.id == case.opened_by or (opened_by_key and actor.id == case.verified_by):
        raise CaseSamePerson
    first = second_person.first_of(case)
    if first and actor.is_operator and second_person.is_own_of(first, actor.id, at=now):
        raise CaseOwnAccount


def _check_typed_id(case: PrivacyCase, typed_id: str) -> None:
    """The id that the person has now or, when they are gone, the one that was asked for."""
    person = case.find_person()
    if person:
        is_same = typed_id == person.external_id
    else:
        is_same = bytes(case.subject) == conf.digest_of_person(case.tenant_id, typed_id)
    if not is_same:
        raise InvalidInput.at("typed_id", _("The id does not match. Type it as it is shown."))


def run_case(
    *, case_id: uuid.UUID, expected_version: int | None, actor: Actor, now: datetime, language: str = ""
) -> PrivacyCase:
    """Start an export, or continue a run that failed. `language`: of the file, one of the hub's; empty: the person's.

    Errors: CaseElsewhereHeld, InvalidInput (language).
    """
    if language and language not in dict(settings.LANGUAGES):
        raise InvalidInput.at("language", _("Choose one of the languages."))
    with changing(CaseVerb.RUN, case_id, expected_version, actor, now) as case:
        case.language = language
        if case.type == CaseType.ERASURE and actor.kind != ActorKind.COMMAND:
            restriction.check_not_held(case)
        case.state = CaseState.APPROVED if case.type == CaseType.ERASURE else CaseState.RUNNING
        # The step of the failed run stays: the next run continues there.
        case.failure, case.attempts = "", 0
        case.lease_token = case.lease_until = None
        case_leases.enqueue(case.pk)
    return case


def complete_case(
    *, case_id: uuid.UUID, expected_version: int | None, outcome: str, told: str, actor: Actor, now: datetime
) -> PrivacyCase:
    """End a rectification or a restriction: its outcome, and which recipients were told (Art. 19), if any.

    Errors: InvalidInput (outcome, told).
    """
    with changing(CaseVerb.COMPLETE, case_id, expected_version, actor, now) as case:
        case.outcome = required_text("outcome", outcome)
        case.told = optional_text("told", told.strip()) or case.told
        _close(case, CaseState.COMPLETED, now=now)
    return case


def tell_recipients(
    *, case_id: uuid.UUID, expected_version: int | None, told: str, actor: Actor, now: datetime
) -> PrivacyCase:
    """Note which recipients of the data were told (Art. 19), in place of the note before.

    Errors: InvalidInput (told).
    """
    with changing(CaseVerb.TELL, case_id, expected_version, actor, now) as case:
        case.told = required_text("told", told)
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
    """Extend the due date by one or two months, once; the requester was told on `notice_on`, within the first month.

    Errors: InvalidInput (months, reason, notice_on).
    """
    with changing(CaseVerb.EXTEND, case_id, expected_version, actor, now) as case:
        if months not in workflow.EXTENSION_MONTHS:
            raise InvalidInput.at("months", _("A case can be extended by one or two months."))
        first, last = workflow.notice_days(case)
        if not first <= notice_on <= min(last, now.date()):
            detail = _("The requester must have been informed by today, and within one month of receipt.")
            raise InvalidInput.at("notice_on", detail)
        case.extension_reason = required_text("reason", reason)
        case.extension_notice_on = notice_on
        case.extended_at = now
        case.due_at = workflow.due_at(case.received_at, further_months=months)
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
    """End the case without doing what was asked; it no longer restricts. Errors: InvalidInput (ground, reason)."""
    with changing(CaseVerb.REFUSE, case_id, expected_version, actor, now) as case:
        case.refusal = _choice("ground", RefusalGround, ground)
        case.refusal_reason = required_text("reason", reason)
        case.held_from = ""
        _close(case, CaseState.REFUSED, now=now)
    return case


def hold_case(
    *,
    case_id: uuid.UUID,
    expected_version: int | None,
    reason: str,
    review_on: date,
    actor: Actor,
    now: datetime,
) -> PrivacyCase:
    """Legal hold: stop the case where it is until it is released; a run that has begun goes on.

    The restriction stays, and no other case of the person is approved meanwhile. Errors: InvalidInput (reason,
    review_on), CaseElsewhereErased.
    """
    with changing(CaseVerb.HOLD, case_id, expected_version, actor, now) as case:
        if review_on < now.date():
            raise InvalidInput.at("review_on", _("The review day is in the past."))
        restriction.check_not_erased(case)
        case.hold_reason = required_text("reason", reason)
        case.hold_review_on = review_on
        case.held_at = now
        case.held_from, case.state = case.state, CaseState.ON_HOLD
    return case


def release_case(*, case_id: uuid.UUID, expected_version: int | None, actor: Actor, now: datetime) -> PrivacyCase:
    """Continue from where the case was held; an approved one runs at once. Errors: CaseElsewhereHeld."""
    with changing(CaseVerb.RELEASE, case_id, expected_version, actor, now) as case:
        case.state, case.held_from = case.held_from, ""
        if case.state == CaseState.APPROVED:
            if actor.kind != ActorKind.COMMAND:
                restriction.check_not_held(case)
            case_leases.enqueue(case.pk)
    return case


def _close(case: PrivacyCase, state: CaseState, *, now: datetime) -> None:
    case.state = state
    case.completed_at = now
    restriction.lift(case)


def _choice(pointer: str, choices: _Choices, value: str) -> str:
    if value not in choices.values:
        raise InvalidInput.at(pointer, _("This is not one of the choices."), code="invalid_choice")
    return value
