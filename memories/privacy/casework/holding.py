"""Legal hold: nothing runs while somebody needs the data, and both acts are in the trail."""

import uuid
from datetime import date, datetime

from django.utils.translation import gettext as _

from memories.audit import Actor
from memories.exceptions import InvalidInput
from memories.models import ActorKind, CaseState, PrivacyCase
from memories.privacy.casework import changing, restricting
from memories.privacy.casework.changing import Step
from memories.privacy.casework.stages import Verb


def hold_case(
    *,
    case_id: uuid.UUID,
    expected_version: int | None,
    reason: str,
    review_on: date,
    actor: Actor,
    now: datetime,
) -> PrivacyCase:
    """Stop the case where it is, until it is released; a run that has begun goes on. The restriction stays, and no
    other case of the person is approved meanwhile.

    Errors: those of `changing`, InvalidInput (reason, review_on), CaseElsewhereErased.
    """
    with changing.changing(Step(Verb.HOLD, case_id, expected_version, actor, now)) as case:
        if review_on < now.date():
            raise InvalidInput.at("review_on", _("The day of the review has passed."))
        restricting.check_holds(case)
        case.hold_reason = changing.said("reason", reason)
        case.hold_review_on = review_on
        case.held_at = now
        case.held_from, case.state = case.state, CaseState.ON_HOLD
    return case


def release_case(*, case_id: uuid.UUID, expected_version: int | None, actor: Actor, now: datetime) -> PrivacyCase:
    """Go on from where the case was held; an approved one runs at once.

    Errors: those of `changing`, CaseElsewhereHeld.
    """
    with changing.changing(Step(Verb.RELEASE, case_id, expected_version, actor, now)) as case:
        case.state, case.held_from = case.held_from, ""
        if case.state == CaseState.APPROVED:
            if actor.kind != ActorKind.COMMAND:
                restricting.check_unheld(case)
            changing.wake(case)
    return case
