"""What a session's work waits for besides its turn in the queue: its model's endpoint, or the tenant's daily cap."""

from datetime import datetime
from functools import partial
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from memories.admin.access.tenant_scope import within
from memories.admin.dashboard import figures
from memories.admin.site.page import RecordPage
from memories.admin.site.wording import relative
from memories.models import LanguageModel, Tenant
from memories.queue import outages, spending


class WaitingListPage(RecordPage):
    """A list of work, above which stands what all of it waits for."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        extra = figures.model_waits(partial(within, request.user), now=timezone.now())
        return super().changelist_view(request, extra | (extra_context or {}))


def waits_of(tenant: Tenant, *, now: datetime) -> dict[str, Any]:
    """The context of model_waits.html."""
    outage = outages.outage_of(tenant.pk)
    caps = LanguageModel.objects.filter(tenant=tenant).select_related("tenant")
    return {"outages": [outage] if outage else [], "capped": spending.capped(caps, now=now)}


def when_taken(tenant: Tenant, *, now: datetime) -> str:
    """When a worker takes what is due now."""
    waits = waits_of(tenant, now=now)
    for outage in waits["outages"]:
        if outage.next_try is None:
            return _("The model endpoint does not answer: it is asked again now.")
        when = relative(outage.next_try, now=now)
        return _("The model endpoint does not answer: it is asked again %(when)s.") % {"when": when}
    for _tenant, day in waits["capped"]:
        return _("The daily cap is reached: it continues %(when)s.") % {"when": relative(day.ends_at, now=now)}
    return _("A worker takes it within two seconds.")
