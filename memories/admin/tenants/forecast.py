"""The forecast of forgetting: what of a tenant is due on each of the next days, if nothing recalls or confirms it."""

from collections import defaultdict
from datetime import date, datetime, timedelta
from datetime import time as clock_time

from django.db.models import Count
from django.db.models.functions import TruncDate
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memories.admin.dashboard.charts import Chart, Series, stacked
from memories.forgetting import trash
from memories.models import Tenant

DAYS = 30
SERIES = {
    "facts": Series("served", _("Faded facts")),
    "episodes": Series("gone", _("Faded episodes")),
    "expired": Series("waiting", _("Expired")),
}


def forecast(tenant: Tenant, *, now: datetime) -> Chart:
    """The days are those of the operator's time zone, today first; today has what is due already.

    What both fades and expires within these days counts once, on the day on which it expires.
    """
    today = timezone.localdate(now)
    days = [today + timedelta(days=ahead) for ahead in range(DAYS)]
    # The last moment of the last day: what falls due at midnight is the next day's.
    end = timezone.make_aware(datetime.combine(days[-1], clock_time.max))
    per_day: dict[date, dict[str, int]] = defaultdict(lambda: dict.fromkeys(SERIES, 0))
    for group in (*trash.EXPIRED, *trash.FADED):
        rows = trash.due(group, tenant, as_of=end).order_by().annotate(on=TruncDate(group.moment))
        for on, count in rows.values_list("on").annotate(count=Count("pk")):
            per_day[max(on, today)][group.counted] += count
    values = {day: list(counts.values()) for day, counts in per_day.items()}
    return stacked(days, list(SERIES.values()), values)
