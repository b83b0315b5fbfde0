"""The workflow of a privacy case: which verb is possible in which state, and when the case is due; pure.

Months are calendar months in UTC: a case received on 31 January is due on the last day of February.
"""

import calendar
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from enum import StrEnum

from memories.exceptions import Conflict
from memories.models import CLOSED, CaseState, CaseType, PrivacyCase
from memories.privacy.casework import errors

SOON_DAYS = 7
URGENT_DAYS = 2
OLDEST_RECEIPT = timedelta(days=366)
EXTENSION_MONTHS = (1, 2)


class CaseVerb(StrEnum):
    """The verbs of a case, which its audit events carry. Permissions are checked elsewhere."""

    OPEN = "open"
    VERIFY = "verify"
    SCOPE = "scope"
    APPROVE = "approve"
    RUN = "run"
    COMPLETE = "complete"
    HOLD = "hold"
    RELEASE = "release"
    EXTEND = "extend"
    TELL = "tell"
    REFUSE = "refuse"


class Level(StrEnum):
    """How near the due date is."""

    OK = "ok"
    SOON = "soon"
    URGENT = "urgent"
    OVERDUE = "overdue"


_S, _T = CaseState, CaseType
_ALL = frozenset(CaseType)
_DECIDED = frozenset({_T.RECTIFICATION, _T.RESTRICTION})
_EXPORTED = frozenset({_T.ACCESS, _T.PORTABILITY})
_ERASED = frozenset({_T.ERASURE})
_BEFORE_THE_RUN = frozenset({_S.RECEIVED, _S.VERIFIED, _S.SCOPED, _S.APPROVED})
_BEGUN = frozenset({_S.RUNNING, _S.VERIFYING})
_OPEN = frozenset(CaseState) - frozenset(CLOSED)

# Verb → type → the states in which it is possible. A type that is missing has no such verb.
MOVES: Mapping[CaseVerb, Mapping[CaseType, frozenset[CaseState]]] = {
    CaseVerb.VERIFY: dict.fromkeys(_ALL, frozenset({_S.RECEIVED})),
    # Repeatable: until somebody approves, both the preview and the policy can change.
    CaseVerb.SCOPE: dict.fromkeys(_ERASED | _EXPORTED, frozenset({_S.VERIFIED, _S.SCOPED})),
    CaseVerb.APPROVE: dict.fromkeys(_ERASED, frozenset({_S.SCOPED})),
    CaseVerb.RUN: {
        **dict.fromkeys(_ERASED, frozenset({_S.FAILED})),
        **dict.fromkeys(_EXPORTED, frozenset({_S.VERIFIED, _S.SCOPED, _S.FAILED})),
    },
    CaseVerb.COMPLETE: dict.fromkeys(_DECIDED, frozenset({_S.VERIFIED})),
    CaseVerb.HOLD: dict.fromkeys(_ALL, _BEFORE_THE_RUN | {_S.FAILED}),
    CaseVerb.RELEASE: dict.fromkeys(_ALL, frozenset({_S.ON_HOLD})),
    CaseVerb.EXTEND: dict.fromkeys(_ALL, _OPEN),
    # Art. 19 is about these three.
    CaseVerb.TELL: dict.fromkeys(_ERASED | _DECIDED, _OPEN - {_S.RECEIVED}),
    CaseVerb.REFUSE: {
        # An erasure that failed has deleted something: it can only be finished.
        **dict.fromkeys(_ERASED, _BEFORE_THE_RUN | {_S.ON_HOLD}),
        **dict.fromkeys(_EXPORTED | _DECIDED, _BEFORE_THE_RUN | {_S.ON_HOLD, _S.FAILED}),
    },
}


def refusal_of(verb: CaseVerb, case: PrivacyCase) -> type[Conflict] | None:
    """Why the verb is not possible now; None when it is."""
    state, type_ = CaseState(case.state), CaseType(case.type)
    possible = MOVES[verb].get(type_)
    if possible is None:
        return errors.CaseStepUnknown
    if state not in possible:
        return _refusal_in(state, verb)
    if verb == CaseVerb.EXTEND and case.extended_at:
        return errors.CaseExtended
    if verb == CaseVerb.REFUSE and state == _S.ON_HOLD and case.held_from not in possible:
        return errors.CaseBegun
    return None


def _refusal_in(state: CaseState, verb: CaseVerb) -> type[Conflict]:
    if state in CLOSED:
        return errors.CaseClosed
    if state == _S.ON_HOLD:
        return errors.CaseHeld
    if state in _BEGUN or (verb, state) == (CaseVerb.REFUSE, _S.FAILED):
        return errors.CaseBegun
    # A release of a case that is not on hold does not wait for an identity.
    is_unverified = state == _S.RECEIVED and verb != CaseVerb.RELEASE
    return errors.CaseUnverified if is_unverified else errors.CaseStepOutOfOrder


def verbs_of(case: PrivacyCase) -> tuple[str, ...]:
    """The verbs that are possible now, in the order of the workflow; permissions are another question."""
    return tuple(str(verb) for verb in MOVES if refusal_of(verb, case) is None)


def due_at(received_at: datetime, *, further_months: int = 0) -> datetime:
    """An answer is due a month after the receipt, or up to three with an extension (Art. 12(3))."""
    months = received_at.month + further_months
    year, month = received_at.year + months // 12, months % 12 + 1
    day = min(received_at.day, calendar.monthrange(year, month)[1])
    return received_at.replace(year=year, month=month, day=day)


def notice_days(case: PrivacyCase) -> tuple[date, date]:
    """First and last day on which the requester can be told of an extension: within the first month."""
    return case.received_at.date(), due_at(case.received_at).date()


def level_of(case: PrivacyCase, now: datetime) -> Level:
    """How urgent the case is; a closed one is not, unless its export waits to be handed over."""
    if case.state in CLOSED and not case.to_hand_over:
        return Level.OK
    if now > case.due_at:
        return Level.OVERDUE
    left = case.due_at - now
    if left <= timedelta(days=URGENT_DAYS):
        return Level.URGENT
    return Level.SOON if left <= timedelta(days=SOON_DAYS) else Level.OK
