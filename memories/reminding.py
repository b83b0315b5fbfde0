"""Mail to operators who asked for it: privacy cases that are opened or near their day, and queues that grow long.

A reminder is a row, unique for operator and occasion, so that each is made once however often somebody looks. Workers
send rows under a lease: one that dies after the mail and before the mark sends it twice. A mail names tenant, kind and
date, and leads to the page; it says nothing of anybody.
"""

import logging
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from memories.models import Operator, OperatorMail, PrivacyCase, ReviewItem
from memories.privacy import reminders
from memories.privacy.casework.workflow import Level, level_of
from memories.queue import backlog, leases
from memories.queue.leases import Lease
from memories.time_zones import zone_or_utc

# A case that was opened longer ago is no news.
NEWS = timedelta(days=1)
# Sessions that a worker could have taken for so long, and review items that wait for so long.
LONG_QUEUE = timedelta(minutes=15)
LONG_REVIEW = timedelta(days=7)
PAUSE = timedelta(minutes=5)
# Longer than anything is reminded of.
KEPT = timedelta(days=90)
FAILED = "mail"

Kind = OperatorMail.Kind

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reminder:
    """What somebody may be reminded of, and who may see it."""

    kind: OperatorMail.Kind
    once: str
    permission: str
    tenant: uuid.UUID | None = None
    about: uuid.UUID | None = None


def remind(*, now: datetime) -> int:
    """Make the reminders that are missing, and send those that wait; how many were sent.

    Without a mail server it does nothing.
    """
    if not settings.MEMORYHUB_SENDS_MAIL:
        return 0
    readers = list(Operator.objects.filter(Q(mail_cases=True) | Q(mail_queues=True), is_active=True).exclude(email=""))
    if readers:
        occasions = [*_cases(now), *_queues(now)]
        made = [row for reader in readers for row in _reminders(reader, occasions, now)]
        OperatorMail.objects.bulk_create(made, ignore_conflicts=True)
    OperatorMail.objects.filter(created_at__lt=now - KEPT).delete()
    return sum(_send(work, now=now) for work in _claimed())


def _cases(now: datetime) -> Iterator[Reminder]:
    opened = PrivacyCase.objects.unanswered(now).filter(created_at__gt=now - NEWS)
    for case in opened.order_by("created_at", "pk"):
        yield _of_case(Kind.CASE_OPENED, case, "opened")
    for case in reminders.near(now=now):
        yield _of_case(Kind.CASE_DUE, case, f"{case.due_at.date()}:{level_of(case, now)}")


def _of_case(kind: OperatorMail.Kind, case: PrivacyCase, which: str) -> Reminder:
    once = f"case:{case.pk.hex}:{which}"
    return Reminder(kind, once, "memories.view_privacycase", tenant=case.tenant_id, about=case.pk)


def _queues(now: datetime) -> Iterator[Reminder]:
    if backlog.overdue_seconds() >= LONG_QUEUE.total_seconds():
        yield Reminder(Kind.LONG_QUEUE, f"queue:{now.date()}", "memories.view_session")
    old = ReviewItem.objects.waiting().filter(created_at__lte=now - LONG_REVIEW)
    year, week, _day = now.isocalendar()
    for tenant in old.order_by("tenant").values_list("tenant", flat=True).distinct():
        once = f"review:{tenant.hex}:{year}-{week}"
        yield Reminder(Kind.LONG_REVIEW, once, "memories.view_reviewitem", tenant=tenant)


def _reminders(operator: Operator, occasions: list[Reminder], now: datetime) -> Iterator[OperatorMail]:
    """Of what the operator asked for and may see."""
    within = None if operator.all_tenants else set(operator.tenants.values_list("pk", flat=True))
    for one in occasions:
        is_asked_for = operator.mail_cases if one.kind in (Kind.CASE_OPENED, Kind.CASE_DUE) else operator.mail_queues
        may_see = operator.has_perm(one.permission) and (within is None or one.tenant in within)
        if is_asked_for and may_see:
            yield OperatorMail(
                operator=operator, tenant_id=one.tenant, kind=one.kind, about=one.about, once=one.once, created_at=now
            )


def _claimed() -> Iterator[Lease[OperatorMail]]:
    waiting = OperatorMail.objects.waiting().filter(attempts__lt=leases.MOST_ATTEMPTS)
    for row_id in list(waiting.free().order_by("created_at", "pk").values_list("pk", flat=True)):
        with transaction.atomic():
            row = leases.lock(waiting.free().select_related("operator", "tenant"), row_id)
            token = leases.take(row, give_up=lambda _row: None) if row else None
        if row and token:
            yield Lease(row=row, token=token)


def _send(work: Lease[OperatorMail], *, now: datetime) -> bool:
    row, operator = work.row, work.row.operator
    with (
        translation.override(operator.language or settings.LANGUAGE_CODE),
        timezone.override(zone_or_utc(operator.time_zone)),
    ):
        text = _text(row, now)
        subject = _("Memory Hub: %(what)s") % {"what": row.get_kind_display()}
    try:
        if text and operator.is_active and operator.email:
            send_mail(subject, text, None, [operator.email])
    except OSError as error:
        # Not the message: servers repeat the address in it.
        logger.warning("A reminder could not be sent: %s", type(error).__name__)
        leases.release(work, pause=PAUSE * row.attempts, failure=FAILED)
        return False
    leases.release(work, sent_at=now, failure="")
    return bool(text)


def _text(row: OperatorMail, now: datetime) -> str:
    """The words of the mail; empty if there is nothing to remind of any more."""
    if row.about:
        case = PrivacyCase.objects.unanswered(now).filter(pk=row.about).select_related("tenant").first()
        return _of(case, now) if case else ""
    if row.kind == Kind.LONG_QUEUE:
        link = _link("admin:memories_session_changelist") + "?tab=overdue"
        return _("Sessions have waited for extraction for more than 15 minutes.\n\n%(link)s") % {"link": link}
    link = _link("admin:memories_reviewitem_queue")
    words = {"tenant": row.tenant.slug if row.tenant else "", "link": link}
    return _("In %(tenant)s, something has waited for review for more than a week.\n\n%(link)s") % words


def _of(case: PrivacyCase, now: datetime) -> str:
    words = {
        "type": case.get_type_display(),
        "tenant": case.tenant.slug,
        "day": date_format(timezone.localtime(case.due_at), "Y-m-d"),
        "link": _link("admin:memories_privacycase_change", case.pk),
    }
    if level_of(case, now) == Level.OVERDUE:
        return _("A privacy case of %(tenant)s (%(type)s) was due on %(day)s.\n\n%(link)s") % words
    return _("A privacy case of %(tenant)s (%(type)s) is due on %(day)s.\n\n%(link)s") % words


def _link(name: str, *args: uuid.UUID) -> str:
    return f"{settings.PUBLIC_URL}{reverse(name, args=args)}"
