"""Whether the two people that an erasure takes are two: ties between the accounts that began and approved a case.

Nobody can know who uses an account. The audit trail shows who made it, who set its password or made a link that
sets it, and when.
"""

import uuid
from collections.abc import Collection
from datetime import datetime, timedelta

from django.db.models import Q, TextChoices
from django.utils.translation import gettext_lazy as _

from memories.models import ActorKind, AuditEvent, Operator, PrivacyCase
from memories.models.access.operators import INVITATION_VALID

# Nobody approves a case with an account that its first person made or gave a password on the same day.
SAME_DAY = timedelta(hours=24)
RECENT = timedelta(days=30)
# The maker, the maker of the maker, and so on.
FURTHEST = 5
_MADE, _PASSWORD, _INVITED = Q(verb="add"), Q(verb="set_password"), Q(verb="invite")


class Tie(TextChoices):
    MADE = "made_by_other", _("One of the two accounts created the other.")
    PASSWORD = (
        "password_by_other",
        _("One of the two accounts set the other's password, or invited it, within the previous 30 days."),
    )
    RECENT = "recent_account", _("One of the two accounts was created within the previous 30 days.")


def first_of(case: PrivacyCase) -> str:
    """The id of the operator who is the first of the two; "" when there is none."""
    if case.opened_kind == ActorKind.OPERATOR:
        return case.opened_by
    return case.verified_by if case.verified_kind == ActorKind.OPERATOR else ""


def ties_of(case: PrivacyCase) -> list[str]:
    """Ties between the two people of an approved case, as codes of Tie; none when a command approved it."""
    first, second = first_of(case), case.approved_by
    if not (first and case.approved_at and case.approved_kind == ActorKind.OPERATOR):
        return []
    return [tie.value for tie in ties(first, second, at=case.approved_at)]


def ties(first: str, second: str, *, at: datetime) -> list[Tie]:
    """Ties between the two accounts at a moment."""
    if not (_is_account(first) and _is_account(second)):
        return []
    both = ((first, second), (second, first))
    found = {
        Tie.MADE: any(_is_maker(maker, made, at=at) for maker, made in both),
        Tie.PASSWORD: any(_gave_password(who, whose, since=at - RECENT, at=at) for who, whose in both),
        Tie.RECENT: Operator.objects.filter(pk__in=both[0], date_joined__gt=at - RECENT, date_joined__lte=at).exists(),
    }
    return [tie for tie, holds in found.items() if holds]


def is_own_of(first: str, second: str, *, at: datetime) -> bool:
    """Whether the first account made the second, or gave it a password or a link to set one, within the day before."""
    if not (_is_account(first) and _is_account(second)):
        return False
    since = at - SAME_DAY
    return _is_maker(first, second, at=at, since=since) or _gave_password(first, second, since=since, at=at)


def barred_until(first: str, second: str, *, at: datetime) -> datetime | None:
    """When the second account may approve what the first one began, if it may not at this moment.

    At the latest: an account that was made by one that the first one made may be free sooner.
    """
    if not is_own_of(first, second, at=at):
        return None
    events = AuditEvent.objects.filter(_MADE | _PASSWORD | _INVITED, object_type=Operator.__name__, object_id=second)
    since = at - SAME_DAY - INVITATION_VALID
    rows = events.filter(created_at__gt=since, created_at__lte=at).values_list("verb", "created_at")
    ends = sorted(made + SAME_DAY + (INVITATION_VALID if verb == "invite" else timedelta(0)) for verb, made in rows)
    return next((end for end in ends if end > at and not is_own_of(first, second, at=end)), None)


def given_lately(accounts: Collection[uuid.UUID], *, at: datetime) -> set[uuid.UUID]:
    """Those that were made, or given a password or an invitation, so lately that barred_until() may bar them."""
    since = at - SAME_DAY - INVITATION_VALID
    events = AuditEvent.objects.filter(_MADE | _PASSWORD | _INVITED, object_type=Operator.__name__)
    events = events.filter(object_id__in=accounts, created_at__gt=since, created_at__lte=at)
    return set(events.values_list("object_id", flat=True))


def _is_account(who: str) -> bool:
    try:
        return bool(uuid.UUID(who))
    except ValueError:
        return False


def _is_maker(maker: str, made: str, *, at: datetime, since: datetime | None = None) -> bool:
    """Whether one made the other, or made an account that did, and so on."""
    for _step in range(FURTHEST):
        events = AuditEvent.objects.filter(_MADE, object_type=Operator.__name__, object_id=made, created_at__lte=at)
        found = events.filter(created_at__gt=since) if since else events
        by = found.filter(actor_kind=ActorKind.OPERATOR).values_list("actor_id", flat=True).first()
        if by is None:
            return False
        if by == maker:
            return True
        made = by
    return False


def _gave_password(who: str, whose: str, *, since: datetime, at: datetime) -> bool:
    # Who made a link may have used it, as late as it works.
    return _by(_PASSWORD, who, whose, since=since, at=at) or _by(
        _INVITED, who, whose, since=since - INVITATION_VALID, at=at
    )


def _by(verb: Q, who: str, whose: str, *, since: datetime, at: datetime) -> bool:
    events = AuditEvent.objects.filter(verb, object_type=Operator.__name__, object_id=whose, actor_id=who)
    return events.filter(created_at__gt=since, created_at__lte=at).exists()
