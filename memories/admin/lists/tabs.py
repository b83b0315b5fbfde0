"""The fixed tabs of the lists: filters for daily work, as data."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Model, OuterRef, Q, Subquery
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from memories import models
from memories.kinds import PLAIN
from memories.models import CLOSED, ActorKind, CaseState, CaseType, EpisodeStatus, Status, waits_for_handover
from memories.models.memories.facts import faded
from memories.queue import outages

# Query parameter.
TAB = "tab"
WEEK, DAY = timedelta(days=7), timedelta(days=1)
# Due work normally starts within seconds. /readyz uses the same limit.
OVERDUE = timedelta(seconds=60)
Run, Pass = models.ExtractionRun.RunStatus, models.DecayPass.PassState
FAILED = (Run.FAILED, Run.PARKED)
# A held pass waits for somebody only until the next one begins.
_NEWEST_PASS = models.DecayPass.objects.filter(tenant=OuterRef("tenant")).values("pk")[:1]
_ACTIVE, _ACTIVE_EPISODE = Q(status=Status.ACTIVE), Q(status=EpisodeStatus.ACTIVE)


@dataclass(frozen=True)
class Tab:
    """`column`: the list's column of a moment that this tab shows instead of the last one and sorts by, soonest first.
    Sorted otherwise, the database would look through the newest of all rows for the few that the tab shows."""

    slug: str
    title: str | Promise
    where: Callable[[datetime], Q]
    column: str = ""


def _usable(now: datetime) -> Q:
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))


def _unanswered(now: datetime) -> Q:
    return ~Q(state__in=CLOSED) | waits_for_handover(now)


def _soon(field: str, now: datetime) -> Q:
    return Q(**{f"{field}__gt": now, f"{field}__lte": now + WEEK})


TABS: dict[type[Model], tuple[Tab, ...]] = {
    models.EndUser: (
        Tab("new", _("New this week"), lambda now: Q(created_at__gte=now - WEEK)),
        Tab("restricted", _("Restricted"), lambda _now: Q(restricted_at__isnull=False)),
        Tab("switched_off", _("Switched off"), lambda _now: Q(capture=False) | Q(serve=False)),
    ),
    models.Fact: (
        Tab("waiting", _("Pending"), lambda _now: Q(status=Status.PENDING)),
        Tab("expiring", _("Expires this week"), lambda now: _ACTIVE & _soon("expires_at", now), "expires"),
        # Memories of people under restriction stay.
        Tab("next_pass", _("In the next clean-up"), lambda now: faded(now) & Q(end_user__restricted_at=None), "fades"),
        Tab("fading", _("Fades this week"), lambda now: _ACTIVE & Q(forget_at__lte=now + WEEK), "fades"),
        Tab("pinned", _("Pinned"), lambda _now: _ACTIVE & Q(pinned=True)),
        Tab("locked", _("Locked"), lambda _now: _ACTIVE & Q(locked=True)),
        Tab("binding", _("Confirmed"), lambda _now: _ACTIVE & Q(binding=True)),
        Tab("trash", _("Trash"), lambda _now: Q(status=Status.TRASHED)),
    ),
    models.Episode: (
        Tab("waiting", _("Pending"), lambda _now: Q(status=EpisodeStatus.PENDING)),
        Tab("fading", _("Fades this week"), lambda now: _ACTIVE_EPISODE & Q(forget_at__lte=now + WEEK), "fades"),
        Tab("pinned", _("Pinned"), lambda _now: _ACTIVE_EPISODE & Q(pinned=True)),
        Tab("trash", _("Trash"), lambda _now: Q(status=EpisodeStatus.TRASHED)),
    ),
    models.Session: (
        Tab("queued", _("In the queue"), lambda _now: Q(queue__parked_at=None, queue__due_at__isnull=False)),
        Tab("due", _("Due"), lambda now: Q(queue__parked_at=None, queue__due_at__lte=now)),
        Tab("overdue", _("Overdue"), lambda now: Q(queue__parked_at=None, queue__due_at__lte=now - OVERDUE)),
        Tab("scheduled", _("Scheduled"), lambda now: Q(queue__parked_at=None, queue__due_at__gt=now)),
        Tab("parked", _("Extraction parked"), lambda _now: Q(queue__parked_at__isnull=False)),
        Tab("outage", _("Waiting for the model"), lambda _now: outages.waiting()),
        Tab("window_parked", _("Working memory parked"), lambda _now: Q(working_memory__parked_at__isnull=False)),
    ),
    models.ExtractionRun: (
        Tab("running", _("Running"), lambda _now: Q(status=Run.RUNNING)),
        Tab("failed_today", _("Failed in 24 hours"), lambda now: Q(status__in=FAILED, started_at__gte=now - DAY)),
        Tab("failed", _("Failed this week"), lambda now: Q(status=Run.FAILED, started_at__gte=now - WEEK)),
        Tab("parked", _("Parked this week"), lambda now: Q(status=Run.PARKED, started_at__gte=now - WEEK)),
    ),
    models.MemoryFile: (
        Tab("locked", _("Locked"), lambda _now: Q(trashed_at=None, locked=True)),
        Tab("scratch", _("Scratch"), lambda now: Q(trashed_at=None, expires_at__gt=now)),
        Tab("trash", _("Trash"), lambda _now: Q(trashed_at__isnull=False)),
    ),
    **{kind.model: (Tab("trash", _("Trash"), lambda _now: Q(trashed_at__isnull=False)),) for kind in PLAIN},
    models.GraphTriple: (
        Tab("pending", _("Waits for an operator"), lambda _now: Q(status="pending")),
        Tab("open", _("Holds"), lambda now: Q(status="active") & (Q(valid_to=None) | Q(valid_to__gt=now))),
        Tab("ended", _("No longer holds"), lambda now: Q(status="active", valid_to__lte=now)),
    ),
    models.Dream: (
        Tab("waiting", _("To approve"), lambda _now: Q(state="waiting")),
        Tab("doubted", _("To look at"), lambda _now: Q(doubted_at__isnull=False)),
        Tab("week", _("This week"), lambda now: Q(started_at__gte=now - WEEK)),
        Tab("failed", _("Failed this week"), lambda now: Q(state="failed", started_at__gte=now - WEEK)),
    ),
    models.Skill: (
        Tab("waiting", _("To review"), lambda _now: Q(waits_since__isnull=False)),
        Tab("serving", _("In use"), lambda _now: Q(status="serving")),
        Tab("withdrawn", _("Withdrawn"), lambda _now: Q(status="withdrawn")),
    ),
    models.StoreItem: (
        Tab("people", _("Of end users"), lambda _now: Q(end_user__isnull=False)),
        Tab("own", _("The tenant's own"), lambda _now: Q(end_user=None)),
        Tab("expiring", _("Expires this week"), lambda now: _soon("expires_at", now)),
    ),
    models.DecayPass: (
        Tab("held", _("Held"), lambda _now: Q(state=Pass.HELD, pk=Subquery(_NEWEST_PASS))),
        Tab("week", _("This week"), lambda now: Q(started_at__gte=now - WEEK)),
    ),
    models.PrivacyCase: (
        Tab("open", _("Open"), _unanswered),
        Tab("overdue", _("Overdue"), lambda now: _unanswered(now) & Q(due_at__lt=now)),
        Tab("week", _("Due this week"), lambda now: _unanswered(now) & _soon("due_at", now)),
        Tab("approval", _("To approve"), lambda _now: Q(type=CaseType.ERASURE, state=CaseState.SCOPED)),
        Tab("running", _("Running"), lambda _now: Q(state__in=[CaseState.RUNNING, CaseState.VERIFYING])),
        Tab("handover", _("To hand over"), waits_for_handover),
        Tab("stopped", _("On hold or failed"), lambda _now: Q(state__in=[CaseState.ON_HOLD, CaseState.FAILED])),
        Tab("closed", _("Closed"), lambda now: ~_unanswered(now)),
    ),
    models.APIKey: (
        Tab("active", _("Active"), _usable),
        Tab("expiring", _("Expires this week"), lambda now: Q(revoked_at=None) & _soon("expires_at", now)),
        Tab("bound", _("For one end user or agent"), lambda _now: ~Q(user_id="") | ~Q(agent_id="")),
        Tab("unused", _("Never used"), lambda now: _usable(now) & Q(last_used_at=None)),
        Tab("revoked", _("Revoked"), lambda _now: Q(revoked_at__isnull=False)),
    ),
    models.WebhookEndpoint: (
        Tab("stopped", _("Disabled because they failed"), lambda _now: Q(disabled_for__in=["failing", "gone"])),
        Tab("failing", _("Failing"), lambda _now: Q(disabled_at=None, failures__gt=0)),
    ),
    models.Tenant: (
        Tab("switched_off", _("Switched off"), lambda _now: Q(capture=False) | Q(serve=False)),
        Tab("off_boarded", _("Off-boarded"), lambda _now: Q(offboarded_at__isnull=False)),
    ),
    models.AuditEvent: (
        Tab("today", _("Last 24 hours"), lambda now: Q(created_at__gte=now - timedelta(days=1))),
        Tab("operators", _("By operators"), lambda _now: Q(actor_kind=ActorKind.OPERATOR)),
        Tab("exports", _("Exports"), lambda _now: Q(verb="export")),
    ),
    models.Operator: (
        Tab("shut_out", _("Cannot sign in"), lambda _now: Q(is_active=False)),
        Tab("never", _("Never signed in"), lambda _now: Q(last_login=None)),
    ),
}


def tabs_of(model: type[Model]) -> tuple[Tab, ...]:
    return TABS.get(model, ())


def named(model: type[Model], slug: str) -> Tab | None:
    return next((tab for tab in tabs_of(model) if tab.slug == slug), None)


def where(model: type[Model], slug: str, *, now: datetime) -> Q:
    """The tab's condition; for an unknown tab none."""
    tab = named(model, slug)
    return tab.where(now) if tab else Q()
