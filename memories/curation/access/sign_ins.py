"""Counts failed sign-ins, and sweeps old attempts and browser sessions.

django-axes counts the failures of one name from one address. This module counts, in windows of an hour, what axes does
not: one name from many addresses, one address with many names.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Greatest

from memories import conf
from memories.models import FailedSignIns

Kind = FailedSignIns.SignInKind
# What is counted: its kind, and which one.
Counted = tuple[Kind, str]
WINDOW = timedelta(hours=1)
# A window begins with its first failure and is never prolonged: whoever is locked out is let in again within the hour,
# whatever others go on trying.
COUNT = """
    INSERT INTO memories_failedsignins AS f (kind, digest, began_at, failures) VALUES (%s, %s, %s, 1)
    ON CONFLICT (kind, digest) DO UPDATE SET
        failures = CASE WHEN f.began_at > %s THEN f.failures + 1 ELSE 1 END,
        began_at = CASE WHEN f.began_at > %s THEN f.began_at ELSE EXCLUDED.began_at END
"""


def count_failure(*, of: Sequence[Counted], now: datetime) -> None:
    """Count one failure of each; failures that many processes count at once all count."""
    with connection.cursor() as cursor:
        for kind, which in of:
            cursor.execute(COUNT, [kind.value, _digest(kind, which), now, now - WINDOW, now - WINDOW])


def shut_until(*, of: Sequence[Counted], now: datetime) -> datetime | None:
    """Until when one of these is locked out; None when none is."""
    limits = {Kind.ADDRESS: settings.MEMORYHUB_LOCKOUT_ADDRESS_FAILURES}
    beyond = Q(pk__in=[])
    for kind, which in of:
        most = limits.get(kind, settings.MEMORYHUB_LOCKOUT_NAME_FAILURES)
        beyond |= Q(kind=kind, digest=_digest(kind, which), failures__gte=most)
    began = FailedSignIns.objects.filter(beyond, began_at__gt=now - WINDOW).values_list("began_at", flat=True)
    return max(began) + WINDOW if began else None


def forgive(*, of: Sequence[Counted], failures: int) -> None:
    """After a sign-in, subtract that person's own failures, and not those of others."""
    if failures:
        _rows(of).update(failures=Greatest(F("failures") - failures, 0))


def forget_failures(*, of: Sequence[Counted] | None = None) -> None:
    """Lift the lockout of these at once; None: of all."""
    (FailedSignIns.objects.all() if of is None else _rows(of)).delete()


def sweep_sign_ins(*, now: datetime) -> None:
    """Delete attempts that no longer lock anybody out, and expired sessions."""
    AccessAttempt.objects.filter(attempt_time__lte=now - settings.AXES_COOLOFF_TIME).delete()
    FailedSignIns.objects.filter(began_at__lte=now - WINDOW).delete()
    Session.objects.filter(expire_date__lte=now).delete()


def _rows(of: Iterable[Counted]) -> QuerySet[FailedSignIns]:
    named = Q(pk__in=[])
    for kind, which in of:
        named |= Q(kind=kind, digest=_digest(kind, which))
    return FailedSignIns.objects.filter(named)


def _digest(kind: Kind, which: str) -> bytes:
    return conf.digest("failed sign-in", kind.value.encode(), which.encode())
