"""What waits for the operator: per kind of work how many, since when, and the list that shows just these."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Model, QuerySet
from django.urls import reverse
from django.utils.translation import ngettext_lazy

from memories.admin.dashboard.figures import ToReview, Within
from memories.admin.lists import tabs
from memories.db.counts import RowTally, tallies
from memories.models import (
    APIKey,
    DecayPass,
    Dream,
    GraphTriple,
    PrivacyCase,
    ReviewItem,
    Session,
    Skill,
    WebhookEndpoint,
)
from memories.queue.outages import Outage


@dataclass(frozen=True)
class Work:
    """A kind of work: who does it, the list and its tab, the moment that ages it, and its words.

    `waits`: whether the moment is the start of the wait or what it must be done
    by. `is_urgent`: red.
    """

    permission: str
    model: type[Model]
    tab: str
    moment: str
    icon: str
    text: Any
    waits: bool = True
    is_urgent: bool = False

    def rows(self, now: datetime) -> QuerySet[Any]:
        if self.model is ReviewItem:
            return ReviewItem.objects.waiting()
        return self.model._default_manager.filter(tabs.where(self.model, self.tab, now=now))

    @property
    def link(self) -> str:
        if self.model is ReviewItem:
            return reverse("admin:memories_reviewitem_queue")
        return f"{reverse(f'admin:memories_{self.model._meta.model_name}_changelist')}?{tabs.TAB}={self.tab}"


@dataclass(frozen=True)
class Need:
    """Some work that waits: `text` says how many, `moment` since when the oldest does, or when the first is due."""

    icon: str
    text: str
    moment: datetime | None
    waits: bool
    link: str
    is_urgent: bool


# In the order of the page: what has a deadline by law, what stops the machine, then the daily work.
WORK = (
    Work(
        "memories.change_privacycase",
        PrivacyCase,
        "overdue",
        "due_at",
        "error",
        ngettext_lazy("%(count)s privacy case is overdue", "%(count)s privacy cases are overdue", "count"),
        is_urgent=True,
    ),
    Work(
        "memories.approve_privacycase",
        PrivacyCase,
        "approval",
        "scoped_at",
        "verified_user",
        ngettext_lazy("%(count)s erasure waits for approval", "%(count)s erasures wait for approval", "count"),
    ),
    Work(
        "memories.change_privacycase",
        PrivacyCase,
        "handover",
        "completed_at",
        "outbox",
        ngettext_lazy("%(count)s file is to be handed over", "%(count)s files are to be handed over", "count"),
    ),
    Work(
        "memories.change_privacycase",
        PrivacyCase,
        "stopped",
        "due_at",
        "pause_circle",
        ngettext_lazy(
            "%(count)s privacy case is on hold or failed", "%(count)s privacy cases are on hold or failed", "count"
        ),
        waits=False,
    ),
    Work(
        "memories.change_privacycase",
        PrivacyCase,
        "week",
        "due_at",
        "hourglass_bottom",
        ngettext_lazy("%(count)s privacy case is due this week", "%(count)s privacy cases are due this week", "count"),
        waits=False,
    ),
    Work(
        "memories.change_session",
        Session,
        "outage",
        "",
        "cloud_off",
        ngettext_lazy(
            "The model does not answer: %(count)s session waits",
            "The model does not answer: %(count)s sessions wait",
            "count",
        ),
        is_urgent=True,
    ),
    Work(
        "memories.change_session",
        Session,
        "parked",
        "queue__parked_at",
        "report",
        ngettext_lazy(
            "Extraction is parked for %(count)s session", "Extraction is parked for %(count)s sessions", "count"
        ),
        is_urgent=True,
    ),
    Work(
        "memories.change_session",
        Session,
        "window_parked",
        "working_memory__parked_at",
        "report",
        ngettext_lazy(
            "Working memory is parked for %(count)s session", "Working memory is parked for %(count)s sessions", "count"
        ),
        is_urgent=True,
    ),
    Work(
        "memories.change_webhookendpoint",
        WebhookEndpoint,
        "stopped",
        "disabled_at",
        "webhook",
        ngettext_lazy(
            "%(count)s webhook failed and is disabled", "%(count)s webhooks failed and are disabled", "count"
        ),
        is_urgent=True,
    ),
    Work(
        "memories.change_decaypass",
        DecayPass,
        "held",
        "started_at",
        "front_hand",
        ngettext_lazy("%(count)s clean-up is held", "%(count)s clean-ups are held", "count"),
    ),
    Work(
        "memories.change_dream",
        Dream,
        "doubted",
        "doubted_at",
        "bedtime",
        ngettext_lazy("%(count)s dream to look at", "%(count)s dreams to look at", "count"),
    ),
    Work(
        "memories.change_reviewitem",
        ReviewItem,
        "",
        "created_at",
        "rule",
        ngettext_lazy("%(count)s item to review", "%(count)s items to review", "count"),
    ),
    Work(
        "memories.change_skill",
        Skill,
        "waiting",
        "waits_since",
        "school",
        ngettext_lazy("%(count)s skill to review", "%(count)s skills to review", "count"),
    ),
    Work(
        "memories.change_graphtriple",
        GraphTriple,
        "pending",
        "created_at",
        "hub",
        ngettext_lazy("%(count)s triple waits for an operator", "%(count)s triples wait for an operator", "count"),
    ),
    Work(
        "memories.change_apikey",
        APIKey,
        "expiring",
        "expires_at",
        "key",
        ngettext_lazy("%(count)s API key expires this week", "%(count)s API keys expire this week", "count"),
        waits=False,
    ),
)


def needs(
    within: Within,
    has_perm: Callable[[str], bool],
    *,
    review: ToReview | None,
    outages: Sequence[Outage],
    now: datetime,
) -> list[Need]:
    """What waits for somebody with these permissions, of the work that they can do. One query.

    `review` (None: they see no items) and `outages` are counted already, as the page shows them elsewhere, too.
    """
    works = [work for work in WORK if has_perm(work.permission)]
    tallied = [_tallied(work, review, outages) for work in works]
    others = iter(
        tallies((within(work.rows(now)), work.moment) for work, one in zip(works, tallied, strict=True) if one is None)
    )
    found = []
    for work, one in zip(works, tallied, strict=True):
        count, first = one or next(others)
        if count or (work.tab == "outage" and outages):
            text = str(work.text % {"count": count})
            found.append(Need(work.icon, text, first, work.waits, work.link, work.is_urgent))
    return found


def _tallied(work: Work, review: ToReview | None, outages: Sequence[Outage]) -> RowTally | None:
    """What the page has counted already."""
    if work.model is ReviewItem:
        return RowTally(review.waiting, review.oldest) if review else RowTally(0, None)
    if work.tab == "outage":
        since = min((outage.since for outage in outages if outage.since), default=None)
        return RowTally(sum(outage.waiting for outage in outages), since)
    return None
